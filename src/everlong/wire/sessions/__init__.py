"""Session files of other programs, read and written: one module a format, and what they share.

A record is a line of such a file (`wire.document`). Every module reads a record, writes it again as equal JSON, and
says what all records together amount to: the conversation, valid, in the order a model would see it.
"""
