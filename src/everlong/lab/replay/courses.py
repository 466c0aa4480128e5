"""How a policy takes part in a replay: it gets the messages of a conversation and decides what to send.

A policy sees what a program in its place would see, in order, and nothing of what comes later.
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
    """What holds for every request: the window, the tokens reserved for the reply, and the prompt overhead.

    The overhead (`front`) stands for the system text and the tools, which transcripts leave out; `form` says which of
    them it is made of. Tokens are counted for `model`.
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

        A call stays as long as its result is not read.
        """
        reasons = protected(history)
        stays = set(reasons)
        if Protection.UNREAD in reasons.values():
            stays.add(max(at for at, message in enumerate(history) if message.role is Role.ASSISTANT))
        fixed = self.counter.messages(history[at] for at in stays)
        return Budget.of(self.window, requested=self.reply, tools=self.front, fixed=fixed).movable


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """A call beside the conversation, for a summary: what was sent, and how many tokens came back.

    `alone`: it does not carry the prompt overhead of the conversation.
    """

    messages: History
    output: int
    marks: tuple[int, ...] | None = None
    alone: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Sending:
    """One request. `cut`: what was sent before was shortened for it; `early`, right after the last answer, so that
    what came since is new. `beside`: the calls that were made before it.

    `marks` are the cache marks. `summarised`: a summary replaces some of the messages. `refused` says why nothing can
    be sent; there are no messages then.
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
        """Take more of the conversation: what the user, the model and the tools said."""

    def ask(self, moment: float) -> Sending:
        """Return what is sent for the next answer. `moment` is in seconds since the beginning."""

    def receive(self, usage: Usage, answer: Message) -> None:
        """Take the answer to the last request and the usage that the provider reports for it.

        Not called if nothing could be sent.
        """

    def close(self) -> tuple[Beside, ...]:
        """End the conversation; return the calls that were made beside it since the last request."""


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy by its name. `begin` starts a conversation under it."""

    name: str
    begin: Callable[[Terms], Course]
