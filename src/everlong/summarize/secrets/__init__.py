"""Secrets in a text that another model would read: how they are known, and how they are taken out.

`shapes` knows secrets by their own form, `forms` by the command, header or file they stand in, `names` by the name before
them, `randomness` by nothing but that nobody would write them by hand. `redaction` asks all four, piece by piece.
"""
