"""Threads in one SQLite file: the default engine, for one machine and many processes."""

from everlong.store.sqlite.store import SqliteThreads

__all__ = ["SqliteThreads"]
