"""A whole replay: every conversation under every policy and window, each as one job that any process can do."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice

from everlong.lab.pool import run
from everlong.lab.replay.courses import Terms
from everlong.lab.replay.playback import played
from everlong.lab.replay.policies import UNCUT, policy_named
from everlong.lab.replay.results import Paid, Played, ReplayResult
from everlong.lab.replay.sessions import Pauses, Session
from everlong.lab.replay.tariffs import Tariff

__all__ = ["DEARER", "ReplayPlan", "replayed", "summed"]

DEARER = 1.01  # times uncut; below, it is the few tokens that a repair adds and no loss of the cache


def summed(played: Sequence[Played], uncut: Sequence[Played]) -> ReplayResult:
    """One policy, window and tariff over all conversations. `uncut` are the same conversations, nothing cut.

    A conversation counts as dearer if it cost over one percent more than uncut: where nothing had to be cut, repairs of
    a request still add a few tokens.
    """
    first = played[0]
    paid = [one for conversation in played for one in conversation.paid]
    probes = [probe for conversation in played for probe in conversation.probes]
    whole = {one.session.id: one.dollars for one in uncut}

    def many(of: Callable[[Paid], int]) -> int:
        return sum(map(of, paid))

    def dollars(kind: str) -> float:
        return sum(one.dollars for one in paid if one.kind == kind)

    return ReplayResult(
        policy=first.policy,
        window=first.window,
        tariff=first.tariff,
        played=tuple(played),
        requests=len(paid),
        prompt=many(lambda one: one.prompt),
        read=many(lambda one: one.read),
        written=many(lambda one: one.written),
        output=many(lambda one: one.output),
        dollars=sum(one.dollars for one in paid),
        uncut=sum(whole.values()),
        summaries=many(lambda one: one.kind == "summary"),
        summary_dollars=dollars("summary"),
        readings=many(lambda one: one.kind == "reading"),
        reading_dollars=dollars("reading"),
        cuts=many(lambda one: one.cut),
        resets=many(lambda one: one.reset),
        broken=many(lambda one: one.reset and not one.cut),
        over=many(lambda one: one.over),
        invalid=many(lambda one: bool(one.problems) and not one.over),
        dearer=sum(one.dollars > whole[one.session.id] * DEARER for one in played),
        probes=len(probes),
        kept=sum(probe.kept for probe in probes),
        literal=sum(probe.literal for probe in probes),
        likely=sum(probe.likely for probe in probes),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayPlan:
    """What is replayed, and how. `reading`: what was lost is read again and paid for."""

    policies: tuple[str, ...]
    windows: tuple[int, ...]
    tariff: Tariff
    model: str
    reply: int = 8_000
    front: int = 12_000
    pauses: Pauses = "recorded"
    reading: bool = True

    def terms(self, window: int) -> Terms:
        """What holds for every request in that window."""
        return Terms(window=window, tariff=self.tariff, model=self.model, reply=self.reply, front=self.front)


@dataclass(frozen=True, slots=True)
class _Job:
    plan: ReplayPlan
    session: Session
    policy: str
    window: int


def replayed(
    sessions: Sequence[Session], plan: ReplayPlan, processes: int = 1, tell: Callable[[int], None] = lambda _: None
) -> list[ReplayResult]:
    """A result for each window and policy, in the order of the plan; `tell` hears of every conversation played once."""
    first = (UNCUT, plan.windows[0])
    asked = [(policy, window) for window in plan.windows for policy in plan.policies]
    wanted = list(dict.fromkeys((first, *asked)))
    jobs = [_Job(plan, session, policy, window) for policy, window in wanted for session in sessions]
    done = iter(run(_done, jobs, processes, size=_size, tell=lambda _: tell(1)))
    found = {one: list(islice(done, len(sessions))) for one in wanted}
    return [summed(found[one], found[first]) for one in asked]


def _done(job: _Job) -> Played:
    plan = job.plan
    return played(job.session, policy_named(job.policy), plan.terms(job.window), plan.pauses, reading=plan.reading)


def _size(job: _Job) -> int:
    return job.session.told.tokens * len(job.session.requests)
