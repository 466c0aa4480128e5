"""Recall what left the window: by itself for a new question, and on request by reference or by search.

What is recalled for a question is one message of its own, marked as background, appended once.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice, zip_longest

from everlong.compress import Selection, Task, background
from everlong.core import History, Hit, Message, Opened, Point, Role, Row, Text, user_text
from everlong.engine.contracts import Threads
from everlong.errors import InputError
from everlong.relevance import Index, language_of, query_of_text, terms_of, words_of
from everlong.tokens import Counter

__all__ = ["RecallResult", "recall", "recalled_block"]

LOOKED_UP = 12  # messages that a search may bring
LOOKED_UP_EACH = 4  # for each question, if there are several
MOST_PIECES = 8
#: Whatever stands between two ends; one that ends otherwise than in a question mark is read on past, never twice.
SENTENCE = re.compile(r"[^\n.。!！;；?？]+[?？]?")
WORDS_LOOKED_FOR = 400  # of a message, in what is sent: as many as a query takes
SMALLEST_BLOCK = 120  # tokens; below that the frame costs more than it holds
TERMS_SHARED = 2  # words of the question that a message must have in common with it, if the question has as many
#: What is asked and not ordered: a question mark, or a Chinese question without one.
ASKING = re.compile(r"[?？]|吗|呢|什么|哪|谁|多少|几[个次点天]|怎么|为何")
SENT = 1 << 30  # where the numbers of what is sent anyway begin


@dataclass(frozen=True, slots=True)
class RecallResult:
    """What a recall brought: the original bytes of a reference, or the messages that answer a query."""

    original: bytes | None = None
    hits: tuple[Hit, ...] = ()


def recall(threads: Threads, thread: str, what: str, *, limit: int = 10) -> RecallResult:
    """Return what a reference names, byte for byte, or else what answers a query, best first."""
    if not what.strip():
        raise InputError("nothing to recall: give a reference or a few words")
    original = threads.original(thread, what.strip())
    if original is not None:
        return RecallResult(original=original)
    return RecallResult(hits=tuple(threads.search(what, thread=thread, limit=limit)))


def recalled_block(
    threads: Threads, opened: Opened, sent: History, question_row: Row, counter: Counter, budget: int
) -> Message | None:
    """Return what the question needs and the view lacks, within `budget` tokens; None if there is nothing worth it."""
    question = user_text(question_row.entry) if isinstance(question_row.entry, Message) else ""
    wanted = query_of_text(question)
    point = opened.point.entry if opened.point is not None else None
    if budget < SMALLEST_BLOCK or not wanted or not isinstance(point, Point):
        return None
    ordered = not ASKING.search(question) and any(message.calls for message in sent)
    lacking = _lacking(question, sent) if ordered else None
    if lacking is not None and not lacking:
        return None
    pieces = _pieces(question)
    hits = threads.search(question, thread=opened.thread.id, limit=LOOKED_UP)
    for piece in pieces:
        hits += threads.search(piece, thread=opened.thread.id, limit=LOOKED_UP_EACH)
    rows = _left_rows(hits, point.boundary, set(wanted), lacking)
    if not rows:
        return None
    said = tuple(row.entry for row in rows if isinstance(row.entry, Message))
    index = Index()
    index.extend(said)
    beside = {SENT + at: message for at, message in enumerate(sent)}
    selection = Selection((*said, Message(Role.USER, (Text(question),))), index, beside, counter)
    order = None if index.is_talk else _in_turn([_answers(index, piece) for piece in pieces or [question]])
    task = Task(target=budget, counter=counter, language=language_of([question]))
    return _framed(selection, [row.order for row in rows], task, order)


def _answers(index: Index, question: str) -> list[int]:
    """The chunks that answer a question, best first. Other subjects of that time are not part of the question."""
    scores = index.rank(query_of_text(question))
    return [n for n in sorted(range(len(scores)), key=scores.__getitem__, reverse=True) if scores[n] > 0]


def _in_turn(rankings: list[list[int]]) -> list[int]:
    """The best of each, then the second of each, and so on. Example: [1, 2], [3, 1] -> [1, 3, 2]"""
    return list(dict.fromkeys(n for row in zip_longest(*rankings) for n in row if n is not None))


def _pieces(question: str) -> list[str]:
    """The questions in a message that asks more than one. Example: "Which port? And who chose it?" -> both"""
    asked = (piece for piece in SENTENCE.findall(question) if piece.endswith(("?", "？")) and query_of_text(piece))
    pieces = [piece.strip() for piece in islice(asked, MOST_PIECES)]
    return pieces if len(pieces) > 1 else []


def _lacking(question: str, sent: History) -> set[str]:
    """The terms of a question whose words do not occur in what is sent.

    Where tools are at work, most of what users say without asking ("go on", "now the tests") is about what is in sight.
    Only a word that is not in sight tells that something from before is meant; else a block costs more than it brings.
    """
    seen = "\n".join(text for message in sent for text in _texts(message)).lower()
    words = dict.fromkeys(islice((word for word in words_of(question) if terms_of(word)), WORDS_LOOKED_FOR))
    return {term for word in words if word.lower() not in seen for term, _ in terms_of(word)}


def _left_rows(hits: list[Hit], boundary: int, wanted: set[str], lacking: set[str] | None) -> list[Row]:
    """The matches that left the view, with their neighbours, in order; a chance match does not count.

    Where it is known what the view lacks, a message must have some of that.
    """
    needed = min(TERMS_SHARED, len(wanted))
    rows: dict[int, Row] = {}
    for hit in hits:
        if hit.row.order >= boundary or not isinstance(hit.row.entry, Message):
            continue
        found = _terms_in(hit.row.entry)
        if len(found & wanted) >= needed and (lacking is None or found & lacking):
            rows.update((row.order, row) for row in (*hit.around, hit.row) if row.order < boundary)
    return [rows[order] for order in sorted(rows)]


def _terms_in(message: Message) -> set[str]:
    return {term for word in set(words_of("\n".join(_texts(message)))) for term, _ in terms_of(word)}


def _texts(message: Message) -> list[str]:
    return [message.text, *(result.text for result in message.results), *(call.arguments for call in message.calls)]


def _framed(selection: Selection, numbers: Sequence[int], task: Task, order: list[int] | None) -> Message | None:
    inside = task.target - task.counter.message(Message(Role.USER, (Text(background("", "-", task)),)))
    if order is None:
        selection.take_needed(inside)
    else:
        selection.take(order, inside)
    while selection.chosen:
        block = Message(Role.USER, (Text(background(selection.text(numbers), "", task)),))
        excess = task.counter.message(block) - task.target
        if excess <= 0:
            return block
        selection.give_back(excess)
    return None
