"""pi session files, versions 1 to 3.

    {"type": "session", "version": 3, "id": …, "timestamp": …, "cwd": …}
    {"type": "message", "id": …, "parentId": …, "timestamp": …, "message": {…}}
    {"type": "compaction", …, "summary": …, "firstKeptEntryId": …}

Version 1 is a line of entries without ids (a compaction counts entries); from version 2 on the file is a tree, and
the conversation is the way from its last entry back to the root. pi keeps no system text.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile
from typing import cast

from everlong.core import Json, JsonObject, Message, Role, ToolCall, ToolResult, encode_all, pairs_of
from everlong.errors import WireError
from everlong.wire.document import Aside, Document, Record
from everlong.wire.fields import dump, load, pack, unpack
from everlong.wire.sessions.conversation import Piece, settle, summary_text, tell_summary, without_head
from everlong.wire.sessions.lineage import Link, parents_of, path_to
from everlong.wire.sessions.marks import SessionMarks, record_text, text_in
from everlong.wire.sessions.names import fresh_id, fresh_uuid
from everlong.wire.sessions.pi_messages import FORMAT, content_of, parse, parts_of, render
from everlong.wire.sessions.records import as_object, aside, fields_of, stamp, time_of

__all__ = ["FORMAT", "MARKS", "document", "parse_record", "recognises", "render_document", "render_record"]

VERSION = 3
SUMMARIES = ("branch_summary", "compaction")
GIVEN_UP = ("aborted", "error")
TREE_FIELDS = ("id", "parentId", "firstKeptEntryId")


def recognises(first: Sequence[JsonObject]) -> bool:
    """Whether these first records are pi's."""
    return any(
        (record.get("type") == "session" and "id" in record and "payload" not in record)
        or (record.get("type") == "message" and isinstance(record.get("message"), dict) and "timestamp" in record)
        for record in first
    )


def parse_record(raw: Json, where: str = "") -> Record:
    """One line."""
    entry = as_object(raw, fmt=FORMAT, where=where)
    kind, message = entry.get("type"), None
    if kind == "message":
        body = entry.pop("message", None)
        if not isinstance(body, dict) or not isinstance(body.get("role"), str):
            raise WireError("a message entry without a message", fmt=FORMAT, where=where)
        message = parse(body, entry)
    elif kind == "custom_message":
        parts, form = parts_of(entry)
        message = Message(Role.USER, parts, origin=FORMAT, extra=pack(entry, content=form))
    elif kind in SUMMARIES and isinstance(entry.get("summary"), str):
        summary = tell_summary(cast(str, entry["summary"]))
        message = Message(Role.USER, (summary,), origin=FORMAT, extra=pack(entry))
    if message is None:
        return aside(raw)
    return replace(message, time=time_of(entry.get("timestamp")))


def render_record(record: Record) -> JsonObject:
    """The line again."""
    return cast(JsonObject, load(record.body)) if isinstance(record, Aside) else _entries(record)[0]


def document(records: Sequence[Record], warnings: Sequence[str] = ()) -> Document:
    """What the records amount to."""
    entries = [fields_of(record) for record in records]
    parents, notes = parents_of([_link(entry) for entry in entries], fmt=FORMAT)
    last = max((at for at, entry in enumerate(entries) if _link(entry)), default=None)
    path = () if last is None else path_to(last, parents)
    messages, boundaries = settle(_pieces(records, entries, path))
    return Document(
        fmt=FORMAT,
        messages=messages,
        model=_model(records, entries, path),
        records=tuple(records),
        boundaries=boundaries,
        warnings=(*warnings, *notes),
    )


def render_document(session: Document) -> list[JsonObject]:
    """The records again; if the conversation was changed, the header and the conversation as one line of entries."""
    if document(session.records).messages == session.messages:
        return [render_record(record) for record in session.records]
    return _written_anew(session)


# --- reading the tree --------------------------------------------------------------------------


def _link(entry: JsonObject) -> Link | None:
    if not entry or entry.get("type") == "session":
        return None
    name, parent = entry.get("id"), entry.get("parentId", "")
    return Link(name if isinstance(name, str) else "", parent if isinstance(parent, str) else None)


def _pieces(records: Sequence[Record], entries: Sequence[JsonObject], path: Sequence[int]) -> list[Piece]:
    """The messages on the path, each compaction moved to the first entry that it kept."""
    place_of = {at: place for place, at in enumerate(path)}
    by_id = {name: at for at in path if isinstance(name := entries[at].get("id"), str)}
    points: dict[int, list[Piece]] = {}
    newest = 0
    for place, at in enumerate(path):
        record, entry = records[at], entries[at]
        if entry.get("type") == "compaction" and isinstance(record, Message):
            first_kept = by_id.get(str(entry.get("firstKeptEntryId")), entry.get("firstKeptEntryIndex"))
            kept_from = place_of.get(first_kept, place) if isinstance(first_kept, int) else place
            newest = max(newest, min(kept_from, place))
            points.setdefault(newest, []).extend((None, record))
    spoken = _finished({at: record for at in path if isinstance(record := records[at], Message)})
    pieces: list[Piece] = []
    for place, at in enumerate(path):
        pieces += points.get(place, ())
        if at in spoken and entries[at].get("type") != "compaction":
            pieces.append(spoken[at])
    return pieces


def _finished(messages: dict[int, Message]) -> dict[int, Message]:
    """The messages without the calls that never ran because the turn was given up; pi does not send those either."""
    places = list(messages)
    ran = {(places[pair.call[0]], pair.call[1]) for pair in pairs_of(list(messages.values()))}
    finished: dict[int, Message] = {}
    for at, message in messages.items():
        parts = message.parts
        if _body_field(message, "stopReason") in GIVEN_UP:
            kept = (part for index, part in enumerate(parts) if not isinstance(part, ToolCall) or (at, index) in ran)
            parts = tuple(kept)
        finished[at] = message.with_parts(parts)
    return finished


def _body_field(message: Message, key: str) -> Json:
    body = unpack(message.extra)[1].get("message")
    return body.get(key) if isinstance(body, dict) else None


def _model(records: Sequence[Record], entries: Sequence[JsonObject], path: Sequence[int]) -> str:
    """The model that was in use last."""
    for at in reversed(path):
        record, entry = records[at], entries[at]
        spoken = _body_field(record, "model") if isinstance(record, Message) else None
        model = entry.get("modelId") if entry.get("type") == "model_change" else spoken
        if isinstance(model, str) and model:
            return model
    model = next((entry["modelId"] for entry in entries if entry.get("type") == "session" and "modelId" in entry), "")
    return model if isinstance(model, str) else ""


# --- writing -----------------------------------------------------------------------------------


def _entries(message: Message, model: str = "") -> list[JsonObject]:
    """The message as entries; ids and parents as they were, none where it is new."""
    own = message.origin == FORMAT
    entry, hints = unpack(message.extra) if own else ({"type": "message", "timestamp": stamp(message.time)}, {})
    if entry.get("type") in SUMMARIES:
        return [entry | {"summary": summary_text(message)}]
    if entry.get("type") == "custom_message":
        return [entry | content_of(message.parts, hints, own=own)]
    return [entry | {"message": body} for body in render(message, model=model)]


def _written_anew(session: Document) -> list[JsonObject]:
    messages = _with_tool_names(without_head(session.messages))
    front = [render_record(record) for record in takewhile(lambda record: isinstance(record, Aside), session.records)]
    header = next((entry for entry in front if _is_header(entry)), None) or _new_header(messages)
    entries = [entry for entry in front if isinstance(entry, dict) and "type" in entry and not _is_header(entry)]
    for message in messages:
        entries += _entries(message, session.model)
    version = header.get("version")
    arrange = _in_tree if isinstance(version, int) and version > 1 else _in_line
    return [header, *arrange(entries)]


def _with_tool_names(messages: Sequence[Message]) -> list[Message]:
    """pi wants the name of the tool with every result; other formats leave it to the call."""
    named = list(messages)
    for pair in pairs_of(messages):
        call = cast(ToolCall, messages[pair.call[0]].parts[pair.call[1]])
        at, index = pair.result
        parts = list(named[at].parts)
        result = cast(ToolResult, parts[index])
        parts[index] = replace(result, name=result.name or call.name)
        named[at] = named[at].with_parts(tuple(parts))
    return named


def _is_header(entry: Json) -> bool:
    return isinstance(entry, dict) and entry.get("type") == "session"


def _new_header(messages: Sequence[Message]) -> JsonObject:
    time = next((message.time for message in messages if message.time), None)
    name = fresh_uuid(encode_all(messages), set())
    return {"type": "session", "version": VERSION, "id": name, "timestamp": stamp(time), "cwd": ""}


def _in_line(entries: Sequence[JsonObject]) -> list[JsonObject]:
    """Version 1: no ids. A compaction stands where it took effect, so the first entry it kept is the next one."""
    out: list[JsonObject] = []
    for at, entry in enumerate(entries, start=1):
        plain = {key: value for key, value in entry.items() if key not in TREE_FIELDS}
        out.append(plain | ({"firstKeptEntryIndex": at} if entry.get("type") == "compaction" else {}))
    return out


def _in_tree(entries: Sequence[JsonObject]) -> list[JsonObject]:
    """From version 2 on: each entry the child of the one before; the same rule for compactions."""
    out: list[JsonObject] = []
    taken: set[str] = set()
    parent: str | None = None
    for at, entry in enumerate(entries):
        name = entry.get("id")
        if not isinstance(name, str) or name in taken:
            name = fresh_id(f"{at}:{dump(entry)}", taken)
        taken.add(name)
        joined: JsonObject = {"id": name, "parentId": parent}
        out.append(entry | joined | ({"firstKeptEntryId": name} if entry.get("type") == "compaction" else {}))
        parent = name
    return out


def _entry_id(message: Message) -> str:
    return text_in(fields_of(message).get("id")) if message.origin == FORMAT else ""


def _is_summary(message: Message, _document: Document) -> bool:
    return message.origin == FORMAT and fields_of(message).get("type") == "compaction"


def _covered_tokens(summary: Message) -> int:
    tokens = fields_of(summary).get("tokensBefore") if summary.origin == FORMAT else None
    return tokens if type(tokens) is int and tokens > 0 else 0


MARKS = SessionMarks(
    session_id=record_text(("session", "id")),
    title=record_text(("session_info", "name")),
    message_id=_entry_id,
    is_summary=_is_summary,
    covered_tokens=_covered_tokens,
)
