"""One call of a model as values: the request, and its reply piece by piece.

A failure is the last piece of a stream, never an exception out of the middle of it: the reader decides what follows.
"""

from dataclasses import dataclass
from typing import TypeAlias

from everlong.core import History, JsonText, Message, Role
from everlong.errors import ProviderError
from everlong.wire.usage import Usage

__all__ = [
    "Caching",
    "CallGrew",
    "Failed",
    "Finished",
    "Reply",
    "Request",
    "Restarted",
    "Said",
    "Thought",
    "breakpoints",
]

#: Parts that one step may have: providers look back 20 blocks from a mark for the end of what they have kept.
LOOKED_BACK = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Caching:
    """How many of a request's first messages come again, for providers that must be told what to cache.

    `stable` messages stand until the next compaction, `lasting` until the next request; what follows is sent only once.
    `seconds` is how long the cache should keep them.
    """

    stable: int = 0
    lasting: int = 0
    seconds: float = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One call of a model. `tools` are schemas in the model's own wire format; `extra` are more fields of the body."""

    model: str
    messages: History
    tools: tuple[JsonText, ...] = ()
    max_tokens: int | None = None
    temperature: float | None = None
    extra: JsonText = ""
    #: None for a request of which nothing comes again.
    caching: Caching | None = None


def breakpoints(request: Request) -> tuple[int, ...]:
    """Behind how many of the messages a mark belongs, the smallest first; the system text in front has its own.

    A provider keeps a prefix up to a mark, and finds it again from a mark at its end or shortly behind it. So marks
    belong at the end of what stands until the next compaction and at the end of what the next request repeats. A step
    of many blocks gets one before it too, where the previous request ended: from its own end that would not be found.
    Example: system, point, user, a, user, stable 2 -> 2, 5
    """
    caching = request.caching
    if caching is None:
        return ()
    lasting = min(caching.lasting, len(request.messages))
    stable = min(caching.stable, lasting)
    asked = _end_of_the_request_before(request.messages[:lasting])
    wide = sum(len(message.parts) for message in request.messages[asked:lasting]) > LOOKED_BACK
    marks = {stable, lasting} | ({asked} if wide and asked > stable else set())
    return tuple(sorted(marks - {0}))


def _end_of_the_request_before(messages: History) -> int:
    """How many messages the request had whose answer is the last one here."""
    at = len(messages)
    while at and messages[at - 1].role is not Role.ASSISTANT:
        at -= 1
    while at and messages[at - 1].role is Role.ASSISTANT:
        at -= 1
    return at


@dataclass(frozen=True, slots=True)
class Said:
    """More words of the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class Thought:
    """More of its thinking."""

    text: str


@dataclass(frozen=True, slots=True)
class CallGrew:
    """More of a tool call: the `number`-th of this answer. Id and name come with its first piece."""

    number: int
    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Restarted:
    """What was said so far does not count, and why: the server had not read all of it. Another answer follows."""

    reason: str


@dataclass(frozen=True, slots=True)
class Finished:
    """The whole answer, what it cost, and why it ended: "stop", "length", "calls", "refusal", or their own word."""

    message: Message
    usage: Usage | None
    stop: str
    #: The provider's id of the answer, where it may be continued by it; "" if not.
    name: str = ""

    @property
    def text(self) -> str:
        """The words of the answer."""
        return self.message.text


@dataclass(frozen=True, slots=True)
class Failed:
    """There is no more. `begun` says whether anything of the answer was handed on before."""

    error: ProviderError
    begun: bool


Reply: TypeAlias = Said | Thought | CallGrew | Restarted | Finished | Failed
