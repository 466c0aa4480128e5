"""The verdict on a run, from the client's report, the traffic before it, and the requests that the model got. Pure.

Every fault is one line of text; a run without faults is good.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from everlong.lab.clients.script import Tasks, summary_wanted
from everlong.lab.clients.witness import Exchange
from everlong.llm import ReceivedRequest
from everlong.tokens import Counter
from everlong.wire import FORMATS, Format, problems

__all__ = ["RunRecord", "Verdict", "judge", "left_out"]

REFUSED_FROM = 400  # HTTP status
MOST_REPORTED = 3  # faults of one kind; the rest would say the same


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """What a run left behind.

    `exchanges` passed between the client and its server, `requests` reached the model, and `missing` names the results
    that the model did not get.
    """

    version: str
    answers: Sequence[str]
    error: str
    exchanges: Sequence[Exchange]
    requests: Sequence[ReceivedRequest]
    missing: Sequence[str]
    window: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A row of the table: one client in one mode.

    `wanted` is the client's largest request and `largest` the largest that reached the model, in tokens. `errors` are
    those that the client saw. A client that could not be run has no faults; `left_out` says why.
    """

    client: str
    mode: str
    version: str = ""
    turns: int = 0
    requests: int = 0
    wanted: int = 0
    largest: int = 0
    window: int = 0
    errors: int = 0
    faults: tuple[str, ...] = ()
    left_out: str = ""

    @property
    def ok(self) -> bool:
        """Return whether the client ran and nothing went wrong."""
        return not self.faults and not self.left_out


def left_out(client: str, reason: str) -> Verdict:
    """Return the row of a client that could not be run here."""
    return Verdict(client=client, mode="", left_out=reason)


def judge(client: str, mode: str, tasks: Tasks, record: RunRecord) -> Verdict:
    """Return a run as a row of the table."""
    calls = [exchange for exchange in record.exchanges if _format(exchange)]
    failed = [exchange for exchange in calls if exchange.status >= REFUSED_FROM or exchange.trouble]
    finished = sum(tasks.done(at + 1) in answer for at, answer in enumerate(record.answers))
    wanted = _largest_tokens(calls)
    faults = [f"the client failed: {record.error}"] if record.error else []
    faults += [f"the client got {exchange.status}: {_line(exchange.trouble)}" for exchange in failed[:MOST_REPORTED]]
    if finished < tasks.count:
        faults.append(f"{finished} of {tasks.count} tasks finished")
    faults += [f"{name} was read, but the model did not get it" for name in record.missing[:MOST_REPORTED]]
    faults += list(_refusable(record.requests, record.window))[:MOST_REPORTED]
    if not faults and wanted <= record.window:
        faults.append("the conversation never outgrew the window")
    return Verdict(
        client=client,
        mode=mode,
        version=record.version,
        turns=finished,
        requests=len(calls),
        wanted=wanted,
        largest=max(map(_size, record.requests), default=0),
        window=record.window,
        errors=len(failed),
        faults=tuple(faults),
    )


def _refusable(requests: Iterable[ReceivedRequest], window: int) -> Iterable[str]:
    """Yield what a provider would refuse: requests that are too large or invalid."""
    for request in requests:
        name = f"request {request.number}{' for a summary' if summary_wanted(request.messages) else ''}"
        if _size(request) > window:
            yield f"{name} has {_size(request)} tokens for a window of {window}"
        for problem in problems(request.fmt, json.loads(request.body))[:1]:
            yield f"{name} is invalid at {problem.where}: {problem.text}"


def _size(request: ReceivedRequest) -> int:
    """Return the tokens of the prompt and of the reply that it asks for."""
    return request.tokens + (request.max_tokens or 0)


def _format(exchange: Exchange) -> Format | None:
    """Return the format of a request to the model; None for any other. Example: /v1/messages?beta=true"""
    path = exchange.path.partition("?")[0]
    return next((known for known in FORMATS.values() if path.endswith(known.api.path)), None)


def _largest_tokens(calls: Sequence[Exchange]) -> int:
    """Return the tokens of the client's largest request, counted as the scripted model counts."""
    if not calls:
        return 0
    largest = max(calls, key=lambda exchange: len(exchange.body))
    known = _format(largest)
    assert known is not None, "a call has a format"
    document = known.read_body(json.loads(largest.body))
    counter = Counter("gpt-4o")
    return counter.messages(document.messages) + counter.tools(document.tools)


def _line(text: str) -> str:
    return " ".join(text.split())[:200]
