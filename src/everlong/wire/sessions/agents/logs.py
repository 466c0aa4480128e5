"""Event logs: one record for each event, most of which are not messages of the conversation.

This module builds the session format of a program from its `LogFormat`. Every record is kept unchanged, so an unchanged
conversation is written as it was read; a changed one is written as new records.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import cast

from everlong.core import JsonObject, Message, Text
from everlong.wire.document import Document, Record
from everlong.wire.fields import load
from everlong.wire.formats.openai_chat import messages as openai_chat
from everlong.wire.sessions.conversation import settle
from everlong.wire.sessions.records import as_object, aside, fields_of
from everlong.wire.sessions.session import SessionFormat, SessionMarks, read_records, text_in

__all__ = ["LogFormat", "log_of", "texts_in", "words"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFormat:
    """What is specific to one program."""

    name: str
    program: str
    #: Whether these first records are the program's.
    recognises: Callable[[Sequence[JsonObject]], bool]
    #: Builds the messages from the records.
    converse: Callable[[Sequence[JsonObject]], list[Message]]
    #: Writes a changed or new conversation as records.
    written: Callable[[Sequence[Message]], list[JsonObject]]
    session_id: Callable[[Document], str] = lambda _document: ""
    model: Callable[[Sequence[JsonObject]], str] = lambda _records: ""
    suffixes: tuple[str, ...] = (".jsonl", ".json")
    folders: tuple[str, ...] = ()


def log_of(form: LogFormat) -> SessionFormat:
    """Return the session format of a program."""

    def document(records: Sequence[Record], warnings: Sequence[str] = ()) -> Document:
        rows = [fields_of(record) for record in records]
        messages, _ = settle(form.converse(rows))
        return Document(
            fmt=form.name,
            messages=messages,
            model=form.model(rows),
            records=tuple(records),
            warnings=tuple(warnings),
        )

    def written(found: Document) -> list[JsonObject]:
        if found.fmt == form.name and document(found.records).messages == found.messages:
            return [cast(JsonObject, load(record.body)) for record in found.records if not isinstance(record, Message)]
        return form.written(found.messages)

    def read_record(raw: object, where: str) -> Record:
        return aside(as_object(raw, fmt=form.name, where=where))  # type: ignore[arg-type]

    return SessionFormat(
        name=form.name,
        program=form.program,
        sent_as=openai_chat.NAME,
        recognises=form.recognises,
        read_record=read_record,
        read=read_records(read_record, document),
        write=written,
        suffixes=form.suffixes,
        folders=form.folders,
        marks=SessionMarks(session_id=form.session_id),
    )


def texts_in(content: object) -> str:
    """Return the text of a content: a text, a block with a text, or a list of these."""
    if isinstance(content, str):
        return content
    if isinstance(content, dict):
        return text_in(content.get("text"))
    blocks: Iterable[object] = content if isinstance(content, list) else ()
    return "\n".join(filter(None, map(texts_in, blocks)))


def words(text: str) -> tuple[Text, ...]:
    """Return a text as parts of a message; none if it is blank."""
    return (Text(text),) if text.strip() else ()
