"""Did it go well? From what the client told, what passed before it, and what the model was asked. Pure.

Every fault is one line of words; a run without faults is good.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from everlong.lab.clients.script import Tasks, summary_wanted
from everlong.lab.clients.witness import Exchange
from everlong.llm import Asked
from everlong.tokens import Counter
from everlong.wire import FORMATS, problems

__all__ = ["Judged", "RunRecord", "judge", "left_out"]

REFUSED_FROM = 400
MOST_TOLD = 3  # faults of one kind; the rest would say the same
#: Where a client asks the model for something, and in which format; what it asks elsewhere is its own affair.
ASKING = {"/chat/completions": "openai-chat", "/responses": "openai-responses", "/messages": "anthropic"}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """What a run left behind. `asked` is what reached the model, `missing` the results it looked for in vain."""

    version: str
    answers: Sequence[str]
    error: str
    passed: Sequence[Exchange]
    asked: Sequence[Asked]
    missing: Sequence[str]
    window: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A row of the table. `wanted` is the client's largest request and `largest` the largest that reached the model,
    in tokens; `errors` are those that the client got to see.

    Whatever could not be run has no faults and says why in `left_out`.
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
        """It ran, and nothing went wrong."""
        return not self.faults and not self.left_out


def left_out(client: str, reason: str) -> Judged:
    """A client that could not be run here."""
    return Judged(client=client, mode="", left_out=reason)


def judge(client: str, mode: str, tasks: Tasks, lived: RunRecord) -> Judged:
    """The run as a row of the table."""
    asking = [one for one in lived.passed if _format(one)]
    troubled = [one for one in asking if one.status >= REFUSED_FROM or one.trouble]
    finished = sum(tasks.done(at + 1) in answer for at, answer in enumerate(lived.answers))
    wanted = _grown(asking)
    faults = [f"the client failed: {lived.error}"] if lived.error else []
    faults += [f"the client got {one.status}: {_line(one.trouble)}" for one in troubled[:MOST_TOLD]]
    if finished < tasks.count:
        faults.append(f"{finished} of {tasks.count} tasks finished")
    faults += [f"{name} was read, but the model did not get it" for name in lived.missing[:MOST_TOLD]]
    faults += list(_refusable(lived.asked, lived.window))[:MOST_TOLD]
    if not faults and wanted <= lived.window:
        faults.append("the conversation never outgrew the window")
    return Judged(
        client=client,
        mode=mode,
        version=lived.version,
        turns=finished,
        requests=len(asking),
        wanted=wanted,
        largest=max(map(_size, lived.asked), default=0),
        window=lived.window,
        errors=len(troubled),
        faults=tuple(faults),
    )


def _refusable(asked: Iterable[Asked], window: int) -> Iterable[str]:
    """What a provider would not take: too large, or no valid request."""
    for one in asked:
        name = f"request {one.number}{' for a summary' if summary_wanted(one.messages) else ''}"
        if _size(one) > window:
            yield f"{name} has {_size(one)} tokens for a window of {window}"
        for problem in problems(one.fmt, json.loads(one.body))[:1]:
            yield f"{name} is invalid at {problem.where}: {problem.text}"


def _size(asked: Asked) -> int:
    """Tokens of the prompt and of the reply that is asked for."""
    return asked.tokens + (asked.max_tokens or 0)


def _format(one: Exchange) -> str:
    """The format of a request to the model; "" for any other. Example: "/v1/messages?beta=true" -> "anthropic" """
    path = one.path.partition("?")[0]
    return next((fmt for end, fmt in ASKING.items() if path.endswith(end)), "")


def _grown(asking: Sequence[Exchange]) -> int:
    """Tokens of the largest request that the client made, counted as the scripted model counts."""
    if not asking:
        return 0
    largest = max(asking, key=lambda one: len(one.body))
    document = FORMATS[_format(largest)].read_body(json.loads(largest.body))
    counter = Counter("gpt-4o")
    return counter.messages(document.messages) + counter.tools(document.tools)


def _line(text: str) -> str:
    return " ".join(text.split())[:200]
