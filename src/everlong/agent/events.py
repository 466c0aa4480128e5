"""What a turn reports while it runs, as values: pieces of the model's answers, calls and their outcomes, its end."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from everlong.agent.definitions import Outcome
from everlong.core import JsonText, Message
from everlong.engine import Reply

__all__ = ["AgentEvent", "CallEnded", "CallRefused", "CallStarted", "Entered", "Reason", "Report", "TurnEnded"]

#: How a turn may end. joined: the message was taken up by the turn that was running already.
Reason: TypeAlias = Literal["done", "most steps", "most tokens", "interrupted", "failed", "joined"]


@dataclass(frozen=True, slots=True)
class Entered:
    """A message that arrived during the turn. The model reads it from here on."""

    message: Message


@dataclass(frozen=True, slots=True)
class CallStarted:
    """A tool call is about to be made."""

    call: str
    name: str
    arguments: JsonText


@dataclass(frozen=True, slots=True)
class CallRefused:
    """A call was not allowed. `reason` says why and what would allow it; `answered`: a person said no."""

    call: str
    name: str
    reason: str
    answered: bool


@dataclass(frozen=True, slots=True)
class CallEnded:
    """The outcome of a call, and how many seconds its tool ran, without the time for approval."""

    call: str
    name: str
    outcome: Outcome
    seconds: float


@dataclass(frozen=True, slots=True)
class TurnEnded:
    """The last event of every turn. `steps` counts the model's answers, `tokens` their tokens, in and out."""

    reason: Reason
    steps: int
    tokens: int = 0


AgentEvent: TypeAlias = Reply | Entered | CallStarted | CallRefused | CallEnded | TurnEnded

#: Takes each event as it happens; it must not wait.
Report: TypeAlias = Callable[[AgentEvent], None]
