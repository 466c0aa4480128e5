"""Read the text of attached files, in sections with their tokens, so that a part of a file can be sent.

`kinds` says what a file is and how large it may be, `reader` runs in a separate process with limits, and `process`
starts it and counts tokens. Nothing here stores a file.
"""
