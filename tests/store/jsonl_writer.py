"""A process that writes to a JSONL store, for tests that watch or kill it. Says what it did, a line each, flushed.

Waits for a line on its input before it opens the store, so that several begin at the same moment.
"""

import sys
from collections.abc import Callable
from pathlib import Path

from everlong.core.points import Entry, Point
from everlong.errors import ThreadChanged, ThreadExists
from everlong.store.jsonl import JsonlThreads
from tests.core.build import calls, result, user

ROOT = Path(__file__).parent.parent.parent
SHARED = "shared"


def turn_of(writer: str, number: int) -> list[Entry]:
    """What a writer says in a turn: a question, a call, its result, every third one a large one."""
    answer = f"{writer} {number} found " + "it " * (3_000 if number % 3 == 0 else 3)
    call = f"{writer}-{number}"
    return [user(f"{writer} asks {number}"), calls(call), result(call, answer)]


def command(*words: object) -> list[str]:
    return [sys.executable, "-m", "tests.store.jsonl_writer", *map(str, words)]


def say(*words: object) -> None:
    print(*words, flush=True)


def ensure(store: JsonlThreads, thread: str) -> None:
    try:
        store.create(thread)
    except ThreadExists:
        return


def take_turns(store: JsonlThreads, writer: str, turns: int) -> None:
    """Turns in the thread that all share, and the same in one of its own."""
    ensure(store, SHARED)
    ensure(store, writer)
    for number in range(turns):
        store.append(SHARED, turn_of(writer, number))
        store.append(writer, turn_of(writer, number))


def compact(store: JsonlThreads, _writer: str, turns: int) -> None:
    """Points beside the writers, each for the state it was decided on; one that comes too late is tried anew."""
    ensure(store, SHARED)
    made = 0
    while made < turns:
        length = store.open(SHARED).thread.length
        point = Point(boundary=length, summary=(user(f"point {made} says {length} rows"),))
        try:
            store.append(SHARED, [point], expected=length)
        except ThreadChanged:
            continue
        made += 1


def append_and_tell(store: JsonlThreads, writer: str, turns: int) -> None:
    """Turns that go on from where the thread is, telling the length after each that has returned."""
    ensure(store, writer)
    for number in range(store.thread(writer).length // 3, turns):
        rows = store.append(writer, turn_of(writer, number))
        say(rows[-1].order + 1)


WORK: dict[str, Callable[[JsonlThreads, str, int], None]] = {
    "turns": take_turns,
    "compact": compact,
    "tell": append_and_tell,
}


def main() -> None:
    work, folder, writer, turns = sys.argv[1:]
    say("ready")
    sys.stdin.readline()
    with JsonlThreads(folder) as store:
        WORK[work](store, writer, int(turns))


if __name__ == "__main__":
    main()
