"""Read conversations from files as they will be stored: those of other programs, and our own exports.

Uses no store. What a file does not say (an id, a title, a time) is derived in such a way that the same file always
gives the same result.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import count, takewhile
from typing import IO, cast

from everlong.core import Entry, JsonObject, JsonText, Message, Point, Recalled, Withdrawal, message_ref, ref_of
from everlong.engine import read_settings, text_title
from everlong.errors import InputError
from everlong.store.bodies import EntryKind, decode_entry
from everlong.store.inputs import LARGEST_INPUT
from everlong.store.rules import as_utc
from everlong.wire import (
    ARCHIVE_START,
    EVERLONG,
    SESSION_SUFFIXES,
    Document,
    files_in,
    is_archive,
    load,
    marks_of,
    read_all,
    unpack,
    user_texts,
)

__all__ = ["HIDING", "Passed", "Session", "sessions_in", "sessions_of"]

LONGEST_TITLE = 1_000  # characters
VERSION_OF, HIDDEN = "version_of", "hidden_version"  # in the metadata of a version of another thread
#: Fields in the metadata of a thread that hide it from people. They are not imported.
HIDING = (VERSION_OF, HIDDEN, "parent")
NO_TIME = datetime(1970, 1, 2, tzinfo=UTC)  # programs that must write a time but know none write the start of 1970


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A conversation as it will be stored. A point among its entries covers the entries before it.

    An `exact` session is our own: its entries are the rows of a thread, in their positions.
    """

    id: str
    title: str = ""
    archived: bool = False
    format: str = ""
    model: str = ""
    #: When it began and when it last changed; None if unknown.
    began: datetime | None = None
    changed: datetime | None = None
    entries: tuple[tuple[str, Entry], ...] = ()
    warnings: tuple[str, ...] = ()
    #: Whether it is another version of a conversation, and whether the other version is the one to show.
    version: bool = False
    hidden: bool = False
    exact: bool = False
    #: For an exact session: when each row was appended, and what else is known of the thread.
    times: tuple[datetime, ...] = ()
    settings: JsonText = "{}"
    metadata: JsonText = "{}"
    parent: tuple[str, int] = ("", 0)
    pins: tuple[tuple[int | None, str], ...] = ()

    @property
    def messages(self) -> list[tuple[str, Message]]:
        """The messages only, with their names."""
        return [(name, entry) for name, entry in self.entries if isinstance(entry, Message)]


@dataclass(frozen=True, slots=True)
class Passed:
    """A file of an archive that was skipped, and why."""

    name: str
    reason: str


def sessions_of(file: IO[bytes], name: str, modified: datetime | None = None) -> Iterator[Session | Passed]:
    """Read a file, or every file of a zip archive, one at a time. Raises InputError if there is no conversation.

    Files without a conversation are skipped, such as some in a ChatGPT export.
    """
    start = file.read(len(ARCHIVE_START))
    file.seek(0)
    if not is_archive(start):
        data = file.read(LARGEST_INPUT + 1)
        if len(data) > LARGEST_INPUT:
            raise InputError(f"larger than {LARGEST_INPUT // 1_000_000:,} MB; split it")
        yield from sessions_in(data, _stem(name), modified)
        return
    found, first = False, ""
    for inner, data in files_in(file):
        try:
            sessions = sessions_in(data, _stem(inner), modified)
        except InputError as error:
            first = first or f"{inner}: {error}"
            yield Passed(inner, str(error))
            continue
        found = found or bool(sessions)
        yield from sessions
    if not found:
        raise InputError(f"the archive contains no conversation{f': {first}' if first else ''}")


def _stem(name: str) -> str:
    """The name of a file without its folder and its ending. Example: talks/boats.jsonl.gz -> boats"""
    stem = name.replace("\\", "/").rpartition("/")[2].removesuffix(".gz")
    for suffix in reversed(SESSION_SUFFIXES):
        stem = stem.removesuffix(suffix)
    return stem


def sessions_in(data: bytes, file_name: str, modified: datetime | None = None) -> tuple[Session, ...]:
    """Read every conversation in a file. Those without a name are named after the file.

    A conversation without times gets the time at which the file was last `modified`.
    """
    documents = read_all(data)
    sessions: list[Session] = []
    for number, document in enumerate(documents, start=1):
        fallback = file_name if len(documents) == 1 else f"{file_name}#{number}"
        sessions.append(_session(document, fallback, modified))
        branches = marks_of(document).branches(document)
        sessions += [replace(_session(each, fallback, modified), version=True, hidden=True) for each in branches]
        archived = enumerate(marks_of(document).archived(document), start=1)
        sessions += [replace(_session(each, f"{fallback}/{at}", modified), archived=True) for at, each in archived]
    return tuple(sessions)


def _session(document: Document, fallback: str, modified: datetime | None) -> Session:
    if document.fmt == EVERLONG.name:
        return _own_session(document)
    marks = marks_of(document)
    times = list(_times(document)) or ([modified] if modified else [])
    return Session(
        id=marks.session_id(document) or fallback,
        title=text_title(marks.title(document)) or next(filter(None, map(text_title, user_texts(document))), ""),
        archived=marks.put_away(document),
        format=document.fmt,
        model=document.model,
        began=min(times, default=None),
        changed=max(times, default=None),
        entries=tuple(_entries(document)),
        warnings=document.warnings,
    )


def _own_session(document: Document) -> Session:
    """The thread of our own export, row for row."""
    header, marks = unpack(document.extra)[0], marks_of(document)
    rows = [cast(JsonObject, load(record.body)) for record in document.records if not isinstance(record, Message)]
    entries = tuple((str(row["id"]), decode_entry(_kind(row), json.dumps(row["entry"]))) for row in rows)
    _check_places(entries)
    branch = cast(JsonObject, header.get("branch_of") or {"thread": "", "rows": 0})
    pins = cast("list[JsonObject]", header.get("pins") or [])
    metadata = cast(JsonObject, header.get("metadata") or {})
    settings, warnings = _usable_settings(cast(JsonObject, header.get("settings") or {}))
    return Session(
        id=marks.session_id(document) or ref_of(document.extra),
        title=marks.title(document)[:LONGEST_TITLE],
        archived=marks.put_away(document),
        format=document.fmt,
        began=_moment(marks.began(document)),
        changed=_moment(marks.changed(document)),
        entries=entries,
        warnings=(*document.warnings, *warnings),
        exact=True,
        times=tuple(as_utc(datetime.fromisoformat(str(row["time"]))) for row in rows),
        settings=settings,
        metadata=json.dumps(metadata),
        version=VERSION_OF in metadata,
        hidden=bool(metadata.get(HIDDEN)),
        parent=(str(branch["thread"]), cast(int, branch["rows"])),
        pins=tuple((cast("int | None", pin.get("order")), str(pin.get("text", ""))) for pin in pins),
    )


def _kind(row: JsonObject) -> EntryKind:
    return EntryKind[str(row["kind"]).upper()]


def _moment(time: datetime | None) -> datetime | None:
    with suppress(OverflowError, ValueError, OSError):  # the first and last days of the calendar overflow
        return None if time is None else as_utc(time)
    return None


def _usable_settings(settings: JsonObject) -> tuple[JsonText, tuple[str, ...]]:
    """Return the settings of a thread if the engine accepts them: the file may come from anywhere."""
    try:
        read_settings({**settings})
    except InputError as error:
        return "{}", (f"settings skipped: {error}",)
    return json.dumps(settings), ()


def _times(document: Document) -> Iterator[datetime]:
    """Yield every time in the file that belongs to the conversation; a time without a zone is local time."""
    marks = marks_of(document)
    times = (marks.began(document), marks.changed(document), *(message.time for message in document.messages))
    for time in filter(None, times):
        with suppress(OverflowError, ValueError, OSError):  # the first and last days of the calendar overflow
            if as_utc(time) > NO_TIME:
                yield as_utc(time)


def _entries(document: Document) -> Iterator[tuple[str, Entry]]:
    """Yield the messages and, where the program compacted, points with its summary; each with a unique name."""
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
    """Return the name, numbered from its second use on, so that the same conversation gives the same names."""
    numbered = (name if turn == 1 else f"{name}#{turn}" for turn in count(1))
    free = next(each for each in numbered if each not in taken)
    taken.add(free)
    return free


def _check_places(entries: Sequence[tuple[str, Entry]]) -> None:
    """Raise InputError if a row appears twice, or refers to a row that does not come before it."""
    names: set[str] = set()
    for at, (name, entry) in enumerate(entries):
        if name in names:
            raise InputError(f"rows[{at}]: the id {name[:80]!r} appears twice")
        names.add(name)
        match entry:
            case Point(boundary=boundary, edits=edits):
                fine = 0 <= boundary <= at and all(0 <= edit.at < at for edit in edits)
            case Withdrawal(point):
                fine = 0 <= point < at and isinstance(entries[point][1], Point)
            case Recalled(before=before):
                fine = 0 <= before <= at + 1
            case _:
                fine = True
        if not fine:
            raise InputError(f"rows[{at}] refers to a row that does not come before it")
