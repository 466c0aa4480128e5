"""Any conversation file or request body to a `Document`; the format is found by looking.

Owns the order in which formats are tried, and the rule for damage: in a file of lines a record that cannot be
read costs itself alone and is named by its line; a request body is whole or refused. Each session format knows
its own records; request bodies are told apart in `recognition`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from types import ModuleType
from typing import cast

from everlong.core import Json, JsonObject
from everlong.errors import InputError, WireError
from everlong.wire import anthropic_messages, gemini, openai_chat, openai_responses
from everlong.wire.decoding import Decoded, decode_bytes
from everlong.wire.document import Document
from everlong.wire.recognition import body_format, fields_named, holds_a_conversation, is_message, list_format
from everlong.wire.sessions import chatbox, claude_code, codex, nanobot, pi
from everlong.wire.sessions.records import records_of

__all__ = ["BODY_FORMATS", "LIST_FIELD", "SESSION_FORMATS", "document_of", "read", "read_all"]

BODY_FORMATS: dict[str, ModuleType] = {
    module.FORMAT: module for module in (openai_chat, openai_responses, anthropic_messages, gemini)
}
SESSION_FORMATS: dict[str, ModuleType] = {module.FORMAT: module for module in (pi, claude_code, codex, nanobot)}

#: The field that holds the messages in a request body of each format.
LIST_FIELD = {"openai-chat": "messages", "anthropic": "messages", "openai-responses": "input", "gemini": "contents"}

LOOKED_AT = 50  # records at the front that tell whose session it is


def read(data: bytes) -> Document:
    """The conversation in a file; the first one if it holds several."""
    return read_all(data)[0]


def read_all(data: bytes) -> tuple[Document, ...]:
    """Every conversation in a file: an export or a data set may hold many."""
    decoded = decode_bytes(data)
    if decoded.lines:
        return _from_lines(decoded)
    value = decoded.document
    if isinstance(value, dict) and _is_single_line(value):
        return _from_lines(Decoded(lines=((1, value),)))
    return _documents_of(value)


def document_of(value: Json) -> Document:
    """A decoded request body, bare list of messages, or list of a session's records."""
    return _documents_of(value)[0]


def _documents_of(value: Json) -> tuple[Document, ...]:
    if isinstance(value, list):
        return _from_list(value)
    if not isinstance(value, dict):
        raise InputError(f"not a conversation: a JSON {type(value).__name__}")
    if chatbox.recognises([value]):
        return tuple(chatbox.parse_export(value))
    return (BODY_FORMATS[body_format(value)].parse_body(value),)


def _from_list(values: list[Json]) -> tuple[Document, ...]:
    """A list of messages, of whole conversations, or of a session's records."""
    rows = [value for value in values if isinstance(value, dict)]
    if rows and all(map(holds_a_conversation, rows)):
        return _each_document((f"item {number}", row) for number, row in enumerate(values, start=1))
    module = _session_format(rows)
    if module is not None:
        records = ((f"item {number}", value) for number, value in enumerate(values, start=1))
        return (replace(_session(module, records), bare=True),)
    fmt = list_format(values)
    body = cast(Document, BODY_FORMATS[fmt].parse_body({LIST_FIELD[fmt]: values}))
    return (replace(body, bare=True),)


def _from_lines(decoded: Decoded) -> tuple[Document, ...]:
    rows = [cast(JsonObject, value) for _, value in decoded.lines]
    named = [(f"line {number}", value) for number, value in decoded.lines]
    module = _session_format(rows)
    if module is not None:
        return (_session(module, named, decoded.warnings),)
    if any(map(holds_a_conversation, rows)):
        return _each_document(named, decoded.warnings)
    if any(map(is_message, rows)):
        return (_message_lines(rows, named, decoded.warnings),)
    raise InputError(f"not a conversation: lines with {fields_named(rows[0])}")


def _is_single_line(value: JsonObject) -> bool:
    """Whether a lone object is the only line so far of a session or of a list of messages."""
    if chatbox.recognises([value]):
        return False
    return _session_format([value]) is not None or is_message(value)


def _session_format(rows: Sequence[JsonObject]) -> ModuleType | None:
    front = rows[:LOOKED_AT]
    return next((module for module in SESSION_FORMATS.values() if module.recognises(front)), None)


def _session(module: ModuleType, named: Iterable[tuple[str, Json]], warnings: Sequence[str] = ()) -> Document:
    """A session: a record that cannot be read stays in its place and is named."""
    records, bad = records_of(named, module.parse_record)
    return cast(Document, module.document(records, (*warnings, *bad)))


def _each_document(named: Iterable[tuple[str, Json]], warnings: Sequence[str] = ()) -> tuple[Document, ...]:
    """A conversation a row; the first one bears the warnings about the rows that are none."""
    good: list[Document] = []
    bad = list(warnings)
    for where, row in named:
        try:
            good += _documents_of(row)
        except InputError as error:
            bad.append(f"{where}: {error}")
    if not good:
        raise InputError(bad[0])
    first = replace(good[0], warnings=(*bad, *good[0].warnings))
    return (first, *good[1:])


def _message_lines(rows: Sequence[JsonObject], named: Iterable[tuple[str, Json]], warnings: Sequence[str]) -> Document:
    """A bare list of messages written one a line."""
    fmt = list_format(rows)
    module, field = BODY_FORMATS[fmt], LIST_FIELD[fmt]
    good: list[Json] = []
    bad = list(warnings)
    for where, row in named:
        try:
            module.parse_body({field: [row]})
        except WireError as error:
            bad.append(f"{where}: {error.problem}")
        else:
            good.append(row)
    if not good:
        raise InputError(f"not a conversation: {bad[0]}")
    body = cast(Document, module.parse_body({field: good}))
    return replace(body, bare=True, lines=True, warnings=tuple(bad))
