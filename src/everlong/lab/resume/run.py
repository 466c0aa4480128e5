"""Plays sessions under a preset, and runs every strategy at each of its compactions, checked with the same calls.

The preset goes through `played`, with a history that grows as in production: what it sends for a call is what it sends
then, with everything that it has recalled since. A strategy gets the whole history before the compaction and as many
tokens as the preset sent: it selects afresh, so nothing that it lost before counts against it.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from everlong.errors import BudgetImpossible
from everlong.lab.measures.presence import Sent
from everlong.lab.pool import run
from everlong.lab.replay.courses import Sending
from everlong.lab.replay.grid import Cell, GridPlan, cells_of, playable
from everlong.lab.replay.playback import played
from everlong.lab.replay.policies import policy_named
from everlong.lab.replay.sessions import Session
from everlong.lab.resume.record import Asked, Record
from everlong.lab.resume.results import Judged, Outcome, ResumeResult, judged, summed_resume
from everlong.lab.strategies.strategy import Strategy, counter
from everlong.lab.strategies.table import strategy_named

__all__ = ["NEXT_CALLS", "ResumePlan", "compactions_of", "resume_sessions"]

NEXT_CALLS = 5  # after a compaction


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumePlan:
    """What is played: the presets in the windows of `grid`, the strategies to compare, the calls to check."""

    grid: GridPlan
    strategies: tuple[str, ...]
    calls: int = NEXT_CALLS


@dataclass(slots=True)
class Compaction:
    """A compaction for the request to message `at`, the tokens sent then, and the calls up to the next compaction."""

    at: int
    tokens: int
    calls: list[Judged] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Job:
    plan: ResumePlan
    session: Session
    cell: Cell


def resume_sessions(
    sessions: Sequence[Session], plan: ResumePlan, processes: int = 1, report: Callable[[int], None] = lambda _: None
) -> list[ResumeResult]:
    """Return for each cell a result for its preset and one for each strategy. `report` gets 1 for each session."""
    cells = cells_of(plan.grid)
    jobs = [_Job(plan, session, cell) for cell in cells for session in playable(sessions, plan.grid, cell)]
    found: dict[Cell, list[list[Outcome]]] = {cell: [[] for _ in (None, *plan.strategies)] for cell in cells}
    done = run(_resume, jobs, processes, size=lambda job: job.session.work, report=lambda _: report(1))
    for job, columns in zip(jobs, done, strict=True):
        for column, outcomes in zip(found[job.cell], columns, strict=True):
            column += outcomes
    return [result for cell, columns in found.items() for result in _summed(plan, cell, columns)]


def _summed(plan: ResumePlan, cell: Cell, columns: Sequence[Sequence[Outcome]]) -> Iterator[ResumeResult]:
    place = (cell.policy, cell.window, cell.overhead)
    yield summed_resume(place, cell.policy, columns[0], played=True)
    for name, outcomes in zip(plan.strategies, columns[1:], strict=True):
        yield summed_resume(place, name, outcomes, played=False)


def _resume(job: _Job) -> list[list[Outcome]]:
    """Return the outcomes of one session in one cell: those of the preset, then those of each strategy."""
    record = Record(job.session.messages)
    found = compactions_of(job.session, record, job.cell, job.plan)
    own = [_outcome(job.session, one, one.tokens, one.calls) for one in found]
    beside = [list(_selected(job.session, found, strategy_named(name))) for name in job.plan.strategies]
    return [own, *beside]


def _outcome(session: Session, compaction: Compaction, tokens: int, calls: Sequence[Judged]) -> Outcome:
    return Outcome(session.facts.id, session.facts.source, compaction.tokens, tokens, tuple(calls))


def compactions_of(session: Session, record: Record, cell: Cell, plan: ResumePlan) -> list[Compaction]:
    """Play a session under the preset of a cell; return its compactions with the calls that followed each, judged."""
    found: list[Compaction] = []

    def watch(at: int, sending: Sending) -> None:
        if sending.cut and not sending.refused:
            found.append(Compaction(at, counter().messages(sending.messages)))
        if found and session.messages[at].calls:
            last = found[-1]
            asked = record.asked(last.at, at, len(last.calls), plan.calls)
            last.calls.extend(_judged(asked, sending))

    terms = plan.grid.terms(cell)
    played(replace(session, cases=()), policy_named(cell.policy), terms, "none", reading=False, watch=watch)
    return found


def _judged(asked: Sequence[Asked], sending: Sending) -> Iterator[Judged]:
    sent = Sent(sending.messages if any(one.near or one.repeat for one in asked) else ())
    return (judged(one, sent) for one in asked)


def _selected(session: Session, found: Sequence[Compaction], strategy: Strategy) -> Iterator[Outcome]:
    """Yield the outcome of a strategy at each compaction: it gets the history and as many tokens as were sent."""
    select = strategy.begin()
    for compaction in found:
        try:
            chosen = select(session.messages[: compaction.at], compaction.tokens)
        except BudgetImpossible:
            chosen = ()
        sent = Sent(chosen)
        calls = [judged(call.asked, sent) for call in compaction.calls]
        yield _outcome(session, compaction, counter().messages(chosen), calls)
