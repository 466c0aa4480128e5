"""The verdict on a run of a framework, from its report, the requests at the provider, and our store. Pure.

Every fault is one line of text; a run without faults is good. Compactions are counted by our adapter's reports, and
prefix breaks by what was sent: the two must agree, and compactions must be as far apart as law 6 demands.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from everlong.core import Role
from everlong.lab.adapters.errand import RECALL, Errand, ErrandClerk
from everlong.lab.clients.prefixes import COUNTED, NEW_SHARE, Sizes, begins, items_of
from everlong.lab.clients.script import newest_task, summary_wanted, tool_names, way_of
from everlong.llm import ReceivedRequest
from everlong.wire import format_named, problems

__all__ = ["AdapterRun", "AdapterVerdict", "judge_adapter"]

MOST_REPORTED = 3  # faults of one kind; more would say the same
#: The ways to run that use our adapter.
OURS = ("everlong", "untold")


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterRun:
    """The records of a run. `compactions` is None if nobody reports them."""

    framework: str
    mode: str
    how: str
    window: int
    version: str = ""
    answers: Sequence[str] = ()
    error: str = ""
    requests: Sequence[ReceivedRequest] = ()
    compactions: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterVerdict:
    """A row of the table. `finished` of `tasks` prompts were answered as they should be.

    `steps` are the requests of the conversation, `others` those for summaries and the like; `refused` were too large.
    `largest` is the largest request that was answered. `kept` of `facts` from the beginning were there at the end, some
    of them `recalled`; None if the run did not get that far. `sent` are the tokens of all answered requests, of which
    `cached` had been sent before as the beginning of another request.
    """

    framework: str
    mode: str
    how: str
    version: str = ""
    finished: int = 0
    tasks: int = 0
    steps: int = 0
    others: int = 0
    refused: int = 0
    largest: int = 0
    window: int = 0
    compactions: int | None = None
    breaks: int = 0
    kept: int | None = None
    recalled: int = 0
    facts: int = 0
    sent: int = 0
    cached: int = 0
    faults: tuple[str, ...] = ()
    left_out: str = ""

    @property
    def ours(self) -> bool:
        """Return whether our adapter was used: the others are shown, not judged."""
        return self.how in OURS

    @property
    def ok(self) -> bool:
        """Return whether the framework ran and nothing went wrong."""
        return not self.faults and not self.left_out


def judge_adapter(run: AdapterRun, errand: Errand, clerk: ErrandClerk) -> AdapterVerdict:
    """Return a run as a row of the table."""
    answered = [request for request in run.requests if _size(request) <= run.window]
    steps = [request for request in answered if is_step(request)]
    refused = len(run.requests) - len(answered)
    finished = sum(errand.done(at + 1) in answer for at, answer in enumerate(run.answers))
    broken = [(before, now) for before, now in pairwise(steps) if not begins(_items(now), _items(before))]
    kept = None if clerk.kept is None else len(clerk.kept)
    faults = [f"the run failed: {_line(run.error)}"] if run.error else []
    if finished < errand.count:
        faults.append(f"{finished} of {errand.count} tasks finished")
    faults += [f"{name} was read, but the model did not get it" for name in clerk.missing[:MOST_REPORTED]]
    faults += list(_refusable(run, allowed=run.how == "untold"))[:MOST_REPORTED]
    faults += _gone(run, errand, clerk)
    if run.how in OURS:
        faults += list(_law_faults(run, steps, broken))[:MOST_REPORTED]
    if not faults and sum(map(len, run.answers)) and not broken and not refused:
        faults.append("the conversation never outgrew the window")
    return AdapterVerdict(
        framework=run.framework,
        mode=run.mode,
        how=run.how,
        version=run.version,
        finished=finished,
        tasks=errand.count,
        steps=len(steps),
        others=len(answered) - len(steps),
        refused=refused,
        largest=max(map(_size, answered), default=0),
        window=run.window,
        compactions=run.compactions,
        breaks=len(broken),
        kept=kept,
        recalled=len(clerk.asked_for),
        facts=len(errand.facts),
        sent=sum(request.tokens for request in answered),
        cached=sum(min(request.cached, request.tokens) for request in answered),
        faults=tuple(faults),
    )


def _gone(run: AdapterRun, errand: Errand, clerk: ErrandClerk) -> Iterator[str]:
    """Yield how many facts are lost. If our adapter cannot offer a tool, facts from tool results may be lost.

    They are then behind references, which a framework without our tool cannot follow.
    """
    offered = any(RECALL in tool_names(request.tools) for request in run.requests)
    wanted = errand.user_facts if run.how in OURS and not offered else errand.facts
    gone = () if clerk.kept is None else [fact for fact in wanted if fact not in clerk.kept]
    if gone:
        yield f"{len(gone)} of {len(errand.facts)} facts from the beginning are gone"


def is_step(request: ReceivedRequest) -> bool:
    """Return whether a request belongs to the conversation; the others are for summaries, titles and the like."""
    wanted = summary_wanted(request.messages)
    return way_of(request) is not None and newest_task(request.messages) is not None and not wanted


def _law_faults(
    run: AdapterRun, steps: Sequence[ReceivedRequest], broken: Sequence[tuple[ReceivedRequest, ReceivedRequest]]
) -> Iterator[str]:
    """Yield what law 6 forbids: breaks that no compaction explains, and compactions that follow too soon."""
    refused = {request.number for request in run.requests if _size(request) > run.window}
    reported = run.compactions
    if reported is None:
        yield "nobody reported compactions"
    elif len(broken) > reported or (len(broken) < reported and not refused):
        yield f"the prefix broke {len(broken)} times, but {reported} compactions are reported"
    sizes = Sizes(run.window)
    for (_, last), (before, now) in pairwise(broken):
        if any(before.number < number < now.number for number in refused):
            continue  # a window that was just learned is an exception
        new = before.tokens - last.tokens + _news(now, sizes)
        least = int(NEW_SHARE * _movable(now, sizes))
        if new < COUNTED * least:
            yield f"request {now.number} was compacted again after {new} new tokens, {least} are due at least"
    if not steps:
        yield "no request of the conversation was answered"


def _news(request: ReceivedRequest, sizes: Sizes) -> int:
    """Return the tokens of the newest answer in a request and of what follows it."""
    messages = request.messages
    said = [at for at, message in enumerate(messages) if message.role is Role.ASSISTANT]
    return sizes.counter.messages(messages[said[-1] :] if said else ())


def _movable(request: ReceivedRequest, sizes: Sizes) -> int:
    spoken = format_named(request.fmt)
    body = json.loads(request.body)
    return sizes.movable(spoken.read_body(body), spoken.api.length(body), spoken.api.thinking_length(body))


def _refusable(run: AdapterRun, *, allowed: bool) -> Iterable[str]:
    """Yield what a provider refuses: requests that are too large, unless that is `allowed`, and invalid ones."""
    for request in run.requests:
        if _size(request) > run.window and not allowed:
            yield f"request {request.number} has {_size(request)} tokens for a window of {run.window}"
        for problem in problems(request.fmt, json.loads(request.body))[:1]:
            yield f"request {request.number} is invalid at {problem.where}: {problem.text}"


def _items(request: ReceivedRequest) -> tuple[str, ...]:
    return items_of(format_named(request.fmt), json.loads(request.body))


def _size(request: ReceivedRequest) -> int:
    """Return the tokens of the prompt and of the reply that it asks for."""
    return request.tokens + (request.max_tokens or 0)


def _line(text: str) -> str:
    return " ".join(text.split())[:200]
