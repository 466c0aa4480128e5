"""A whole replay: every conversation under every policy and window, each as one job that any process can do."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice

from everlong.lab.replay.courses import Terms
from everlong.lab.replay.playing import played
from everlong.lab.replay.policies import UNCUT, policy_named
from everlong.lab.replay.results import Played, ReplayResult
from everlong.lab.replay.sessions import Pauses, Session
from everlong.lab.replay.summing import summed
from everlong.lab.replay.tariffs import Tariff
from everlong.lab.running import run

__all__ = ["ReplayPlan", "replayed"]


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
