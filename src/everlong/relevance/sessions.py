"""Divide a long conversation into sessions, and identify its speakers.

Messages without a long pause between them belong to one session.
"""

from datetime import datetime, timedelta

from everlong.core import Message, Role

__all__ = ["Sessions", "Speaker", "speaker_of"]

PAUSE = timedelta(hours=1)  # a longer silence ends a session
MOST_TURNS = 20  # messages of a session if their times are unknown


class Sessions:
    """Numbers the sessions of messages, given in order, from 0. A long pause begins a new session.

    Example: messages at 9:00, 9:05 and 20:00 -> 0, 0, 1
    """

    def __init__(self) -> None:
        self._number = 0
        self._turns = 0
        self._before: datetime | None = None

    def of_next(self, message: Message) -> int:
        """Return the session of the next message."""
        # Times with and without a time zone may be mixed; ignoring the zone is accurate enough here.
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


#: Who wrote a message: role and name.
Speaker = tuple[Role, str]


def speaker_of(message: Message) -> Speaker:
    """Return the speaker of a message."""
    return message.role, message.name
