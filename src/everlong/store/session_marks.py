"""How each session format names things: its sessions, their titles, their messages, and what is a summary.

Only looks at what `wire` carried along; reads and writes nothing.
"""

from collections.abc import Iterable

from everlong.core import Json, JsonObject, Message, Role
from everlong.engine import text_title
from everlong.wire import Document, fields_of, message_id, unpack
from everlong.wire.sessions import chatbox, claude_code, codex, nanobot, pi

__all__ = ["covered_tokens", "is_summary", "name_of", "session_id", "session_title"]

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
