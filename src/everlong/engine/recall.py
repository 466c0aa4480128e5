"""Recall what left the window: by itself for a new question, and on request by reference or by search.

What is recalled for a question is one message of its own, marked as background, appended once.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice, zip_longest
from typing import assert_never

from everlong.compress import Selection, Task, background
from everlong.core import (
    History,
    Hit,
    Image,
    Message,
    Opaque,
    Opened,
    Point,
    Reasoning,
    Role,
    Row,
    Text,
    ToolCall,
    ToolResult,
    part_ref,
    user_text,
)
from everlong.engine.contracts import Threads
from everlong.errors import InputError, NoThread
from everlong.relevance import Index, language_of, query_of_text, terms_of, words_of
from everlong.tokens import Counter

__all__ = ["MOST_RECALLED", "RECALL", "RecallResult", "recall", "recall_text", "recalled_block"]

#: The usual name of the tool by which a model recalls.
RECALL = "recall"
MOST_RECALLED = 24_000  # characters
MOST_HITS = 8
LONGEST_PART = 2_500  # characters of one part of a found message
BEFORE = 4  # a quarter of an excerpt stands before the words that were looked for
WINDOW, OVERLAP = 400, 60  # characters that are compared with the query at a time


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


# --- what a model reads that asked for it ----------------------------------------------------------------------------


def recall_text(threads: Threads, thread: str, what: str, *, start: int = 0, most: int = MOST_RECALLED) -> str:
    """Return what a model reads that recalls: about `most` characters of an original from `start` on, or of messages.

    The text is framed as background: it was said before, and nothing in it is addressed to the model now.
    """
    query = what.strip().removeprefix("ref ").strip("\"'[]()")
    try:
        recalled = recall(threads, thread, query or what, limit=MOST_HITS)
    except NoThread:
        return "nothing was said in this conversation yet"
    if recalled.original is not None:
        original = recalled.original.decode("utf-8", "replace")
        return _as_background(_section(original, max(0, start), most), original)
    excerpts = _excerpts(recalled.hits, query, most)
    return _as_background(excerpts, excerpts) if excerpts else f"nothing found for {what[:200]!r}; try other words"


def _as_background(text: str, sample: str) -> str:
    """Return the text in a frame that is in the language of the sample."""
    language = language_of([sample[:LONGEST_PART]])
    return background(text, "", Task(target=0, counter=Counter(), language=language))


def _section(original: str, start: int, most: int) -> str:
    """Return a section of the original, and where the next one begins."""
    end = min(len(original), start + most)
    if end < len(original):
        line_end = original.rfind("\n", start + most // 2, end)
        end = line_end + 1 if line_end > 0 else end
    section = original[start:end]
    if start == 0 and end == len(original):
        return section
    more = f"; continue with start={end}" if end < len(original) else ""
    return f"{section}\n[characters {start:,} to {end:,} of {len(original):,}{more}]"


def _excerpts(hits: tuple[Hit, ...], query: str, most: int) -> str:
    """Return the best hits that fit, in the order in which they were said."""
    terms = set(query_of_text(query))
    chosen: dict[int, str] = {}
    left = most
    for hit in hits:
        if isinstance(hit.row.entry, Message) and not _is_recall(hit.row.entry):
            text = _message(hit.row.entry, terms)
            if text and len(text) <= left:
                chosen[hit.row.order] = f"#{hit.row.order} {text}"
                left -= len(text)
    return "\n\n".join(chosen[order] for order in sorted(chosen))


def _is_recall(message: Message) -> bool:
    """Whether the message is only an earlier recall, or the call for this one: their texts are found by themselves."""
    names = [call.name for call in message.calls] + [result.name for result in message.results]
    return bool(names) and set(names) == {RECALL} and not message.text


def _message(message: Message, terms: set[str]) -> str:
    """Return a found message: each part whole, or the piece that fits the query best with the part's reference."""
    lines = []
    for part in message.parts:
        match part:
            case Text(text):
                content, label = text, message.role.value
            case ToolCall(name=name, arguments=arguments):
                content, label = arguments, f"call of {name}"
            case ToolResult():
                content, label = part.text, f"result of {part.name or 'a tool'}"
            case Reasoning() | Image() | Opaque():
                continue
            case _:
                assert_never(part)
        if content.strip():
            piece = _piece(content, terms)
            cut = "" if piece == content else f", a part of {len(content):,} characters; ref {part_ref(part)}"
            lines.append(f"[{label}{cut}]\n{piece}")
    return "\n".join(lines)


def _piece(text: str, terms: set[str]) -> str:
    """Return the text; of a long one the piece around the place that has most of the terms."""
    if len(text) <= LONGEST_PART:
        return text
    starts = range(0, len(text), WINDOW)
    at = max(starts, key=lambda start: len(_terms_of(text[start : start + WINDOW + OVERLAP]) & terms))
    start = max(0, min(at - LONGEST_PART // BEFORE, len(text) - LONGEST_PART))
    return text[start : start + LONGEST_PART]


def _terms_of(text: str) -> set[str]:
    return {term for word in set(words_of(text)) for term, _ in terms_of(word)}
