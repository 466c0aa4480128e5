"""The plan of a replay: every conversation under every policy and window, each one job; and the sums."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice

from everlong.lab.pool import run
from everlong.lab.replay.courses import OverheadForm, Terms
from everlong.lab.replay.playback import played
from everlong.lab.replay.policies import UNCUT, policy_named
from everlong.lab.replay.results import Paid, Played, ReplayResult
from everlong.lab.replay.sessions import Pauses, Session
from everlong.lab.replay.tariffs import Tariff

__all__ = ["DEARER", "ReplayPlan", "replayed", "summed"]

DEARER = 1.01  # times uncut; smaller differences come from tokens that a repair adds, not from a lost cache


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayPlan:
    """What to replay, and how. `reading` means that lost text is read again and paid for."""

    policies: tuple[str, ...]
    windows: tuple[int, ...]
    tariff: Tariff
    model: str
    reply: int = 8_000
    #: Prompt overheads in tokens, each played separately, and what they consist of.
    overheads: tuple[int, ...] = (12_000,)
    form: OverheadForm = "tools"
    pauses: Pauses = "recorded"
    reading: bool = True

    def terms(self, window: int, overhead: int) -> Terms:
        """Return what applies to every request in that window with that overhead."""
        return Terms(
            window=window, tariff=self.tariff, model=self.model, reply=self.reply, front=overhead, form=self.form
        )


@dataclass(frozen=True, slots=True)
class _Job:
    plan: ReplayPlan
    session: Session
    policy: str
    window: int
    overhead: int


def replayed(
    sessions: Sequence[Session], plan: ReplayPlan, processes: int = 1, report: Callable[[int], None] = lambda _: None
) -> list[ReplayResult]:
    """Return a result for each window, overhead and policy, in the order of the plan. `report` gets 1 for each job."""
    uncut = [(UNCUT, plan.windows[0], overhead) for overhead in plan.overheads]  # costs the same in every window
    wanted = [
        (policy, window, overhead) for window in plan.windows for overhead in plan.overheads for policy in plan.policies
    ]
    needed = list(dict.fromkeys((*uncut, *wanted)))
    jobs = [_Job(plan, session, *each) for each in needed for session in sessions]
    played_jobs = iter(run(_play, jobs, processes, size=lambda job: job.session.work, report=lambda _: report(1)))
    played_by = {each: list(islice(played_jobs, len(sessions))) for each in needed}
    return [summed(played_by[each], played_by[UNCUT, plan.windows[0], each[2]]) for each in wanted]


def _play(job: _Job) -> Played:
    plan = job.plan
    terms = plan.terms(job.window, job.overhead)
    return played(job.session, policy_named(job.policy), terms, plan.pauses, reading=plan.reading)


def summed(played: Sequence[Played], uncut: Sequence[Played]) -> ReplayResult:
    """Sum up one policy, window, overhead and tariff over all conversations. `uncut` are the same, nothing cut.

    A conversation counts as dearer if it cost over one percent more than uncut: even if nothing had to be cut, repairs
    add a few tokens to a request.
    """
    first = played[0]
    paid = [request for conversation in played for request in conversation.paid]
    probes = [probe for conversation in played for probe in conversation.probes]
    whole = {conversation.session.id: conversation.dollars for conversation in uncut}
    fitting = {conversation.session.id for conversation in uncut if conversation.fits(first.window)}
    dearer = [each.session.id for each in played if each.dollars > whole[each.session.id] * DEARER]

    def total(of: Callable[[Paid], int]) -> int:
        return sum(map(of, paid))

    def dollars(kind: str) -> float:
        return sum(request.dollars for request in paid if request.kind == kind)

    return ReplayResult(
        policy=first.policy,
        window=first.window,
        front=first.front,
        tariff=first.tariff,
        played=tuple(played),
        requests=len(paid),
        prompt=total(lambda request: request.prompt),
        read=total(lambda request: request.read),
        written=total(lambda request: request.written),
        output=total(lambda request: request.output),
        dollars=sum(request.dollars for request in paid),
        uncut=sum(whole.values()),
        summaries=total(lambda request: request.kind == "summary"),
        summary_dollars=dollars("summary"),
        readings=total(lambda request: request.kind == "reading"),
        reading_dollars=dollars("reading"),
        cuts=total(lambda request: request.cut),
        resets=total(lambda request: request.reset),
        broken=total(lambda request: request.reset and not request.cut),
        over=total(lambda request: request.over),
        invalid=total(lambda request: bool(request.problems) and not request.over),
        storms=total(lambda request: request.storm),
        dearer=len(dearer),
        needless=tuple(name for name in dearer if name in fitting),
        probes=len(probes),
        kept=sum(probe.kept for probe in probes),
        literal=sum(probe.literal for probe in probes),
        likely=sum(probe.likely for probe in probes),
    )
