"""Conversation files and request bodies: bytes to a `Document` and back, the format found by looking.

Owns the order in which formats are tried, and the rule for damage: in a file of lines a record that cannot be read
costs itself alone and is named by its line; a request body is whole or refused. What was not changed is written as it
was read. Formats say themselves what only they write; plain words, which all providers write alike, count as OpenAI
chat. The whole list is looked at, because a long chat may begin with plain words and show its first call late.
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

LOOKED_AT = 50  # records at the front that show which program wrote the session
SHOWN_FIELDS = 6
#: The fields in which the formats keep their messages.
LISTS = tuple(dict.fromkeys(each.api.messages for each in FORMATS.values()))
#: Ends of a line to some programs, though not to JSON; inside a file of lines they would tear a record.
LINE_ENDS = {sign: f"\\u{ord(sign):04x}" for sign in "\x85\u2028\u2029"}


# --- reading -------------------------------------------------------------------------------------


def read(data: bytes) -> Document:
    """Return the conversation in a file; the first one if it holds several."""
    return read_all(data)[0]


def read_all(data: bytes) -> tuple[Document, ...]:
    """Return every conversation in a file: an export or a data set may hold many."""
    decoded = decode_bytes(data)
    if decoded.lines:
        return _from_lines(decoded)
    value = decoded.document
    if isinstance(value, dict) and _is_single_line(value):
        return _from_lines(Decoded(lines=((1, value),)))
    return _documents_of(value)


def document_of(value: Json) -> Document:
    """Read a decoded request body, bare list of messages, or list of a session's records."""
    return _documents_of(value)[0]


def marks_of(document: Document) -> SessionMarks:
    """Return how the format of a session names things; a format that is no session format names nothing."""
    session = SESSION_FORMATS.get(document.fmt)
    return SessionMarks() if session is None else session.marks


def sent_as(document: Document) -> str:
    """Return the name of the wire format whose rules the messages of a document must meet when they are sent."""
    session = SESSION_FORMATS.get(document.fmt)
    return document.fmt if session is None else session.sent_as


def user_texts(document: Document) -> Iterator[str]:
    """What the user said, oldest first, without summaries and without what the program says in the user's name."""
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
    """A list of messages, of whole conversations, or of a session's records."""
    rows = [value for value in values if isinstance(value, dict)]
    if rows and all(map(_holds_a_conversation, rows)):
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
    """Whether a lone object is the only line so far of a session or of a list of messages."""
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
    """A bare list of messages written one a line."""
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
    return sharing[0] if len(sharing) == 1 else _told_apart(sharing, field, body)


def list_format(messages: Sequence[Json], plain: str = OPENAI_CHAT.name) -> str:
    """Return the name of the format of a bare list of messages; `plain` if they are words that all formats share."""
    return _list_format(messages, FORMATS[plain]).name


def _list_format(messages: Sequence[Json], plain: Format = OPENAI_CHAT) -> Format:
    rows = _rows(messages)
    signs = _signs(rows)
    found = next((each for name, each in FORMATS.items() if name in signs), None)
    if found is None and rows and not any("role" in row for row in rows):
        raise InputError(f"not a conversation: a list of objects with {_fields_named(rows[0])}")
    return found or plain


def _told_apart(sharing: Sequence[Format], field: str, body: JsonObject) -> Format:
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
    """Whether a row of a data set brings messages, in any format."""
    return any(isinstance(row.get(field), list) for field in LISTS)


def _is_message(record: JsonObject) -> bool:
    """Whether a record by itself could be one message of a list."""
    return "role" in record and not _holds_a_conversation(record)


def _fields_named(record: JsonObject) -> str:
    """A few of its fields, for a message to a person. Example: {"b": 1, "a": 2} -> "a, b" """
    names = sorted(str(key) for key in record)[:SHOWN_FIELDS]
    return ", ".join(shown(name)[1:-1] for name in names) or "no fields"


def _rows(messages: Sequence[Json]) -> list[JsonObject]:
    rows = [row for row in messages if isinstance(row, dict)]
    if messages and not rows:
        raise InputError(f"not a conversation: a list of {type(messages[0]).__name__}")
    return rows


def _signs(rows: Sequence[JsonObject]) -> set[str]:
    """Names of the formats that the messages point to. The search ends at a sign of the first format: it decides."""
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
    """Return the same document with another conversation in it."""
    return replace(document, messages=messages)


def sendable(document: Document) -> Document:
    """Return a request whose fields beside the conversation can be sent: text without halves, numbers that JSON has.

    Raises WireError naming the field that the provider would refuse. Tools that came beside a bare list are only
    checked to be writable: a list of plain words does not show which format they are declared in.
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
    """Return a request body again, a session as the list of its records.

    With `sent`, a body that its provider would refuse as it came is written as the provider takes it.
    """
    session = SESSION_FORMATS.get(document.fmt)
    if session is not None:
        return cast(Json, session.write(document))
    own = FORMATS[document.fmt]
    body = own.write_body(document)
    if sent and own.problems(body):
        body = own.sent_body(document)
    # A list alone has no place for system text; if there is some, the body around it must come along.
    return body[own.api.messages] if document.bare and body.keys() <= {own.api.messages} else body


def write(document: Document) -> bytes:
    """Return the file: one JSON document, or one record a line if it was read that way."""
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
    # Half of a surrogate pair cannot be written as UTF-8; the escape that this gives is JSON's own.
    return text.encode("utf-8", "backslashreplace") + b"\n"
