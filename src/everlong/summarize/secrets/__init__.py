"""Find and remove secrets in texts that another model reads.

`shapes` recognises secrets by their own form, `forms` by the command, header or file around them, `names` by the name
before them, and `runs` because they are random. `redaction` uses all four, piece by piece.
"""
