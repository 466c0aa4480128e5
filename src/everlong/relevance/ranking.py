"""Which chunks of a conversation are most likely needed next: one ranking for work, one for talk."""

from collections.abc import Sequence, Set

from everlong.core import Message
from everlong.relevance.index import Index
from everlong.relevance.talk import worth_of_talk
from everlong.relevance.work import worth_of_work

__all__ = ["ranked"]


def ranked(index: Index, messages: Sequence[Message], known: Set[str] = frozenset()) -> list[int]:
    """The chunk numbers, most needed first. `messages` is the conversation whose beginning the index holds.

    `known` are the names that are sent anyway.
    """
    worth = worth_of_talk(index, messages) if index.is_talk else worth_of_work(index, messages, known)
    return sorted(range(len(worth) - 1, -1, -1), key=worth.__getitem__, reverse=True)  # of equals the newest first
