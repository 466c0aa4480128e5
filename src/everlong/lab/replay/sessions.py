"""What is replayed: a conversation with its probes, when each message came, and where its user spoke."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from everlong.core import History, Role
from everlong.lab.cases import Case
from everlong.lab.replay.results import SessionFacts

__all__ = ["PAUSES", "Pauses", "Session", "moments_of"]

#: recorded: the times that the session keeps, none where it keeps none. none: never long enough for a cache to forget.
#: turns: every user message comes after the cache has forgotten.
Pauses: TypeAlias = Literal["recorded", "none", "turns"]
PAUSES: tuple[Pauses, ...] = ("recorded", "none", "turns")

BEAT = 1.0  # seconds from one request to the next where no time is known


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A conversation in OpenAI form: a result is a message of its own. `times` are seconds, one for each message.

    `models` are those that its file names, the most used first.
    """

    told: SessionFacts
    messages: History
    cases: tuple[Case, ...] = ()
    times: tuple[float | None, ...] = ()
    models: tuple[str, ...] = ()

    @property
    def requests(self) -> tuple[int, ...]:
        """Where an answer stands: each was a request for all that is before it."""
        return tuple(at for at, said in enumerate(self.messages) if at and said.role is Role.ASSISTANT)


def moments_of(session: Session, pauses: Pauses, forgotten: float) -> Sequence[float]:
    """When each request is made, in seconds from the first; `forgotten` is how long a cache lives."""
    requests = session.requests
    moments: list[float] = []
    now = 0.0
    before: tuple[int, float | None] = (0, None)
    for at in requests:
        known = _known_time(session, before[0], at)
        spoken = any(session.messages[i].role is Role.USER for i in range(before[0], at))
        if pauses == "turns" and spoken and moments:
            now += forgotten + BEAT
        elif pauses == "recorded" and known is not None and before[1] is not None:
            now += max(BEAT, known - before[1])
        else:
            now += BEAT
        before = (at, known if known is not None else before[1])
        moments.append(now)
    return moments


def _known_time(session: Session, start: int, at: int) -> float | None:
    """When the last message before a request came, if that is known."""
    if not session.times:
        return None
    return next((time for i in range(at - 1, start - 1, -1) if (time := session.times[i]) is not None), None)
