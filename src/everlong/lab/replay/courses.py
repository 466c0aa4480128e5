"""How a policy takes part in a replay: it hears what is said, and says what is to be sent.

A policy sees what a program in its place would see, in order, and nothing of what comes later.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from everlong.core import History, Message
from everlong.engine import counter_for
from everlong.lab.replay.tariffs import Tariff
from everlong.tokens import Counter
from everlong.wire import Usage

__all__ = ["Beside", "Course", "Policy", "Sending", "Terms"]


@dataclass(frozen=True, kw_only=True)
class Terms:
    """What holds for every request: the window, what is kept free for the answer, and the tokens in front of each.

    The front stands for system text and tools, which transcripts leave out. Tokens are counted for `model`.
    """

    window: int
    tariff: Tariff
    model: str = "gpt-4o"
    reply: int = 8_000
    front: int = 12_000

    @property
    def budget(self) -> int:
        """What a request may take, the front included."""
        return self.window - self.reply

    @cached_property
    def counter(self) -> Counter:
        """The one that every size here comes from."""
        return counter_for(self.model)


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """A call that was made beside the conversation: what was sent, and how many tokens came back.

    `alone`: it does not begin with the front of the conversation.
    """

    messages: History
    output: int
    marks: tuple[int, ...] | None = None
    alone: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Sending:
    """What is sent now. `cut` says that what was sent before was shortened for it; `beside` what was called before it.

    `marks` as a cache sees them. `summarised`: a summary stands for some of what was said. `refused` says why nothing
    can be sent; there are no messages then.
    """

    messages: History = ()
    cut: bool = False
    marks: tuple[int, ...] | None = None
    beside: tuple[Beside, ...] = ()
    summarised: bool = False
    refused: str = ""


class Course(Protocol):
    """One conversation under one policy."""

    def say(self, messages: History) -> None:
        """More of the conversation: what the user says, what the model answered, what tools gave."""

    def ask(self, moment: float) -> Sending:
        """What is to be sent for an answer now, in seconds since the beginning."""

    def heard(self, usage: Usage, answer: Message) -> None:
        """What the provider answers and reports for the request that was sent last: the answer is said with it.

        Not called where none could be sent.
        """

    def close(self) -> tuple[Beside, ...]:
        """The conversation is over; what was called beside it since the last request."""


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy by its name. `begin` starts a conversation."""

    name: str
    begin: Callable[[Terms], Course]
