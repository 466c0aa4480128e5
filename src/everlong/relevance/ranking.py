"""Which chunks of a conversation are most likely needed next: one ranking for work, one for talk."""

from collections.abc import Sequence

from everlong.core.messages import Message
from everlong.relevance.index import Index
from everlong.relevance.talk import worth_of_talk
from everlong.relevance.work import worth_of_work

__all__ = ["ranked"]


def ranked(index: Index, messages: Sequence[Message]) -> list[int]:
    """The chunk numbers, most needed first. `messages` is the conversation whose beginning the index holds."""
    worth = worth_of_talk(index, messages) if index.is_talk else worth_of_work(index, messages)
    return sorted(range(len(worth)), key=lambda number: (-worth[number], -number))
