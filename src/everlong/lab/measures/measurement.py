"""Putting cases to strategies: one conversation at a time, and the sums over all of them.

A fresh cut at every case: nothing that an earlier case left behind may be sent. Counting is done beforehand, so
that the time of a selection is the selection.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from everlong.core import History
from everlong.errors import BudgetImpossible
from everlong.lab.cases import Case, Cases
from everlong.lab.measures.presence import Sent
from everlong.lab.strategies.strategy import Select, Strategy, counter
from everlong.lab.strategies.table import strategy_named

__all__ = ["Group", "Job", "Outcome", "Plan", "Result", "Row", "measured", "summed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A part of a row. `of` says by what it was split: "kind", "source", "category"; `name` which part."""

    of: str
    name: str
    hits: int
    strict: int
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One budget: of `total` cases `hits` were still there, `strict` of them without names alone.

    `recall` is the mean share of a question's evidence (dialogs), None elsewhere. `milliseconds` is the median CPU
    time of one selection (on the clock, where another process works); `tokens` the mean of what was sent; `over` how
    many selections passed the budget; `failed` how many gave no messages at all (they count as misses).
    """

    budget: int
    hits: int
    strict: int
    total: int
    recall: float | None = None
    milliseconds: float = 0.0
    tokens: float = 0.0
    over: int = 0
    failed: int = 0
    groups: tuple[Group, ...] = ()

    @property
    def percent(self) -> float:
        """Share of hits, in percent; 0 of nothing."""
        return 100 * self.hits / self.total if self.total else 0.0

    @property
    def strict_percent(self) -> float:
        """Share of strict hits, in percent; 0 of nothing."""
        return 100 * self.strict / self.total if self.total else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One strategy on one data set. `measure`: "probes", "edits" or "dialogs"; `half`: "tuning", "confirming", "all".

    `uncut` is how many of `total` stand in the whole history: more cannot be found. `rows` are in order of budget.
    """

    measure: str
    data: str
    strategy: str
    half: str
    conversations: int
    total: int
    uncut: int
    rows: tuple[Row, ...]


FITS = "fits"
CUT = "cut"


@dataclass(frozen=True, slots=True)
class Plan:
    """What is measured. `measure` is "probes", "edits" or "dialogs".

    Without `decoded`, a string in the arguments of a call counts only where it stands there as it is, unescaped.
    """

    measure: str
    strategies: tuple[str, ...]
    budgets: tuple[int, ...]
    decoded: bool = True


@dataclass(frozen=True, slots=True)
class Job:
    """The cases of one conversation under a plan: what one process does at a time."""

    plan: Plan
    asked: Cases


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one case went under one strategy and budget. `share` is how much of what was wanted was there."""

    strategy: str
    budget: int
    hit: bool
    strict: bool
    share: float
    groups: tuple[tuple[str, str], ...]
    milliseconds: float
    tokens: int
    failed: bool
    uncut: bool


@dataclass(frozen=True, slots=True)
class _Selected:
    sent: Sent
    milliseconds: float
    tokens: int
    failed: bool


def measured(job: Job) -> list[Outcome]:
    """Every case under every strategy and budget."""
    messages = job.asked.conversation.messages
    counter().messages(messages)
    decoded = job.plan.decoded
    complete = [
        _found(job.plan.measure, Sent(_history(messages, case), decoded=decoded), case)[0] for case in job.asked.cases
    ]
    before = [counter().messages(_history(messages, case)) for case in job.asked.cases]
    outcomes = []
    for name in job.plan.strategies:
        for budget in job.plan.budgets:
            strategy = strategy_named(name)
            select = strategy.begin()
            last: tuple[tuple[int, object], _Selected] | None = None
            for case, uncut, tokens in zip(job.asked.cases, complete, before, strict=True):
                place = (case.at, case.question)
                if last is None or last[0] != place:
                    last = place, _selected(strategy, select, (_history(messages, case), budget), decoded=decoded)
                hit, strict, share = _found(job.plan.measure, last[1].sent, case)
                length = ("history", FITS if tokens <= budget else CUT)
                outcomes.append(
                    Outcome(
                        strategy=name,
                        budget=budget,
                        hit=hit,
                        strict=strict,
                        share=share,
                        groups=(*case.groups, length),
                        milliseconds=last[1].milliseconds,
                        tokens=last[1].tokens,
                        failed=last[1].failed,
                        uncut=uncut,
                    )
                )
    return outcomes


def summed(plan: Plan, data: str, half: str, conversations: int, outcomes: Iterable[Outcome]) -> list[Result]:
    """A result for each strategy, in the order of the plan."""
    sorted_out: dict[tuple[str, int], list[Outcome]] = {}
    for outcome in outcomes:
        sorted_out.setdefault((outcome.strategy, outcome.budget), []).append(outcome)
    results = []
    for name in plan.strategies:
        first = sorted_out.get((name, plan.budgets[0]), [])
        results.append(
            Result(
                measure=plan.measure,
                data=data,
                strategy=name,
                half=half,
                conversations=conversations,
                total=len(first),
                uncut=sum(outcome.uncut for outcome in first),
                rows=tuple(_row(plan, budget, sorted_out.get((name, budget), [])) for budget in plan.budgets),
            )
        )
    return results


def _row(plan: Plan, budget: int, outcomes: Sequence[Outcome]) -> Row:
    total = len(outcomes)
    groups: dict[tuple[str, str], list[Outcome]] = {}
    for outcome in outcomes:
        for group in outcome.groups:
            groups.setdefault(group, []).append(outcome)
    return Row(
        budget=budget,
        hits=sum(outcome.hit for outcome in outcomes),
        strict=sum(outcome.strict for outcome in outcomes),
        total=total,
        recall=sum(outcome.share for outcome in outcomes) / max(1, total) if plan.measure == "dialogs" else None,
        milliseconds=median(outcome.milliseconds for outcome in outcomes) if outcomes else 0.0,
        tokens=sum(outcome.tokens for outcome in outcomes) / max(1, total),
        over=sum(outcome.tokens > budget for outcome in outcomes),
        failed=sum(outcome.failed for outcome in outcomes),
        groups=tuple(
            Group(
                of=of,
                name=name,
                hits=sum(outcome.hit for outcome in members),
                strict=sum(outcome.strict for outcome in members),
                total=len(members),
            )
            for (of, name), members in sorted(groups.items())
        ),
    )


def _history(messages: History, case: Case) -> History:
    return messages[: case.at] if case.question is None else (*messages[: case.at], case.question)


def _selected(strategy: Strategy, select: Select, asked: tuple[History, int], *, decoded: bool) -> _Selected:
    begun = strategy.clock()
    try:
        chosen = select(*asked)
    except BudgetImpossible:
        chosen = ()
    took = 1_000 * (strategy.clock() - begun)
    return _Selected(Sent(chosen, decoded=decoded), took, counter().messages(chosen), failed=not chosen)


def _found(measure: str, sent: Sent, case: Case) -> tuple[bool, bool, float]:
    """Whether all that is wanted is there, whether without names alone, and how much of it."""
    if measure == "edits":
        there = all(map(sent.has_lines, case.wanted))
        return there, there, float(there)
    present = list(map(sent.has, case.wanted))
    strict = all(present) and all(map(sent.has_strictly, case.wanted))
    return all(present), strict, sum(present) / len(present)
