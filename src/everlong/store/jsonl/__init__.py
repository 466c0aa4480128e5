"""Threads as nanobot's own session files, one JSONL file each, in one folder.

The session files and the event files beside them are the truth. The index is derived: it is rebuilt whenever it is
missing, old or behind. nanobot may read and rewrite any session in between.
"""

from everlong.store.jsonl.threads import JsonlThreads

__all__ = ["JsonlThreads"]
