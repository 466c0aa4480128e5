"""Measure the costs of a request on this machine: a gateway with a store, requests of every size, its CPU time.

The gateway runs as people start it, with one worker; the upstream answers at once. CPU time is the kernel's own figure
for all threads, so that other work on the machine changes it little. This takes some seconds.
"""

import os
import platform
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from pathlib import Path
from statistics import median

from everlong.engine import fit
from everlong.errors import InputError
from everlong.lab.capacity.costs import COST_SIZES, Costs
from everlong.lab.environments import HERE
from everlong.lab.speed.bench import Bench
from everlong.lab.speed.gateways.parties import DIRECT, EVERLONG, Party, RunningGateway, run_gateway
from everlong.lab.speed.gateways.processes import resident_megabytes, tree
from everlong.lab.speed.gateways.requests import Connection, Conversation
from everlong.lab.speed.transcripts import TOOLS, build

__all__ = ["measured_costs"]

MODEL = "gpt-4o"
LARGEST = 2_000  # tokens of a result
KNOWN, FRESH = 6, 5  # conversations that grow, and new conversations
QUICK_KNOWN, QUICK_FRESH, QUICK_HELD = 1, 1, 3
STEPS = 6  # requests of a growing conversation, at most
WARMING_UP = 10_000  # tokens
LARGE_MODEL, SMALL_MODEL = b'"gpt-4.1"', b'"gpt-4"'  # a million tokens; 8,192
HELD = 40  # conversations whose memory is measured
HELD_SIZE = 20_000  # tokens
SETTLING = 1.5  # seconds
PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class _Writes:
    """What a database has written so far: transactions, log bytes, stored bytes; and the time of that reading."""

    commits: float
    log: float
    held: float
    at: float

    def since(self, before: "_Writes") -> "_Writes":
        """What was written since another reading."""
        return _Writes(
            self.commits - before.commits, self.log - before.log, self.held - before.held, self.at - before.at
        )

    def beside(self, idle: "_Writes") -> "_Writes":
        """The same without what the processes cause in the database when they are idle."""
        share = self.at / idle.at
        log = max(0.0, self.log - idle.log * share)
        return _Writes(max(0.0, self.commits - idle.commits * share), log, max(0.0, self.held), self.at)


def measured_costs(bench: Bench, store: str = "") -> Costs:
    """Measure with the store at a URL; "" is a new SQLite file. Raises InputError if the gateway fails."""
    growing_ones, fresh = (QUICK_KNOWN, QUICK_FRESH) if bench.quick else (KNOWN, FRESH)
    with _running(bench, store) as (gateway, database):
        _growing(gateway, WARMING_UP, growing_ones)
        growing: list[float] = []
        new: list[float] = []
        bodies: list[float] = []
        begun = database()
        before = database()
        idle_writes = before.since(begun)
        asked, tokens = 0, 0.0
        for size in COST_SIZES:
            bench.report(f"capacity: requests of {size:,} tokens")
            known, body = _growing(gateway, size, growing_ones)
            growing.append(known)
            bodies.append(body)
            new.append(median(_new(gateway, size, seed) for seed in range(100, 100 + fresh)))
            asked += growing_ones * (STEPS + 1) + fresh
            tokens += size * (growing_ones + fresh)
        written = database().since(before).beside(idle_writes)
        bench.report("capacity: conversations past their window")
        compacted = _compacted(gateway, database, fresh)
        kilobytes = _kilobytes(gateway, QUICK_HELD if bench.quick else HELD)
        idle = gateway.resident or 0.0
    _compaction(WARMING_UP)
    compaction = tuple(_compaction(size) for size in COST_SIZES)
    return Costs(
        taken=f"{date.today().isoformat()}, {platform.machine()}, {os.cpu_count()} cores, "
        f"load {os.getloadavg()[0]:.1f}, Python {platform.python_version()}",
        store="postgres" if store.startswith("postgres") else "sqlite",
        growing=tuple(growing),
        new=tuple(new),
        compaction=compaction,
        summary=compaction,  # a summary reads the same messages once more and makes its point in the same way
        body=tuple(bodies),
        commits=written.commits / asked or 1.0,  # SQLite has no counter: at most one each
        log_bytes=written.log / asked,
        bytes_per_token=written.held / tokens,
        bytes_per_compacted_token=compacted,
        idle_megabytes=idle,
        conversation_kilobytes=kilobytes,
    )


# --- the gateway and its database -----------------------------------------------------------------------------------


@contextmanager
def _running(bench: Bench, store: str) -> Iterator[tuple[RunningGateway, Callable[[], _Writes]]]:
    """Run an upstream and a gateway; yield the gateway and a function that reads what the database has written."""
    with tempfile.TemporaryDirectory() as folder:
        url = store or f"sqlite:///{folder}/capacity.db"
        arguments = (*EVERLONG.arguments[:-1], url)
        party: Party = replace(EVERLONG, arguments=arguments)
        with run_gateway(bench, DIRECT, HERE) as upstream:
            if upstream is None:
                raise InputError("lab capacity: the upstream for the measurement did not start")
            with run_gateway(bench, party, HERE, upstream.port) as gateway:
                if gateway is None:
                    raise InputError(f"lab capacity: the gateway did not start with --store {url}")
                yield gateway, partial(_written, url, Path(folder))


def _written(url: str, folder: Path) -> _Writes:
    time.sleep(SETTLING)  # for writes after the answer, and the database's statistics
    if not url.startswith("postgres"):
        log = sum(file.stat().st_size for file in folder.glob("capacity.db-wal"))
        with closing(sqlite3.connect(folder / "capacity.db")) as connection:
            ((pages,),) = connection.execute("pragma page_count")
            ((size,),) = connection.execute("pragma page_size")
        return _Writes(0.0, float(log), float(pages * size), time.monotonic())
    import psycopg  # noqa: PLC0415 - only where such a store is measured

    with psycopg.connect(url, autocommit=True) as connection:
        row = connection.execute(
            "select (select xact_commit from pg_stat_database where datname = current_database()),"
            " pg_current_wal_lsn() - '0/0'::pg_lsn, pg_database_size(current_database())"
        ).fetchone()
    commits, log, held = row or (0, 0, 0)
    return _Writes(float(commits), float(log), float(held), time.monotonic())


# --- requests ---------------------------------------------------------------------------------------------------------


def _growing(gateway: RunningGateway, size: int, known: int) -> tuple[float, float]:
    """CPU milliseconds of a request that is one step longer than the previous one, and its bytes."""
    used, sizes = 0.0, list[int]()
    connection = Connection(gateway.port)
    for seed in range(known):
        conversation = Conversation.of(build(size, seed, largest=LARGEST).messages)
        first, *later = conversation.asks[-STEPS - 1 :]
        connection.ask(conversation.request(first, streamed=False))
        requests = [conversation.request(count, streamed=False) for count in later]
        before = _cpu_seconds(gateway.process)
        for request in requests:
            connection.ask(request)
        used += _cpu_seconds(gateway.process) - before
        sizes += map(len, requests)
    connection.close()
    return used * 1e3 / len(sizes), sum(sizes) / len(sizes)


def _new(gateway: RunningGateway, size: int, seed: int) -> float:
    """CPU milliseconds of a conversation that is new to the gateway."""
    conversation = Conversation.of(build(size, seed, largest=LARGEST).messages)
    request = conversation.request(conversation.asks[-1], streamed=False)
    connection = Connection(gateway.port)
    before = _cpu_seconds(gateway.process)
    connection.ask(request)
    used = _cpu_seconds(gateway.process) - before
    connection.close()
    return used * 1e3


def _compacted(gateway: RunningGateway, database: Callable[[], _Writes], number: int) -> float:
    """Bytes in the database for each token of a compacted conversation, whose messages are stored."""
    before, tokens = database(), 0
    for seed in range(2_000, 2_000 + number):
        transcript = build(HELD_SIZE, seed, largest=LARGEST // 4)
        conversation = Conversation.of(transcript.messages)
        small = replace(conversation, settings=conversation.settings.replace(LARGE_MODEL, SMALL_MODEL))
        connection = Connection(gateway.port)
        for count in small.asks:
            connection.ask(small.request(count, streamed=False))
        connection.close()
        tokens += transcript.tokens
    return max(0.0, database().held - before.held) / tokens


def _kilobytes(gateway: RunningGateway, number: int) -> float:
    """Kilobytes that the gateway holds for an active conversation."""
    connection = Connection(gateway.port)
    before = resident_megabytes(gateway.process) or 0.0
    for seed in range(1_000, 1_000 + number):
        conversation = Conversation.of(build(HELD_SIZE, seed, largest=LARGEST).messages)
        connection.ask(conversation.request(conversation.asks[-1], streamed=False))
    after = resident_megabytes(gateway.process) or 0.0
    connection.close()
    return max(0.0, after - before) * 1e3 / number


def _compaction(size: int) -> float:
    """CPU milliseconds for compacting a conversation to half its size."""
    messages = build(size, 9, largest=LARGEST).messages
    before = time.process_time()
    fit(messages, model=MODEL, budget=size // 2, tools=TOOLS)
    return (time.process_time() - before) * 1e3


def _cpu_seconds(root: int) -> float:
    """CPU seconds of all threads of a process and its children, to the nanosecond."""
    total = 0
    for process in tree(root):
        for task in (PROC / str(process) / "task").glob("[0-9]*"):
            with suppress(OSError):  # it ended meanwhile
                total += int((task / "schedstat").read_text(encoding="ascii").split()[0])
    return total / 1e9
