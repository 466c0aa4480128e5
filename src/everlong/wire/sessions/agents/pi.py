"""pi session files, versions 1 to 3.

    {"type": "session", "version": 3, "id": …, "timestamp": …, "cwd": …}
    {"type": "message", "id": …, "parentId": …, "timestamp": …, "message": {…}}
    {"type": "compaction", …, "summary": …, "firstKeptEntryId": …}

Version 1 is a chain of entries without ids (a compaction refers to an index). From version 2 on, the file is a tree,
and the conversation is the path from its last entry back to the root. pi stores no system text.
"""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import assert_never, cast

from everlong.core import (
    CallId,
    Image,
    Json,
    JsonObject,
    Message,
    Opaque,
    Part,
    Reasoning,
    ResultPart,
    Role,
    Text,
    ToolCall,
    ToolResult,
    encode_all,
    pairs_of,
)
from everlong.errors import WireError
from everlong.wire.document import Aside, Document, Record
from everlong.wire.fields import dump, load, opaque, opaque_body, pack, unpack
from everlong.wire.formats.anthropic import messages as anthropic
from everlong.wire.formats.translation import arguments_object, image_note, inline_image
from everlong.wire.sessions.conversation import Piece, headed_summary, settle, summary_text, without_head
from everlong.wire.sessions.records import (
    Link,
    as_object,
    aside,
    fields_of,
    fresh_id,
    fresh_uuid,
    milliseconds,
    parents_of,
    path_to,
    stamp,
    take_text,
    time_of,
)
from everlong.wire.sessions.session import (
    RecordedRequest,
    SessionFormat,
    SessionMarks,
    amount_in,
    read_records,
    record_text,
    record_time,
    text_in,
)
from everlong.wire.usage import read_usage

__all__ = [
    "MARKS",
    "NAME",
    "SESSION",
    "content_of",
    "document",
    "parse_record",
    "parts_of",
    "read_entry_message",
    "recognises",
    "render_document",
    "render_record",
    "write_entry_messages",
]

NAME = "pi"

#: Roles whose content is blocks, and our role for each.
SPOKEN = {
    "user": Role.USER,
    "custom": Role.USER,
    "hookMessage": Role.USER,  # the name of "custom" in version 2
    "assistant": Role.ASSISTANT,
    "toolResult": Role.TOOL,
}
MESSAGE_SUMMARIES = ("branchSummary", "compactionSummary")
NOTHING_USED: JsonObject = {
    "input": 0,
    "output": 0,
    "cacheRead": 0,
    "cacheWrite": 0,
    "totalTokens": 0,
    "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0},
}


def read_entry_message(body: JsonObject, entry: JsonObject) -> Message | None:
    """Read the message in `body`; None for a role that is not sent to the model."""
    role = body.get("role")
    if role in MESSAGE_SUMMARIES and isinstance(body.get("summary"), str):
        summary_part: Part = headed_summary(cast(str, body["summary"]))
        return Message(Role.USER, (summary_part,), origin=NAME, extra=pack(entry, told=body))
    if role == "bashExecution" and not body.get("excludeFromContext"):
        return Message(Role.USER, (Text(_command_text(body)),), origin=NAME, extra=pack(entry, told=body))
    if not isinstance(role, str) or role not in SPOKEN:
        return None
    speaker, fields = SPOKEN[role], dict(body)
    content, form = parts_of(fields)
    parts: tuple[Part, ...] = content
    if speaker is Role.TOOL:
        call, name = take_text(fields, "toolCallId"), take_text(fields, "toolName")
        failed = fields.get("isError") is True
        result = tuple(_result_block(part) for part in content)
        parts = (ToolResult(CallId(call), result, name=name, failed=failed),)
    return Message(speaker, parts, origin=NAME, extra=pack(entry, message=fields, content=form))


def write_entry_messages(message: Message, *, model: str = "") -> list[JsonObject]:
    """Write a message as pi stores it: one body, or several if it has several results."""
    hints = unpack(message.extra)[1] if message.origin == NAME else {}
    kept_body = hints.get("told")
    if isinstance(kept_body, dict):
        return [_current_body(message, kept_body)]
    fields = hints.get("message")
    if message.role is Role.TOOL:
        kept = fields if isinstance(fields, dict) and len(message.parts) == 1 else None
        bodies = [_result_out(result, kept, hints, message) for result in message.results]
        beside = tuple(part for part in message.parts if not isinstance(part, ToolResult))
        return [*bodies, *([_user_out(beside, message)] if beside else [])]
    own = isinstance(fields, dict)
    fresh = _fresh_fields(message, model)
    body = dict(cast(JsonObject, fields)) if own else fresh
    return [body | content_of(message.parts, hints, own=own)]


# --- content -----------------------------------------------------------------------------------


def parts_of(fields: JsonObject) -> tuple[tuple[Part, ...], str | None]:
    """Remove and return the parts of `content`, with its form if it is not a list of blocks."""
    content = fields.get("content")
    if isinstance(content, str):
        del fields["content"]
        return (Text(content),), "text"
    if isinstance(content, list):
        del fields["content"]
        return tuple(_block_in(block) for block in content), None
    return (), "carried"


def content_of(parts: tuple[Part, ...], hints: JsonObject, *, own: bool) -> JsonObject:
    """Write `content` in its original form."""
    form = hints.get("content")
    if form == "carried" and not parts:
        return {}
    if form == "text" and len(parts) == 1 and isinstance(parts[0], Text):
        return {"content": parts[0].text}
    return {"content": [_block_out(part, own=own) for part in parts]}


def _block_in(block: Json) -> Part:
    if not isinstance(block, dict):
        return opaque(block)
    fields = dict(block)
    part: Part | None = None
    match fields.pop("type", None), fields:
        case "text", {"text": str(text)}:
            del fields["text"]
            part = Text(text, pack(fields))
        case "thinking", {"thinking": str(text)}:
            del fields["thinking"]
            part = Reasoning(text, take_text(fields, "thinkingSignature"), pack(fields))
        case "image", {"data": str(data), "mimeType": str(media_type)}:
            del fields["data"], fields["mimeType"]
            part = Image(data=data, media_type=media_type, extra=pack(fields))
        case "toolCall", {"id": str(call), "name": str(name)}:
            del fields["id"], fields["name"]
            form = None if "arguments" in fields else "absent"
            arguments = dump(fields.pop("arguments", {}))
            part = ToolCall(CallId(call), name, arguments, pack(fields, arguments=form))
    return part or opaque(block)


def _result_block(part: Part) -> ResultPart:
    """Return a part that a result can contain; calls and thinking inside one become opaque."""
    return part if isinstance(part, Text | Image | Opaque) else opaque(_block_out(part, own=True))


def _block_out(part: Part, *, own: bool) -> Json:
    match part:
        case Opaque():
            return opaque_body(part)
        case ToolResult():
            return {"type": "text", "text": part.text}
        case Text() | Image() | ToolCall() | Reasoning():
            fields, hints = unpack(part.extra if own else "")
            return _modelled(part, hints) | fields
        case _:
            assert_never(part)


def _modelled(part: Text | Image | ToolCall | Reasoning, hints: JsonObject) -> JsonObject:
    match part:
        case Text(text):
            return {"type": "text", "text": text}
        case Image():
            inline = inline_image(part)
            if inline is None:
                return {"type": "text", "text": image_note(part)}
            return {"type": "image", "mimeType": inline[0], "data": inline[1]}
        case ToolCall(call, name, arguments):
            given = {} if hints.get("arguments") == "absent" else {"arguments": _arguments(arguments)}
            return {"type": "toolCall", "id": call, "name": name, **given}
        case Reasoning(text, signature):
            return {"type": "thinking", "thinking": text, **({"thinkingSignature": signature} if signature else {})}
        case _:
            assert_never(part)


def _arguments(arguments: str) -> Json:
    """Return arguments as a value, which pi stores instead of text."""
    try:
        return load(arguments)
    except ValueError:
        return arguments_object(arguments)


# --- bodies ------------------------------------------------------------------------------------


def _fresh_fields(message: Message, model: str) -> JsonObject:
    time = milliseconds(message.time)
    if message.role is not Role.ASSISTANT:
        return {"role": "user", "timestamp": time}
    stop = "toolUse" if message.calls else "stop"
    known: JsonObject = {"api": "", "provider": "", "model": model, "usage": dict(NOTHING_USED), "stopReason": stop}
    return {"role": "assistant", "timestamp": time, **known}


def _user_out(parts: tuple[Part, ...], message: Message) -> JsonObject:
    fields: JsonObject = {"role": "user", "timestamp": milliseconds(message.time)}
    return fields | content_of(parts, {}, own=message.origin == NAME)


def _result_out(result: ToolResult, kept: JsonObject | None, hints: JsonObject, message: Message) -> JsonObject:
    fields = kept or {"role": "toolResult", "isError": result.failed, "timestamp": milliseconds(message.time)}
    named: JsonObject = {"toolName": result.name} if result.name else {}
    called: JsonObject = {"toolCallId": result.call} if result.call else {}
    form = hints if kept else {}
    return fields | called | named | content_of(result.content, form, own=message.origin == NAME)


def _current_body(message: Message, body: JsonObject) -> JsonObject:
    """Return the original body while its message is unchanged; otherwise a body for the changed message."""
    if body.get("role") in MESSAGE_SUMMARIES:
        return body | {"summary": summary_text(message)}
    if message.parts == (Text(_command_text(body)),):
        return body
    return _user_out(message.parts, message)


def _command_text(body: JsonObject) -> str:
    """Return a command that the user ran, as text. Example: $ make / error / [exit code 2]"""
    lines = [f"$ {body.get('command', '')}"]
    if body.get("output"):
        lines.append(str(body["output"]))
    if body.get("cancelled") is True:
        lines.append("[cancelled]")
    elif body.get("exitCode"):
        lines.append(f"[exit code {body['exitCode']}]")
    return "\n".join(lines)


VERSION = 3
SUMMARIES = ("branch_summary", "compaction")
GIVEN_UP = ("aborted", "error")
TREE_FIELDS = ("id", "parentId", "firstKeptEntryId")


def recognises(first: Sequence[JsonObject]) -> bool:
    """Return whether these first records are pi's."""
    return any(
        (record.get("type") == "session" and "id" in record and "payload" not in record)
        or (record.get("type") == "message" and isinstance(record.get("message"), dict) and "timestamp" in record)
        for record in first
    )


def parse_record(raw: Json, where: str = "") -> Record:
    """Read one line."""
    entry = as_object(raw, fmt=NAME, where=where)
    kind, message = entry.get("type"), None
    if kind == "message":
        body = entry.pop("message", None)
        if not isinstance(body, dict) or not isinstance(body.get("role"), str):
            raise WireError("a message entry without a message", fmt=NAME, where=where)
        message = read_entry_message(body, entry)
    elif kind == "custom_message":
        parts, form = parts_of(entry)
        message = Message(Role.USER, parts, origin=NAME, extra=pack(entry, content=form))
    elif kind in SUMMARIES and isinstance(entry.get("summary"), str):
        summary = headed_summary(cast(str, entry["summary"]))
        message = Message(Role.USER, (summary,), origin=NAME, extra=pack(entry))
    if message is None:
        return aside(raw)
    return replace(message, time=time_of(entry.get("timestamp")))


def render_record(record: Record) -> JsonObject:
    """Write a record as a line."""
    return cast(JsonObject, load(record.body)) if isinstance(record, Aside) else _entries(record)[0]


def document(records: Sequence[Record], warnings: Sequence[str] = ()) -> Document:
    """Build the conversation from the records."""
    entries = [fields_of(record) for record in records]
    parents, notes = parents_of([_link(entry) for entry in entries], fmt=NAME)
    last = max((at for at, entry in enumerate(entries) if _link(entry)), default=None)
    path = () if last is None else path_to(last, parents)
    messages, boundaries = settle(_pieces(records, entries, path))
    return Document(
        fmt=NAME,
        messages=messages,
        model=_model(records, entries, path),
        records=tuple(records),
        boundaries=boundaries,
        warnings=(*warnings, *notes),
    )


def render_document(session: Document) -> list[JsonObject]:
    """Write the records; if the conversation was changed, the header and the conversation as a chain of entries."""
    if document(session.records).messages == session.messages:
        return [render_record(record) for record in session.records]
    return _rewritten(session)


# --- reading the tree --------------------------------------------------------------------------


def _link(entry: JsonObject) -> Link | None:
    if not entry or entry.get("type") == "session":
        return None
    name, parent = entry.get("id"), entry.get("parentId", "")
    return Link(name if isinstance(name, str) else "", parent if isinstance(parent, str) else None)


def _pieces(records: Sequence[Record], entries: Sequence[JsonObject], path: Sequence[int]) -> list[Piece]:
    """Return the messages on the path, each compaction moved before the first entry that it kept."""
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
    """Return the messages without calls that never ran because the turn was aborted; pi does not send those either."""
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
    """Return the model that was used last."""
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
    """Write a message as entries, with their original ids and parents; a new message has none."""
    own = message.origin == NAME
    entry, hints = unpack(message.extra) if own else ({"type": "message", "timestamp": stamp(message.time)}, {})
    if entry.get("type") in SUMMARIES:
        return [entry | {"summary": summary_text(message)}]
    if entry.get("type") == "custom_message":
        return [entry | content_of(message.parts, hints, own=own)]
    return [entry | {"message": body} for body in write_entry_messages(message, model=model)]


def _rewritten(session: Document) -> list[JsonObject]:
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
    """Return the messages with the tool's name in every result, which pi requires and other formats omit."""
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
    """Write version 1, without ids. A compaction is where it took effect, so it kept the next entry first."""
    out: list[JsonObject] = []
    for at, entry in enumerate(entries, start=1):
        plain = {key: value for key, value in entry.items() if key not in TREE_FIELDS}
        out.append(plain | ({"firstKeptEntryIndex": at} if entry.get("type") == "compaction" else {}))
    return out


def _in_tree(entries: Sequence[JsonObject]) -> list[JsonObject]:
    """Write version 2 or later: each entry is the child of the one before; compactions as in version 1."""
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
    return text_in(fields_of(message).get("id")) if message.origin == NAME else ""


def _is_summary(message: Message, _document: Document) -> bool:
    return message.origin == NAME and fields_of(message).get("type") == "compaction"


def _covered_tokens(summary: Message) -> int:
    tokens = fields_of(summary).get("tokensBefore") if summary.origin == NAME else None
    return tokens if type(tokens) is int and tokens > 0 else 0


MARKS = SessionMarks(
    session_id=record_text(("session", "id")),
    title=record_text(("session_info", "name")),
    began=record_time(("session", "timestamp")),
    message_id=_entry_id,
    is_summary=_is_summary,
    covered_tokens=_covered_tokens,
)


def _requests(records: Iterable[JsonObject]) -> Iterator[tuple[Hashable, RecordedRequest]]:
    """Yield the requests. Every answer has its usage and cost; a summary with usage belongs to the last model."""
    model = provider = ""
    for at, record in enumerate(records):
        message = record.get("message")
        body = message if isinstance(message, dict) else record
        model = text_in(body.get("model")) or model
        provider = text_in(body.get("provider")) or provider
        figures = body.get("usage")
        usage = read_usage(figures, "pi")
        if isinstance(figures, dict) and usage is not None:
            cost = figures.get("cost")
            own = amount_in(cost.get("total")) if isinstance(cost, dict) else 0.0
            yield at, RecordedRequest(model=model, provider=provider, usage=usage, cost=own)


SESSION = SessionFormat(
    name=NAME,
    program="pi",
    sent_as=anthropic.NAME,
    recognises=recognises,
    read_record=parse_record,
    read=read_records(parse_record, document),
    write=render_document,
    marks=MARKS,
    folders=(".pi/agent/sessions",),
    moved_by=("PI_CODING_AGENT_DIR", ".pi/agent"),
    requests=_requests,
)
