"""Automatic recall of what left the window and is needed now: for a user's question, and for a step of a tool loop.

A recall adds one message, marked as background, at the end of the request. The message stays there until the next
compaction, and no byte before it changes. For a step it is small and rare: only if the newest text of the model names
something that occurs in the removed messages and nowhere in the request.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import islice, zip_longest

from everlong.compress import WORDS, Selection, Task, background
from everlong.core import (
    EventKind,
    FrameKind,
    History,
    Hit,
    Message,
    Opened,
    Point,
    Reasoning,
    Recalled,
    Role,
    Row,
    Text,
    frames_in,
    is_framed,
    user_text,
)
from everlong.engine.contracts import Threads
from everlong.engine.raw_history import RawHistory
from everlong.engine.thread import CallContext, ThreadState, left_by
from everlong.engine.view import View
from everlong.errors import ThreadChanged
from everlong.relevance import Index, language_of, names_in, query_of_text, terms_of, words_of
from everlong.summarize import NOTICE
from everlong.tokens import Counter

__all__ = ["recall_needed", "recalled_block", "step_block"]

LOOKED_BACK = 8  # rows, to tell a question from a result
LARGEST_RECALL = 2_000  # tokens; it is paid for until the next compaction, so a larger one costs more than it helps
LARGEST_FOR_STEP = 400  # tokens


def recall_needed(context: CallContext, view: View) -> bool:
    """Append what a new question or step needs and the view lacks; return whether anything was appended."""
    if context.state.opened.point is None or not context.settings.recall_share:
        return False
    budget = context.budget
    share = int(context.settings.recall_share * budget.movable)
    most = min(share, LARGEST_RECALL, budget.threshold - view.tokens)
    question = _unsent_question(context.state)
    if question is not None:
        before = question.order
        opened, threads = context.state.opened, context.engine.threads
        block = recalled_block(threads, opened, view.messages, question, budget.counter, most)
    else:
        before = context.length
        raw, step = context.state.raw, _unsent_step(context.state)
        block = None
        if step and raw is not None:
            block = step_block(raw, step, view.messages, budget.counter, min(most, LARGEST_FOR_STEP))
    if block is None:
        return False
    try:
        context.engine.threads.append(context.thread, [Recalled(before, block)], expected=context.length)
    except ThreadChanged:
        return False  # another process continues the thread and answers the question
    context.refresh()
    tokens = budget.counter.message(block)
    context.journal.note(EventKind.RECALLED, parent=context.turn, model=context.call.model, tokens_after=tokens)
    return True


def _unsent_question(state: ThreadState) -> Row | None:
    """Return the user's last message if nothing was recalled for it and no compaction has seen it.

    Only the log decides. Messages that a client adds after it in each request are skipped, and a result is not a
    question.
    """
    rows = state.opened.rows
    said = [(row, row.entry) for row in islice(reversed(rows), LOOKED_BACK) if isinstance(row.entry, Message)][::-1]
    frames, at = frames_in([message for _, message in said]), len(said) - 1
    while at in frames and frames[at].kind is not FrameKind.RESULT:
        at -= 1
    if at < 0 or at in frames or said[at][1].role is not Role.USER:
        return None
    last = said[at][0]
    if any(isinstance(row.entry, Recalled) and row.entry.before == last.order for row in rows):
        return None
    point = state.opened.point
    return last if point is None or _made_at(state, point) < last.order else None


def _made_at(state: ThreadState, point: Row) -> int:
    """Return the order at which the compaction of a point was made; a point that only adds a summary comes later."""
    return next((row.order for row in state.opened.rows if left_by(row) == left_by(point)), point.order)


def _unsent_step(state: ThreadState) -> History:
    """Return the step at the end, a call with its results, if the loop continues and nothing was recalled for it.

    Signed reasoning is bound to its loop: with our text between the results and the next answer, providers would drop
    the reasoning and the cache of what follows it. So nothing is recalled for a step with signed reasoning.
    """
    step: list[Message] = []
    for row in reversed(state.opened.rows):
        if isinstance(row.entry, Recalled):
            return ()
        if not isinstance(row.entry, Message):
            continue
        step.insert(0, row.entry)
        if row.entry.role is not Role.TOOL:
            break
    if len(step) < ONE_STEP or step[0].role is not Role.ASSISTANT or not step[0].calls:
        return ()
    signed = any(isinstance(part, Reasoning) and part.signature for part in step[0].parts)
    return () if signed else tuple(step)


# --- for a step of a tool loop ------------------------------------------------------------------------------------

ONE_STEP = 2  # messages at least: a call and its result
RARE = 6  # chunks at most; a name that occurs in more of them says too little about any one
#: Only names follow this text.
LEDGER = re.compile("|".join(re.escape(naming) for _, naming, _ in WORDS.values()))
WORDS_READ = 20_000  # characters of what a model said in one step


def step_block(raw: RawHistory, step: History, sent: History, counter: Counter, budget: int) -> Message | None:
    """Return what the newest text names and the view lacks, within `budget` tokens; None if no name is certain.

    A name (an identifier, a path, a hash) is certain if the model itself wrote it in this step, in its text or its
    reasoning, if the request does not contain it otherwise, and if it occurs in only a few removed pieces.
    """
    index = raw.index
    if budget < SMALLEST_BLOCK or index.is_talk:
        return None
    pieces = _named_pieces(index, step, sent)
    if not pieces:
        return None
    beside = {SENT + at: message for at, message in enumerate(sent)}
    selection = Selection(raw.history, index, beside, counter)
    task = Task(target=budget, counter=counter, language=language_of(_words(step[0])))
    return _framed(selection, raw.orders, task, selection.by_need(pieces))


def _named_pieces(index: Index, step: History, sent: History) -> set[int]:
    """Return the removed chunks that contain a name from the step that is nowhere else in the view."""
    names = dict.fromkeys(name for text in _words(step[0]) for name in names_in(text[:WORDS_READ]))
    if not names:
        return set()
    mine = {id(message) for message in step}
    seen = "\n".join(text for message in sent if id(message) not in mine for text in _in_sight(message))
    found = (index.holding(name) for name in names if name not in seen)
    return {number for numbers in found if len(numbers) <= RARE for number in numbers}


def _in_sight(message: Message) -> Iterator[str]:
    """Yield the texts that inform the model; of our own messages, only the quotes: a list of names says little."""
    if is_framed(message.text):
        if not any(notice in message.text for notice in NOTICE.values()):
            yield LEDGER.split(message.text, maxsplit=1)[0]
        return
    yield from _texts(message)
    yield from _words(message)


def _words(message: Message) -> Iterator[str]:
    """What a model said and thought in a message."""
    yield message.text
    yield from (part.text for part in message.parts if isinstance(part, Reasoning))


# --- for a question ---------------------------------------------------------------------------------------------------

LOOKED_UP = 12  # messages that a search may bring
LOOKED_UP_EACH = 4  # for each question, if there are several
MOST_PIECES = 8
#: A sentence. One without a question mark is matched and skipped, so that no text is read twice.
SENTENCE = re.compile(r"[^\n.。!！;；?？]+[?？]?")
WORDS_LOOKED_FOR = 400  # words of a message to look for in what is sent: as many as a query takes
SMALLEST_BLOCK = 120  # tokens; in a smaller block the frame would be larger than its content
TERMS_SHARED = 2  # words of the question that a message must have in common with it, if the question has as many
#: Signs of a question: a question mark, or Chinese question words.
ASKING = re.compile(r"[?？]|吗|呢|什么|哪|谁|多少|几[个次点天]|怎么|为何")
SENT = 1 << 30  # the first number for messages that are sent anyway


def recalled_block(
    threads: Threads, opened: Opened, sent: History, question_row: Row, counter: Counter, budget: int
) -> Message | None:
    """Return what the question needs and the view lacks, within `budget` tokens; None if nothing is worth it."""
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
    """Return the chunks that answer a question, best first. Other topics from the same time are left out."""
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
    """Return the terms of a question that do not occur in what is sent.

    In work with tools, most user messages that are not questions ("go on", "now the tests") are about what is in the
    request. Only a word that is not in the request refers to something earlier; otherwise a block costs more than it
    brings.
    """
    seen = "\n".join(text for message in sent for text in _texts(message)).lower()
    words = dict.fromkeys(islice((word for word in words_of(question) if terms_of(word)), WORDS_LOOKED_FOR))
    return {term for word in words if word.lower() not in seen for term, _ in terms_of(word)}


def _left_rows(hits: list[Hit], boundary: int, wanted: set[str], lacking: set[str] | None) -> list[Row]:
    """Return the matches that left the view, with their neighbours, in order; accidental matches do not count.

    If `lacking` is given, a message must contain one of its terms.
    """
    needed = min(TERMS_SHARED, len(wanted))
    rows: dict[int, Row] = {}
    for hit in hits:
        if hit.row.order >= boundary or not isinstance(hit.row.entry, Message):
            continue
        found = _terms_in(hit.row.entry)
        if len(found & wanted) >= needed and (lacking is None or found & lacking):
            near = (row for row in (*hit.around, hit.row) if isinstance(row.entry, Message))
            rows.update((row.order, row) for row in near if row.order < boundary)
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
