"""Export threads as files: for people, for other programs, for Everlong itself, and many of them in one archive.

Everlong's own JSON has every row, so that it can be imported without loss; Markdown is for reading. A session of
nanobot or Chatbox has every message; a nanobot session also says where its summary takes effect. OpenAI JSON cannot say
that: it has every message, or what would be sent now. No export has deleted rows.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from everlong.core import (
    Gone,
    History,
    JsonObject,
    Message,
    Point,
    Removal,
    Restoration,
    Role,
    Row,
    Thread,
    Withdrawal,
)
from everlong.engine import Threads
from everlong.errors import EverlongError
from everlong.store.bodies import encode_entry, kind_of
from everlong.store.transcripts import transcript
from everlong.wire import (
    CHATBOX,
    HEADING,
    NANOBOT,
    NANOBOT_SUMMARY,
    OPENAI_CHAT,
    THREAD,
    VERSION,
    Document,
    aside,
    headed_summary,
    packed,
    stamp,
    write,
)

__all__ = ["FORMATS", "archive_of", "export_name", "exported"]

LONGEST_NAME = 60  # characters of a title in the name of a file
SKIPPED = "skipped.txt"  # names the threads of an archive that could not be read


def exported(store: Threads, thread: str, fmt: str, *, as_sent: bool = False, language: str = "en") -> bytes:
    """Return the file. With `as_sent`, the newest summary and what follows it, if the format can express that."""
    return _FORMATS[fmt].write(store, store.thread(thread), _Wanted(as_sent, language))


def export_name(thread: Thread, fmt: str) -> str:
    """Return a file name for a thread: its start date, its title, and the end of its id.

    Example: 2026-03-18-seven-boats-4f1c09aa.md
    """
    title = re.sub(r"[^\w]+", "-", thread.title, flags=re.UNICODE).strip("-_").lower()[:LONGEST_NAME].strip("-")
    tail = re.sub(r"[^A-Za-z0-9]+", "", thread.id)[-8:]
    parts = filter(None, (f"{thread.created:%Y-%m-%d}", title, tail))
    return f"{'-'.join(parts)}{_FORMATS[fmt].suffix}"


def archive_of(store: Threads, threads: Iterable[Thread], fmt: str, *, language: str = "en") -> Iterator[bytes]:
    """Yield a zip archive with one file per thread. One thread is in memory at a time; failures are listed in it."""
    return packed(_files(store, threads, fmt, language))


def _files(store: Threads, threads: Iterable[Thread], fmt: str, language: str) -> Iterator[tuple[str, bytes]]:
    taken: set[str] = set()
    skipped: list[str] = []
    for thread in threads:
        name = export_name(thread, fmt)
        if name in taken:
            name = f"{len(taken)}-{name}"
        taken.add(name)
        try:
            yield name, exported(store, thread.id, fmt, language=language)
        except EverlongError as error:  # removed meanwhile, or damaged: export the others
            skipped.append(f"{thread.id}: {error}")
    if skipped:
        yield SKIPPED, "\n".join(skipped).encode()


# The formats


@dataclass(frozen=True, slots=True)
class _Wanted:
    as_sent: bool
    language: str


@dataclass(frozen=True, slots=True)
class _ExportFormat:
    write: Callable[[Threads, Thread, _Wanted], bytes]
    suffix: str


def _everlong(store: Threads, thread: Thread, _: _Wanted) -> bytes:
    """Every row, and everything known about the thread."""
    header: JsonObject = {
        "everlong": THREAD,
        "version": VERSION,
        "id": thread.id,
        "title": thread.title,
        "created": thread.created.isoformat(),
        "updated": thread.updated.isoformat(),
        "archived": thread.archived,
        "branch_of": {"thread": thread.parent[0], "rows": thread.parent[1]} if thread.parent[0] else None,
        "settings": json.loads(thread.settings),
        "metadata": json.loads(thread.metadata),
        "pins": [{"order": pin.order, "text": pin.text} for pin in store.pins(thread.id)],
    }
    rows = (
        json.dumps(
            {
                "id": row.id,
                "time": row.time.isoformat(),
                "kind": kind_of(row.entry).name.lower(),
                "entry": json.loads(encode_entry(row.entry)),
            }
        )
        for row in _kept_rows(store.read(thread.id))
    )
    # One row per line, so that people find a row and other programs can compare two exports. ASCII escapes can express
    # text that UTF-8 cannot.
    listed = ",\n".join(rows)
    return f'{json.dumps(header)[:-1]}, "rows": [\n{listed}\n]}}\n'.encode("ascii")


def _kept_rows(rows: Iterable[Row]) -> Iterator[Row]:
    """Return the rows in their places. A mark replaces deleted rows, and rows that only record a deletion."""
    gone: set[int] = set()
    for row in rows:
        match row.entry:
            case Gone() | Removal() | Restoration():
                out = True
            case Withdrawal(point):
                out = point in gone
            case _:
                out = False
        if out:
            gone.add(row.order)
        yield replace(row, entry=Gone()) if out else row


def _markdown(store: Threads, thread: Thread, wanted: _Wanted) -> bytes:
    return "".join(transcript(store, thread, wanted.language)).encode("utf-8", "replace")


def _openai(store: Threads, thread: Thread, wanted: _Wanted) -> bytes:
    messages = store.open(thread.id).messages if wanted.as_sent else _messages(store, thread.id)
    return write(Document(fmt=OPENAI_CHAT.name, messages=messages, model=_model(thread), bare=not _model(thread)))


def _chatbox(store: Threads, thread: Thread, wanted: _Wanted) -> bytes:
    messages = store.open(thread.id).messages if wanted.as_sent else _messages(store, thread.id)
    return write(Document(fmt=CHATBOX.name, messages=messages, model=_model(thread)))


def _nanobot(store: Threads, thread: Thread, wanted: _Wanted) -> bytes:
    point = store.open(thread.id).point
    boundary = point.entry.boundary if point and isinstance(point.entry, Point) else 0
    summary = point.entry.summary if point and isinstance(point.entry, Point) else ()
    covered = () if wanted.as_sent else _messages(store, thread.id, 0, boundary)
    text = "\n\n".join(message.text.removeprefix(f"{HEADING}\n\n") for message in summary if message.text)
    note = (Message(Role.USER, (headed_summary(text),), origin=NANOBOT.name, extra=NANOBOT_SUMMARY),) if text else ()
    messages = (*covered, *note, *_messages(store, thread.id, boundary))
    return write(Document(fmt=NANOBOT.name, messages=messages, records=(aside(_nanobot_header(thread)),)))


def _nanobot_header(thread: Thread) -> JsonObject:
    """The metadata line. nanobot writes no time zone, and compares with times that have none."""
    return {
        "_type": "metadata",
        "key": thread.id,
        "created_at": stamp(thread.created).removesuffix("Z"),
        "updated_at": stamp(thread.updated).removesuffix("Z"),
        "metadata": {"title": thread.title} if thread.title else {},
    }


def _messages(store: Threads, thread: str, start: int = 0, stop: int | None = None) -> History:
    return tuple(row.entry for row in store.read(thread, start, stop) if isinstance(row.entry, Message))


def _model(thread: Thread) -> str:
    metadata = json.loads(thread.metadata)
    model = metadata.get("model") if isinstance(metadata, dict) else None
    return model if isinstance(model, str) else ""


_FORMATS: Mapping[str, _ExportFormat] = {
    "everlong": _ExportFormat(_everlong, ".json"),
    "markdown": _ExportFormat(_markdown, ".md"),
    "openai": _ExportFormat(_openai, ".openai.json"),
    "nanobot": _ExportFormat(_nanobot, ".jsonl"),
    "chatbox": _ExportFormat(_chatbox, ".chatbox.json"),
}
#: The names of the formats that a thread can be exported in.
FORMATS = tuple(_FORMATS)
