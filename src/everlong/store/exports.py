"""A thread as a file for other programs: a nanobot session, or OpenAI chat JSON.

A nanobot session says everything and where its summary takes effect. OpenAI JSON has no place for that: it is
everything that was said, or what would be sent now.
"""

import json

from everlong.core import History, JsonObject, Message, Point, Role, Thread
from everlong.engine import Threads
from everlong.wire import HEADING, OPENAI_CHAT, Document, aside, stamp, tell_summary, write
from everlong.wire.sessions import nanobot

__all__ = ["FORMATS", "exported"]

FORMATS = ("nanobot", "openai")


def exported(store: Threads, thread: str, fmt: str, *, as_sent: bool = False) -> bytes:
    """The file. With `as_sent` the newest summary and what follows it, else everything that was said."""
    known = store.thread(thread)
    if fmt == "nanobot":
        return write(_nanobot(store, known, as_sent=as_sent))
    messages = store.open(thread).messages if as_sent else _said(store, thread)
    return write(Document(fmt=OPENAI_CHAT.name, messages=messages, model=_model(known), bare=not _model(known)))


def _said(store: Threads, thread: str, start: int = 0, stop: int | None = None) -> History:
    return tuple(row.entry for row in store.read(thread, start, stop) if isinstance(row.entry, Message))


def _nanobot(store: Threads, known: Thread, *, as_sent: bool) -> Document:
    point = store.open(known.id).point
    boundary = point.entry.boundary if point and isinstance(point.entry, Point) else 0
    summary = point.entry.summary if point and isinstance(point.entry, Point) else ()
    covered = () if as_sent else _said(store, known.id, 0, boundary)
    told = "\n\n".join(message.text.removeprefix(f"{HEADING}\n\n") for message in summary if message.text)
    note = (Message(Role.USER, (tell_summary(told),), origin=nanobot.FORMAT, extra=nanobot.SUMMARY),) if told else ()
    messages = (*covered, *note, *_said(store, known.id, boundary))
    return Document(fmt=nanobot.FORMAT, messages=messages, records=(aside(_header(known)),))


def _header(known: Thread) -> JsonObject:
    """nanobot writes no time zone, and compares with times that have none."""
    return {
        "_type": "metadata",
        "key": known.id,
        "created_at": stamp(known.created).removesuffix("Z"),
        "updated_at": stamp(known.updated).removesuffix("Z"),
        "metadata": {"title": known.title} if known.title else {},
    }


def _model(known: Thread) -> str:
    metadata = json.loads(known.metadata)
    model = metadata.get("model") if isinstance(metadata, dict) else None
    return model if isinstance(model, str) else ""
