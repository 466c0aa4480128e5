"""One call of a model as values: the request, and its reply piece by piece.

A failure is the last piece of a stream, never an exception in the middle of it: the reader decides what to do.
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

#: The most parts between two marks: providers search the last 20 blocks before a mark for a cached prefix.
LOOKED_BACK = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Caching:
    """How much of a request will be sent again, for providers that must be told what to cache.

    The first `stable` messages stay until the next compaction, the first `lasting` until the next request. What follows
    is sent only once. `seconds` is how long the cache should keep them.
    """

    stable: int = 0
    lasting: int = 0
    seconds: float = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One call of a model. `tools` are schemas in the model's own wire format; `extra` has more fields of the body."""

    model: str
    messages: History
    tools: tuple[JsonText, ...] = ()
    max_tokens: int | None = None
    temperature: float | None = None
    extra: JsonText = ""
    #: None if nothing of the request will be sent again.
    caching: Caching | None = None


def breakpoints(request: Request) -> tuple[int, ...]:
    """Return after how many messages the cache marks belong, smallest first. The system text has its own mark.

    A provider caches a prefix up to a mark, and finds it again from a mark at its end or shortly after it. So marks
    belong at the end of what stays until the next compaction, and at the end of what the next request repeats. A step
    of many blocks also gets a mark before it, where the previous request ended. Example: system, point, user, a, user,
    stable 2 -> 2, 5
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
    """Return how many messages the request had whose answer is the last answer here."""
    at = len(messages)
    while at and messages[at - 1].role is not Role.ASSISTANT:
        at -= 1
    while at and messages[at - 1].role is Role.ASSISTANT:
        at -= 1
    return at


@dataclass(frozen=True, slots=True)
class Said:
    """A piece of the answer's text."""

    text: str


@dataclass(frozen=True, slots=True)
class Thought:
    """A piece of the model's reasoning."""

    text: str


@dataclass(frozen=True, slots=True)
class CallGrew:
    """A piece of a tool call. `number` counts the calls of this answer; id and name come with the first piece."""

    number: int
    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Restarted:
    """Discard the text so far; another answer follows. `reason` says why, such as that the server cut the prompt."""

    reason: str


@dataclass(frozen=True, slots=True)
class Finished:
    """The complete answer: the last piece of a stream that succeeded.

    - `message`: the answer as a message.
    - `usage`: the tokens that the provider reported; None if it reported none.
    - `stop`: why the answer ended: "stop", "length", "calls", "refusal", or the provider's own word.
    - `name`: the provider's id of the answer, if a later request can continue from it; "" if not.
    """

    message: Message
    usage: Usage | None
    stop: str
    name: str = ""

    @property
    def text(self) -> str:
        """The text of the answer."""
        return self.message.text


@dataclass(frozen=True, slots=True)
class Failed:
    """The error: the last piece of a stream that failed. `begun` says whether part of the answer arrived before it."""

    error: ProviderError
    begun: bool


Reply: TypeAlias = Said | Thought | CallGrew | Restarted | Finished | Failed
