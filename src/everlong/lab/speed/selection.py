"""What choosing at a cut costs, and whether indexing a message costs that message however long the conversation is."""

import json
from statistics import median
from typing import Any

from everlong.lab.environments import CORE
from everlong.lab.peers.rules import total
from everlong.lab.speed.jobs import Bench
from everlong.lab.speed.tables import Shown, Table, figure

__all__ = ["run"]

SIZES, QUICK_SIZES = (10_000, 100_000, 1_000_000), (10_000, 100_000)
SEED = 7
REPEATS, QUICK_REPEATS = 15, 5
MOST_GROWTH = 1.5  # the last part of a conversation against its first, a token

HEAD = (
    "tokens",
    "messages",
    "selection, median ms (min–max)",
    "index a message, ms",
    "a token, µs: first tenth",
    "last tenth",
    "ratio",
)
NOTE = (
    "CPU time. Selection: half of the conversation goes, it was indexed before, and the question is a new one each "
    "time. Indexing is paid once for each message, when it leaves."
)


def run(bench: Bench) -> list[Table]:
    """One row a size; nothing at all if it fails."""
    place = bench.place(CORE)
    if place is None:
        return []
    measured: dict[int, dict[str, Any]] = {}
    for size in QUICK_SIZES if bench.quick else SIZES:
        bench.tell(f"selection, {size:,} tokens")
        file = bench.stored(size, SEED)
        repeats = QUICK_REPEATS if bench.quick else REPEATS
        found = bench.perform(place, "selection", transcript=str(file), repeats=repeats)
        if found is None:
            return []
        measured[total(json.loads(file.read_text(encoding="utf-8")))] = found
    rows = tuple(_row(tokens, found) for tokens, found in measured.items())
    times = tuple(median(found["selections"]) * 1e3 for found in measured.values())
    shown = Shown("selection, median ms", times, tuple(f"{figure(time)} ms" for time in times))
    return [Table("Selection at a cut", HEAD, rows, (NOTE, _verdict(measured)), measured, shown)]


def _row(tokens: int, found: dict[str, Any]) -> tuple[str, ...]:
    times = [second * 1e3 for second in found["selections"]]
    first, last = _ends(found)
    return (
        f"{tokens:,}",
        f"{found['messages']:,}",
        f"{figure(median(times))} ({figure(min(times))}–{figure(max(times))})",
        figure(sum(found["indexing"]) / found["messages"] * 1e3),
        figure(first * 1e6),
        figure(last * 1e6),
        figure(last / first),
    )


def _ends(found: dict[str, Any]) -> tuple[float, float]:
    """Seconds a token in the first and in the last tenth."""
    seconds, tokens = found["indexing"], found["indexed_tokens"]
    return seconds[0] / tokens[0], seconds[-1] / tokens[-1]


def _verdict(measured: dict[int, dict[str, Any]]) -> str:
    largest = max(measured)
    first, last = _ends(measured[largest])
    met = "met" if last / first <= MOST_GROWTH else "NOT met"
    return (
        f"Aim: a token at the end of {largest:,} costs at most {MOST_GROWTH} times one at the beginning: "
        f"{last / first:.2f}, {met}."
    )
