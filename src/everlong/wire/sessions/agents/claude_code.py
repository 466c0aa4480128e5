"""Claude Code session files.

    {"type": "user"|"assistant", "uuid": …, "parentUuid": …, "isSidechain": false, "message": {Anthropic message}, …}
    {"type": "system", "subtype": "compact_boundary", …}, {"type": "summary"|"file-history-snapshot"|"progress"|…}

A reply has one line per block, with the same message id; results may come between the lines. In the conversation, it is
one message, followed by its results. Messages of sub-agents (side chains), abandoned branches and the program's own
messages are not part of the conversation. Claude Code stores no system text.
"""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import cast

from everlong.core import Json, JsonObject, Message, Role, encode
from everlong.errors import WireError
from everlong.wire.document import Aside, Document, Record
from everlong.wire.fields import load, pack, unpack
from everlong.wire.formats.anthropic import messages as anthropic
from everlong.wire.sessions.conversation import Piece, settle, without_head
from everlong.wire.sessions.records import (
    Link,
    as_object,
    aside,
    fields_of,
    fresh_id,
    fresh_uuid,
    parents_of,
    path_to,
    stamp,
    time_of,
)
from everlong.wire.sessions.session import (
    RecordedRequest,
    SessionFormat,
    SessionMarks,
    SideChains,
    amount_in,
    read_records,
    record_text,
    text_in,
)
from everlong.wire.usage import read_usage

__all__ = ["MARKS", "NAME", "SESSION", "document", "parse_record", "recognises", "render_document", "render_record"]

NAME = "claude-code"
SPOKEN = ("user", "assistant")
SYNTHETIC = "<synthetic>"  # the model of replies that the program wrote itself
#: Fields that all lines of a session share.
SESSION_FIELDS = ("cwd", "gitBranch", "sessionId", "userType", "version")


def recognises(first: Sequence[JsonObject]) -> bool:
    """Return whether these first records are Claude Code's."""
    return any(
        ("uuid" in record and "parentUuid" in record)
        or (record.get("type") == "summary" and "leafUuid" in record)
        or (record.get("type") == "file-history-snapshot" and "snapshot" in record)
        or (record.get("type") == "queue-operation" and "sessionId" in record)
        for record in first
    )


def parse_record(raw: Json, where: str = "") -> Record:
    """Read one line."""
    entry = as_object(raw, fmt=NAME, where=where)
    if entry.get("type") not in SPOKEN or entry.get("isSidechain") is True or entry.get("isApiErrorMessage") is True:
        return aside(raw)
    try:
        message = anthropic.read_message(entry.pop("message", None), where)
    except WireError as error:
        raise WireError(error.problem, fmt=NAME, where=error.where) from error
    extra = pack(entry, message=message.extra or None)
    return replace(message, time=time_of(entry.get("timestamp")), origin=NAME, extra=extra)


def render_record(record: Record) -> JsonObject:
    """Write a record as a line."""
    if isinstance(record, Aside):
        return cast(JsonObject, load(record.body))
    entry, _ = unpack(record.extra)
    return entry | {"message": _body(record)}


def document(records: Sequence[Record], warnings: Sequence[str] = ()) -> Document:
    """Build the conversation from the records."""
    entries = [fields_of(record) for record in records]
    parents, notes = parents_of([_link(entry) for entry in entries], fmt=NAME)
    followed = _followed(records, parents)
    kept = [at for at, entry in enumerate(entries) if followed[at] or not _link(entry)]
    messages, boundaries = settle(_pieces([(records[at], entries[at]) for at in kept]))
    return Document(
        fmt=NAME,
        messages=messages,
        model=_model(records),
        records=tuple(records),
        boundaries=boundaries,
        warnings=(*warnings, *notes),
    )


def render_document(session: Document) -> list[JsonObject]:
    """Write the records; if the conversation was changed, the leading asides and the conversation, line by line."""
    if document(session.records).messages == session.messages:
        return [render_record(record) for record in session.records]
    front = [render_record(record) for record in takewhile(lambda record: isinstance(record, Aside), session.records)]
    return [*front, *_rewritten(session)]


# --- reading -----------------------------------------------------------------------------------


def _link(entry: JsonObject) -> Link | None:
    """Return the place in the tree. A compaction has no parent; the conversation continues from the record before."""
    name, parent = entry.get("uuid"), entry.get("parentUuid")
    if not isinstance(name, str) or entry.get("isSidechain") is True:
        return None
    root = "" if entry.get("subtype") == "compact_boundary" else None
    return Link(name, parent if isinstance(parent, str) else root)


def _followed(records: Sequence[Record], parents: Sequence[int | None]) -> list[bool]:
    """Return which records belong to the conversation: the path to the last message, without abandoned branches.

    Results of parallel calls and further lines of a reply belong to it too, although they are off the path. Another
    root is an earlier start of the same conversation.
    """
    spoken = [at for at, record in enumerate(records) if isinstance(record, Message)]
    path = set(path_to(spoken[-1], parents)) if spoken else set()
    replies = {_reply_id(record) for at in path if isinstance(record := records[at], Message)} - {""}
    verdicts: list[bool | None] = []
    for at, record in enumerate(records):
        parent = parents[at]
        verdict: bool | None = True
        if at not in path and parent is not None:
            verdict = None if parent in path else verdicts[parent]
            if verdict is None and isinstance(record, Message):
                verdict = record.role is Role.TOOL or _reply_id(record) in replies
        verdicts.append(verdict)
    return [verdict is not False for verdict in verdicts]


def _pieces(kept: Sequence[tuple[Record, JsonObject]]) -> list[Piece]:
    """Return the messages, with the lines of a reply joined, without exact repetitions, and None at each compaction."""
    pieces: list[Piece] = []
    begun: dict[str, int] = {}
    seen: set[Message] = set()
    for record, entry in kept:
        if isinstance(record, Aside):
            if entry.get("subtype") == "compact_boundary":
                pieces.append(None)
            continue
        if record in seen:
            continue
        seen.add(record)
        reply = _reply_id(record)
        if reply in begun:
            before = cast(Message, pieces[begun[reply]])
            pieces[begun[reply]] = _joined(before, record)
            continue
        if reply:
            begun[reply] = len(pieces)
        if entry.get("isCompactSummary") is True and (not pieces or pieces[-1] is not None):
            pieces.append(None)
        pieces.append(record)
    return pieces


def _joined(before: Message, line: Message) -> Message:
    """Join two lines of a reply: the fields around it come from the first line, those of the reply from the last."""
    entry, _ = unpack(before.extra)
    return replace(
        before, parts=(*before.parts, *line.parts), extra=pack(entry, message=unpack(line.extra)[1].get("message"))
    )


def _body_fields(message: Message) -> JsonObject:
    inner = unpack(message.extra)[1].get("message")
    return unpack(inner)[0] if isinstance(inner, str) else {}


def _reply_id(message: Message) -> str:
    """Return the id of the reply that a line belongs to; "" if it is not a model's."""
    name = _body_fields(message).get("id") if message.role is Role.ASSISTANT else None
    return name if isinstance(name, str) else ""


def _model(records: Sequence[Record]) -> str:
    for record in reversed(records):
        model = _body_fields(record).get("model") if isinstance(record, Message) else None
        if isinstance(model, str) and model != SYNTHETIC:
            return model
    return ""


# --- writing -----------------------------------------------------------------------------------


def _body(message: Message) -> JsonObject:
    inner = unpack(message.extra)[1].get("message", "")
    return anthropic.write_message(replace(message, origin=anthropic.NAME, extra=cast(str, inner)))[0]


def _rewritten(session: Document) -> list[JsonObject]:
    """Write the messages as one chain of lines."""
    envelopes = (fields_of(record) for record in session.records if isinstance(record, Message))
    known = next(envelopes, {"cwd": "", "sessionId": fresh_uuid("session", set()), "userType": "external"})
    shared = {key: known[key] for key in SESSION_FIELDS if key in known}
    lines: list[JsonObject] = []
    taken: set[str] = set()
    parent: str | None = None
    for at, message in enumerate(without_head(session.messages)):
        for line in _lines(message, shared, session.model):
            name = line.get("uuid")
            if not isinstance(name, str) or name in taken:
                name = fresh_uuid(f"{at}:{len(lines)}:{encode(message)}", taken)
            taken.add(name)
            place: JsonObject = {"uuid": name, "parentUuid": parent}
            if line.get("subtype") == "compact_boundary":
                place |= {"parentUuid": None, "logicalParentUuid": parent}
            lines.append(line | place)
            parent = name
    return lines


def _lines(message: Message, shared: JsonObject, model: str) -> list[JsonObject]:
    """Write a message as lines. The summary of a compaction gets the line that marks it before it."""
    if message.origin != NAME:
        return [_new_line(message, body, shared, model) for body in anthropic.write_message(message)]
    line = render_record(message)
    if line.get("isCompactSummary") is not True:
        return [line]
    fields: JsonObject = {"isSidechain": False, "timestamp": line.get("timestamp"), "content": "", "level": "info"}
    return [{"type": "system", "subtype": "compact_boundary", **shared, **fields}, line]


def _new_line(message: Message, body: JsonObject, shared: JsonObject, model: str) -> JsonObject:
    speaker = "assistant" if message.role is Role.ASSISTANT else "user"
    if speaker == "assistant":
        name = f"msg_{fresh_id(encode(message), set())}"
        usage: Json = {"input_tokens": 0, "output_tokens": 0}
        reply: JsonObject = {"id": name, "type": "message", "model": model, "stop_reason": None, "usage": usage}
        body = reply | body
    place: JsonObject = {"type": speaker, "isSidechain": False, "timestamp": stamp(message.time)}
    return shared | place | {"message": body}


def _entry_id(message: Message) -> str:
    return text_in(fields_of(message).get("uuid")) if message.origin == NAME else ""


def _is_summary(message: Message, _document: Document) -> bool:
    return message.origin == NAME and fields_of(message).get("isCompactSummary") is True


MARKS = SessionMarks(
    session_id=record_text(("", "sessionId")),
    title=record_text(("custom-title", "customTitle"), ("ai-title", "aiTitle"), ("summary", "summary")),
    message_id=_entry_id,
    is_summary=_is_summary,
)


def _requests(records: Iterable[JsonObject]) -> Iterator[tuple[Hashable, RecordedRequest]]:
    """Yield the requests. A reply has a line for each block, each with the usage so far; the ids connect them."""
    for at, record in enumerate(records):
        message = record.get("message")
        usage = read_usage(message, "anthropic") if isinstance(message, dict) else None
        if not isinstance(message, dict) or usage is None or message.get("model") == SYNTHETIC:
            continue
        names = (text_in(message.get("id")), text_in(record.get("requestId")))
        yield (
            names if any(names) else at,
            RecordedRequest(
                model=text_in(message.get("model")),
                usage=usage,
                cost=amount_in(record.get("costUSD")),  # only in versions before 1.0
                hour=min(_hour_tokens(message.get("usage")), usage.cache_written),
            ),
        )


def _hour_tokens(usage: Json) -> int:
    split = usage.get("cache_creation") if isinstance(usage, dict) else None
    return int(amount_in(split.get("ephemeral_1h_input_tokens"))) if isinstance(split, dict) else 0


def _side_chains(records: Sequence[JsonObject]) -> SideChains:
    """Split records by the id of the sub-agent; in older versions, which have none, by the chain of records."""
    main: list[JsonObject] = []
    chains: dict[str, list[JsonObject]] = {}
    chain_of: dict[str, str] = {}
    for record in records:
        if record.get("isSidechain") is not True:
            main.append(record)
            continue
        agent, parent = record.get("agentId"), record.get("parentUuid")
        before = chain_of.get(parent) if isinstance(parent, str) else None
        name = f"agent-{agent}" if isinstance(agent, str) and agent else before or f"agent-{len(chains) + 1}"
        chains.setdefault(name, []).append(record | {"isSidechain": False})
        if isinstance(own := record.get("uuid"), str):
            chain_of[own] = name
    return SideChains(main=main, agents=chains)


SESSION = SessionFormat(
    name=NAME,
    program="Claude Code",
    sent_as=anthropic.NAME,
    recognises=recognises,
    read_record=parse_record,
    read=read_records(parse_record, document),
    write=render_document,
    marks=MARKS,
    folders=(".claude/projects", ".config/claude/projects"),
    moved_by=("CLAUDE_CONFIG_DIR", ".claude"),
    requests=_requests,
    side_chains=_side_chains,
)
