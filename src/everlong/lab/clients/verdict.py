"""The verdict on a run, from the client's report, its traffic, and the requests at the model. Pure.

Every fault is one line of text; a run without faults is good.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from everlong.core import Message, Role, Text
from everlong.lab.clients.prefixes import REFUSED_FROM, continued, format_of, law_faults, pairs_of
from everlong.lab.clients.script import Work, newest_task, summary_wanted
from everlong.lab.clients.witness import MARK, Exchange
from everlong.llm import ReceivedRequest
from everlong.tokens import Counter
from everlong.wire import format_named, problems

__all__ = ["RunRecord", "Verdict", "judge", "left_out"]

MOST_REPORTED = 3  # faults of one kind; more would say the same


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """The records of a run.

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

    `wanted` is the client's largest request; `smallest` and `largest` are those that reached the model, in tokens.
    `errors` are those that the client saw. `compactions` and `breaks` of the prefix are counted in requests, and
    `summaries` are those that the gateway requested from the model. Of the `tasked` requests, whose client sent the
    task, `task` counts those that still contain it. A client that could not be run has no faults; `left_out` says why.
    """

    client: str
    mode: str
    version: str = ""
    turns: int = 0
    requests: int = 0
    wanted: int = 0
    smallest: int = 0
    largest: int = 0
    window: int = 0
    errors: int = 0
    compactions: int = 0
    breaks: int = 0
    summaries: int = 0
    task: int = 0
    tasked: int = 0
    #: The most cache marks in a request at the model.
    marks: int = 0
    faults: tuple[str, ...] = ()
    left_out: str = ""

    @property
    def ok(self) -> bool:
        """Return whether the client ran and nothing went wrong."""
        return not self.faults and not self.left_out


def left_out(client: str, reason: str) -> Verdict:
    """Return the row of a client that could not be run here."""
    return Verdict(client=client, mode="", left_out=reason)


def judge(client: str, mode: str, tasks: Work, record: RunRecord) -> Verdict:
    """Return a run as a row of the table."""
    calls = [exchange for exchange in record.exchanges if format_of(exchange)]
    failed = [exchange for exchange in calls if exchange.status >= REFUSED_FROM or exchange.trouble]
    finished = sum(tasks.done(at + 1) in answer for at, answer in enumerate(record.answers))
    wanted = _largest_tokens(calls)
    followed = continued(pairs_of(record.exchanges, record.requests, record.window))
    tasked = list(_with_task(record, tasks))
    faults = [f"the client failed: {record.error}"] if record.error else []
    faults += [f"the client got {exchange.status}: {_line(exchange.trouble)}" for exchange in failed[:MOST_REPORTED]]
    if finished < tasks.count:
        faults.append(f"{finished} of {tasks.count} tasks finished")
    faults += [f"{name} was read, but the model did not get it" for name in record.missing[:MOST_REPORTED]]
    faults += list(_refusable(record.requests, record.window))[:MOST_REPORTED]
    faults += [f"request {number} does not hold the task" for number, held in tasked if not held][:MOST_REPORTED]
    faults += list(law_faults(followed))[:MOST_REPORTED]
    made = [request for request in record.requests if MARK in request.headers]
    summaries, compactions = len(record.requests) - len(made), sum(one.pair.compactions > 0 for one in followed)
    if summaries > compactions + 1:  # one may have been in progress at the end
        faults.append(f"{summaries} summaries for {compactions} compactions")
    if not faults and wanted <= record.window:
        faults.append("the conversation never outgrew the window")
    return Verdict(
        client=client,
        mode=mode,
        version=record.version,
        turns=finished,
        requests=len(calls),
        wanted=wanted,
        smallest=min(map(_size, made), default=0),
        largest=max(map(_size, record.requests), default=0),
        window=record.window,
        errors=len(failed),
        compactions=compactions,
        breaks=sum(one.broke for one in followed),
        summaries=summaries,
        task=sum(held for _, held in tasked),
        tasked=len(tasked),
        marks=max(map(_marks, record.requests), default=0),
        faults=tuple(faults),
    )


def _with_task(record: RunRecord, tasks: Work) -> Iterator[tuple[int, bool]]:
    """Yield for each request at the model whether it contains the part of the task that its client's request has.

    The task is the first prompt and the newest one. For a long prompt the first line counts; a quotation does not.
    """
    lines = [prompt.partition("\n")[0] for prompt in tasks.prompts()]
    for request in record.requests:
        mark = request.headers.get(MARK, "")
        exchange = record.exchanges[int(mark)] if mark.isdigit() else None
        spoken = None if exchange is None else format_of(exchange)
        if exchange is None or spoken is None:
            continue
        asked = spoken.read_body(json.loads(exchange.body)).messages
        newest = newest_task(asked)
        wanted = {lines[0], *(lines[newest - 1 : newest] if newest else ())}
        openings = [text.partition(line)[0] + line for text in _said(asked) for line in wanted if line in text]
        if openings and not summary_wanted(asked):
            there = _said(request.messages)
            yield request.number, all(any(text.startswith(opening) for text in there) for opening in openings)


def _said(messages: Iterable[Message]) -> list[str]:
    """Return the texts of the user."""
    parts = (part for message in messages if message.role is Role.USER for part in message.parts)
    return [part.text for part in parts if isinstance(part, Text)]


def _refusable(requests: Iterable[ReceivedRequest], window: int) -> Iterable[str]:
    """Yield what a provider would refuse: requests that are too large or invalid."""
    for request in requests:
        name = f"request {request.number}{' for a summary' if summary_wanted(request.messages) else ''}"
        if _size(request) > window:
            yield f"{name} has {_size(request)} tokens for a window of {window}"
        for problem in problems(request.fmt, json.loads(request.body))[:1]:
            yield f"{name} is invalid at {problem.where}: {problem.text}"


def _marks(request: ReceivedRequest) -> int:
    """Return how many cache marks a request has."""
    marks = format_named(request.fmt).marks
    if marks is None:
        return 0
    body = json.loads(request.body)
    key = f'"{marks.field}": '
    return json.dumps(body).count(key) - json.dumps(marks.remove(body)).count(key)


def _size(request: ReceivedRequest) -> int:
    """Return the tokens of the prompt and of the reply that it asks for."""
    return request.tokens + (request.max_tokens or 0)


def _largest_tokens(calls: Sequence[Exchange]) -> int:
    """Return the tokens of the client's largest request, counted as the scripted model counts."""
    if not calls:
        return 0
    largest = max(calls, key=lambda exchange: len(exchange.body))
    known = format_of(largest)
    assert known is not None, "a call has a format"
    document = known.read_body(json.loads(largest.body))
    counter = Counter("gpt-4o")
    return counter.messages(document.messages) + counter.tools(document.tools)


def _line(text: str) -> str:
    return " ".join(text.split())[:200]
