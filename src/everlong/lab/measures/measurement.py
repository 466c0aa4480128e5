"""The measurement: run strategies on the cases of a conversation, and sum up what was found.

Every case is selected afresh, without anything from an earlier case. Messages are counted beforehand, so that the time
of a selection is only its own. Results are plain values that the terminal, the page, JSON and tests all read.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from everlong.core import History
from everlong.errors import BudgetImpossible
from everlong.lab.cases import Case, Cases
from everlong.lab.measures.dialogs import DIALOGS
from everlong.lab.measures.edits import EDITS
from everlong.lab.measures.presence import Sent
from everlong.lab.measures.probes import PROBES
from everlong.lab.strategies.strategy import Select, Strategy, counter
from everlong.lab.strategies.table import strategy_named

__all__ = ["Group", "Job", "Outcome", "Plan", "Result", "Row", "measured", "summed"]

#: Every measure by its name.
MEASURES = {measure.name: measure for measure in (PROBES, EDITS, DIALOGS)}
FITS = "fits"
CUT = "cut"


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A part of a row. `of` says how it was split ("kind", "source", "category"), `name` which part it is."""

    of: str
    name: str
    hits: int
    strict: int
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One budget: of `total` cases `hits` were still there, `strict` of them not only in a list of names.

    `recall` is the mean share of a question's evidence (dialogs), None elsewhere. `milliseconds` is the median CPU time
    of one selection (wall time if another process does the work); `tokens` is the mean size of what was sent; `over` is
    how many selections exceeded the budget; `failed` is how many gave no messages at all (they count as misses).
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
        """The share of hits in percent; 0 if there are no cases."""
        return 100 * self.hits / self.total if self.total else 0.0

    @property
    def strict_percent(self) -> float:
        """The share of strict hits in percent; 0 if there are no cases."""
        return 100 * self.strict / self.total if self.total else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One strategy on one data set. `measure`: "probes", "edits" or "dialogs"; `half`: "tuning", "confirming", "all".

    `uncut` is how many of `total` are in the whole history: more cannot be found. `rows` are in order of budget.
    """

    measure: str
    data: str
    strategy: str
    half: str
    conversations: int
    total: int
    uncut: int
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """What to measure. `measure` is "probes", "edits" or "dialogs".

    Without `decoded`, a string in the arguments of a call counts only if it occurs there literally, unescaped.
    """

    measure: str
    strategies: tuple[str, ...]
    budgets: tuple[int, ...]
    decoded: bool = True


@dataclass(frozen=True, slots=True)
class Job:
    """The cases of one conversation under a plan: the work of one process at a time."""

    plan: Plan
    cases: Cases


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one case with one strategy and budget. `share` is how much of the wanted texts was there."""

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
class _Prepared:
    """A case with its history, the tokens of that, and whether its texts are in the whole history."""

    case: Case
    history: History
    tokens: int
    uncut: bool


@dataclass(frozen=True, slots=True)
class _Selection:
    sent: Sent
    milliseconds: float
    tokens: int
    failed: bool


def measured(job: Job) -> list[Outcome]:
    """Return the outcome of every case with every strategy and budget."""
    counter().messages(job.cases.conversation.messages)
    prepared = [_prepared(job, case) for case in job.cases.cases]
    return [
        outcome
        for name in job.plan.strategies
        for budget in job.plan.budgets
        for outcome in _outcomes(job.plan, prepared, strategy_named(name), budget)
    ]


def _prepared(job: Job, case: Case) -> _Prepared:
    history = job.cases.conversation.messages[: case.at]
    if case.question is not None:
        history = (*history, case.question)
    finding = MEASURES[job.plan.measure].find(Sent(history, decoded=job.plan.decoded), case.wanted)
    return _Prepared(case, history, counter().messages(history), finding.hit)


def _outcomes(plan: Plan, prepared: Sequence[_Prepared], strategy: Strategy, budget: int) -> Iterator[Outcome]:
    """Yield the outcome of each case. Cases with the same history share one selection."""
    find = MEASURES[plan.measure].find
    select = strategy.begin()
    last: tuple[tuple[int, object], _Selection] | None = None
    for item in prepared:
        place = (item.case.at, item.case.question)
        if last is None or last[0] != place:
            last = place, _selection(strategy, select, item.history, budget, decoded=plan.decoded)
        selection = last[1]
        finding = find(selection.sent, item.case.wanted)
        yield Outcome(
            strategy=strategy.name,
            budget=budget,
            hit=finding.hit,
            strict=finding.strict,
            share=finding.share,
            groups=(*item.case.groups, ("history", FITS if item.tokens <= budget else CUT)),
            milliseconds=selection.milliseconds,
            tokens=selection.tokens,
            failed=selection.failed,
            uncut=item.uncut,
        )


def _selection(strategy: Strategy, select: Select, history: History, budget: int, *, decoded: bool) -> _Selection:
    start = strategy.clock()
    try:
        chosen = select(history, budget)
    except BudgetImpossible:
        chosen = ()
    milliseconds = 1_000 * (strategy.clock() - start)
    return _Selection(Sent(chosen, decoded=decoded), milliseconds, counter().messages(chosen), failed=not chosen)


def summed(plan: Plan, data: str, half: str, conversations: int, outcomes: Iterable[Outcome]) -> list[Result]:
    """Return a result for each strategy, in the order of the plan."""
    by_row: dict[tuple[str, int], list[Outcome]] = {}
    for outcome in outcomes:
        by_row.setdefault((outcome.strategy, outcome.budget), []).append(outcome)
    results = []
    for name in plan.strategies:
        first = by_row.get((name, plan.budgets[0]), [])
        results.append(
            Result(
                measure=plan.measure,
                data=data,
                strategy=name,
                half=half,
                conversations=conversations,
                total=len(first),
                uncut=sum(outcome.uncut for outcome in first),
                rows=tuple(_row(plan, budget, by_row.get((name, budget), [])) for budget in plan.budgets),
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
        recall=sum(outcome.share for outcome in outcomes) / max(1, total) if MEASURES[plan.measure].recall else None,
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
