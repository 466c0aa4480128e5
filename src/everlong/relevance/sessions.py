"""The sessions of a long talk: messages without a long pause between them belong together."""

import re
from datetime import datetime, timedelta

from everlong.core import Message

__all__ = ["Sessions", "session_named"]

PAUSE = timedelta(hours=1)  # a longer silence ends a session
MOST_TURNS = 20  # of a session where no times are known

_TALK = r"(?:conversation|chat|talk|session|meeting|time we)"
_FIRST = re.compile(
    rf"\bfirst {_TALK}\b|\bwe first (?:talk|spoke|chat|met)|(?:第一次|最初|一开始|最早)(?:对话|聊|谈|交流|见面)",
    re.IGNORECASE,
)
_LAST = re.compile(rf"\b(?:last|previous) {_TALK}\b|上一?次(?:我们)?(?:对话|聊|谈|交流|见面)", re.IGNORECASE)


class Sessions:
    """Numbers the sessions of messages that come in order, from 0: a long pause begins the next.

    Example: messages at 9:00, 9:05 and 20:00 -> 0, 0, 1
    """

    def __init__(self) -> None:
        self._number = 0
        self._turns = 0
        self._before: datetime | None = None

    def of_next(self, message: Message) -> int:
        """The session of the next message."""
        # Times with and without a zone may stand side by side: as they are written is near enough.
        time = message.time.replace(tzinfo=None) if message.time else None
        if time is None or self._before is None:
            ends = time is None and self._turns >= MOST_TURNS
        else:
            ends = abs(time - self._before) > PAUSE
        if ends:
            self._number, self._turns = self._number + 1, 0
        self._turns += 1
        self._before = time or self._before
        return self._number


def session_named(question: str, last: int) -> int | None:
    """The session that a question calls the first or the last one. Example: "What was our first chat about?" -> 0"""
    if _FIRST.search(question):
        return 0
    return last if _LAST.search(question) else None
