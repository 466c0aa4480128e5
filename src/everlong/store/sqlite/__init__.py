"""Threads in one SQLite file: the default engine, for one machine and many processes."""

from everlong.store.sqlite.threads import SqliteThreads

__all__ = ["SqliteThreads"]
