"""Read conversation files and request bodies into a `Document`, recognising the format, and write them back.

This module owns the order in which formats are tried, and the rule for damage: in a file of lines, only the unreadable
records are lost, and a warning names each line; a request body is read as a whole or refused. Unchanged content is
written as it was read. Each format defines its own signs; plain text, which is the same in all formats, counts as
OpenAI chat. The whole list is checked, because a long chat may begin with plain text and have its first call late.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import cast

from everlong.core import History, Json, JsonObject, Role
from everlong.errors import InputError, WireError
from everlong.wire.document import Document
from everlong.wire.fields import load, shown, unpack
from everlong.wire.formats import FORMATS, OPENAI_CHAT
from everlong.wire.formats.format import Format
from everlong.wire.formats.validation import clean_json, clean_text, unwritable_problems
from everlong.wire.json_files import Decoded, decode_bytes
from everlong.wire.sessions import SESSION_FORMATS
from everlong.wire.sessions.session import NamedValue, SessionFormat, SessionMarks

__all__ = [
    "document_of",
    "list_format",
    "marks_of",
    "read",
    "read_all",
    "sendable",
    "sent_as",
    "user_texts",
    "value_of",
    "with_messages",
    "write",
]

LOOKED_AT = 50  # first records, which show the program that wrote the session
SHOWN_FIELDS = 6
#: The fields in which the formats keep their messages.
LISTS = tuple(dict.fromkeys(each.api.messages for each in FORMATS.values()))
#: Line ends for some programs, but not in JSON; in a file of lines, they would split a record.
LINE_ENDS = {sign: f"\\u{ord(sign):04x}" for sign in "\x85\u2028\u2029"}


# --- reading -------------------------------------------------------------------------------------


def read(data: bytes) -> Document:
    """Return the conversation in a file; the first one if it has several."""
    return read_all(data)[0]


def read_all(data: bytes) -> tuple[Document, ...]:
    """Return every conversation in a file. An export or a data set may have many."""
    decoded = decode_bytes(data)
    if decoded.lines:
        return _from_lines(decoded)
    value = decoded.document
    if isinstance(value, dict) and _is_single_line(value):
        return _from_lines(Decoded(lines=((1, value),)))
    return _documents_of(value)


def document_of(value: Json) -> Document:
    """Read a decoded request body, a list of messages, or a list of session records."""
    return _documents_of(value)[0]


def marks_of(document: Document) -> SessionMarks:
    """Return how a document's session format names things; empty marks if it is not a session format."""
    session = SESSION_FORMATS.get(document.fmt)
    return SessionMarks() if session is None else session.marks


def sent_as(document: Document) -> str:
    """Return the name of the wire format whose rules a document's messages must follow when they are sent."""
    session = SESSION_FORMATS.get(document.fmt)
    return document.fmt if session is None else session.sent_as


def user_texts(document: Document) -> Iterator[str]:
    """Yield what the user wrote, oldest first, without summaries and texts by the program in the user's name."""
    session = SESSION_FORMATS.get(document.fmt)
    for message in document.messages:
        if message.role is not Role.USER or (session is not None and session.marks.is_summary(message, document)):
            continue
        if session is None or not message.text.lstrip().startswith(session.not_the_user):
            yield message.text


def _documents_of(value: Json) -> tuple[Document, ...]:
    if isinstance(value, list):
        return _from_list(value)
    if not isinstance(value, dict):
        raise InputError(f"not a conversation: a JSON {type(value).__name__}")
    session = _session_format([value], in_lines=False)
    if session is not None:
        return session.read([("", value)], ())
    return (body_format(value).read_body(value),)


def _from_list(values: list[Json]) -> tuple[Document, ...]:
    """Read a list of messages, of whole conversations, or of a session's records."""
    rows = [value for value in values if isinstance(value, dict)]
    if rows and (all(map(_holds_a_conversation, rows)) or _session_format(rows[:1], in_lines=False) is not None):
        return _each_document((f"item {number}", row) for number, row in enumerate(values, start=1))
    session = _session_format(rows)
    if session is not None:
        records = ((f"item {number}", value) for number, value in enumerate(values, start=1))
        return tuple(replace(document, bare=True) for document in session.read(records, ()))
    found = _list_format(values)
    return (replace(found.read_body({found.api.messages: values}), bare=True),)


def _from_lines(decoded: Decoded) -> tuple[Document, ...]:
    rows = [cast(JsonObject, value) for _, value in decoded.lines]
    named = [(f"line {number}", value) for number, value in decoded.lines]
    session = _session_format(rows)
    if session is not None:
        return session.read(named, decoded.warnings)
    if any(map(_holds_a_conversation, rows)):
        return _each_document(named, decoded.warnings)
    if any(map(_is_message, rows)):
        return (_message_lines(rows, named, decoded.warnings),)
    raise InputError(f"not a conversation: lines with {_fields_named(rows[0])}")


def _is_single_line(value: JsonObject) -> bool:
    """Whether a single object is the only line of a session or of a list of messages."""
    if _session_format([value], in_lines=False) is not None:
        return False
    return _session_format([value]) is not None or _is_message(value)


def _session_format(rows: Sequence[JsonObject], *, in_lines: bool = True) -> SessionFormat | None:
    front = rows[:LOOKED_AT]
    fitting = (each for each in SESSION_FORMATS.values() if each.in_lines == in_lines and each.recognises(front))
    return next(fitting, None)


def _each_document(named: Iterable[NamedValue], warnings: Sequence[str] = ()) -> tuple[Document, ...]:
    """Read each row as a conversation. Rows that are not one become warnings on the first document."""
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


def _message_lines(rows: Sequence[JsonObject], named: Iterable[NamedValue], warnings: Sequence[str]) -> Document:
    """Read a plain list of messages, one per line."""
    found = _list_format(rows)
    field = found.api.messages
    good: list[Json] = []
    bad = list(warnings)
    for where, row in named:
        try:
            found.read_body({field: [row]})
        except WireError as error:
            bad.append(f"{where}: {error.problem}")
        else:
            good.append(row)
    if not good:
        raise InputError(f"not a conversation: {bad[0]}")
    return replace(found.read_body({field: good}), bare=True, lines=True, warnings=tuple(bad))


# --- recognising ---------------------------------------------------------------------------------


def body_format(body: JsonObject) -> Format:
    """Return the format of a request body. Raises InputError if it is not a request."""
    fitting = [each for each in FORMATS.values() if each.signs.body(body)]
    if not fitting:
        expected = f"{', '.join(LISTS[:-1])} or {LISTS[-1]}"
        raise InputError(f"not a conversation: an object with {_fields_named(body)}; expected {expected}")
    field = fitting[0].api.messages
    sharing = [each for each in fitting if each.api.messages == field]
    return sharing[0] if len(sharing) == 1 else _chosen_format(sharing, field, body)


def list_format(messages: Sequence[Json], plain: str = OPENAI_CHAT.name) -> str:
    """Return the name of the format of a list of messages; `plain` if it is text that all formats share."""
    return _list_format(messages, FORMATS[plain]).name


def _list_format(messages: Sequence[Json], plain: Format = OPENAI_CHAT) -> Format:
    rows = _rows(messages)
    signs = _signs(rows)
    found = next((each for name, each in FORMATS.items() if name in signs), None)
    if found is None and rows and not any("role" in row for row in rows):
        raise InputError(f"not a conversation: a list of objects with {_fields_named(rows[0])}")
    return found or plain


def _chosen_format(sharing: Sequence[Format], field: str, body: JsonObject) -> Format:
    """Choose between formats that keep their messages in the same field; the first if nothing decides."""
    rows = _rows(cast("list[Json]", body[field]))
    signs = _signs(rows)
    if sharing[0].name in signs:
        return sharing[0]
    oddity = next((each.signs.oddity for name, each in FORMATS.items() if name in signs and each not in sharing), "")
    if oddity:
        raise InputError(f"not a conversation: {field} with {oddity}")
    shown = next((each for each in sharing if each.signs.beside(body)), None)
    if shown is not None:
        return shown
    if rows and not any("role" in row for row in rows):
        raise InputError(f"not a conversation: messages with {_fields_named(rows[0])} and no role")
    return next((each for each in sharing if each.name in signs), sharing[0])


def _holds_a_conversation(row: JsonObject) -> bool:
    """Whether a row of a data set has messages, in any format."""
    return any(isinstance(row.get(field), list) for field in LISTS)


def _is_message(record: JsonObject) -> bool:
    """Whether a record by itself could be one message of a list."""
    return "role" in record and not _holds_a_conversation(record)


def _fields_named(record: JsonObject) -> str:
    """Return the names of a few fields, for an error. Example: {"b": 1, "a": 2} -> "a, b" """
    names = sorted(str(key) for key in record)[:SHOWN_FIELDS]
    return ", ".join(shown(name)[1:-1] for name in names) or "no fields"


def _rows(messages: Sequence[Json]) -> list[JsonObject]:
    rows = [row for row in messages if isinstance(row, dict)]
    if messages and not rows:
        raise InputError(f"not a conversation: a list of {type(messages[0]).__name__}")
    return rows


def _signs(rows: Sequence[JsonObject]) -> set[str]:
    """Return the names of the formats that the messages show. The search stops at the first format, which decides."""
    first = next(iter(FORMATS))
    signs = set()
    for row in rows:
        strength, name = max((each.signs.message(row), name) for name, each in FORMATS.items())
        if strength:
            signs.add(name)
        if first in signs:
            break
    return signs


# --- writing -------------------------------------------------------------------------------------


def with_messages(document: Document, messages: History) -> Document:
    """Return the same document with other messages."""
    return replace(document, messages=messages)


def sendable(document: Document) -> Document:
    """Return a request with fields besides the messages that can be sent: no lone surrogates, only JSON numbers.

    Raises WireError with the field that the provider would refuse. Tools that came with a plain list are only checked
    to be writable, because a plain list does not show their format.
    """
    own = FORMATS.get(document.fmt)
    if own is None:
        return document
    clean = replace(
        document,
        model=clean_text(document.model),
        tools=tuple(map(clean_json, document.tools)),
        extra=clean_json(document.extra),
    )
    fields = unpack(clean.extra)[0]
    if clean.tools:
        fields["tools"] = [load(tool) for tool in clean.tools]
    beside = () if document.bare else own.faults_beside(fields)
    for problem in (*beside, *unwritable_problems(fields)):
        raise WireError(f"{problem.where} {problem.text}", fmt=document.fmt, where=problem.where)
    return clean


def value_of(document: Document, *, sent: bool = False) -> Json:
    """Return a document as a request body, or a session as the list of its records.

    With `sent`, a body that its provider would refuse is written in a form that the provider accepts.
    """
    session = SESSION_FORMATS.get(document.fmt)
    if session is not None:
        return cast(Json, session.write(document))
    own = FORMATS[document.fmt]
    body = own.write_body(document)
    if sent and own.problems(body):
        body = own.sent_body(document)
    # A plain list has no place for system text; if there is some, return the whole body.
    return body[own.api.messages] if document.bare and body.keys() <= {own.api.messages} else body


def write(document: Document) -> bytes:
    """Return the file: one JSON document, or one record per line if it was read that way."""
    value = value_of(document)
    session = SESSION_FORMATS.get(document.fmt)
    in_lines = document.lines or (session is not None and session.in_lines and not document.bare)
    try:
        if in_lines and isinstance(value, list):
            return b"".join(_written(record) for record in value)
        return _written(value, indent=2)
    except RecursionError:
        raise WireError("nested too deeply to be written", fmt=document.fmt) from None


def _written(value: Json, indent: int | None = None) -> bytes:
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    for sign, escape in LINE_ENDS.items():
        text = text.replace(sign, escape)
    # UTF-8 cannot encode a lone surrogate; the error handler writes it as an escape that is valid JSON.
    return text.encode("utf-8", "backslashreplace") + b"\n"
