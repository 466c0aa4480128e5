"""Bringing back what left the window: by itself for a new question, and on request by reference or by search.

What is brought back for a question is one message of its own, marked as background, appended once.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from everlong.compress.background import background
from everlong.compress.draft import Task
from everlong.compress.excerpts import Selection
from everlong.core.messages import History, Message, Role, Text, user_text
from everlong.core.points import Point
from everlong.core.threads import Hit, Opened, Row
from everlong.engine.threads import Threads
from everlong.errors import InputError
from everlong.relevance.index import Index
from everlong.relevance.language import language_of
from everlong.relevance.query import query_of_text
from everlong.relevance.terms import terms_of, words_of
from everlong.tokens.counter import Counter

__all__ = ["Found", "recall", "recalled_block"]

LOOKED_UP = 12  # messages that a search may bring
SMALLEST_BLOCK = 120  # tokens; below that the frame costs more than it holds
TERMS_SHARED = 2  # words of the question that a message must have in common with it, if the question has as many
SENT = 1 << 30  # where the numbers of what is sent anyway begin


@dataclass(frozen=True, slots=True)
class Found:
    """What a recall brought: the original bytes of a reference, or the messages that answer a query."""

    original: bytes | None = None
    hits: tuple[Hit, ...] = ()


def recall(threads: Threads, thread: str, what: str, *, limit: int = 10) -> Found:
    """What a reference names, byte for byte, or else what answers a query, best first."""
    if not what.strip():
        raise InputError("nothing to recall: give a reference or a few words")
    original = threads.original(thread, what.strip())
    if original is not None:
        return Found(original=original)
    return Found(hits=tuple(threads.search(what, thread=thread, limit=limit)))


def recalled_block(
    threads: Threads, opened: Opened, sent: History, asked: Row, counter: Counter, room: int
) -> Message | None:
    """What the question needs and the view lacks, within `room` tokens; None if there is nothing worth it."""
    question = user_text(asked.entry) if isinstance(asked.entry, Message) else ""
    wanted = query_of_text(question)
    point = opened.point.entry if opened.point is not None else None
    if room < SMALLEST_BLOCK or not wanted or not isinstance(point, Point):
        return None
    hits = threads.search(question, thread=opened.thread.id, limit=LOOKED_UP)
    rows = _left_rows(hits, point.boundary, set(wanted))
    if not rows:
        return None
    said = tuple(row.entry for row in rows if isinstance(row.entry, Message))
    index = Index()
    index.extend(said)
    beside = {SENT + at: message for at, message in enumerate(sent)}
    selection = Selection((*said, Message(Role.USER, (Text(question),))), index, beside, counter)
    task = Task(target=room, counter=counter, language=language_of([question]))
    return _framed(selection, [row.order for row in rows], task)


def _left_rows(hits: list[Hit], boundary: int, wanted: set[str]) -> list[Row]:
    """What was found of the part that left, with its neighbours, in order; a chance match does not count."""
    needed = min(TERMS_SHARED, len(wanted))
    rows: dict[int, Row] = {}
    for hit in hits:
        if hit.row.order < boundary and _shared(hit.row, wanted) >= needed:
            rows.update((row.order, row) for row in (*hit.around, hit.row) if row.order < boundary)
    return [rows[order] for order in sorted(rows)]


def _shared(row: Row, wanted: set[str]) -> int:
    """How many terms of the question stand in a message."""
    if not isinstance(row.entry, Message):
        return 0
    message = row.entry
    texts = [message.text, *(result.text for result in message.results), *(call.arguments for call in message.calls)]
    found = {term for word in set(words_of("\n".join(texts))) for term, _ in terms_of(word)}
    return len(found & wanted)


def _framed(selection: Selection, numbers: Sequence[int], task: Task) -> Message | None:
    inside = task.target - task.counter.message(Message(Role.USER, (Text(background("", "-", task)),)))
    selection.take_needed(inside)
    while selection.chosen:
        block = Message(Role.USER, (Text(background(selection.text(numbers), "", task)),))
        excess = task.counter.message(block) - task.target
        if excess <= 0:
            return block
        selection.give_back(excess)
    return None
