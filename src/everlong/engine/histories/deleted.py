"""Delete messages from a thread, restore them, or erase them permanently; the thread's title follows.

Deleting appends a removal. It names the messages, the results of their calls, and every compaction and recall that may
mention them, so that the next request is as if they had never been there. Undoing it appends a restoration. Erasing is
done by the store: the data leaves its files, in every thread that shares it.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise

from everlong.core import (
    Entry,
    EventKind,
    History,
    Message,
    Point,
    Removal,
    Restoration,
    Role,
    Row,
    going_with,
    user_text,
)
from everlong.engine.contracts import Threads
from everlong.engine.thread import EngineContext, left_by
from everlong.engine.token_map import text_title
from everlong.errors import InputError, ThreadChanged
from everlong.relevance import terms_of, words_of
from everlong.summarize import LONGEST_TITLE, covered_by, redacted

__all__ = ["erase_messages", "first_words", "remove_messages", "restore_messages"]

DELETED = "a message was deleted or brought back"
ATTEMPTS = 4  # another process may append meanwhile; each attempt reads again


def remove_messages(engine: EngineContext, thread: str, orders: Sequence[int]) -> tuple[int, ...]:
    """Delete messages and everything that mentions them.

    Returns the deleted orders; raises InputError for other rows.
    """
    with engine.states.lock(thread), _record_compactions(engine, thread):
        rows = _appended(engine.threads, thread, lambda rows: [_removal(rows, orders)])
        gone = _removal(rows, orders).orders
        _retitle(engine.threads, thread, rows, gone)
        return gone


def restore_messages(engine: EngineContext, thread: str, orders: Sequence[int]) -> tuple[int, ...]:
    """Restore deleted messages and everything deleted with them; return the orders of the restored messages.

    A compaction made in the meantime lacks them, so it is deleted. Raises InputError for a message that was not
    deleted, or was erased since.
    """
    with engine.states.lock(thread), _record_compactions(engine, thread):
        before = _appended(engine.threads, thread, lambda rows: _restorations(engine.threads, thread, rows, orders))
        back = {order for removal in _removals_of(before, orders) for order in _orders_in(before[removal])}
        rows = list(engine.threads.read(thread))
        if engine.threads.thread(thread).title == first_words(_messages(before)):
            engine.threads.change(thread, title=first_words(_messages(rows)))
        return tuple(sorted(order for order in back if isinstance(rows[order].entry, Message)))


def erase_messages(engine: EngineContext, thread: str, orders: Sequence[int]) -> dict[str, tuple[int, ...]]:
    """Erase messages permanently. Returns the erased orders of each thread that shares them. Raises InputError."""
    with engine.states.lock(thread), _record_compactions(engine, thread):
        rows = list(engine.threads.read(thread))
        shown = [order for order in orders if order < len(rows) and isinstance(rows[order].entry, Message)]
        _check(rows, shown)
        if shown:
            _retitle_all(engine.threads, thread, rows, shown)  # first: erasing then also scrubs the old titles
        erased = engine.threads.erase(thread, orders)
        for name in erased:
            engine.states.drop(name)
        return erased


@contextmanager
def _record_compactions(engine: EngineContext, thread: str) -> Iterator[None]:
    """Record the compactions that end or return with this change, because requests become longer or shorter."""
    before = _compactions(engine.threads, thread)
    yield
    after = _compactions(engine.threads, thread)
    with engine.journal(thread) as journal:
        for order in sorted(before.keys() ^ after.keys()):
            long, short = (before | after)[order].sizes
            sizes = (short, long) if order in before else (long, short)
            journal.note(EventKind.CONTEXT_RESTORED, reason=DELETED, tokens_before=sizes[0], tokens_after=sizes[1])


def _compactions(threads: Threads, thread: str) -> dict[int, Point]:
    """Return the compactions in force by order. A point that only adds a summary does not count."""
    standing = [row for row, stands in threads.points(thread) if stands]
    found = {row.order: row.entry for row in standing[:1] if isinstance(row.entry, Point)}
    for earlier, row in pairwise(standing):
        if isinstance(row.entry, Point) and left_by(earlier) != left_by(row):
            found[row.order] = row.entry
    return found


def first_words(messages: Iterable[Message]) -> str:
    """Return the beginning of the user's first text, as a title."""
    first = next((text for message in messages if (text := user_text(message).strip())), "")
    title = text_title(redacted(first))
    return title if len(title) <= LONGEST_TITLE else title[: LONGEST_TITLE - 1].rstrip() + "…"


def _appended(threads: Threads, thread: str, made: Callable[[list[Row]], Sequence[Entry]]) -> list[Row]:
    """Append the entries that `made` makes from the rows of a thread, and return these rows."""
    for _ in range(ATTEMPTS):
        rows = list(threads.read(thread))
        try:
            threads.append(thread, made(rows), expected=len(rows))
        except ThreadChanged:
            continue
        return rows
    raise ThreadChanged(f"thread {thread!r} keeps changing: try again when nobody writes to it")


def _removal(rows: Sequence[Row], orders: Sequence[int]) -> Removal:
    _check(rows, orders)
    return Removal(going_with([row.entry for row in rows], orders, covered_by))


def _check(rows: Sequence[Row], orders: Sequence[int]) -> None:
    """Raise InputError unless all of these are messages that can be deleted."""
    for order in orders:
        entry = rows[order].entry if 0 <= order < len(rows) else None
        if not isinstance(entry, Message):
            raise InputError(f"orders: there is no message {order} to delete")
        if entry.role is Role.SYSTEM:
            raise InputError(f"orders: message {order} is system text: change it where it is set")


def _restorations(threads: Threads, thread: str, rows: Sequence[Row], orders: Sequence[int]) -> list[Entry]:
    removals = _removals_of(rows, orders)
    first = min(order for removal in removals for order in _orders_in(rows[removal]))
    points = (row for row, stands in threads.points(thread) if stands and row.order > min(removals))
    since = tuple(row.order for row in points if _covers(row.entry) > first)
    return [*map(Restoration, removals), *([Removal(since)] if since else [])]


def _removals_of(rows: Sequence[Row], orders: Sequence[int]) -> list[int]:
    """The removals in force that name these messages."""
    restored = {row.entry.removal for row in rows if isinstance(row.entry, Restoration)}
    by_order: dict[int, int] = {}
    for row in rows:
        if row.order not in restored:
            by_order |= dict.fromkeys(_orders_in(row), row.order)
    for order in orders:
        if order not in by_order:
            raise InputError(f"orders: message {order} was not deleted")
    return sorted({by_order[order] for order in orders})


def _orders_in(row: Row) -> tuple[int, ...]:
    return row.entry.orders if isinstance(row.entry, Removal) else ()


def _covers(entry: Entry) -> int:
    return covered_by(entry) if isinstance(entry, Point) else 0


def _messages(rows: Iterable[Row]) -> Iterator[Message]:
    return (row.entry for row in rows if isinstance(row.entry, Message))


def _retitle_all(threads: Threads, thread: str, rows: Sequence[Row], orders: Sequence[int]) -> None:
    """Retitle the thread, and every thread that shares a message to be erased, if its title mentions that message."""
    known = threads.thread(thread)
    titled = [other for other in threads.threads(owner=known.owner, archived=None) if other.title]
    for other in titled:
        shared = orders if other.id == thread else _shared(threads, other.id, rows, orders)
        if shared:
            its = list(threads.read(other.id))
            _retitle(threads, other.id, its, going_with([row.entry for row in its], shared, covered_by))


def _shared(threads: Threads, other: str, rows: Sequence[Row], orders: Sequence[int]) -> list[int]:
    """Return the orders of messages that another thread shares; a branch keeps the ids of its rows."""
    same = ((order, threads.row(other, rows[order].id)) for order in orders)
    return [order for order, row in same if row is not None and row == rows[order]]


def _retitle(threads: Threads, thread: str, rows: Sequence[Row], gone: Sequence[int]) -> None:
    """Retitle a thread if its title uses words that only the deleted messages contain."""
    removed = frozenset(gone)
    went = _terms(_text(_messages(row for row in rows if row.order in removed)))
    left: History = tuple(_messages(row for row in rows if row.order not in removed))
    words = [word for word in words_of(threads.thread(thread).title) if _terms(word) & went]
    if words:
        rest = _text(left)
        if any(word.lower() not in rest for word in words):
            threads.change(thread, title=first_words(left))


def _terms(text: str) -> set[str]:
    return {term for word in words_of(text) for term, _ in terms_of(word)}


def _text(messages: Iterable[Message]) -> str:
    return "\n".join(message.text for message in messages).lower()
