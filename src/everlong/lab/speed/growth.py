"""What everlong's `fit` costs as a conversation grows: compared with counting alone, in later calls, and in memory.

Each figure is taken by this module run as a program, in a fresh process.
"""

import json
import tracemalloc
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from typing import Any

import everlong
from everlong.engine import Fitted
from everlong.lab.environments import CORE
from everlong.lab.peers.rules import texts, total
from everlong.lab.peers.shapes import Message
from everlong.lab.speed.bench import Bench
from everlong.lab.speed.tables import Table, figure
from everlong.lab.speed.transcripts import TOOLS
from everlong.lab.speed.worker import Job, cpu, serve, transcript

__all__ = ["run"]

#: Tokens, and whether it is only talk.
SIZES = ((10_000, False), (100_000, False), (1_000_000, False), (1_000_000, True))
QUICK_SIZES = ((10_000, False), (100_000, False), (100_000, True))
#: For a million tokens: cold relative to counting, milliseconds of the next cut, resident memory relative to the text.
AIMS = {"cold": 2.5, "next": 50.0, "resident": 4.0}
SEED = 7
HEAD = (
    "",
    "cold: count, ms",
    "fit to half, ms",
    "ratio",
    "loaded: count, ms",
    "fit to half, ms",
    "one more, nothing to cut, ms",
    "next cut, ms",
    "peak memory / text",
    "resident / text",
)
NOTE = (
    "CPU time, each figure from fresh processes that never saw the text before; loaded: the vocabulary is there. "
    "The two later calls are given `previous=`; at the next cut, one turn was added to what was cut and indexed. "
    "Peak memory is Python's own, resident what the process grew by; both without the vocabulary."
)


def run(bench: Bench) -> list[Table]:
    """Return a table with a row for each size; no table if `fit` fails."""
    place = bench.place(CORE)
    if place is None:
        return []
    measured: dict[str, dict[str, float]] = {}
    for size, talk in QUICK_SIZES if bench.quick else SIZES:
        file = bench.stored(size, SEED, talk=talk)
        tokens = total(json.loads(file.read_text(encoding="utf-8")))
        for question in FIGURES:
            bench.report(f"fitting, {size:,} tokens: {question}")
            job = {"transcript": str(file), "tokens": tokens, "question": question}
            rounds = [bench.perform(place, __name__, **job) for _ in range(1 if bench.quick else 3)]
            figures = [result["figure"] for result in rounds if result is not None]
            if not figures:
                return []
            title = f"{tokens:,} tokens, {'talk' if talk else 'tools'}"
            measured.setdefault(title, {})[question] = median(figures)
    rows = tuple(
        (
            title,
            figure(row["count, cold"] * 1e3),
            figure(row["fit, cold"] * 1e3),
            figure(row["fit, cold"] / row["count, cold"]),
            figure(row["count"] * 1e3),
            figure(row["fit"] * 1e3),
            figure(row["nothing to cut"] * 1e3),
            figure(row["next cut"] * 1e3),
            figure(row["memory"]),
            figure(row["resident"]),
        )
        for title, row in measured.items()
    )
    return [Table("everlong `fit` as a conversation grows", HEAD, rows, (NOTE, _aims(measured)), measured)]


def _aims(measured: Mapping[str, Mapping[str, float]]) -> str:
    """The goals for the largest conversations, and whether they are met."""
    worst = {
        "cold": max(row["fit, cold"] / row["count, cold"] for row in measured.values()),
        "next": max(row["next cut"] * 1e3 for row in measured.values()),
        "resident": list(measured.values())[-1]["resident"],
    }
    results = ", ".join(
        f"{name} {figure(worst[name])} of at most {figure(aim)} ({'met' if worst[name] <= aim else 'NOT met'})"
        for name, aim in AIMS.items()
    )
    return f"Aims at a million tokens (cold / counting, ms of the next cut, resident / text of a talk): {results}."


MODEL = "gpt-4o"
STATUS, RESET_PEAK = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def _work(job: Job) -> Job:
    """Return one figure: CPU seconds, or bytes per byte of text."""
    messages = transcript(job["transcript"])
    if job["question"] not in COLD:
        _warm_up()
    return {"figure": FIGURES[job["question"]](messages, job["tokens"])}


def _fit(messages: list[Message], budget: int, previous: Fitted[Any] | None = None) -> Fitted[Any]:
    result = everlong.fit(messages, model=MODEL, budget=budget, tools=TOOLS, previous=previous)
    result.messages  # noqa: B018 - they are written on first use
    return result


def _warm_up() -> None:
    small = [{"role": "user", "content": f"number {index} of many small words"} for index in range(40)]
    _fit(small, 400)


def _count_seconds(messages: list[Message], _: int) -> float:
    return cpu(lambda: everlong.count(messages, model=MODEL, tools=TOOLS))[0]


def _fit_seconds(messages: list[Message], tokens: int) -> float:
    return cpu(_fit, messages, tokens // 2)[0]


def _growth_seconds(messages: list[Message], tokens: int) -> float:
    """Time one more message when everything fits."""
    before = _fit(messages[:-1], tokens * 2)
    return cpu(_fit, messages, tokens * 2, before)[0]


def _next_cut_seconds(messages: list[Message], tokens: int) -> float:
    """Time one more turn that makes a new cut due, after an earlier part was cut and indexed."""
    questions = [at for at, message in enumerate(messages) if message["role"] == "user"]
    before = _fit(messages[: questions[-2]], tokens // 2)
    return cpu(_fit, messages, tokens // 2, before)[0]


def _peak_memory(messages: list[Message], tokens: int) -> float:
    """Return the peak memory of a first fit as a multiple of the text: Python's own memory, without the vocabulary."""
    tracemalloc.start()
    _fit(messages, tokens // 2)
    return tracemalloc.get_traced_memory()[1] / _text_bytes(messages)


def _peak_resident(messages: list[Message], tokens: int) -> float:
    """Return the largest growth of the process during a first fit, as a multiple of the text. On Linux."""
    before = _resident("VmRSS")
    RESET_PEAK.write_text("5", encoding="ascii")
    _fit(messages, tokens // 2)
    return (_resident("VmHWM") - before) / _text_bytes(messages)


def _resident(name: str) -> int:
    """Return this process's memory in bytes, as Linux reports it: VmRSS is now, VmHWM the peak since it was reset."""
    lines = STATUS.read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) * 1_024 for line in lines if line.startswith(name))


def _text_bytes(messages: list[Message]) -> int:
    return sum(len(text.encode()) for message in messages for text in texts(message))


#: Measured in a process that has not loaded the vocabulary yet.
COLD = frozenset({"count, cold", "fit, cold"})

FIGURES: dict[str, Callable[[list[Message], int], float]] = {
    "count, cold": _count_seconds,
    "fit, cold": _fit_seconds,
    "count": _count_seconds,
    "fit": _fit_seconds,
    "nothing to cut": _growth_seconds,
    "next cut": _next_cut_seconds,
    "memory": _peak_memory,
    "resident": _peak_resident,
}


if __name__ == "__main__":
    serve(_work)
