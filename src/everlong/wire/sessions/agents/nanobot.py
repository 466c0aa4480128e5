"""nanobot session files.

    {"_type": "metadata", "key": "cli:direct", "metadata": {"_last_summary": {"text": …}}, "last_consolidated": 12, …}
    {"_type": "provider_state", "state": {…}}                      newer versions, not always there
    {"role": "user", "content": …, "timestamp": …, "media": […]}   OpenAI chat messages with fields of its own

Old and new versions differ in the place and name of the file, not in its content. The summary of consolidated messages
is in the metadata; a `summary` at the top level of that line is read too. nanobot stores no system text.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from re import compile as pattern
from typing import cast

from everlong.core import Json, JsonObject, Message, Role, Text, encode_all, ref_of
from everlong.errors import WireError
from everlong.wire.document import Aside, Document, Record
from everlong.wire.fields import load, pack, unpack
from everlong.wire.formats.openai_chat import messages as openai_chat
from everlong.wire.sessions.conversation import Piece, headed_summary, settle, summary_text, without_head
from everlong.wire.sessions.records import as_object, aside, fields_of, stamp, time_of
from everlong.wire.sessions.session import SessionFormat, SessionMarks, read_records, record_text, record_time

__all__ = [
    "MARKS",
    "NAME",
    "SESSION",
    "SUFFIX",
    "document",
    "file_name",
    "legacy_file_name",
    "nanobot_lines",
    "parse_record",
    "recognises",
    "render_document",
    "render_record",
    "session_key",
    "summary_in",
    "summary_message",
    "summary_of",
]

NAME = "nanobot"
HEADERS = ("metadata", "provider_state")
SUFFIX = ".jsonl"
UNSAFE = pattern(r'[<>:"/\\|?*]')
#: Marks a note for an attached file, which is ours and not in the record.
MEDIA_NOTE = pack({}, note="media")
NANOBOT_SUMMARY = pack({}, summary=True)


def recognises(first: Sequence[JsonObject]) -> bool:
    """Return whether these first records are nanobot's."""
    return any(record.get("_type") in HEADERS for record in first)


def parse_record(raw: Json, where: str = "") -> Record:
    """Read one line. Commands to nanobot itself and their answers (`_command`) are asides, never sent to the model."""
    fields = as_object(raw, fmt=NAME, where=where)
    if fields.get("_type") in HEADERS or fields.get("_command"):
        return aside(raw)
    try:
        message = openai_chat.read_message(raw, where)
    except WireError as error:
        raise WireError(error.problem, fmt=NAME, where=error.where) from error
    parts = (*message.parts, *_media_notes(message, fields.get("media")))
    return replace(message, parts=parts, origin=NAME, time=time_of(fields.get("timestamp")))


def render_record(record: Record) -> JsonObject:
    """Write a record as a line."""
    return cast(JsonObject, load(record.body)) if isinstance(record, Aside) else nanobot_lines(record)[0]


def document(records: Sequence[Record], warnings: Sequence[str] = ()) -> Document:
    """Build the conversation from the records."""
    header = _header(records)
    said = [record for record in records if _is_line(record)]
    offset = header.get("last_consolidated")
    done = offset if type(offset) is int and 0 <= offset <= len(said) else 0
    pieces: list[Piece] = [record for record in said[:done] if isinstance(record, Message)]
    summary = _summary_message(header)
    if done or summary:
        pieces += [None, *([summary] if summary else [])]
    pieces += [record for record in said[done:] if isinstance(record, Message)]
    messages, boundaries = settle(pieces)
    return Document(
        fmt=NAME,
        messages=messages,
        model=_model(records),
        records=tuple(records),
        boundaries=boundaries,
        warnings=tuple(warnings),
    )


def render_document(session: Document) -> list[JsonObject]:
    """Write the records; if the conversation was changed, the metadata that still applies and the conversation."""
    if document(session.records).messages == session.messages:
        return [render_record(record) for record in session.records]
    lines: list[JsonObject] = []
    summary, consolidated = "", 0
    for message in without_head(session.messages):
        if message.origin == NAME and message.extra == NANOBOT_SUMMARY:
            summary, consolidated = summary_text(message), len(lines)
        else:
            lines += nanobot_lines(message)
    return [_metadata(session, summary, consolidated), *lines]


def summary_of(records: Sequence[Record]) -> str:
    """Return the session's summary of messages that are no longer sent; "" if there is none."""
    return summary_in(_header(records))


# --- names -------------------------------------------------------------------------------------


def file_name(key: str) -> str:
    """Return the file of a session. Example: cli:direct -> Y2xpOmRpcmVjdA.jsonl"""
    return urlsafe_b64encode(key.encode()).decode().rstrip("=") + SUFFIX


def legacy_file_name(key: str) -> str:
    """Return the earlier file name of a session, which is not unique. Example: cli_direct.jsonl"""
    return UNSAFE.sub("_", key).strip() + SUFFIX


def session_key(name: str) -> str:
    """Return the session of a file name; for an earlier file name, the most likely session.

    Example: Y2xpOmRpcmVjdA.jsonl and cli_direct.jsonl -> cli:direct
    """
    stem = name.removesuffix(SUFFIX)
    try:
        key = urlsafe_b64decode(stem + "=" * (-len(stem) % 4)).decode()
    except ValueError:
        key = ""
    return key if key and file_name(key) == stem + SUFFIX else stem.replace("_", ":", 1)


# --- the metadata line -------------------------------------------------------------------------


def _header(records: Sequence[Record]) -> JsonObject:
    asides = (fields_of(record) for record in records if isinstance(record, Aside))
    return next((fields for fields in asides if fields.get("_type") == "metadata"), {})


def _is_line(record: Record) -> bool:
    """Whether nanobot counts a record as a message."""
    return isinstance(record, Message) or fields_of(record).get("_type") not in HEADERS


def summary_in(header: JsonObject) -> str:
    """Return the summary in a metadata line; "" if there is none."""
    inner = header.get("metadata")
    metadata = inner if isinstance(inner, dict) else {}
    last = metadata.get("_last_summary")
    kept = last.get("text") if isinstance(last, dict) else None
    found = (text for text in (kept, metadata.get("summary"), header.get("summary")) if isinstance(text, str) and text)
    return next(found, "")


def summary_message(summary: str) -> Message:
    """Return nanobot's own summary as a message for a model."""
    return Message(Role.USER, (headed_summary(summary),), origin=NAME, extra=NANOBOT_SUMMARY)


def _summary_message(header: JsonObject) -> Message | None:
    summary = summary_in(header)
    return summary_message(summary) if summary else None


def _metadata(session: Document, summary: str, consolidated: int) -> JsonObject:
    """Return the metadata line for a changed conversation."""
    header = dict(_header(session.records)) or _new_header(session)
    inner = header.get("metadata")
    metadata = dict(inner) if isinstance(inner, dict) else {}
    last = metadata.pop("_last_summary", None)
    for fields in (metadata, header):
        fields.pop("summary", None)
    if summary:
        metadata["_last_summary"] = (last if isinstance(last, dict) else {}) | {"text": summary}
    return header | {"metadata": metadata, "last_consolidated": consolidated}


def _new_header(session: Document) -> JsonObject:
    times = [_moment(message.time) for message in session.messages if message.time] or [_moment(None)]
    first, last = min(times), max(times)
    key = f"everlong:{ref_of(encode_all(session.messages))}"
    return {"_type": "metadata", "key": key, "created_at": first, "updated_at": last}


def _moment(time: datetime | None) -> str:
    """Return a time without its zone: nanobot writes none, and compares with times without one."""
    return stamp(time).removesuffix("Z")


def _model(records: Sequence[Record]) -> str:
    for record in records:
        state = fields_of(record).get("state") if isinstance(record, Aside) else None
        model = state.get("model") if isinstance(state, dict) else None
        if isinstance(model, str):
            return model
    return ""


# --- messages ----------------------------------------------------------------------------------


def _media_notes(message: Message, media: Json) -> tuple[Text, ...]:
    """Return notes for files attached to plain text, as nanobot sends them to the model."""
    plain = message.role is Role.USER and unpack(message.extra)[1].get("content") is None
    paths = media if plain and isinstance(media, list) else []
    return tuple(Text(f"[image: {path}]", MEDIA_NOTE) for path in paths if isinstance(path, str) and path)


def nanobot_lines(message: Message) -> list[JsonObject]:
    """Return the lines of one message: several if it has several results, none if it is empty."""
    if message.origin != NAME:
        moment: JsonObject = {"timestamp": _moment(message.time)} if message.time else {}
        return [line | moment for line in openai_chat.write_message(message)]
    parts = tuple(part for part in message.parts if not (isinstance(part, Text) and part.extra == MEDIA_NOTE))
    return openai_chat.write_message(replace(message, parts=parts, origin=openai_chat.NAME))


def _is_summary(message: Message, _document: Document) -> bool:
    return message.origin == NAME and unpack(message.extra)[1].get("summary") is True


MARKS = SessionMarks(
    session_id=record_text(("metadata", "key")),
    title=record_text(("metadata", "metadata.title")),
    began=record_time(("metadata", "created_at")),
    changed=record_time(("metadata", "updated_at")),
    is_summary=_is_summary,
)


SESSION = SessionFormat(
    name=NAME,
    program="nanobot",
    sent_as=openai_chat.NAME,
    recognises=recognises,
    read_record=parse_record,
    read=read_records(parse_record, document),
    write=render_document,
    marks=MARKS,
    folders=(".nanobot/sessions", ".nanobot/workspace/sessions"),
)
