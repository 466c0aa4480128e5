"""What everlong's own `fit` costs as a conversation grows: against counting alone, later calls, and memory."""

import json
from statistics import median

from everlong.lab.environments import CORE
from everlong.lab.peers.rules import total
from everlong.lab.speed.jobs import Bench
from everlong.lab.speed.tables import Table, figure

__all__ = ["scaling"]

SIZES, QUICK_SIZES = (10_000, 100_000, 1_000_000), (10_000, 100_000)
SEED = 7
QUESTIONS = ("count, cold", "fit, cold", "count", "fit", "nothing to cut", "next cut", "memory")
HEAD = (
    "tokens",
    "cold: count, ms",
    "fit to half, ms",
    "ratio",
    "loaded: count, ms",
    "fit to half, ms",
    "one more, nothing to cut, ms",
    "next cut, ms",
    "peak memory / text",
)
NOTE = (
    "CPU time, each figure from fresh processes that never saw the text before; loaded: the vocabulary is there. "
    "The two later calls are given `previous=`; at the next cut, one turn was added to what was cut and indexed."
)


def scaling(bench: Bench) -> list[Table]:
    """One row a size; nothing at all if `fit` fails."""
    place = bench.place(CORE)
    if place is None:
        return []
    measured: dict[int, dict[str, float]] = {}
    for size in QUICK_SIZES if bench.quick else SIZES:
        file = bench.stored(size, SEED)
        tokens = total(json.loads(file.read_text(encoding="utf-8")))
        for question in QUESTIONS:
            bench.tell(f"fitting, {size:,} tokens: {question}")
            job = {"transcript": str(file), "tokens": tokens, "question": question}
            rounds = [bench.perform(place, "scaling", **job) for _ in range(1 if bench.quick else 3)]
            figures = [result["figure"] for result in rounds if result is not None]
            if not figures:
                return []
            measured.setdefault(tokens, {})[question] = median(figures)
    rows = tuple(
        (
            f"{tokens:,}",
            figure(found["count, cold"] * 1e3),
            figure(found["fit, cold"] * 1e3),
            figure(found["fit, cold"] / found["count, cold"]),
            figure(found["count"] * 1e3),
            figure(found["fit"] * 1e3),
            figure(found["nothing to cut"] * 1e3),
            figure(found["next cut"] * 1e3),
            figure(found["memory"]),
        )
        for tokens, found in measured.items()
    )
    return [Table("everlong `fit` as a conversation grows", HEAD, rows, (NOTE,), measured)]
