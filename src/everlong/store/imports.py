"""Import conversations into a store, with their ids, times and compactions: of other programs, and our own exports.

An import may be repeated: a message is recognised by the id that its program gave it, else by its content and how often
that occurred before. So a file that has grown adds only what is new. Nothing in the store changes: if a file differs
from the thread that it became, it continues in a branch. Threads of other owners are never touched. Our own exports are
imported without loss: every row with its time, the pins, the settings, and the parent of a branch.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import count, groupby, takewhile

from everlong.core import Entry, Gone, JsonObject, JsonText, Message, Point, Recalled, Withdrawal
from everlong.engine import Threads
from everlong.errors import NoThread
from everlong.store.sessions import HIDING, Session
from everlong.summarize import foreign_account
from everlong.wire import summary_text

__all__ = ["Imported", "branch_id", "import_session"]

AT_ONCE = 200  # rows per append

Progress = Callable[[int], object]


def _silent(_rows: int) -> None:
    """Report no progress."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """The result of an import: a new thread, a branch, or an existing thread and what was added to it."""

    thread: str
    title: str
    new: bool
    branch_of: str = ""
    messages: int = 0
    points: int = 0
    known: int = 0


@dataclass(slots=True)
class _KnownThread:
    """A thread of the store, to be compared with a session."""

    thread: str
    length: int
    messages: list[tuple[str, Message]]
    orders: dict[str, int]
    #: The names of rows that were deleted here. They stay deleted, even if a file still has them.
    gone: set[str]

    def shared(self, messages: Sequence[tuple[str, Message]]) -> int:
        """How many leading messages are the same, in name and content."""
        pairs = zip(self.messages, self._left(messages), strict=False)
        return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))

    def continued_by(self, messages: Sequence[tuple[str, Message]]) -> bool:
        """Whether one of the two continues the other."""
        left = self._left(messages)
        return not self.messages or self.shared(left) == min(len(self.messages), len(left)) > 0

    def _left(self, messages: Sequence[tuple[str, Message]]) -> Sequence[tuple[str, Message]]:
        return [pair for pair in messages if pair[0] not in self.gone] if self.gone else messages


def import_session(store: Threads, session: Session, *, owner: str = "", progress: Progress = _silent) -> Imported:
    """Store a session as a new thread, as new rows of an existing one, or as a branch of it."""
    threads, number = _threads_from(store, session.id, owner)
    known = next((each for each in threads if each.continued_by(session.messages)), None)
    new, branch_of = known is None, ""
    if known is None:
        known, branch_of = _begin(store, session, threads, branch_id(session.id, number), owner)
    rows = _missing_rows(session, known) if session.exact else _missing(session, known)
    for at, batch in _batches(rows, session):
        store.append(known.thread, [entry for _, entry in batch], ids=[name for name, _ in batch], at=at)
        progress(len(batch))
    if new and session.exact:
        _finish(store, session, known)
    points = sum(isinstance(entry, Point) for _, entry in rows)
    return Imported(
        thread=known.thread,
        title=session.title,
        new=new,
        branch_of=branch_of,
        messages=sum(isinstance(entry, Message) for _, entry in rows),
        points=points,
        known=len(session.entries) - len(rows),
    )


def _batches(
    rows: Sequence[tuple[str, Entry]], session: Session
) -> Iterator[tuple[datetime | None, Sequence[tuple[str, Entry]]]]:
    """Return the rows to append together, and their time; rows of our own exports keep their times."""
    if session.exact:
        times = {name: time for (name, _), time in zip(session.entries, session.times, strict=True)}
        for time, group in groupby(rows, key=lambda row: times[row[0]]):
            yield time, list(group)
        return
    for start in range(0, len(rows), AT_ONCE):
        yield session.changed, rows[start : start + AT_ONCE]


def _threads_from(store: Threads, name: str, owner: str) -> tuple[list[_KnownThread], int]:
    """Return the owner's threads that earlier imports of a session made, and the next free branch number."""
    found: list[_KnownThread] = []
    for number in count(1):
        known = next((thread for thread in _names(name, number) if _exists(store, thread)), None)
        if known is None:
            return found, number
        if store.thread(known).owner == owner:
            found.append(_read_thread(store, known))
    raise AssertionError("count() never ends")


def _names(name: str, number: int) -> tuple[str, ...]:
    """Return the possible ids of a session's thread, or of its branch with that number.

    Earlier versions put the number of a branch after the name. Such an id begins with its parent's, which is easy to
    confuse.
    """
    return (name,) if number == 1 else (branch_id(name, number), f"{name}~{number}")


def branch_id(name: str, number: int) -> str:
    """Return the id of a branch. It does not begin with the id of its parent. Example: boats, 2 -> 2~boats"""
    return name if number == 1 else f"{number}~{name}"


def _exists(store: Threads, thread: str) -> bool:
    try:
        store.thread(thread)
    except NoThread:
        return False
    return True


def _read_thread(store: Threads, thread: str) -> _KnownThread:
    known = _KnownThread(thread, 0, [], {}, set())
    for row in store.read(thread):
        known.length += 1
        known.orders[row.id] = row.order
        if isinstance(row.entry, Message):
            known.messages.append((row.id, row.entry))
        elif isinstance(row.entry, Gone):
            known.gone.add(row.id)
    return known


def _begin(
    store: Threads, session: Session, threads: Sequence[_KnownThread], thread: str, owner: str
) -> tuple[_KnownThread, str]:
    """Create a thread, or a branch of the thread that shares the most with the session."""
    nearest = max(threads, key=lambda each: each.shared(session.messages), default=None)
    shared = nearest.shared(session.messages) if nearest else 0
    branch_of, rows = "", 0
    if nearest is not None and shared:
        branch_of, rows = nearest.thread, nearest.orders[nearest.messages[shared - 1][0]] + 1
    elif session.exact and _is_parent(store, session, owner):
        branch_of, rows = session.parent
    metadata = _metadata(session)
    if not branch_of:
        store.create(thread, owner=owner, title=session.title, metadata=metadata, at=session.began)
    else:
        store.branch(branch_of, rows, thread, title=session.title, at=session.began)
        store.change(thread, metadata=metadata, at=session.began)
    if session.archived or session.settings != "{}":
        settings = session.settings if session.exact else None
        store.change(thread, archived=session.archived, settings=settings, at=session.began)
    return _read_thread(store, thread), branch_of


def _is_parent(store: Threads, session: Session, owner: str) -> bool:
    """Return whether the parent thread of the session exists, with the rows that they share."""
    parent, rows = session.parent
    if not parent or not 0 < rows <= len(session.entries) or not _exists(store, parent):
        return False
    if store.thread(parent).owner != owner or store.thread(parent).length < rows:
        return False
    names = [name for name, _ in session.entries[:rows]]
    return [row.id for row in store.read(parent, 0, rows)] == names


def _metadata(session: Session) -> JsonText:
    """Return the metadata of a thread, without the fields that would hide it."""
    kept: JsonObject = {key: value for key, value in json.loads(session.metadata).items() if key not in HIDING}
    if not session.exact:
        kept |= {"format": session.format, **({"model": session.model} if session.model else {})}
    return json.dumps(kept)


def _finish(store: Threads, session: Session, known: _KnownThread) -> None:
    """Restore the pins and the times of the thread."""
    orders = _read_thread(store, known.thread).orders
    names = [name for name, _ in session.entries]
    for order, text in session.pins:
        if order is None and text:
            store.pin(known.thread, None, text)
        elif order is not None and 0 <= order < len(names) and isinstance(session.entries[order][1], Message):
            store.pin(known.thread, orders[names[order]])
    if session.changed is not None:
        store.change(known.thread, title=session.title, at=session.changed)


def _missing(session: Session, known: _KnownThread) -> list[tuple[str, Entry]]:
    """The rows to append. A point covers the rows before the first row that followed it in the file."""
    added: list[tuple[str, Entry]] = []
    following: dict[int, int] = {}
    next_known: int | None = None
    for at in range(len(session.entries) - 1, -1, -1):
        if next_known is not None:
            following[at] = next_known
        name, entry = session.entries[at]
        if isinstance(entry, Message) and name in known.orders:
            next_known = known.orders[name]
    for at, (name, entry) in enumerate(session.entries):
        if name in known.orders:
            continue
        if isinstance(entry, Point):
            boundary = following.get(at, known.length + len(added))
            text = "\n\n".join(map(summary_text, entry.summary))
            entry = replace(entry, boundary=boundary, account=foreign_account(text, boundary))
        added.append((name, entry))
    return added


def _missing_rows(session: Session, known: _KnownThread) -> list[tuple[str, Entry]]:
    """The rows of our own export that are not there yet. Their references are translated to the rows here."""
    places: list[int] = []
    added: list[tuple[str, Entry]] = []
    for name, entry in session.entries:
        if name in known.orders:
            places.append(known.orders[name])
        else:
            places.append(known.length + len(added))
            added.append((name, _placed(entry, places)))
    return added


def _placed(entry: Entry, places: Sequence[int]) -> Entry:
    """Return the entry with this store's positions; `places` are the new positions of the file's rows so far."""

    def before(position: int) -> int:
        return places[position - 1] + 1 if position else 0

    match entry:
        case Point(boundary=boundary, edits=edits):
            moved = tuple(replace(edit, at=places[edit.at]) for edit in edits)
            return replace(entry, boundary=before(boundary), edits=moved)
        case Withdrawal(point):
            return Withdrawal(places[point])
        case Recalled(before=position, message=message):
            return Recalled(before(position), message)
        case _:
            return entry
