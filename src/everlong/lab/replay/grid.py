"""The grid of continuity: every session in every window with every prompt overhead, and what was left after each cut.

The sessions go through `played`, so the engine works as in production, with a history that grows request by request.
"""

from collections import Counter as Tally
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from statistics import median

from everlong.core import Message, Role, Text
from everlong.lab.measures.continuity import MISSES, Standing, judge, observations_in
from everlong.lab.pool import run
from everlong.lab.replay.courses import OverheadForm, Policy, Sending, Terms
from everlong.lab.replay.playback import played
from everlong.lab.replay.policies import policy_named
from everlong.lab.replay.results import Played
from everlong.lab.replay.sessions import Session
from everlong.lab.replay.tariffs import Tariff

__all__ = [
    "Cell",
    "CellResult",
    "Crossing",
    "GridPlan",
    "Walked",
    "as_observations",
    "cells_of",
    "observed_in",
    "playable",
    "summed_cell",
    "walk_grid",
    "walked",
]

LARGEST_OVERHEAD = 0.7  # of the window; with more, there is hardly any conversation
RESULT, ACTION = "Observation: ", "Action: "
BETWEEN = "\n\n"


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of the grid."""

    policy: str
    window: int
    overhead: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GridPlan:
    """What is played: the grid, and what applies to every request in it."""

    policies: tuple[str, ...]
    windows: tuple[int, ...]
    overheads: tuple[int, ...]
    tariff: Tariff
    model: str
    reply: int
    form: OverheadForm = "both"

    def terms(self, cell: Cell) -> Terms:
        """Return what applies to every request in a cell."""
        return Terms(
            window=cell.window,
            tariff=self.tariff,
            model=self.model,
            reply=self.reply,
            front=cell.overhead,
            form=self.form,
        )


@dataclass(frozen=True, slots=True)
class Crossing:
    """One compaction: the answer that followed, what was left after it, and `new`, as in `Paid`."""

    at: int
    standing: Standing
    new: float | None


@dataclass(frozen=True, slots=True)
class Walked:
    """One session in one cell: its compactions in order, and the number of requests between each two."""

    session: str
    requests: int
    crossings: tuple[Crossing, ...]
    between: tuple[int, ...]
    storms: int
    refused: int
    broken: int
    invalid: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CellResult:
    """All sessions in one cell. `task`, `steps` and `words` count the compactions after which each of these was there.

    `missing` counts what was missing, by its name; `examples` are places where something was missing, as (session,
    answer, what). `new` are the least and the median share of the movable part that was new between two compactions.
    """

    policy: str
    window: int
    overhead: int
    sessions: int
    requests: int
    compactions: int
    task: int
    steps: int
    words: int
    between_least: int | None
    between_median: float | None
    new_least: float | None
    new_median: float | None
    storms: int
    refused: int
    broken: int
    invalid: int
    missing: dict[str, int] = field(default_factory=dict)
    examples: tuple[tuple[str, int, str], ...] = ()


MOST_EXAMPLES = 5


def cells_of(plan: GridPlan) -> list[Cell]:
    """Return the cells of a plan, without those whose overhead is too large for the window."""
    return [
        Cell(policy, window, overhead)
        for policy in plan.policies
        for window in plan.windows
        for overhead in plan.overheads
        if overhead <= LARGEST_OVERHEAD * window
    ]


@dataclass(frozen=True, slots=True)
class _Job:
    plan: GridPlan
    session: Session
    cell: Cell


def walk_grid(
    sessions: Sequence[Session], plan: GridPlan, processes: int = 1, report: Callable[[int], None] = lambda _: None
) -> list[CellResult]:
    """Return a result for each cell of the plan. `report` gets 1 for each session in each cell."""
    jobs = [_Job(plan, session, cell) for cell in cells_of(plan) for session in playable(sessions, plan, cell)]
    found: dict[Cell, list[Walked]] = {cell: [] for cell in cells_of(plan)}
    done = run(_walk, jobs, processes, size=lambda job: job.session.work, report=lambda _: report(1))
    for job, one in zip(jobs, done, strict=True):
        found[job.cell].append(one)
    return [summed_cell(cell, each) for cell, each in found.items()]


def playable(sessions: Sequence[Session], plan: GridPlan, cell: Cell) -> list[Session]:
    """Return the sessions whose own system text, with the overhead of a cell, leaves enough of its window."""
    count, room = plan.terms(cell).counter.messages, LARGEST_OVERHEAD * cell.window - cell.overhead
    return [each for each in sessions if count(said for said in each.messages if said.role is Role.SYSTEM) <= room]


def _walk(job: _Job) -> Walked:
    return walked(job.session, policy_named(job.cell.policy), job.plan.terms(job.cell))


def walked(session: Session, policy: Policy, terms: Terms) -> Walked:
    """Play a session and judge what is left after each compaction."""
    standings: dict[int, Standing] = {}
    observations = session.observations

    def watch(at: int, sending: Sending) -> None:
        if sending.cut and not sending.refused:
            history = session.messages[:at]
            standings[at] = judge(
                history,
                sending.messages,
                terms.counter,
                movable=terms.movable(history),
                observations=observations,
            )

    return _walked(played(replace(session, cases=()), policy, terms, "none", reading=False, watch=watch), standings)


def _walked(found: Played, standings: dict[int, Standing]) -> Walked:
    answers = [paid for paid in found.paid if paid.kind == "answer"]
    cuts = [number for number, paid in enumerate(answers) if paid.cut]
    unsent = [paid for paid in answers if paid.over and not paid.prompt]
    return Walked(
        session=found.session.id,
        requests=len(answers),
        crossings=tuple(Crossing(answers[n].at, standings[answers[n].at], answers[n].new) for n in cuts),
        between=tuple(after - before for before, after in pairwise(cuts)),
        storms=sum(paid.storm for paid in answers),
        refused=len(unsent),
        broken=sum(paid.reset and not paid.cut for paid in answers),
        invalid=sum(bool(paid.problems) or paid.over for paid in answers) - len(unsent),
    )


def summed_cell(cell: Cell, found: Sequence[Walked]) -> CellResult:
    """Sum up all sessions of a cell."""
    crossings = [(one.session, crossing) for one in found for crossing in one.crossings]
    standings = [crossing.standing for _, crossing in crossings]
    between = [requests for one in found for requests in one.between]
    new = [crossing.new for _, crossing in crossings if crossing.new is not None]
    missing = Tally(name for standing in standings for name in standing.missing)
    examples = [(name, each.at, " ".join(each.standing.missing)) for name, each in crossings if each.standing.missing]
    return CellResult(
        policy=cell.policy,
        window=cell.window,
        overhead=cell.overhead,
        sessions=len(found),
        requests=sum(one.requests for one in found),
        compactions=len(crossings),
        task=sum(standing.task for standing in standings),
        steps=sum(standing.steps for standing in standings),
        words=sum(standing.words for standing in standings),
        between_least=min(between, default=None),
        between_median=median(between) if between else None,
        new_least=min(new, default=None),
        new_median=median(new) if new else None,
        storms=sum(one.storms for one in found),
        refused=sum(one.refused for one in found),
        broken=sum(one.broken for one in found),
        invalid=sum(one.invalid for one in found),
        missing={name: missing[name] for name in MISSES if missing[name]},
        examples=tuple(examples[:MOST_EXAMPLES]),
    )


# --- results as user messages ----------------------------------------------------------------------


def observed_in(session: Session) -> Session:
    """Return a session with the user messages marked that are results."""
    return replace(session, observations=observations_in(session.messages))


def as_observations(session: Session) -> Session:
    """Return a session as that of an agent without tool calls: actions in the text, results as user messages.

    Example: call read(a.py), result "x" -> assistant "Action: read\\n{…}", user "Observation: x". Its probes are left
    out, because they name other positions.
    """
    if not any(message.calls for message in session.messages):
        return observed_in(session)
    messages: list[Message] = []
    observations: set[int] = set()
    for message in session.messages:
        if not message.results:
            messages.append(_acting(message) if message.calls else message)
            continue
        text = BETWEEN.join(f"{RESULT}{part.text}" for part in message.results)
        if len(messages) - 1 in observations:  # results of one step come in one message
            text = f"{messages.pop().text}{BETWEEN}{text}"
        messages.append(Message(Role.USER, (Text(text),)))
        observations.add(len(messages) - 1)
    return replace(session, messages=tuple(messages), cases=(), times=(), observations=frozenset(observations))


def _acting(message: Message) -> Message:
    """Return a message with its calls written into its text."""
    calls = (f"{ACTION}{call.name}\n{call.arguments}" for call in message.calls)
    return Message(message.role, (Text(BETWEEN.join(filter(None, (message.text, *calls)))),))
