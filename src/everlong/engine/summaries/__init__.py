"""Summaries of threads, written by a model while the conversation goes on.

The way of one summary is the order of the modules: `schedule` decides when it is due, `snapshot` takes what it is written
from, `author` has it written and audited, `commit` makes it a point of the thread. `attempts` tells what came of earlier
ones, and so who is asked. `titles` names threads the same way.
"""
