"""The benchmark of counting: a million tokens in a new process, with an empty cache, and with one message more."""

import json
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from everlong.lab.environments import CORE, ENVIRONMENTS, Environment
from everlong.lab.peers.rules import message_tokens
from everlong.lab.speed.bench import Bench
from everlong.lab.speed.tables import Shown, Table, figure

__all__ = ["run"]

TOKENS, QUICK_TOKENS = 1_000_000, 100_000
LARGEST_RESULT = 1_000  # tokens: a million of them make about 2,000 messages
SEED, OTHER_SEED = 7, 8
MORE_TOKENS = range(450, 551)  # of the messages that are added one by one
MORE_MESSAGES = 50

COUNTERS = "everlong.lab.speed.counters"
OUR_MODULE = "everlong.lab.speed.ours"
WORKER = "everlong.lab.speed.worker"

WITHIN = 1.25  # times splintr's own time: the goal


@dataclass(frozen=True, slots=True)
class CountRow:
    """A way to count, where it runs, and its module."""

    title: str
    environment: Environment
    module: str
    counter: str
    needs_ranks: bool = False


FLOOR = CountRow("splintr `encode_ordinary`, raw", CORE, f"{COUNTERS}.splintr_raw", "ordinary")
OURS = (
    CountRow("**everlong** `count` on dicts", CORE, OUR_MODULE, "count"),
    CountRow("**everlong** `Counter`, `Tally` on kept values", CORE, OUR_MODULE, "values"),
)
ROWS = (
    FLOOR,
    CountRow("splintr `encode_flat`, raw", CORE, f"{COUNTERS}.splintr_raw", "packed"),
    *OURS,
    CountRow(
        "tiktoken `encode_ordinary`, raw", ENVIRONMENTS["tiktoken"], f"{COUNTERS}.tiktoken_raw", "encode_ordinary", True
    ),
    CountRow("litellm `token_counter`", ENVIRONMENTS["litellm"], f"{COUNTERS}.litellm_counter", "token_counter"),
    CountRow(
        "langchain `count_tokens_approximately`",
        ENVIRONMENTS["langchain"],
        f"{COUNTERS}.langchain_counters",
        "approximate",
    ),
    CountRow(
        "langchain-openai `get_num_tokens_from_messages`",
        ENVIRONMENTS["langchain-openai"],
        f"{COUNTERS}.langchain_openai_counter",
        "exact",
        True,
    ),
)

Measured = dict[str, Any]


def run(bench: Bench) -> list[Table]:
    """Time every way to count, each round in a fresh process and in turn, so that a slow minute affects all equally."""
    tokens = QUICK_TOKENS if bench.quick else TOKENS
    transcript = bench.stored(tokens, SEED, largest=LARGEST_RESULT)
    job = {"transcript": str(transcript), "more": str(_single_messages(bench, tokens)), "repeats": 3}
    usable = {
        row: place
        for row in ROWS
        if (place := bench.place(row.environment)) and (not row.needs_ranks or bench.environments.ranks())
    }
    results: dict[CountRow, list[Measured]] = {row: [] for row in usable}
    for turn in range(1 if bench.quick else 3):
        for row, place in usable.items():
            bench.report(f"counting, round {turn + 1}: {row.title}")
            result = bench.perform(place, WORKER, task="count", module=row.module, counter=row.counter, **job)
            if result is not None:
                results[row].append(result)
    figures = {row: _middle(rounds) for row, rounds in results.items() if rounds}
    messages = len(json.loads(transcript.read_text(encoding="utf-8")))
    return [_table(figures, messages)] if FLOOR in figures else []


def _single_messages(bench: Bench, tokens: int) -> Path:
    """Return a file with messages of about 500 tokens that are not in the transcript."""
    path = bench.environments.folder / "transcripts" / f"single-{tokens}.json"
    if not path.is_file():
        messages = json.loads(bench.stored(tokens, OTHER_SEED, largest=LARGEST_RESULT).read_text(encoding="utf-8"))
        chosen = [message for message in messages if message_tokens(message) in MORE_TOKENS][:MORE_MESSAGES]
        path.write_text(json.dumps(chosen, ensure_ascii=False), encoding="utf-8")
    return path


def _middle(rounds: list[Measured]) -> Measured:
    again = median(second for one in rounds for second in one["again"])
    others = {name: median(one[name] for one in rounds) for name in ("import", "first", "more")}
    return {**others, "again": again, "tokens": rounds[0]["tokens"]}


def _table(figures: dict[CountRow, Measured], messages: int) -> Table:
    floor = figures[FLOOR]
    head = ("", "import, ms", "first call, ms", "again from nothing, ms", "ratio", "one more, ms", "ratio", "tokens")
    rows = tuple(
        (
            row.title,
            figure(measured["import"] * 1e3),
            figure(measured["first"] * 1e3),
            figure(measured["again"] * 1e3),
            figure(measured["again"] / floor["again"]),
            figure(measured["more"] * 1e3),
            figure(measured["more"] / floor["more"]),
            f"{measured['tokens']:,}",
        )
        for row, measured in figures.items()
    )
    notes = [
        "CPU time of all threads. The first call is in a new process and loads the vocabulary. The ratios are to "
        "splintr called directly on every text. One more: a message of about 500 tokens after all the rest.",
        *(_verdict(row, figures[row], floor) for row in OURS if row in figures),
    ]
    data = {row.title: measured for row, measured in figures.items()}
    ratios = tuple(measured["again"] / floor["again"] for measured in figures.values())
    shown = Shown("again from nothing, ratio to splintr", ratios, tuple(f"{figure(ratio)} ×" for ratio in ratios))
    return Table(f"Counting {messages:,} messages, {floor['tokens']:,} tokens", head, rows, tuple(notes), data, shown)


def _verdict(row: CountRow, measured: Measured, floor: Measured) -> str:
    ratio = measured["again"] / floor["again"]
    return f"Aim: within {WITHIN} of splintr. {row.title}: {ratio:.2f}, {'met' if ratio <= WITHIN else 'NOT met'}."
