"""Every engine that keeps threads, each with a new, empty place for a store of its own.

An engine is one entry here; the contract, the laws and the failure modes are then checked against it.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeAlias

from everlong.engine import Threads
from everlong.store.jsonl import JsonlThreads
from everlong.store.memory import Memory, MemoryThreads
from everlong.store.postgres import PostgresThreads
from everlong.store.sqlite import SqliteThreads
from tests.store.postgres_server import database_url, drop_database

__all__ = ["ENGINES", "START", "Clock", "Engine", "Opener"]

START = datetime(2026, 1, 1, tzinfo=UTC)


class Clock:
    """A clock that is a second later each time it is read."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._now = START

    def __call__(self) -> datetime:
        with self._lock:
            self._now += timedelta(seconds=1)
            return self._now


#: Opens the store at one place; again after it was closed, or a second time beside it.
Opener: TypeAlias = Callable[[Callable[[], datetime]], Threads]


@dataclass(frozen=True)
class Engine:
    """A kind of store. `place` makes an empty place in a folder and clears it up in the end."""

    name: str
    place: Callable[[Path], AbstractContextManager[Opener]]


@contextmanager
def _memory(_folder: Path) -> Iterator[Opener]:
    memory = Memory()
    yield lambda clock: MemoryThreads(memory, clock=clock)


@contextmanager
def _sqlite(folder: Path) -> Iterator[Opener]:
    yield lambda clock: SqliteThreads(folder / "threads.db", clock=clock)


@contextmanager
def _jsonl(folder: Path) -> Iterator[Opener]:
    yield lambda clock: JsonlThreads(folder / "sessions", clock=clock)


@contextmanager
def _postgres(_folder: Path) -> Iterator[Opener]:
    url = database_url()
    try:
        yield lambda clock: PostgresThreads(url, clock=clock)
    finally:
        drop_database(url)


ENGINES = (
    Engine("memory", _memory),
    Engine("sqlite", _sqlite),
    Engine("jsonl", _jsonl),
    Engine("postgres", _postgres),
)
