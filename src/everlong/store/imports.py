"""Conversations of other programs into a store: their ids, times and compactions kept.

Importing is repeatable: a message is known by the id its program gave it, else by what it says and how often it was
said before, so a file that has grown adds only what is new. Nothing in the store changes: where a file tells another
story than the thread that came from it, the story goes on in a branch.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count, takewhile

from everlong.core import Entry, Json, JsonObject, Message, Point, Role, message_ref, ref_of
from everlong.engine import Threads, text_title
from everlong.errors import NoThread
from everlong.wire import Document, fields_of, message_id, read_all, unpack
from everlong.wire.sessions import chatbox, claude_code, codex, nanobot, pi

__all__ = [
    "Imported",
    "Session",
    "covered_tokens",
    "import_session",
    "is_summary",
    "name_of",
    "session_id",
    "session_title",
    "sessions_in",
]

#: Where each format says the id of a session: the type of the record ("" any), and the fields that lead to it.
IDS: dict[str, tuple[tuple[str, tuple[str, ...]], ...]] = {
    pi.FORMAT: (("session", ("id",)),),
    claude_code.FORMAT: (("", ("sessionId",)),),
    codex.FORMAT: (("session_meta", ("payload", "id")), ("", ("id",))),
    nanobot.FORMAT: (("metadata", ("key",)),),
}
#: Where each format says the title of a session; the last one counts.
TITLES: dict[str, tuple[tuple[str, tuple[str, ...]], ...]] = {
    pi.FORMAT: (("session_info", ("name",)),),
    claude_code.FORMAT: (
        ("custom-title", ("customTitle",)),
        ("ai-title", ("aiTitle",)),
        ("summary", ("summary",)),
    ),
    nanobot.FORMAT: (("metadata", ("metadata", "title")),),
}


def session_id(document: Document) -> str:
    """The name that the program gave the session; "" if it gave none."""
    if document.fmt == chatbox.FORMAT:
        return _text(unpack(document.extra)[0].get("id"))
    return _said(document, IDS.get(document.fmt, ()))


def session_title(document: Document) -> str:
    """The title of the session, else what the user asked first, on one line."""
    if document.fmt == chatbox.FORMAT:
        said = _text(unpack(document.extra)[0].get("name"))
    else:
        said = _said(document, TITLES.get(document.fmt, ()))
    return text_title(said) or next(filter(None, map(text_title, _asked(document))), "")


def name_of(message: Message) -> str:
    """The id that the program gave the message; "" if it gave none."""
    if message.origin == chatbox.FORMAT:
        return message_id(message)
    if message.origin not in (pi.FORMAT, claude_code.FORMAT):
        return ""
    return _text(fields_of(message).get("id" if message.origin == pi.FORMAT else "uuid"))


def is_summary(message: Message, document: Document) -> bool:
    """Whether the program put this message in place of those it no longer sends."""
    if message.origin != document.fmt:
        return False
    fields, hints = unpack(message.extra)
    match document.fmt:
        case pi.FORMAT:
            return fields.get("type") == "compaction"
        case claude_code.FORMAT:
            return fields.get("isCompactSummary") is True
        case codex.FORMAT:
            return "compacted" in hints
        case nanobot.FORMAT:
            return hints.get("summary") is True
        case chatbox.FORMAT:
            return message_id(message) in _chatbox_summaries(document)
        case _:
            return False


def covered_tokens(summary: Message) -> int:
    """What the covered messages weighed when they were summed up, where the program says so; else 0."""
    tokens = fields_of(summary).get("tokensBefore") if summary.origin == pi.FORMAT else None
    return tokens if type(tokens) is int and tokens > 0 else 0


def _chatbox_summaries(document: Document) -> set[str]:
    points = unpack(document.extra)[0].get("compactionPoints")
    listed = points if isinstance(points, list) else []
    return {_text(point.get("summaryMessageId")) for point in listed if isinstance(point, dict)}


def _asked(document: Document) -> Iterable[str]:
    """What the user said, oldest first, without what Codex says in the user's name."""
    for message in document.messages:
        if message.role is Role.USER and not is_summary(message, document):
            text = message.text
            if not text.lstrip().startswith(codex.CONTEXT):
                yield text


def _said(document: Document, places: Iterable[tuple[str, tuple[str, ...]]]) -> str:
    """What stands at the first place that is filled; of several records there, the last."""
    records = [fields_of(record) for record in document.records]
    for kind, path in places:
        found = [
            _at(record, path) for record in records if not kind or kind in (record.get("type"), record.get("_type"))
        ]
        for name in reversed(found):
            if name:
                return name
    return ""


def _at(record: JsonObject, path: tuple[str, ...]) -> str:
    value: Json = record
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return _text(value)


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""


AT_ONCE = 200  # rows of one append

Progress = Callable[[int], object]


def _silent(_rows: int) -> None:
    """Tells nobody."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A conversation as it will be kept. A point among its entries covers what stands before it."""

    id: str
    title: str = ""
    archived: bool = False
    format: str = ""
    model: str = ""
    entries: tuple[tuple[str, Message | Point], ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def messages(self) -> list[tuple[str, Message]]:
        """The messages alone, with their names."""
        return [(name, entry) for name, entry in self.entries if isinstance(entry, Message)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """What became of a session: a new thread, a branch, or a known thread and what was added to it."""

    thread: str
    title: str
    new: bool
    branch_of: str = ""
    messages: int = 0
    points: int = 0
    known: int = 0


# --- reading -----------------------------------------------------------------------------------


def sessions_in(data: bytes, file_name: str) -> tuple[Session, ...]:
    """Every conversation in a file; those that bear no name of their own are named after the file."""
    documents = read_all(data)
    sessions: list[Session] = []
    for number, document in enumerate(documents, start=1):
        fallback = file_name if len(documents) == 1 else f"{file_name}#{number}"
        sessions.append(_session(document, fallback))
        if document.fmt == chatbox.FORMAT:
            older = enumerate(chatbox.archived_threads(document), start=1)
            sessions += [replace(_session(one, f"{fallback}/{at}"), archived=True) for at, one in older]
    return tuple(sessions)


def _session(document: Document, fallback: str) -> Session:
    return Session(
        id=session_id(document) or fallback,
        title=session_title(document),
        format=document.fmt,
        model=document.model,
        entries=tuple(_entries(document)),
        warnings=document.warnings,
    )


def _entries(document: Document) -> Iterator[tuple[str, Message | Point]]:
    """Messages and, where the program compacted, points that hold its summary; each with a name of its own."""
    messages, boundaries = document.messages, set(document.boundaries)
    taken: set[str] = set()
    told = 0
    for at, message in enumerate(messages):
        if at in boundaries:
            summary = tuple(takewhile(lambda one: is_summary(one, document), messages[at:]))
            told = max(told, at + len(summary))
            name = next((name for name in map(name_of, summary) if name), "")
            tokens = max(map(covered_tokens, summary), default=0)
            point = Point(boundary=0, summary=summary, tokens_before=tokens, reason=f"by {document.fmt}")
            yield _unique(name or f"point-{ref_of(str((at, summary)))}", taken), point
        if at >= told:
            yield _unique(name_of(message) or message_ref(message), taken), message
    if len(messages) in boundaries:
        yield _unique(f"point-{len(messages)}", taken), Point(boundary=0, summary=(), reason=f"by {document.fmt}")


def _unique(name: str, taken: set[str]) -> str:
    """The name, numbered from its second use on: the same conversation gives the same names."""
    numbered = (name if turn == 1 else f"{name}#{turn}" for turn in count(1))
    free = next(one for one in numbered if one not in taken)
    taken.add(free)
    return free


# --- keeping -----------------------------------------------------------------------------------


@dataclass(slots=True)
class _There:
    """What a thread of the store holds already, as far as it can be compared with a session."""

    thread: str
    length: int
    messages: list[tuple[str, Message]]
    orders: dict[str, int]

    def shared(self, messages: Sequence[tuple[str, Message]]) -> int:
        """How many messages at the front are the same, in name and word."""
        pairs = zip(self.messages, messages, strict=False)
        return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))

    def continued_by(self, messages: Sequence[tuple[str, Message]]) -> bool:
        """Whether one of the two goes on from the end of the other."""
        return not self.messages or self.shared(messages) == min(len(self.messages), len(messages)) > 0


def import_session(store: Threads, session: Session, *, owner: str = "", progress: Progress = _silent) -> Imported:
    """Keep a session: a new thread, what is new at the end of a known one, or a branch of it."""
    found = list(_threads_from(store, session.id))
    there = next((one for one in found if one.continued_by(session.messages)), None)
    new, branch_of = there is None, ""
    if there is None:
        there, branch_of = _begin(store, session, found, owner)
    rows = _missing(session, there)
    for start in range(0, len(rows), AT_ONCE):
        batch = rows[start : start + AT_ONCE]
        store.append(there.thread, [entry for _, entry in batch], ids=[name for name, _ in batch])
        progress(len(batch))
    points = sum(isinstance(entry, Point) for _, entry in rows)
    return Imported(
        thread=there.thread,
        title=session.title,
        new=new,
        branch_of=branch_of,
        messages=len(rows) - points,
        points=points,
        known=len(session.entries) - len(rows),
    )


def _threads_from(store: Threads, name: str) -> Iterator[_There]:
    """The thread that a session became, and those that came of it later."""
    for number in count(1):
        thread = name if number == 1 else f"{name}~{number}"
        try:
            store.thread(thread)
        except NoThread:
            return
        yield _there(store, thread)


def _there(store: Threads, thread: str) -> _There:
    there = _There(thread, 0, [], {})
    for row in store.read(thread):
        there.length += 1
        there.orders[row.id] = row.order
        if isinstance(row.entry, Message):
            there.messages.append((row.id, row.entry))
    return there


def _begin(store: Threads, session: Session, found: Sequence[_There], owner: str) -> tuple[_There, str]:
    """A new thread, or a branch off the thread that has most in common with the session."""
    thread = session.id if not found else f"{session.id}~{len(found) + 1}"
    nearest = max(found, key=lambda one: one.shared(session.messages), default=None)
    shared = nearest.shared(session.messages) if nearest else 0
    metadata = json.dumps({"format": session.format, **({"model": session.model} if session.model else {})})
    branch_of = ""
    if nearest is None or not shared:
        store.create(thread, owner=owner, title=session.title, metadata=metadata)
    else:
        branch_of = nearest.thread
        order = nearest.orders[nearest.messages[shared - 1][0]] + 1
        store.branch(branch_of, order, thread, title=session.title)
        store.change(thread, metadata=metadata)
    if session.archived:
        store.change(thread, archived=True)
    return _there(store, thread), branch_of


def _missing(session: Session, there: _There) -> list[tuple[str, Entry]]:
    """The rows to append; a point covers what stands before the first row that followed it in the file."""
    added: list[tuple[str, Entry]] = []
    following: dict[int, int] = {}
    next_known: int | None = None
    for at in range(len(session.entries) - 1, -1, -1):
        if next_known is not None:
            following[at] = next_known
        name, entry = session.entries[at]
        if isinstance(entry, Message) and name in there.orders:
            next_known = there.orders[name]
    for at, (name, entry) in enumerate(session.entries):
        if name in there.orders:
            continue
        if isinstance(entry, Point):
            entry = replace(entry, boundary=following.get(at, there.length + len(added)))
        added.append((name, entry))
    return added
