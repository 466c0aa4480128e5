"""Import conversations of other programs into a store, with their ids, times and compactions.

An import may be repeated: a message is recognised by the id its program gave it, else by its content and how often that
came before, so a file that has grown adds only what is new. Nothing in the store changes: where a file differs from the
thread that came from it, it continues in a branch.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import count, takewhile

from everlong.core import Entry, Message, Point, message_ref, ref_of
from everlong.engine import Threads, text_title
from everlong.errors import NoThread
from everlong.store.rules import as_utc
from everlong.summarize import foreign_account
from everlong.wire import Document, marks_of, read_all, summary_text, user_texts

__all__ = ["Imported", "Session", "branch_id", "import_session", "sessions_in"]

AT_ONCE = 200  # rows of one append
NO_TIME = datetime(1970, 1, 2, tzinfo=UTC)  # programs that must write a time and know none write the start of 1970

Progress = Callable[[int], object]


def _silent(_rows: int) -> None:
    """Report no progress."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A conversation as it will be stored. A point among its entries covers the entries before it."""

    id: str
    title: str = ""
    archived: bool = False
    format: str = ""
    model: str = ""
    #: When it began and when it changed last; None if nothing says so.
    began: datetime | None = None
    changed: datetime | None = None
    entries: tuple[tuple[str, Message | Point], ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def messages(self) -> list[tuple[str, Message]]:
        """The messages alone, with their names."""
        return [(name, entry) for name, entry in self.entries if isinstance(entry, Message)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """The result of an import: a new thread, a branch, or a known thread and what was added to it."""

    thread: str
    title: str
    new: bool
    branch_of: str = ""
    messages: int = 0
    points: int = 0
    known: int = 0


# Reading


def sessions_in(data: bytes, file_name: str, modified: datetime | None = None) -> tuple[Session, ...]:
    """Read every conversation in a file; those without a name of their own are named after the file.

    One that has no times is as old as the file, which was `modified` then.
    """
    documents = read_all(data)
    sessions: list[Session] = []
    for number, document in enumerate(documents, start=1):
        fallback = file_name if len(documents) == 1 else f"{file_name}#{number}"
        sessions.append(_session(document, fallback, modified))
        archived = enumerate(marks_of(document).archived(document), start=1)
        sessions += [replace(_session(each, f"{fallback}/{at}", modified), archived=True) for at, each in archived]
    return tuple(sessions)


def _session(document: Document, fallback: str, modified: datetime | None) -> Session:
    marks = marks_of(document)
    times = list(_times(document)) or ([modified] if modified else [])
    return Session(
        id=marks.session_id(document) or fallback,
        title=text_title(marks.title(document)) or next(filter(None, map(text_title, user_texts(document))), ""),
        format=document.fmt,
        model=document.model,
        began=min(times, default=None),
        changed=max(times, default=None),
        entries=tuple(_entries(document)),
        warnings=document.warnings,
    )


def _times(document: Document) -> Iterator[datetime]:
    """Every time that the file gives for the conversation; one without a zone is local time."""
    marks = marks_of(document)
    told = (marks.began(document), marks.changed(document), *(message.time for message in document.messages))
    for time in filter(None, told):
        with suppress(OverflowError, ValueError, OSError):  # the first and last days of the calendar
            if as_utc(time) > NO_TIME:
                yield as_utc(time)


def _entries(document: Document) -> Iterator[tuple[str, Message | Point]]:
    """The messages and, where the program compacted, points with its summary; each with a name of its own."""
    marks, messages, boundaries = marks_of(document), document.messages, set(document.boundaries)
    taken: set[str] = set()
    after_summary = 0
    for at, message in enumerate(messages):
        if at in boundaries:
            summary = tuple(takewhile(lambda each: marks.is_summary(each, document), messages[at:]))
            after_summary = max(after_summary, at + len(summary))
            name = next(filter(None, map(marks.message_id, summary)), "")
            tokens = max(map(marks.covered_tokens, summary), default=0)
            point = Point(boundary=0, summary=summary, tokens_before=tokens, reason=f"by {document.fmt}")
            yield _unique(name or f"point-{ref_of(str((at, summary)))}", taken), point
        if at >= after_summary:
            yield _unique(marks.message_id(message) or message_ref(message), taken), message
    if len(messages) in boundaries:
        yield _unique(f"point-{len(messages)}", taken), Point(boundary=0, summary=(), reason=f"by {document.fmt}")


def _unique(name: str, taken: set[str]) -> str:
    """The name, numbered from its second use on: the same conversation gives the same names."""
    numbered = (name if turn == 1 else f"{name}#{turn}" for turn in count(1))
    free = next(each for each in numbered if each not in taken)
    taken.add(free)
    return free


# Storing


@dataclass(slots=True)
class _KnownThread:
    """A thread of the store, to be compared with a session."""

    thread: str
    length: int
    messages: list[tuple[str, Message]]
    orders: dict[str, int]

    def shared(self, messages: Sequence[tuple[str, Message]]) -> int:
        """How many leading messages are the same, in name and content."""
        pairs = zip(self.messages, messages, strict=False)
        return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))

    def continued_by(self, messages: Sequence[tuple[str, Message]]) -> bool:
        """Whether one of the two continues the other."""
        return not self.messages or self.shared(messages) == min(len(self.messages), len(messages)) > 0


def import_session(store: Threads, session: Session, *, owner: str = "", progress: Progress = _silent) -> Imported:
    """Store a session: as a new thread, as new rows of a known one, or as a branch of it."""
    threads = list(_threads_from(store, session.id))
    known = next((each for each in threads if each.continued_by(session.messages)), None)
    new, branch_of = known is None, ""
    if known is None:
        known, branch_of = _begin(store, session, threads, owner)
    rows = _missing(session, known)
    for start in range(0, len(rows), AT_ONCE):
        batch = rows[start : start + AT_ONCE]
        store.append(known.thread, [entry for _, entry in batch], ids=[name for name, _ in batch], at=session.changed)
        progress(len(batch))
    points = sum(isinstance(entry, Point) for _, entry in rows)
    return Imported(
        thread=known.thread,
        title=session.title,
        new=new,
        branch_of=branch_of,
        messages=len(rows) - points,
        points=points,
        known=len(session.entries) - len(rows),
    )


def _threads_from(store: Threads, name: str) -> Iterator[_KnownThread]:
    """The thread that a session became, and its branches from later imports."""
    for number in count(1):
        known = next((thread for thread in _names(name, number) if _exists(store, thread)), None)
        if known is None:
            return
        yield _read_thread(store, known)


def _names(name: str, number: int) -> tuple[str, ...]:
    """How the thread of a session, or its branch of that number, may be called.

    A branch once had the number behind the name. A name that begins with another's is hard to tell from it.
    """
    return (name,) if number == 1 else (branch_id(name, number), f"{name}~{number}")


def branch_id(name: str, number: int) -> str:
    """The id of a branch. It does not begin with the id of its parent. Example: boats, 2 -> 2~boats"""
    return f"{number}~{name}"


def _exists(store: Threads, thread: str) -> bool:
    try:
        store.thread(thread)
    except NoThread:
        return False
    return True


def _read_thread(store: Threads, thread: str) -> _KnownThread:
    known = _KnownThread(thread, 0, [], {})
    for row in store.read(thread):
        known.length += 1
        known.orders[row.id] = row.order
        if isinstance(row.entry, Message):
            known.messages.append((row.id, row.entry))
    return known


def _begin(store: Threads, session: Session, threads: Sequence[_KnownThread], owner: str) -> tuple[_KnownThread, str]:
    """Create a thread, or a branch off the thread that shares most with the session."""
    thread = branch_id(session.id, len(threads) + 1) if threads else session.id
    nearest = max(threads, key=lambda each: each.shared(session.messages), default=None)
    shared = nearest.shared(session.messages) if nearest else 0
    metadata = json.dumps({"format": session.format, **({"model": session.model} if session.model else {})})
    branch_of = ""
    if nearest is None or not shared:
        store.create(thread, owner=owner, title=session.title, metadata=metadata, at=session.began)
    else:
        branch_of = nearest.thread
        order = nearest.orders[nearest.messages[shared - 1][0]] + 1
        store.branch(branch_of, order, thread, title=session.title, at=session.began)
        store.change(thread, metadata=metadata, at=session.began)
    if session.archived:
        store.change(thread, archived=True, at=session.began)
    return _read_thread(store, thread), branch_of


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
