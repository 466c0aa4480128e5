"""Chatbox: a session, and the export of many.

    {"id", "name", "messages": […], "threads": […], "compactionPoints": [{"summaryMessageId", "boundaryMessageId"}]}
    {"chat-sessions-list": [{"id", …}], "session:<id>": {…}, …}        an export; older ones: {"chat-sessions": […]}

The conversation is the current thread; archived threads are kept unchanged and can be read separately. Chatbox sends
the summary of the newest point and the messages after its boundary, so the summary is placed there.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import cast

from everlong.core import Json, JsonObject, Message, Role, encode_all
from everlong.errors import WireError
from everlong.wire.document import Document, Record
from everlong.wire.fields import load, pack, unpack
from everlong.wire.formats.openai_chat import messages as openai_chat
from everlong.wire.sessions.chats.chatbox_messages import (
    NAME,
    gathered,
    message_id,
    read_message,
    spoken,
    write_message,
)
from everlong.wire.sessions.conversation import Piece, settle
from everlong.wire.sessions.records import as_object, fields_of, fresh_uuid, records_of
from everlong.wire.sessions.session import NamedValue, SessionFormat, SessionMarks, text_in

__all__ = [
    "MARKS",
    "NAME",
    "SESSION",
    "archived_threads",
    "parse_body",
    "parse_export",
    "recognises",
    "render_body",
    "render_export",
]

ONE_BY_ONE, SESSION_LIST, OLD_SESSIONS = "session:", "chat-sessions-list", "chat-sessions"
NAME_LENGTH = 40  # characters of the first user message that become the name of a new session
LISTED = ("assistantAvatarKey", "hidden", "id", "name", "picUrl", "starred", "type")


def recognises(first: Sequence[JsonObject]) -> bool:
    """Return whether this document is Chatbox's."""
    return len(first) == 1 and (_is_session(first[0]) or _is_export(first[0]))


def parse_export(raw: Json) -> list[Document]:
    """Return one document per session, in the order of the list. Unreadable sessions become warnings."""
    documents: list[Document] = []
    warnings: list[str] = []
    for where, session in _sessions(raw):
        try:
            documents.append(parse_body(session, where))
        except WireError as error:
            warnings.append(str(error))
    if not documents:
        raise WireError(warnings[0] if warnings else "it contains no session", fmt=NAME)
    first = documents[0]
    return [replace(first, warnings=(*first.warnings, *warnings)), *documents[1:]]


def render_export(documents: Sequence[Document]) -> JsonObject:
    """Return an export that Chatbox can import."""
    sessions = [render_body(session) for session in documents]
    listed = [{key: value for key, value in session.items() if key in LISTED} for session in sessions]
    named: JsonObject = {f"{ONE_BY_ONE}{session['id']}": session for session in sessions}
    return {SESSION_LIST: cast(Json, listed), **named, "__exported_items": ["conversations"]}


def parse_body(raw: Json, where: str = "") -> Document:
    """Read one session."""
    session = as_object(raw, fmt=NAME, where=where)
    listed = session.pop("messages", None)
    if not isinstance(listed, list):
        raise WireError("a session must have a list of messages", fmt=NAME, where=where)
    lines = [(f"{where}.messages[{at}]".lstrip("."), message) for at, message in enumerate(listed)]
    records, unread = records_of(lines, read_message)
    pieces, notes = _pieces(records, session)
    messages, boundaries = settle(pieces)
    return Document(
        fmt=NAME,
        messages=messages,
        model=_model(records, session),
        extra=pack(session),
        records=records,
        boundaries=boundaries,
        warnings=(*unread, *notes),
    )


def render_body(session: Document) -> JsonObject:
    """Write a session; a changed conversation gets new messages and compaction points."""
    fields = unpack(session.extra)[0] if session.fmt == NAME else {}
    untouched = settle(_pieces(session.records, fields)[0])[0] == session.messages
    records: Sequence[Record] = session.records if untouched else gathered(session.messages)
    listed = [write_message(record) if isinstance(record, Message) else load(record.body) for record in records]
    if not untouched:
        fields = (fields or _new_fields(session)) | _points_again(fields, records)
    return fields | {"messages": cast(Json, listed)}


def archived_threads(session: Document) -> tuple[Document, ...]:
    """Return the archived threads, each with its own compaction points."""
    fields, _ = unpack(session.extra)
    threads = fields.get("threads")
    known: JsonObject = {"settings": fields["settings"]} if "settings" in fields else {}
    return tuple(
        parse_body(known | thread, f"threads[{at}]")
        for at, thread in enumerate(threads if isinstance(threads, list) else [])
        if isinstance(thread, dict) and isinstance(thread.get("messages"), list)
    )


# --- finding sessions --------------------------------------------------------------------------


def _is_session(value: Json) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("messages"), list) or "id" not in value:
        return False
    listed = [message for message in cast("list[Json]", value["messages"]) if isinstance(message, dict)]
    if any("contentParts" in message for message in listed):
        return True
    return "name" in value and all("id" in message and "role" in message for message in listed)


def _is_export(value: JsonObject) -> bool:
    keys = (SESSION_LIST, OLD_SESSIONS, "__exported_items")
    return any(key in value for key in keys) or any(key.startswith(ONE_BY_ONE) for key in value)


def _sessions(raw: Json) -> list[tuple[str, Json]]:
    """Return every session once, with its place."""
    if isinstance(raw, list):
        return [(f"[{at}]", session) for at, session in enumerate(raw)]
    if not isinstance(raw, dict) or not _is_export(raw):
        return [("", raw)]
    order = raw.get(SESSION_LIST)
    listed = [item for item in order if isinstance(item, dict)] if isinstance(order, list) else []
    first = [f"{ONE_BY_ONE}{item.get('id')}" for item in listed]
    keys = dict.fromkeys([*first, *(key for key in raw if key.startswith(ONE_BY_ONE))])
    found = [(key, raw[key]) for key in keys if key in raw]
    old = raw.get(OLD_SESSIONS)
    for at, session in enumerate(old if isinstance(old, list) else []):
        if not isinstance(session, dict) or f"{ONE_BY_ONE}{session.get('id')}" not in raw:
            found.append((f"{OLD_SESSIONS}[{at}]", session))
    return found


# --- the conversation --------------------------------------------------------------------------


def _pieces(records: Sequence[Record], session: JsonObject) -> tuple[list[Piece], list[str]]:
    """Return the messages to send, each summary moved after the boundary of its point, and warnings."""
    names = [message_id(record) if isinstance(record, Message) else "" for record in records]
    index = {name: at for at, name in reversed(list(enumerate(names))) if name}
    notes = [f"{NAME}: id {name} appears twice" for name, times in Counter(names).items() if name and times > 1]
    placed: dict[int, list[Piece]] = {}
    moved: set[int] = set()
    newest = 0
    for point in _points(session):
        boundary = index.get(str(point.get("boundaryMessageId")))
        summary = index.get(str(point.get("summaryMessageId")))
        if boundary is None:
            notes.append(f"{NAME}: a compaction point whose boundary {point.get('boundaryMessageId')} is not there")
            continue
        newest = max(newest, boundary + 1)
        placed.setdefault(newest, []).append(None)
        if summary is not None:
            placed[newest] += _sent_messages(records[summary])
            moved.add(summary)
    pieces: list[Piece] = []
    for at, record in enumerate(records):
        pieces += placed.get(at, [])
        pieces += [] if at in moved else _sent_messages(record)
    return [*pieces, *placed.get(len(records), [])], notes


def _sent_messages(record: Record) -> Sequence[Message]:
    """Return what is sent for a record; nothing for one that is still being generated."""
    return () if not isinstance(record, Message) or fields_of(record).get("generating") is True else spoken(record)


def _points(session: JsonObject) -> list[JsonObject]:
    """Return the compaction points, oldest first."""
    listed = session.get("compactionPoints")
    points = [point for point in listed if isinstance(point, dict)] if isinstance(listed, list) else []
    return sorted(points, key=lambda point: made if isinstance(made := point.get("createdAt"), int | float) else 0)


def _points_again(session: JsonObject, records: Sequence[Record]) -> JsonObject:
    """Return the points for a changed conversation: each boundary is now the message right before its summary."""
    if "compactionPoints" not in session:
        return {}
    names = [message_id(record) for record in records if isinstance(record, Message)]
    before = dict(zip(names[1:], names, strict=False))
    kept = [point for point in _points(session) if str(point.get("summaryMessageId")) in before]
    moved = [point | {"boundaryMessageId": before[str(point["summaryMessageId"])]} for point in kept]
    return {"compactionPoints": cast(Json, moved)}


def _new_fields(session: Document) -> JsonObject:
    first = next((message.text for message in session.messages if message.role is Role.USER), "")
    name = first.strip().split("\n")[0][:NAME_LENGTH] or "Conversation"
    settings: JsonObject = {"settings": {"modelId": session.model}} if session.model else {}
    return {"id": fresh_uuid(encode_all(session.messages), set()), "name": name, "type": "chat", **settings}


def _model(records: Sequence[Record], session: JsonObject) -> str:
    settings = session.get("settings")
    known = settings if isinstance(settings, dict) else {}
    spoke = [fields_of(record).get("model") for record in reversed(records) if isinstance(record, Message)]
    found = (name for name in (known.get("modelId"), known.get("model"), *spoke) if isinstance(name, str) and name)
    return next(found, "")


def _is_summary(message: Message, session: Document) -> bool:
    if message.origin != NAME:
        return False
    points = unpack(session.extra)[0].get("compactionPoints")
    listed = points if isinstance(points, list) else []
    return message_id(message) in {
        text_in(point.get("summaryMessageId")) for point in listed if isinstance(point, dict)
    }


MARKS = SessionMarks(
    session_id=lambda session: text_in(unpack(session.extra)[0].get("id")),
    title=lambda session: text_in(unpack(session.extra)[0].get("name")),
    message_id=message_id,
    is_summary=_is_summary,
    archived=archived_threads,
)


def _read(named: Iterable[NamedValue], warnings: Sequence[str]) -> tuple[Document, ...]:
    """Read the one document of a file."""
    ((_, raw),) = named
    first, *others = parse_export(raw)
    return (replace(first, warnings=(*warnings, *first.warnings)), *others)


SESSION = SessionFormat(
    name=NAME,
    program="Chatbox",
    sent_as=openai_chat.NAME,
    recognises=recognises,
    read_record=read_message,
    read=_read,
    write=render_body,
    in_lines=False,
    suffixes=(".json",),
    marks=MARKS,
)
