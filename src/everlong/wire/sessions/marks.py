"""How a session format names things: its sessions, their titles, their messages, and what is a summary.

Only looks at what reading carried along. Each format exports its `MARKS`; a conversation of any other format has none.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from everlong.core import Json, JsonObject, Message
from everlong.wire.document import Document
from everlong.wire.sessions.records import fields_of

__all__ = ["SessionMarks", "record_text", "text_in"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionMarks:
    """What a format says of a session. Texts are "" where it says nothing."""

    session_id: Callable[[Document], str] = lambda _document: ""
    title: Callable[[Document], str] = lambda _document: ""
    #: The id that the program gave a message.
    message_id: Callable[[Message], str] = lambda _message: ""
    #: Whether the program put a message of its own in place of those it no longer sends.
    is_summary: Callable[[Message, Document], bool] = lambda _message, _document: False
    #: The tokens of the messages that a summary covers; 0 if the program does not say.
    covered_tokens: Callable[[Message], int] = lambda _summary: 0
    #: Earlier conversations that the session keeps beside the current one.
    archived: Callable[[Document], tuple[Document, ...]] = lambda _document: ()


def record_text(*places: tuple[str, str]) -> Callable[[Document], str]:
    """A function that returns the text at the first place that is filled; of several records, that of the last.

    A place is the type of a record ("" for any) and the path of a field.
    Example: record_text(("session_meta", "payload.id"), ("", "id"))
    """

    def text(document: Document) -> str:
        records = [fields_of(record) for record in document.records]
        return next(filter(None, (_text_at(records, kind, path) for kind, path in places)), "")

    return text


def _text_at(records: Iterable[JsonObject], kind: str, path: str) -> str:
    chosen = [record for record in records if not kind or kind in (record.get("type"), record.get("_type"))]
    return next(filter(None, (_field(record, path.split(".")) for record in reversed(chosen))), "")


def _field(record: JsonObject, path: Iterable[str]) -> str:
    value: Json = record
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return text_in(value)


def text_in(value: Json) -> str:
    """The value if it is a text, else ""."""
    return value if isinstance(value, str) else ""
