"""Everlong's own export of a thread: everything that the store has, so that an import loses nothing.

    {"everlong": "thread", "version": 1, "id", "title", "created", "updated", "archived",
     "branch_of": {"thread", "rows"}, "settings": {…}, "metadata": {…}, "pins": [{"order", "text"}],
     "rows": [{"id", "time", "kind": "message", "entry": {…}}, …]}

The entry of a row is what stores keep (`core.encoding`). The conversation here is only the messages; compactions are in
the records, from which an import rebuilds the whole thread. A file is checked against `Export` first: an error names a
field of the wrong type, and nothing is guessed.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, cast

import msgspec

from everlong.core import Json, JsonObject, Message, decode, encode, encode_all
from everlong.errors import WireError
from everlong.wire.document import Document, Record
from everlong.wire.fields import dump, load, pack, unpack
from everlong.wire.formats.openai_chat import messages as openai_chat
from everlong.wire.sessions.records import aside, fields_of, fresh_uuid, stamp, time_of
from everlong.wire.sessions.session import NamedValue, SessionFormat, SessionMarks, text_in

__all__ = ["NAME", "SESSION", "THREAD", "VERSION"]

NAME = "everlong"
VERSION = 1
THREAD = "thread"


class _Part(msgspec.Struct, tag_field="type"):
    extra: str = ""


class _Text(_Part, tag="text"):
    text: str = msgspec.field(default="")


class _Image(_Part, tag="image"):
    data: str = ""
    media_type: str = ""
    url: str = ""
    detail: str = ""


class _Call(_Part, tag="call"):
    id: str = ""
    name: str = ""
    arguments: str = ""


class _Reasoning(_Part, tag="reasoning"):
    text: str = ""
    signature: str = ""


class _Opaque(_Part, tag="opaque"):
    kind: str = ""
    body: str = ""


class _Result(_Part, tag="result"):
    call: str = ""
    content: list[_Text | _Image | _Opaque] = []
    name: str = ""
    failed: bool = False


class _Message(msgspec.Struct):
    role: Literal["system", "user", "assistant", "tool"]
    parts: list[_Text | _Image | _Call | _Result | _Reasoning | _Opaque]
    name: str = ""
    time: str | None = None
    origin: str = ""
    extra: str = ""
    ending: Literal["", "stopped", "broken off", "length", "empty"] = ""
    model: str = ""


class _Edit(msgspec.Struct):
    at: int
    step: str
    action: str
    reason: str
    before: int
    after: int
    part: int | None = None
    ref: str | None = None


class _Figures(msgspec.Struct):
    messages: int
    before: int
    after: int
    kept: int = 0
    shortened: int = 0


class _Point(msgspec.Struct):
    boundary: int
    summary: list[_Message]
    tokens_before: int = 0
    tokens_after: int = 0
    reason: str = ""
    focus: str = ""
    account: str = ""
    model: str = ""
    limit: int = 0
    edits: list[_Edit] = []
    figures: _Figures | None = None


class _Withdrawal(msgspec.Struct):
    point: int


class _Recalled(msgspec.Struct):
    before: int
    message: _Message


class _Gone(msgspec.Struct):
    """A placeholder for a deleted message, so that the others keep their positions."""


class _Row(msgspec.Struct):
    id: str
    time: str
    kind: str
    entry: dict[str, Any]


class _Pin(msgspec.Struct):
    order: int | None = None
    text: str = ""


class _Parent(msgspec.Struct):
    thread: str
    rows: int


class Export(msgspec.Struct):
    """The export file. Rows are checked one by one, by their kind."""

    everlong: Literal["thread"]
    version: int
    id: str
    rows: list[dict[str, Any]]
    title: str = ""
    created: str = ""
    updated: str = ""
    archived: bool = False
    branch_of: _Parent | None = None
    settings: dict[str, Any] = {}
    metadata: dict[str, Any] = {}
    pins: list[_Pin] = []


#: The shape of a row's entry, by its kind.
ENTRIES: Mapping[str, type] = {
    "message": _Message,
    "point": _Point,
    "withdrawal": _Withdrawal,
    "recalled": _Recalled,
    "gone": _Gone,
}


def _check(value: Any, shape: Any, where: str = "") -> Any:
    """Raise WireError, which names the field, unless the value has this shape."""
    try:
        return msgspec.convert(value, shape)
    except (msgspec.ValidationError, RecursionError) as error:
        reason = str(error).replace("`", "") if isinstance(error, msgspec.ValidationError) else "nested too deeply"
        raise WireError(reason, fmt=NAME, where=where) from None


def _carried(entry: Json, where: str) -> None:
    """Raise WireError unless every `extra` is the text of a JSON object."""
    waiting: list[Json] = [entry]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            extra = value.get("extra", "")
            if isinstance(extra, str) and extra:
                try:
                    fine = isinstance(load(extra), dict)
                except (ValueError, RecursionError):
                    fine = False
                if not fine:
                    raise WireError("extra must be the text of a JSON object", fmt=NAME, where=where)
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value


def read_row(raw: Json, where: str) -> Record:
    """Check one row, and return it unchanged."""
    row = cast(_Row, _check(raw, _Row, where))
    if row.kind not in ENTRIES:
        raise WireError(f"unknown kind of row {row.kind[:40]!r}", fmt=NAME, where=where)
    if time_of(row.time) is None:
        raise WireError("time must be a moment such as 2026-01-02T03:04:05+00:00", fmt=NAME, where=where)
    _check(row.entry, ENTRIES[row.kind], where)
    _carried(row.entry, where)
    return aside(raw)


def _read(named: Iterable[NamedValue], warnings: Sequence[str]) -> tuple[Document, ...]:
    ((_, raw),) = named
    export = cast(Export, _check(raw, Export))
    if export.version > VERSION:
        raise WireError(f"written by a newer version of Everlong (form {export.version}): update first", fmt=NAME)
    records = tuple(read_row(row, f"rows[{at}]") for at, row in enumerate(export.rows))
    header = {key: value for key, value in cast(JsonObject, raw).items() if key != "rows"}
    return (
        Document(fmt=NAME, messages=_messages(records), extra=pack(header), records=records, warnings=tuple(warnings)),
    )


def _messages(records: Sequence[Record]) -> tuple[Message, ...]:
    rows = (fields_of(record) for record in records)
    return tuple(decode(dump(row["entry"])) for row in rows if row.get("kind") == "message")


def _written(document: Document) -> JsonObject:
    """Write the export; a changed conversation, or one from elsewhere, as new rows."""
    header = unpack(document.extra)[0] if document.fmt == NAME else {}
    if header and _messages(document.records) == document.messages:
        return header | {"rows": [fields_of(record) for record in document.records]}
    taken: set[str] = set()
    rows: list[Json] = [
        {
            "id": fresh_uuid(f"{at}:{encode(message)}", taken),
            "time": stamp(message.time),
            "kind": "message",
            "entry": cast(Json, json.loads(encode(message))),
        }
        for at, message in enumerate(document.messages)
    ]
    new: JsonObject = {"everlong": THREAD, "version": VERSION, "id": fresh_uuid(encode_all(document.messages), set())}
    return (header or new) | {"pins": [], "rows": rows}


def _field(name: str) -> Any:
    return lambda document: text_in(unpack(document.extra)[0].get(name))


SESSION = SessionFormat(
    name=NAME,
    program="Everlong",
    sent_as=openai_chat.NAME,
    recognises=lambda first: len(first) == 1 and first[0].get("everlong") == THREAD,
    read_record=read_row,
    read=_read,
    write=_written,
    in_lines=False,
    suffixes=(".json",),
    marks=SessionMarks(
        session_id=_field("id"),
        title=_field("title"),
        began=lambda document: time_of(unpack(document.extra)[0].get("created")),
        changed=lambda document: time_of(unpack(document.extra)[0].get("updated")),
        put_away=lambda document: unpack(document.extra)[0].get("archived") is True,
    ),
)
