"""Codex session files (rollouts).

    {"timestamp": …, "type": "session_meta"|"turn_context"|"event_msg", "payload": {…}}
    {"timestamp": …, "type": "response_item", "payload": {an item of OpenAI Responses}}
    {"timestamp": …, "type": "compacted", "payload": {"message": …, "replacement_history": [items]}}

Older files have plain items, after a first line of {"id", "timestamp", "instructions"}. A row of the assistant's items
is one message of the conversation. A compaction puts its replacement history, or otherwise its summary, before what
follows; turns that were rolled back are not part of the conversation. The base instructions are its system text.
"""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import cast

from everlong.core import History, Json, JsonObject, JsonText, Message, Role, Text, encode_all
from everlong.errors import WireError
from everlong.wire.document import Aside, Document, Record
from everlong.wire.fields import load, pack, unpack
from everlong.wire.formats.openai_responses import messages as responses
from everlong.wire.sessions.conversation import Piece, headed_summary, settle, summary_text, without_head
from everlong.wire.sessions.records import as_object, aside, fields_of, fresh_uuid, stamp, time_of
from everlong.wire.sessions.session import (
    RecordedRequest,
    SessionFormat,
    SessionMarks,
    read_records,
    record_text,
    record_time,
    text_in,
)
from everlong.wire.usage import Usage, read_usage

__all__ = ["MARKS", "NAME", "SESSION", "document", "parse_record", "recognises", "render_document", "render_record"]

NAME = "codex"
LINES = ("compacted", "event_msg", "response_item", "session_meta", "turn_context")
NEVER_SENT = ("ghost_snapshot",)  # items that Codex does not send
#: Beginnings of messages that Codex writes in the user's name; they are not turns of the user.
CONTEXT = ("# AGENTS.md", "<environment_context>", "<turn_aborted>", "<user_instructions>", "<user_shell_command>")
INSTRUCTIONS = pack({}, place="base_instructions")


def recognises(first: Sequence[JsonObject]) -> bool:
    """Return whether these first records are Codex's."""
    return any(
        (record.get("type") in LINES and isinstance(record.get("payload"), dict))
        or record.get("record_type") == "state"
        or ("type" not in record and {"id", "timestamp", "instructions"} <= record.keys())
        for record in first
    )


def parse_record(raw: Json, where: str = "") -> Record:
    """Read one line."""
    entry = as_object(raw, fmt=NAME, where=where)
    bare = "payload" not in entry
    if not isinstance(entry.get("type"), str) or (not bare and entry["type"] != "response_item"):
        return aside(raw)
    item = entry if bare else entry.pop("payload")
    if isinstance(item, dict) and item.get("type") in NEVER_SENT:
        return aside(raw)
    try:
        (message,) = responses.read_items([item])
    except WireError as error:
        raise WireError(error.problem, fmt=NAME, where=where) from error
    return _wrapped(message, {} if bare else entry, bare=bare or None)


def render_record(record: Record) -> JsonObject:
    """Write a record as a line."""
    return cast(JsonObject, load(record.body)) if isinstance(record, Aside) else _lines(record)[0]


def document(records: Sequence[Record], warnings: Sequence[str] = ()) -> Document:
    """Build the conversation from the records."""
    messages, boundaries = settle(_joined(_pieces(records)))
    system = _instructions(records)
    return Document(
        fmt=NAME,
        messages=(*system, *messages),
        model=_model(records),
        records=tuple(records),
        boundaries=tuple(at + len(system) for at in boundaries),
        warnings=tuple(warnings),
    )


def render_document(session: Document) -> list[JsonObject]:
    """Write the records; if the conversation was changed, the leading asides and the conversation as items."""
    if document(session.records).messages == session.messages:
        return [render_record(record) for record in session.records]
    front = [render_record(record) for record in takewhile(lambda record: isinstance(record, Aside), session.records)]
    return [*(front or [_new_header(session)]), *_rewritten(session)]


# --- reading -----------------------------------------------------------------------------------


def _wrapped(message: Message, entry: JsonObject, **hints: Json) -> Message:
    """Return the message of an item, with the fields of its line in `extra`."""
    extra = pack(entry, item=message.extra or None, **hints)
    return replace(message, time=time_of(entry.get("timestamp")), origin=NAME, extra=extra)


def _unwrapped(message: Message) -> Message:
    inner = unpack(message.extra)[1].get("item", "")
    return replace(message, origin=responses.NAME, extra=cast(JsonText, inner))


def _payload(record: Record) -> JsonObject:
    payload = fields_of(record).get("payload") if isinstance(record, Aside) else None
    return payload if isinstance(payload, dict) else {}


def _pieces(records: Sequence[Record]) -> list[Piece]:
    """Return the messages in order, None and the replacement at each compaction, without rolled-back turns."""
    pieces: list[Piece] = []
    for at, record in enumerate(records):
        if isinstance(record, Message):
            pieces.append(record)
            continue
        entry, payload = fields_of(record), _payload(record)
        if entry.get("type") == "compacted":
            pieces += [None, *_replacement(payload, at)]
        elif payload.get("type") == "thread_rolled_back":
            turns = payload.get("num_turns")
            pieces = _rolled_back(pieces, turns if isinstance(turns, int) else 0)
    return pieces


def _replacement(payload: JsonObject, at: int) -> History:
    """Return the messages that replace everything before; each has the index of its record."""
    history, summary = payload.get("replacement_history"), payload.get("message")
    if isinstance(history, list):
        try:
            return tuple(_wrapped(message, {}, compacted=at) for message in responses.read_items(history))
        except WireError:
            return ()
    if not isinstance(summary, str) or not summary:
        return ()
    return (Message(Role.USER, (headed_summary(summary),), origin=NAME, extra=pack({}, compacted=at)),)


def _rolled_back(pieces: list[Piece], turns: int) -> list[Piece]:
    """Return the pieces without the last turns of the user."""
    begun = [at for at, piece in enumerate(pieces) if piece is not None and _begins_turn(piece)]
    return pieces[: begun[max(0, len(begun) - turns)]] if turns > 0 and begun else pieces


def _begins_turn(message: Message) -> bool:
    return message.role is Role.USER and not message.text.lstrip().startswith(CONTEXT)


def _joined(pieces: Sequence[Piece]) -> list[Piece]:
    """Join the assistant's items in a row into one message, with the fields of the first line."""
    joined: list[Piece] = []
    row: list[Message] = []
    for piece in [*pieces, None]:
        if piece is not None and piece.role is Role.ASSISTANT and not _compacted(piece):
            row.append(piece)
            continue
        joined += _one_of(row)
        joined.append(piece)
        row = []
    return joined[:-1]


def _one_of(row: Sequence[Message]) -> list[Message]:
    if len(row) < 2:
        return list(row)
    entry, hints = unpack(row[0].extra)
    items = [item for message in row for item in responses.write_message(_unwrapped(message))]
    return [_wrapped(message, entry, bare=hints.get("bare")) for message in responses.read_items(items)]


def _compacted(message: Message) -> bool:
    return "compacted" in unpack(message.extra)[1]


def _instructions(records: Sequence[Record]) -> History:
    """Return the system text at the beginning of the session."""
    for record in records:
        base = _payload(record).get("base_instructions")
        text = base.get("text") if isinstance(base, dict) else None
        if isinstance(text, str) and text:
            return (Message(Role.SYSTEM, (Text(text),), origin=NAME, extra=INSTRUCTIONS),)
    return ()


def _model(records: Sequence[Record]) -> str:
    named = (_payload(record).get("model") for record in reversed(records))
    return next((model for model in named if isinstance(model, str) and model), "")


# --- writing -----------------------------------------------------------------------------------


def _lines(message: Message) -> list[JsonObject]:
    """Write a message as lines, one per item."""
    own = message.origin == NAME
    entry, hints = unpack(message.extra) if own else ({}, {})
    items = responses.write_message(_unwrapped(message) if own else message)
    if hints.get("bare"):
        return items
    line = entry or {"timestamp": stamp(message.time), "type": "response_item"}
    return [line | {"payload": item} for item in items]


def _rewritten(session: Document) -> list[JsonObject]:
    lines: list[JsonObject] = []
    replaced: dict[int, list[Message]] = {}
    for message in _body(session.messages):
        at = unpack(message.extra)[1].get("compacted") if message.origin == NAME else None
        if isinstance(at, int) and at < len(session.records):
            if at not in replaced:
                lines.append(cast(JsonObject, load(cast(Aside, session.records[at]).body)))
            replaced.setdefault(at, []).append(message)
            lines[-1] = lines[-1] | {"payload": _compaction(_payload(session.records[at]), replaced[at])}
        else:
            lines += _lines(message)
    return lines


def _body(messages: History) -> History:
    """Return the messages without leading system text, unless it came from items of the file."""
    own = [message.origin == NAME and message.extra != INSTRUCTIONS for message in messages]
    head = len(messages) - len(without_head(messages))
    return tuple(message for at, message in enumerate(messages) if own[at] or at >= head)


def _compaction(payload: JsonObject, replacement: Sequence[Message]) -> JsonObject:
    """Return the compaction with its changed replacement."""
    if "replacement_history" not in payload:
        return payload | {"message": "\n\n".join(summary_text(message) for message in replacement)}
    items = [item for message in replacement for item in responses.write_message(_unwrapped(message))]
    kept = payload | {"replacement_history": cast(Json, items)}
    metadata = kept.get("replacement_history_metadata")
    if isinstance(metadata, list) and len(metadata) != len(items):
        del kept["replacement_history_metadata"]  # Codex refuses the line unless each item has one
    return kept


def _new_header(session: Document) -> JsonObject:
    moment = stamp(next((message.time for message in session.messages if message.time), None))
    name = fresh_uuid(encode_all(session.messages), set())
    payload: JsonObject = {"id": name, "timestamp": moment, "cwd": "", "originator": "everlong", "cli_version": ""}
    head = session.messages[: len(session.messages) - len(without_head(session.messages))]
    if head:
        payload["base_instructions"] = {"text": "\n\n".join(message.text for message in head)}
    return {"timestamp": moment, "type": "session_meta", "payload": payload}


def _is_summary(message: Message, _document: Document) -> bool:
    return message.origin == NAME and "compacted" in unpack(message.extra)[1]


MARKS = SessionMarks(
    session_id=record_text(("session_meta", "payload.id"), ("", "id")),
    began=record_time(("session_meta", "payload.timestamp"), ("session_meta", "timestamp")),
    is_summary=_is_summary,
)


def _requests(records: Iterable[JsonObject]) -> Iterator[tuple[Hashable, RecordedRequest]]:
    """Yield the requests. Events have the usage of the last request and the sum; an unchanged sum is not a request."""
    model = provider = ""
    before: Usage | None = None
    for at, record in enumerate(records):
        payload = record.get("payload")
        if not isinstance(payload, dict):
            continue
        match record.get("type"), payload.get("type"):
            case "session_meta", _:
                provider = text_in(payload.get("model_provider")) or provider
            case "turn_context", _:
                model = text_in(payload.get("model")) or model
            case "event_msg", "token_count":
                info = payload.get("info")
                figures = info if isinstance(info, dict) else {}
                total = read_usage(figures.get("total_token_usage"), "codex")
                last = read_usage(figures.get("last_token_usage"), "codex")
                sign = last if total is None else total
                if sign is not None and sign != before:
                    usage = _grown(before, sign) if last is None else last
                    yield at, RecordedRequest(model=model, provider=provider, usage=usage)
                    before = sign
            case _:
                pass


def _grown(before: Usage | None, total: Usage) -> Usage:
    """Return what was added to a sum; all of it if the sum started again."""
    if before is None or total.prompt < before.prompt or total.output < before.output:
        return total
    return Usage(
        prompt=total.prompt - before.prompt,
        cached=max(0, total.cached - before.cached),
        cache_written=max(0, total.cache_written - before.cache_written),
        output=total.output - before.output,
        reasoning=max(0, total.reasoning - before.reasoning),
    )


SESSION = SessionFormat(
    name=NAME,
    program="Codex",
    sent_as=responses.NAME,
    recognises=recognises,
    read_record=parse_record,
    read=read_records(parse_record, document),
    write=render_document,
    marks=MARKS,
    not_the_user=CONTEXT,
    folders=(".codex/sessions", ".codex/archived_sessions"),
    moved_by=("CODEX_HOME", ".codex"),
    requests=_requests,
)
