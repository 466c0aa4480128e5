"""What a turn tells while it runs: the pieces of the model's answers, calls and their outcomes, and its end. Values."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from everlong.agent.definitions import Outcome
from everlong.core import JsonText, Message
from everlong.engine import Reply

__all__ = ["AgentEvent", "CallEnded", "CallStarted", "Entered", "Reason", "Tell", "TurnEnded"]

#: How a turn may end. joined: what was said was taken up by the turn that ran already.
Reason: TypeAlias = Literal["done", "most steps", "most tokens", "interrupted", "failed", "joined"]


@dataclass(frozen=True, slots=True)
class Entered:
    """Something said while the turn ran; from here on the model reads it."""

    message: Message


@dataclass(frozen=True, slots=True)
class CallStarted:
    """A call of the model's answer is about to be made."""

    call: str
    name: str
    arguments: JsonText


@dataclass(frozen=True, slots=True)
class CallEnded:
    """What it came to, and how many seconds it worked: the time that somebody was asked for leave is not among them."""

    call: str
    name: str
    outcome: Outcome
    seconds: float


@dataclass(frozen=True, slots=True)
class TurnEnded:
    """The last event of every turn. `steps` counts the answers of the model, `tokens` what they cost, in and out."""

    reason: Reason
    steps: int
    tokens: int = 0


AgentEvent: TypeAlias = Reply | Entered | CallStarted | CallEnded | TurnEnded


class Tell:
    """Takes events as they happen; the default lets them go."""

    def __call__(self, event: AgentEvent) -> None:
        """Take one. It must not wait."""
