"""Export a thread as a file for other programs: a nanobot session, or OpenAI chat JSON.

A nanobot session has every message and the place where its summary takes effect. OpenAI JSON has no place for that: it
has every message, or what would be sent now.
"""

import json
from collections.abc import Callable, Mapping

from everlong.core import History, JsonObject, Message, Point, Role, Thread
from everlong.engine import Threads
from everlong.wire import HEADING, NANOBOT, NANOBOT_SUMMARY, OPENAI_CHAT, Document, aside, stamp, tell_summary, write

__all__ = ["FORMATS", "exported"]


def exported(store: Threads, thread: str, fmt: str, *, as_sent: bool = False) -> bytes:
    """Return the file. With `as_sent` the newest summary and what follows it, else every message."""
    return write(_DOCUMENTS[fmt](store, store.thread(thread), as_sent))


def _openai_document(store: Threads, thread: Thread, as_sent: bool) -> Document:
    messages = store.open(thread.id).messages if as_sent else _messages(store, thread.id)
    return Document(fmt=OPENAI_CHAT.name, messages=messages, model=_model(thread), bare=not _model(thread))


def _nanobot_document(store: Threads, thread: Thread, as_sent: bool) -> Document:
    point = store.open(thread.id).point
    boundary = point.entry.boundary if point and isinstance(point.entry, Point) else 0
    summary = point.entry.summary if point and isinstance(point.entry, Point) else ()
    covered = () if as_sent else _messages(store, thread.id, 0, boundary)
    text = "\n\n".join(message.text.removeprefix(f"{HEADING}\n\n") for message in summary if message.text)
    note = (Message(Role.USER, (tell_summary(text),), origin=NANOBOT.name, extra=NANOBOT_SUMMARY),) if text else ()
    messages = (*covered, *note, *_messages(store, thread.id, boundary))
    return Document(fmt=NANOBOT.name, messages=messages, records=(aside(_nanobot_header(thread)),))


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


_DOCUMENTS: Mapping[str, Callable[[Threads, Thread, bool], Document]] = {
    "nanobot": _nanobot_document,
    "openai": _openai_document,
}
#: The names of the formats that a thread can be exported in.
FORMATS = tuple(_DOCUMENTS)
