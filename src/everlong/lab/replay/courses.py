"""How a policy takes part in a replay: it gets the messages of a conversation and decides what to send.

A policy sees what a program in its place would see, in order, and nothing that comes later.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Protocol, TypeAlias

from everlong.core import Budget, History, Message, Protection, Role, protected
from everlong.engine import counter_for
from everlong.lab.replay.tariffs import Tariff
from everlong.tokens import Counter
from everlong.wire import Usage

__all__ = ["OVERHEAD_FORMS", "Beside", "Course", "OverheadForm", "Policy", "Sending", "Terms"]

#: What the prompt overhead is made of: tool schemas, system text, or half of each.
OverheadForm: TypeAlias = Literal["tools", "system", "both"]
OVERHEAD_FORMS: tuple[OverheadForm, ...] = ("tools", "system", "both")


@dataclass(frozen=True, kw_only=True)
class Terms:
    """What applies to every request: the window, the tokens reserved for the reply, and the prompt overhead.

    The overhead (`front`) stands for the system text and the tools, which transcripts leave out; `form` says which of
    them it consists of. Tokens are counted for `model`.
    """

    window: int
    tariff: Tariff
    model: str = "gpt-4o"
    reply: int = 8_000
    front: int = 12_000
    form: OverheadForm = "tools"

    @property
    def system(self) -> int:
        """Return the tokens of the overhead that are system text; the rest are tools."""
        return {"tools": 0, "system": self.front, "both": self.front // 2}[self.form]

    @property
    def budget(self) -> int:
        """Return the tokens that a request may take, the prompt overhead included."""
        return self.window - self.reply

    @cached_property
    def counter(self) -> Counter:
        """Return the counter of every size in the replay."""
        return counter_for(self.model)

    def movable(self, history: History) -> int:
        """Return the tokens that a compaction of the history can move: what is neither overhead nor must stay.

        A call must stay until its result has been read.
        """
        reasons = protected(history)
        stays = set(reasons)
        if Protection.UNREAD in reasons.values():
            stays.add(max(at for at, message in enumerate(history) if message.role is Role.ASSISTANT))
        fixed = self.counter.messages(history[at] for at in stays)
        return Budget.of(self.window, requested=self.reply, tools=self.front, fixed=fixed).movable


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """A call outside the conversation, for a summary: what was sent, and how many tokens came back.

    `alone` means that it does not have the prompt overhead of the conversation.
    """

    messages: History
    output: int
    marks: tuple[int, ...] | None = None
    alone: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Sending:
    """One request.

    `cut` means that what was sent before was shortened for it; `early`, that this happened directly after the last
    answer, so that everything since then is new. `beside` are the calls that were made before it. `marks` are the cache
    marks. `summarised` means that a summary replaces some of the messages. `refused` says why nothing can be sent; then
    there are no messages.
    """

    messages: History = ()
    cut: bool = False
    early: bool = False
    marks: tuple[int, ...] | None = None
    beside: tuple[Beside, ...] = ()
    summarised: bool = False
    refused: str = ""


class Course(Protocol):
    """One conversation under one policy."""

    def say(self, messages: History) -> None:
        """Take more of the conversation: messages of the user, the model and the tools."""

    def ask(self, moment: float) -> Sending:
        """Return what is sent for the next answer. `moment` is in seconds from the beginning."""

    def receive(self, usage: Usage, answer: Message) -> None:
        """Take the answer to the last request and the usage that the provider reports for it.

        Not called if nothing could be sent.
        """

    def close(self) -> tuple[Beside, ...]:
        """End the conversation; return the calls that were made outside it since the last request."""


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy with its name. `begin` starts a conversation under it."""

    name: str
    begin: Callable[[Terms], Course]
