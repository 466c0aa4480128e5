"""Measures a store at large sizes: a huge session, many sessions, many messages to search.

    python scripts/bench_store.py --engine sqlite
    python scripts/bench_store.py --engine jsonl --gigabytes 0.1 --points 50 --messages 10000 --threads 1000
    python scripts/bench_store.py --engine postgres --url postgresql://…

Creates its sessions, with invented text, in a temporary folder. Each measurement runs in a fresh process, so that only
the operating system's cache is warm. Bytes read are what the process asked the system for (Linux only).
"""

import argparse
import json
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

from everlong.core import CallId, Entry, Hit, Message, Point, Role, Text, ToolCall, ToolResult
from everlong.engine import Threads
from everlong.store import open_store
from everlong.wire import Document, write

Figures = dict[str, float]

URLS = {"sqlite": "sqlite:///{folder}/threads.db", "jsonl": "jsonl:{folder}/threads"}
OWNER, OTHER = "ada", "ben"
QUERIES = 200
RESULT = 100_000  # characters of a large tool result, on average
APPENDED = 100  # entries per append


@dataclass(frozen=True)
class Size:
    """How much to create."""

    gigabytes: float
    points: int
    messages: int
    threads: int


# Invented text: some words are far more frequent than others, some are identifiers, some are Chinese.


class Writer:
    """Writes text; the same seed gives the same text."""

    def __init__(self, seed: int) -> None:
        self._dice = random.Random(0)  # the same words for every writer
        syllables = [c + v for c in "bdfgklmnprstvz" for v in ("a", "e", "i", "o", "u", "ar", "en", "il")]
        words = ["".join(self._dice.choices(syllables, k=self._dice.randint(2, 4))) for _ in range(10_000)]
        words += [f"{self._dice.choice(words)}_{self._dice.choice(words)}" for _ in range(2_000)]
        signs = [chr(0x4E00 + n) for n in self._dice.sample(range(6_000), 1_000)]
        words += ["".join(self._dice.choices(signs, k=self._dice.randint(2, 6))) for _ in range(3_000)]
        self._dice.shuffle(words)
        self._words = words
        # As in any language, few words make up half of the text.
        self._weights = list(accumulate(1 / (n + 3) for n in range(len(words))))
        self._stock = " ".join(self.words(400_000))
        self._dice.seed(seed)

    def words(self, count: int) -> list[str]:
        return self._dice.choices(self._words, cum_weights=self._weights, k=count)

    def text(self, count: int) -> str:
        return " ".join(self.words(count))

    def long_text(self, characters: int) -> str:
        """Return a long text quickly: a new first line, then random pieces of a stock of text."""
        pieces = [self.text(12)]
        while sum(map(len, pieces)) < characters:
            start = self._dice.randrange(len(self._stock) - 4_000)
            pieces.append(self._stock[start : start + 4_000])
        return "\n".join(pieces)

    def round(self, number: int) -> list[Message]:
        """Return a question, a call, its large result and an answer."""
        call = CallId(f"call_{number}")
        arguments = json.dumps({"path": f"src/{self._dice.choice(self._words)}.py", "query": self.text(5)})
        content = Text(self.long_text(self._dice.randint(RESULT // 2, 3 * RESULT // 2)))
        return [
            Message(Role.USER, (Text(self.text(30)),)),
            Message(Role.ASSISTANT, (Text(self.text(20)), ToolCall(call, "read_file", arguments))),
            Message(Role.TOOL, (ToolResult(call, (content,)),)),
            Message(Role.ASSISTANT, (Text(self.text(60)),)),
        ]


# Making


def make_huge(store: Threads, size: Size) -> Figures:
    """Create one session of this many bytes, with compaction points at equal distances."""
    writer = Writer(1)
    store.create("huge", owner="huge")
    store.append("huge", [Message(Role.SYSTEM, (Text(writer.text(300)),))])
    rounds = max(size.points, int(size.gigabytes * 1e9 / RESULT))
    length, taken = 1, 0.0
    for number in range(rounds):
        entries: list[Entry] = list(writer.round(number))
        if (number + 1) * size.points // rounds > number * size.points // rounds:
            summary = Message(Role.USER, (Text(writer.text(800)),))
            entries.append(Point(boundary=length, summary=(summary,), tokens_before=500_000, tokens_after=20_000))
        started = time.perf_counter()
        store.append("huge", entries)
        taken += time.perf_counter() - started
        length += len(entries)
    return {"rows": length, "append_round_ms": 1000 * taken / rounds}


def make_many(store: Threads, size: Size) -> Figures:
    """Create many sessions with content that a listing must not read."""
    writer = Writer(2)
    for number in range(size.threads):
        store.create(f"session-{number}", owner="many", title=writer.text(4))
        store.append(f"session-{number}", [Message(Role.USER, (Text(writer.text(300)),))])
    return {"threads": size.threads}


def make_talk(store: Threads, size: Size) -> Figures:
    """Create one owner's messages in a hundred sessions, and a quarter as many of another, with the same words."""
    writer = Writer(3)
    started = time.perf_counter()
    for owner, messages in ((OWNER, size.messages), (OTHER, size.messages // 4)):
        each = max(APPENDED, messages // 100)
        for first in range(0, messages, each):
            name = f"{owner}-{first}"
            store.create(name, owner=owner)
            for start in range(0, each, APPENDED):
                talk = [Message(Role.USER, (Text(writer.text(60)),)) for _ in range(min(APPENDED, each - start))]
                store.append(name, talk)
    return {"messages": size.messages, "made_s": time.perf_counter() - started}


# Measuring, each in a separate process


def measure_open(store: Threads) -> Figures:
    started = time.perf_counter()
    opened = store.open("huge")
    read = time.perf_counter() - started
    body = write(Document(fmt="openai-chat", messages=opened.messages))
    whole = time.perf_counter() - started
    return {
        "open_s": read,
        "open_and_assemble_s": whole,
        "rows_opened": len(opened.rows),
        "request_mb": len(body) / 1e6,
    }


def measure_list(store: Threads) -> Figures:
    before = bytes_read()
    started = time.perf_counter()
    listed = store.threads(owner="many")
    whole = time.perf_counter() - started
    read = bytes_read() - before
    started = time.perf_counter()
    store.threads(limit=50)
    return {
        "listed": len(listed),
        "list_all_ms": 1000 * whole,
        "list_all_mb_read": read / 1e6,
        "list_first_50_ms": 1000 * (time.perf_counter() - started),
    }


def measure_search(store: Threads) -> Figures:
    writer = Writer(4)
    return {
        **_timed("owner", lambda query: store.search(query, owner=OWNER), writer),
        **_timed("thread", lambda query: store.search(query, thread=f"{OWNER}-0"), writer),
    }


def measure_search_huge(store: Threads) -> Figures:
    return _timed("huge", lambda query: store.search(query, thread="huge"), Writer(4))


def _timed(name: str, search: Callable[[str], list[Hit]], writer: Writer) -> Figures:
    taken, worked, found = [], [], 0
    for number in range(QUERIES):
        query = writer.text(2 + number % 7)
        started, busy = time.perf_counter(), time.process_time()
        found += bool(search(query))
        taken.append(1000 * (time.perf_counter() - started))
        worked.append(1000 * (time.process_time() - busy))
    taken.sort()
    return {
        f"search_{name}_median_ms": statistics.median(taken),
        f"search_{name}_median_cpu_ms": statistics.median(worked),
        f"search_{name}_p95_ms": taken[int(0.95 * len(taken))],
        f"search_{name}_most_ms": taken[-1],
        f"search_{name}_answered": found / QUERIES,
    }


MEASURES: dict[str, Callable[[Threads], Figures]] = {
    "open": measure_open,
    "search huge": measure_search_huge,
    "list": measure_list,
    "search": measure_search,
}
#: What is created, and what is measured on it.
PARTS: dict[str, tuple[Callable[[Threads, Size], Figures], tuple[str, ...]]] = {
    "huge": (make_huge, ("open", "search huge")),
    "many": (make_many, ("list",)),
    "talk": (make_talk, ("search",)),
}


def bytes_read() -> int:
    """Return the bytes that this process has read so far, from disk or cache; 0 if the system does not report them."""
    counters = Path("/proc/self/io")
    found = re.search(r"rchar: (\d+)", counters.read_text()) if counters.is_file() else None
    return int(found[1]) if found else 0


def peak_mb() -> float:
    """Return the peak memory of this process; 0 if the system does not report it."""
    status = Path("/proc/self/status")
    found = re.search(r"VmHWM:\s+(\d+) kB", status.read_text()) if status.is_file() else None
    return int(found[1]) / 1e3 if found else 0.0


def measured(step: str, url: str) -> Figures:
    """Run one measurement in this process."""
    read = bytes_read()
    started = time.perf_counter()
    with open_store(url) as store:
        connected = time.perf_counter() - started
        figures = MEASURES[step](store)
    return {"connect_s": connected, **figures, "peak_mb": peak_mb(), "mb_read": (bytes_read() - read) / 1e6}


def in_fresh_process(step: str, url: str) -> Figures:
    command = [sys.executable, __file__, "--measure", step, "--url", url]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    figures: Figures = json.loads(done.stdout)
    return figures


def run(url: str, folder: Path, size: Size, parts: Sequence[str]) -> Iterator[tuple[str, Figures]]:
    with open_store(url) as store:
        for part in parts:
            yield f"make {part}", PARTS[part][0](store, size)
    on_disk = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    yield "on disk", {"mb": on_disk / 1e6}
    for part in parts:
        for step in PARTS[part][1]:
            yield step, in_fresh_process(step, url)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", choices=["sqlite", "jsonl", "postgres"], default="sqlite")
    parser.add_argument("--url", help="a store to use instead of a new one in a temporary folder")
    parser.add_argument("--folder", type=Path, help="where the temporary folder is made")
    parser.add_argument("--gigabytes", type=float, default=1.0)
    parser.add_argument("--points", type=int, default=500)
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--threads", type=int, default=10_000)
    parser.add_argument("--part", action="append", choices=list(PARTS), help="only this (may be repeated)")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--measure", choices=list(MEASURES), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        print(json.dumps(measured(given.measure, given.url)))
        return
    if given.engine == "postgres" and not given.url:
        parser.error("postgres needs --url")
    size = Size(given.gigabytes, given.points, given.messages, given.threads)
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        url = given.url or URLS[given.engine].format(folder=folder)
        figures = {}
        for step, found in run(url, Path(folder), size, given.part or list(PARTS)):
            figures[step] = found
            if not given.json:
                print(f"{step:11}", "  ".join(f"{name} {value:,.2f}" for name, value in found.items()), flush=True)
    if given.json:
        print(json.dumps({"engine": given.engine, **figures}, indent=1))


if __name__ == "__main__":
    main()
