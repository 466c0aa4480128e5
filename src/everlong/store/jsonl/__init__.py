"""Threads as nanobot's own session files, one JSONL file each, in one folder.

Only the session files and the event files next to them count. The index is derived from them: it is rebuilt whenever it
is missing, old or behind. nanobot may read and rewrite any session at any time.
"""

from everlong.store.jsonl.threads import JsonlThreads

__all__ = ["JsonlThreads"]
