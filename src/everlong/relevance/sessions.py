"""The sessions of a long talk, and who speaks in it.

Messages without a long pause between them belong to one session.
"""

import re
from collections.abc import Collection, Iterable
from datetime import datetime, timedelta
from functools import lru_cache

from everlong.core import Message, Role

__all__ = ["Sessions", "Speaker", "session_named", "speaker_of", "speakers_asked_about", "without_names"]

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


#: Whose a message is.
Speaker = tuple[Role, str]

_CLAUSE = re.compile(r"[,;:.!?，；：。！？\n]+")
#: Ways to ask that say nothing about whose words are meant.
_POLITE = re.compile(
    r"\b(?:can|could|would|will|do|did|please)\s+you\s+(?:please\s+)?(?:remember|remind|recall|know|tell|say|help|find)\b"
    r"|\b(?:remind|tell|show|give)\s+me\b|\bi\s+(?:wonder|forgot|want|need)\b"
    r"|请?你还?(?:记得|知道|能|可以|会|觉得|认为)|请你|(?:告诉|提醒|帮)我|我(?:想|忘)",
    re.IGNORECASE,
)
_PRONOUN = re.compile(
    r"\b(?P<asking>i|me|my|mine)\b|\b(?:you|your|yours)\b|(?P<asking_zh>我(?!们))|[你您](?!们)", re.IGNORECASE
)


def speaker_of(message: Message) -> Speaker:
    """The speaker of a message."""
    return message.role, message.name


def without_names(question: str, speakers: Iterable[Speaker]) -> str:
    """The question without the speakers' names: others call them by these, they themselves seldom say them."""
    for _, name in speakers:
        question = _name_pattern(name).sub(" ", question) if name else question
    return question


def speakers_asked_about(question: str, speakers: Collection[Speaker]) -> frozenset[Speaker]:
    """The speakers whose words are asked for; empty if that is not clear, or all of them.

    Example: "What did you recommend?" -> whoever speaks as the assistant
    """
    named = {name for _, name in speakers if name and _name_pattern(name).search(question)}
    if named:
        meant = frozenset(speaker for speaker in speakers if speaker[1] in named)
    else:
        role = _role_meant(question)
        meant = frozenset(speaker for speaker in speakers if speaker[0] is role)
    return meant if len(meant) < len(speakers) else frozenset()


def _role_meant(question: str) -> Role | None:
    """The one the last clause with a pronoun begins with: "where I was, what did you say" asks for your words."""
    for clause in reversed(_CLAUSE.split(_POLITE.sub(" ", question))):
        pronoun = _PRONOUN.search(clause)
        if pronoun:
            return Role.USER if pronoun["asking"] or pronoun["asking_zh"] else Role.ASSISTANT
    return None


@lru_cache(maxsize=1_000)
def _name_pattern(name: str) -> re.Pattern[str]:
    edge = r"(?<![A-Za-z0-9_])", r"(?![A-Za-z0-9_])"
    return re.compile(f"{edge[0]}{re.escape(name)}{edge[1]}", re.IGNORECASE)
