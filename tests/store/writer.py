"""A process that writes to a store, for tests that watch or kill it. Says what it did, a line each, flushed.

Waits for a line on its input before it opens the store, so that several begin at the same moment.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from everlong.core import Entry, Event, EventKind, JsonText, Message, Point
from everlong.engine import Threads
from everlong.errors import ThreadChanged, ThreadExists
from everlong.store.urls import open_store
from tests.core.build import calls, result, user

__all__ = [
    "BRANCH",
    "COUNTED",
    "LARGE",
    "REMOVED",
    "ROOT",
    "SHARED",
    "TOLD",
    "begin",
    "one_more",
    "removable",
    "secret_of",
    "started",
    "turn_of",
]

ROOT = Path(__file__).parent.parent.parent
SHARED = "shared"
REMOVED, BRANCH = "removed", "branch"
COUNTED = "counted"
LARGE = "the walrus swims " * 500
TOLD = "walrus"  # what every message of a thread that is removed says


def turn_of(writer: str, number: int) -> list[Entry]:
    """What a writer says in a turn: a question, a call, its result, every third one a large one."""
    answer = f"{writer} {number} found " + "it " * (3_000 if number % 3 == 0 else 3)
    call = f"{writer}-{number}"
    return [user(f"{writer} asks {number}"), calls(call), result(call, answer)]


def removable() -> tuple[Message, ...]:
    """What a thread says that is removed again and again."""
    return (user("where is the walrus?"), result("1", LARGE), *[user("walrus")] * 60)


def started(work: str, url: str, writer: str, turns: int) -> subprocess.Popen[str]:
    """A process that does such work on the store at a URL, once it is told to begin."""
    pipe = subprocess.PIPE
    command = [sys.executable, "-m", "tests.store.writer", work, url, writer, str(turns)]
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, cwd=ROOT)


def begin(processes: Sequence[subprocess.Popen[str]]) -> None:
    """All at once, when every one of them is ready."""
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()


def say(*words: object) -> None:
    print(*words, flush=True)


def ensure(store: Threads, thread: str) -> None:
    with suppress(ThreadExists):
        store.create(thread)


def take_turns(store: Threads, writer: str, turns: int) -> None:
    """Turns in the thread that all share, and the same in one of its own."""
    ensure(store, SHARED)
    ensure(store, writer)
    for number in range(turns):
        store.append(SHARED, turn_of(writer, number))
        store.append(writer, turn_of(writer, number))


def compact(store: Threads, _writer: str, turns: int) -> None:
    """Points beside the writers, each for the state it was decided on; one that comes too late is tried anew."""
    ensure(store, SHARED)
    made = 0
    while made < turns:
        opened = store.open(SHARED)
        length = opened.thread.length
        point = Point(boundary=length, summary=(user(f"point {made} says {length} rows"),))
        try:
            store.append(SHARED, [point], expected=length)
        except ThreadChanged:
            continue
        made += 1


def append_and_tell(store: Threads, writer: str, turns: int) -> None:
    """Turns that go on from where the thread is, telling the length after each that has returned."""
    ensure(store, writer)
    for number in range(store.thread(writer).length // 3, turns):
        rows = store.append(writer, turn_of(writer, number))
        say(rows[-1].order + 1)


def remove(store: Threads, _writer: str, turns: int) -> None:
    """A thread that is made and removed, again and again; the first time it leaves a branch behind."""
    for _ in range(turns):
        store.create(REMOVED)
        store.append(REMOVED, removable())
        store.pin(REMOVED, 0)
        store.record(REMOVED, [Event(id="e", kind=EventKind.RECALLED, time=datetime(2026, 1, 1, tzinfo=UTC))])
        with suppress(ThreadExists):
            store.branch(REMOVED, len(removable()), BRANCH)
        say("made")
        store.remove(REMOVED)


def secret_of(number: int) -> str:
    """The word that only the messages of one thread say that are erased."""
    return f"zebrafish{number}x"


def erase(store: Threads, _writer: str, turns: int) -> None:
    """Threads with a branch each, of which a message is erased."""
    for number in range(turns):
        name, word = f"erased-{number}", secret_of(number)
        store.create(name)
        store.append(name, [user(f"my {word}"), result("1", f"{word} " * 1_000), *[user("walrus")] * 60])
        store.append(name, [Point(boundary=9, summary=(user(f"[{word}]"),))])
        store.branch(name, 40, f"{name}-branch")
        store.search(word)
        say("made")
        store.erase(name, [0, 1])


def erase_until_step(store: Threads, writer: str, turns: int) -> None:
    """The same, until a file is renamed or removed for the so many-th time: then the process is killed."""
    left = [turns]

    def kill(event: str, _given: object) -> None:
        if event in ("os.rename", "os.remove") and left:
            left[0] -= 1
            if not left[0]:
                os.kill(os.getpid(), signal.SIGKILL)

    store.create("t")
    store.append("t", [user(f"my {secret_of(0)}"), user("walrus"), Point(boundary=1, summary=(user(secret_of(0)),))])
    store.branch("t", 3, "t-branch")
    store.search("walrus")
    sys.addaudithook(kill)
    store.erase("t", [0])
    left.clear()
    say("erased")


def one_more(text: JsonText | None) -> JsonText:
    """The next number."""
    return str(int(text or "0") + 1)


def count(store: Threads, writer: str, turns: int) -> None:
    """A number that grows by one with each turn."""
    for _ in range(turns):
        store.change_fact(COUNTED, writer, one_more)


WORK: dict[str, Callable[[Threads, str, int], None]] = {
    "turns": take_turns,
    "compact": compact,
    "count": count,
    "remove": remove,
    "erase": erase,
    "step": erase_until_step,
    "tell": append_and_tell,
}


def main() -> None:
    work, url, writer, turns = sys.argv[1:]
    open_store("memory:").close()  # what every store imports is at hand when all begin
    say("ready")
    sys.stdin.readline()
    with open_store(url) as store:
        WORK[work](store, writer, int(turns))


if __name__ == "__main__":
    main()
