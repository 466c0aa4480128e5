"""Threads in a Postgres database: many processes on many machines, one log."""

from everlong.store.postgres.threads import PostgresThreads

__all__ = ["PostgresThreads"]
