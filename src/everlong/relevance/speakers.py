"""Whose words a question asks for: the speaker it names, or "I" and "you" of the one who asks."""

import re
from collections.abc import Collection, Iterable
from functools import lru_cache

from everlong.core import Message, Role

__all__ = ["Speaker", "speaker_of", "speakers_asked_about", "without_names"]

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
