"""Payloads of every format to messages and back. Pure: no network, no files, no clock."""
