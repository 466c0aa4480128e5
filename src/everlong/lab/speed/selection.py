"""The benchmark of selection: the cost of choosing at a cut, and whether indexing is as cheap in long conversations.

The figures are taken by this module run as a program, in a fresh process.
"""

import json
from dataclasses import replace
from statistics import median
from typing import Any, cast

from everlong.compress import Task, by_need, draft_of
from everlong.core import History, Json, Message, Role, Text
from everlong.lab.environments import CORE
from everlong.lab.peers.rules import total
from everlong.lab.speed.bench import Bench
from everlong.lab.speed.tables import Shown, Table, figure
from everlong.lab.speed.worker import Job, cpu, serve, transcript
from everlong.relevance import Index
from everlong.tokens import Counter
from everlong.wire import OPENAI_CHAT

__all__ = ["run"]

SIZES, QUICK_SIZES = (10_000, 100_000, 1_000_000), (10_000, 100_000)
SEED = 7
REPEATS, QUICK_REPEATS = 15, 5
MOST_GROWTH = 1.5  # the last part of a conversation relative to its first, per token

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
    """Return a table with a row for each size; no table if the program fails."""
    place = bench.place(CORE)
    if place is None:
        return []
    measured: dict[int, dict[str, Any]] = {}
    for size in QUICK_SIZES if bench.quick else SIZES:
        bench.report(f"selection, {size:,} tokens")
        file = bench.stored(size, SEED)
        repeats = QUICK_REPEATS if bench.quick else REPEATS
        figures = bench.perform(place, __name__, transcript=str(file), repeats=repeats)
        if figures is None:
            return []
        measured[total(json.loads(file.read_text(encoding="utf-8")))] = figures
    rows = tuple(_row(tokens, figures) for tokens, figures in measured.items())
    times = tuple(median(figures["selections"]) * 1e3 for figures in measured.values())
    shown = Shown("selection, median ms", times, tuple(f"{figure(time)} ms" for time in times))
    return [Table("Selection at a cut", HEAD, rows, (NOTE, _verdict(measured)), measured, shown)]


def _row(tokens: int, figures: dict[str, Any]) -> tuple[str, ...]:
    times = [second * 1e3 for second in figures["selections"]]
    first, last = _ends(figures)
    return (
        f"{tokens:,}",
        f"{figures['messages']:,}",
        f"{figure(median(times))} ({figure(min(times))}–{figure(max(times))})",
        figure(sum(figures["indexing"]) / figures["messages"] * 1e3),
        figure(first * 1e6),
        figure(last * 1e6),
        figure(last / first),
    )


def _ends(figures: dict[str, Any]) -> tuple[float, float]:
    """Return the seconds per token in the first and in the last tenth."""
    seconds, tokens = figures["indexing"], figures["indexed_tokens"]
    return seconds[0] / tokens[0], seconds[-1] / tokens[-1]


def _verdict(measured: dict[int, dict[str, Any]]) -> str:
    largest = max(measured)
    first, last = _ends(measured[largest])
    met = "met" if last / first <= MOST_GROWTH else "NOT met"
    return (
        f"Aim: a token at the end of {largest:,} costs at most {MOST_GROWTH} times one at the beginning: "
        f"{last / first:.2f}, {met}."
    )


MODEL = "gpt-4o"
PARTS = 10  # the first and the last of them are compared


def _work(job: Job) -> Job:
    """Return CPU seconds: of each selection from an index, and of indexing each part of the conversation."""
    history = OPENAI_CHAT.read_body(cast(Json, transcript(job["transcript"]))).messages
    counter = Counter(MODEL)
    _select(history[: len(history) // PARTS], counter, Index(), 0)  # loads the vocabulary and the rules
    counter.messages(history)
    index = Index()
    _select(history, counter, index, 0)
    selections = [_select(history, counter, index, number) for number in range(1, job["repeats"] + 1)]
    return {"selections": selections, "messages": len(history), **_indexing(history, counter)}


def _select(history: History, counter: Counter, index: Index, number: int) -> float:
    """Time a selection. Each has a different question, so that no earlier choice helps."""
    words = history[number % len(history)].text.split()[:12]
    question = Message(Role.USER, (Text(f"Question {number}: what was it about {' '.join(words)}?"),))
    messages = (*history, question)
    task = Task(target=1, counter=counter, window=1, model=MODEL)
    draft = draft_of(messages, task)
    task = replace(task, target=draft.total // 2, window=draft.total // 2, index=index)
    return cpu(lambda: by_need(draft, task))[0]


def _indexing(history: History, counter: Counter) -> Job:
    """Return seconds and tokens of each part, indexed one after the other."""
    index = Index()
    size = max(1, len(history) // PARTS)
    pieces = [history[start : start + size] for start in range(0, size * PARTS, size)]
    seconds = [cpu(index.extend, piece)[0] for piece in pieces]
    return {"indexing": seconds, "indexed_tokens": [counter.messages(piece) for piece in pieces]}


if __name__ == "__main__":
    serve(_work)
