"""Histories that the caller holds: a list of messages for `fit` and `count`, or a framework's own history.

`given` reads the caller's input, `fitted` and `counts` work on a list alone, and `followed` keeps a thread of the
engine in step with a history that grows elsewhere. `vectors` stores embeddings of the messages of threads.
"""
