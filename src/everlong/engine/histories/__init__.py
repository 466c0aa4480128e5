"""Histories that someone else holds: a list of messages that `fit` and `count` are given, a framework's own history.

`given` reads what callers have, `fitted` and `counts` answer for a list alone, `followed` keeps a thread of the engine in
step with a history that grows elsewhere.
"""
