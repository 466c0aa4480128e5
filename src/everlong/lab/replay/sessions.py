"""A session to replay: a conversation with its probes, and the times of its requests."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from everlong.core import History, Role
from everlong.lab.cases import Case
from everlong.lab.replay.results import SessionFacts

__all__ = ["PAUSES", "Pauses", "Session", "moments_of"]

#: recorded: the times in the session; no pauses if it has none. none: no pause is long enough for a cache to expire.
#: turns: every user message comes after the cache has expired.
Pauses: TypeAlias = Literal["recorded", "none", "turns"]
PAUSES: tuple[Pauses, ...] = ("recorded", "none", "turns")

BEAT = 1.0  # seconds from one request to the next if no time is known


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A conversation in OpenAI form, each tool result a separate message. `times` are seconds, one for each message.

    `models` are those that its file names, the most used first. `observations` are the positions of user messages that
    are results of the assistant's actions, if known.
    """

    facts: SessionFacts
    messages: History
    cases: tuple[Case, ...] = ()
    times: tuple[float | None, ...] = ()
    models: tuple[str, ...] = ()
    observations: frozenset[int] = frozenset()

    @property
    def requests(self) -> tuple[int, ...]:
        """Return the positions of the answers. Each answer was a request with everything before it."""
        return tuple(at for at, message in enumerate(self.messages) if at and message.role is Role.ASSISTANT)

    @property
    def work(self) -> int:
        """Return how much work it is to play the session, compared with others."""
        return self.facts.tokens * len(self.requests)


def moments_of(session: Session, pauses: Pauses, forgotten: float) -> Sequence[float]:
    """Return the time of each request, in seconds from the start. `forgotten` is the lifetime of a cache."""
    requests = session.requests
    moments: list[float] = []
    now = 0.0
    before: tuple[int, float | None] = (0, None)
    for at in requests:
        known = _known_time(session, before[0], at)
        user_spoke = any(session.messages[i].role is Role.USER for i in range(before[0], at))
        if pauses == "turns" and user_spoke and moments:
            now += forgotten + BEAT
        elif pauses == "recorded" and known is not None and before[1] is not None:
            now += max(BEAT, known - before[1])
        else:
            now += BEAT
        before = (at, known if known is not None else before[1])
        moments.append(now)
    return moments


def _known_time(session: Session, start: int, at: int) -> float | None:
    """Return the time of the last message before a request; None if it is unknown."""
    if not session.times:
        return None
    return next((time for i in range(at - 1, start - 1, -1) if (time := session.times[i]) is not None), None)
