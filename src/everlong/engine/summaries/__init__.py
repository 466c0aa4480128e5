"""Summaries of threads, written by a model while the conversation continues.

In order: `schedule` decides when a summary is due, `snapshot` takes what it is written from, `author` has it written
and audited, `commit` makes it a point of the thread. `attempts` records the outcomes of earlier attempts, which decide
who is asked. `titles` names threads in the same way.
"""
