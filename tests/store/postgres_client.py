"""A process that uses a Postgres store, for tests that kill it, restart its server or run many of it.

It says what it did on its output, one line for each call that returned; it ends when its input does.
"""

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count, islice
from pathlib import Path

from everlong.core import Point
from everlong.errors import ThreadChanged, ThreadExists
from everlong.store.postgres import PostgresThreads
from tests.core.build import user

__all__ = ["client", "row_id"]

ROOT = Path(__file__).parent.parent.parent
KEPT = 5  # rows that the compactor leaves after its point


def row_id(hand: str, turn: int) -> str:
    """What a writer calls the row of a turn."""
    return f"{hand}-{turn}"


@contextmanager
def client(role: str, url: str, hand: str, *more: str) -> Iterator[subprocess.Popen[str]]:
    """A client process: a `writer` (thread, turns) or a `compactor` (thread, messages). Killed in the end."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.store.postgres_client", role, url, hand, *more],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe and not pipe.closed:
                with suppress(BrokenPipeError):
                    pipe.close()


def _write(store: PostgresThreads, hand: str, threads: str, turns: str) -> None:
    """Append to the threads in turn until the input ends or so many turns are done (0: no end)."""
    ended = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    names = threads.split(",")
    for name in names:
        with suppress(ThreadExists):
            store.create(name)
    for turn in islice(count(), int(turns) or None):
        for name in names:
            [row] = store.append(name, [user(f"{hand} says {turn}")], ids=[row_id(hand, turn)])
            assert row.id == row_id(hand, turn)
        print(turn, flush=True)
        if ended.is_set():
            break


def _compact(store: PostgresThreads, _hand: str, thread: str, messages: str) -> None:
    """Put points into a thread, on what it read, until the thread has so many messages; one at least."""
    with suppress(ThreadExists):
        store.create(thread)
    points = 0
    while not points or store.thread(thread).messages < int(messages):
        known = store.thread(thread)
        if len(store.open(thread, known.length).rows) > 2 * KEPT:
            point = Point(boundary=known.length - KEPT, summary=(user(f"what was said in {known.length} rows"),))
            with suppress(ThreadChanged):
                store.append(thread, [point], expected=known.length)
                points += 1


ROLES = {"writer": _write, "compactor": _compact}

if __name__ == "__main__":
    _role, _url, _hand, _first, _second = sys.argv[1:]
    with PostgresThreads(_url, connections=2) as _store:
        ROLES[_role](_store, _hand, _first, _second)
