"""What is asked of a model and what comes back, piece by piece. Values, and the shape of a model client.

A failure is the last piece of a stream, never an exception out of the middle of it: whoever reads decides.
"""

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from everlong.core import History, JsonText, Message
from everlong.errors import ProviderError
from everlong.wire import Usage

__all__ = ["Caching", "CallGrew", "Failed", "Finished", "Model", "Reply", "Request", "Restarted", "Said", "Thought"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Caching:
    """What of a request comes again, for providers that must be told what to keep: of its messages the first so many.

    `stable` of them stand until the next cut, `lasting` until the next request; what follows is said only once.
    `seconds` is how long they are to be kept.
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


@dataclass(frozen=True, slots=True)
class Failed:
    """There is no more. `begun` says whether anything of the answer was handed on before."""

    error: ProviderError
    begun: bool


Reply: TypeAlias = Said | Thought | CallGrew | Restarted | Finished | Failed


class Model(Protocol):
    """A model behind some endpoint. Closing the iterator cancels the call upstream."""

    #: The wire format it speaks: one of `wire.read.BODY_FORMATS`.
    fmt: str
    #: What figures learned about it are kept under; two servers never share a name.
    endpoint: str
    #: The provider's name in the registry; "" if it is none that the registry knows.
    provider: str

    def stream(self, request: Request) -> AsyncGenerator[Reply, None]:
        """The pieces of the answer; the last is Finished or Failed."""

    async def served_window(self, model: str) -> int | None:
        """The window in force that the server itself tells; asked once. None if it does not tell."""
