"""The benchmark of fitting: tool-heavy transcripts brought under half their size, with the result and the cost."""

import json
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean, median
from typing import Any

from everlong.lab.environments import CORE, ENVIRONMENTS, Environment
from everlong.lab.peers.rules import Message, intact, legible, problems, total
from everlong.lab.peers.table import PEERS
from everlong.lab.speed import growth
from everlong.lab.speed.bench import Bench
from everlong.lab.speed.tables import Shown, Table, figure

__all__ = ["FitVerdict", "judge", "run"]

TOKENS = 40_000
SEEDS, QUICK_SEEDS = range(1, 25), range(1, 5)
LARGE, QUICK_LARGE = 1_000_000, 100_000
LARGE_SEED = 7
WORKER = "everlong.lab.speed.worker"
WARMING = 2  # transcripts before the timed one, in rounds that only measure time

Output = dict[str, Any]


@dataclass(frozen=True, slots=True)
class FitRow:
    """A way to fit, where it runs, and its module."""

    title: str
    environment: Environment
    module: str
    strategy: str


OURS = FitRow("**everlong** `fit`", CORE, "everlong.lab.speed.ours", "fit")
ROWS = (
    OURS,
    *(
        FitRow(peer.title, ENVIRONMENTS[peer.environment], peer.module, peer.strategy)
        for peer in PEERS.values()
        if not peer.talk
    ),
)


@dataclass(frozen=True, slots=True)
class FitCase:
    """A transcript and its budget."""

    file: Path
    messages: list[Message]
    budget: int


@dataclass(frozen=True, slots=True)
class FitVerdict:
    """What one way made of all cases. If it raises, its result for that case counts as invalid."""

    invalid: int
    over: int
    used: tuple[float, ...]
    intact: float
    legible: float
    found: dict[str, int]


def judge(outputs: list[Output], cases: list[tuple[list[Message], int]]) -> FitVerdict:
    """Judge outputs, {"messages": […]} or {"error": "…"}, against their cases: original messages and budget."""
    found: Counter[str] = Counter()
    invalid, used, whole, read = 0, [], [], []
    for output, (original, budget) in zip(outputs, cases, strict=True):
        wrong = problems(output["messages"], original) if "messages" in output else [output["error"]]
        invalid += bool(wrong)
        found.update(set(wrong))
        if "messages" in output:
            used.append(total(output["messages"]) / budget)
            whole.append(intact(output["messages"], original))
            read.append(legible(output["messages"], original))
    over = sum(share > 1 for share in used)
    return FitVerdict(invalid, over, tuple(used), mean(whole or [0.0]), mean(read or [0.0]), dict(found))


def run(bench: Bench) -> list[Table]:
    """Measure every way on the same transcripts, each in a separate process; then how everlong's cost grows."""
    bench.report("fitting: writing the transcripts")
    cases = [_case(bench, TOKENS, seed) for seed in (QUICK_SEEDS if bench.quick else SEEDS)]
    large = _case(bench, QUICK_LARGE if bench.quick else LARGE, LARGE_SEED)
    usable = {row: place for row in ROWS if (place := bench.place(row.environment))}
    outputs: dict[FitRow, list[Output]] = {}
    seconds: dict[FitRow, list[float]] = {row: [] for row in usable}
    for turn in range(1 if bench.quick else 3):
        for row, place in usable.items():
            bench.report(f"fitting, round {turn + 1}: {row.title}")
            result = _perform(bench, replace(row, environment=place), cases if turn == 0 else cases[:WARMING], large)
            if result is not None:
                outputs.setdefault(row, result["outputs"])
                seconds[row].append(result["seconds"])
    originals = [(case.messages, case.budget) for case in cases]
    judged = {row: (judge(found, originals), median(seconds[row])) for row, found in outputs.items()}
    return [_table(judged, len(cases), large), *growth.run(bench)]


def _perform(bench: Bench, row: FitRow, cases: list[FitCase], large: FitCase) -> dict[str, Any] | None:
    return bench.perform(
        row.environment,
        WORKER,
        task="fit",
        module=row.module,
        strategy=row.strategy,
        transcripts=[(str(case.file), case.budget) for case in cases],
        large=(str(large.file), large.budget),
    )


def _case(bench: Bench, tokens: int, seed: int) -> FitCase:
    file = bench.stored(tokens, seed)
    messages: list[Message] = json.loads(file.read_text(encoding="utf-8"))
    return FitCase(file, messages, total(messages) // 2)


def _table(judged: dict[FitRow, tuple[FitVerdict, float]], cases: int, large: FitCase) -> Table:
    size = f"CPU s at {total(large.messages) / 1e6:.1f} M tokens"
    head = ("", "invalid", "over budget", "budget used, median (min–max)", "results intact", "result text kept", size)
    rows = tuple(
        (
            row.title,
            str(verdict.invalid),
            str(verdict.over),
            _used(verdict),
            f"{verdict.intact:.0%}",
            f"{verdict.legible:.0%}",
            figure(seconds),
        )
        for row, (verdict, seconds) in judged.items()
    )
    notes = [
        f"{cases} transcripts of about {TOKENS:,} tokens, the budget half of each. Invalid: results without calls, "
        "calls without results, a lost system prompt or last question, a wrong first role, or an exception. "
        "Intact: tool results that came through whole; text kept: how much of their text can still be read.",
        *(f"{row.title}: {_listed(verdict.found)}." for row, (verdict, _) in judged.items() if verdict.found),
    ]
    data = {
        row.title: {
            "invalid": verdict.invalid,
            "over": verdict.over,
            "used": verdict.used,
            "intact": verdict.intact,
            "legible": verdict.legible,
            "found": verdict.found,
            "seconds": seconds,
        }
        for row, (verdict, seconds) in judged.items()
    }
    kept = tuple(100 * verdict.legible for verdict, _ in judged.values())
    labels = tuple(_short(verdict, cases) for verdict, _ in judged.values())
    shown = Shown("result text kept", kept, labels)
    return Table("Half the size", head, rows, tuple(notes), data, shown)


def _short(verdict: FitVerdict, cases: int) -> str:
    """Return the label of a bar. Example: "49 % · over the budget 5 of 24" """
    words = [f"{verdict.legible:.0%}"]
    words += [f"invalid {verdict.invalid} of {cases}"] if verdict.invalid else []
    words += [f"over the budget {verdict.over} of {cases}"] if verdict.over else []
    return " · ".join(words)


def _used(verdict: FitVerdict) -> str:
    if not verdict.used:
        return "–"
    return f"{median(verdict.used):.0%} ({min(verdict.used):.0%}–{max(verdict.used):.0%})"


def _listed(found: dict[str, int]) -> str:
    return ", ".join(f"{problem} ({times})" for problem, times in sorted(found.items(), key=lambda item: -item[1]))
