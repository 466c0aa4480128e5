"""Entries of a log and events as stored text, and back; used by every store that keeps text.

A body is one line of JSON, a message as `core.encoding` writes it. Large texts inside it (tool results, pictures)
are taken out and named by their content, so that a store keeps each of them once. Nothing here reads or writes.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from enum import IntEnum
from hashlib import blake2b
from typing import Any, assert_never

from everlong.core import (
    Action,
    Edit,
    Entry,
    Event,
    EventKind,
    Figures,
    Gone,
    Json,
    JsonObject,
    Message,
    Point,
    Recalled,
    Ref,
    Removal,
    Restoration,
    ToolResult,
    Withdrawal,
    bytes_of,
    decode,
    encode,
    message_ref,
    original_in,
    part_ref,
)
from everlong.errors import StoreError, WireError

__all__ = [
    "LARGE",
    "Body",
    "EntryKind",
    "body_of",
    "decode_entry",
    "decode_event",
    "encode_entry",
    "encode_event",
    "entry_of",
    "event_fields",
    "event_in",
    "kind_of",
    "large_texts_in",
    "original_of",
    "refs_of",
    "text_of_bytes",
]

LARGE = 2_048  # characters from which a text is stored apart, once for all entries that contain it

#: Marks the place of a large text in a body. Quotes inside a JSON string are escaped, so no text can look like this.
_LARGE_TEXT = re.compile(r'\{"@text":"([0-9a-f]{64})"\}')


#: The other fields of a point; empty ones are not stored.
_POINT_FIELDS = ("tokens_before", "tokens_after", "reason", "focus", "model", "limit", "account")
_FIGURES = ("messages", "kept", "shortened", "before", "after")


class EntryKind(IntEnum):
    """The kinds of rows. The numbers are stored; they never change."""

    MESSAGE = 0
    POINT = 1
    WITHDRAWAL = 2
    RECALLED = 3
    REMOVAL = 4
    RESTORATION = 5
    GONE = 6


@dataclass(frozen=True, slots=True)
class Body:
    """An entry as it is stored: its kind, its JSON, and the large texts that were taken out of it, by name."""

    kind: EntryKind
    text: str
    large: Mapping[str, str]


def kind_of(entry: Entry) -> EntryKind:
    """Return the kind of an entry."""
    match entry:
        case Message():
            return EntryKind.MESSAGE
        case Point():
            return EntryKind.POINT
        case Withdrawal():
            return EntryKind.WITHDRAWAL
        case Recalled():
            return EntryKind.RECALLED
        case Removal():
            return EntryKind.REMOVAL
        case Restoration():
            return EntryKind.RESTORATION
        case Gone():
            return EntryKind.GONE
        case _:
            assert_never(entry)


def encode_entry(entry: Entry) -> str:
    """Return the entry as one line of JSON. Equal entries give equal lines."""
    match entry:
        case Message():
            return encode(entry)
        case Point():
            return _json(_point_out(entry))
        case Withdrawal(point):
            return _json({"point": point})
        case Recalled(before, message):
            return _json({"before": before, "message": json.loads(encode(message))})
        case Removal(orders):
            return _json({"orders": list(orders)})
        case Restoration(removal):
            return _json({"removal": removal})
        case Gone():
            return "{}"
        case _:
            assert_never(entry)


def decode_entry(kind: int, text: str) -> Entry:
    """Read what `encode_entry` wrote. Raises StoreError for anything else."""
    try:
        match EntryKind(kind):
            case EntryKind.MESSAGE:
                return decode(text)
            case EntryKind.POINT:
                return _point_in(json.loads(text))
            case EntryKind.WITHDRAWAL:
                return Withdrawal(int(json.loads(text)["point"]))
            case EntryKind.RECALLED:
                fields = json.loads(text)
                return Recalled(int(fields["before"]), decode(_json(fields["message"])))
            case EntryKind.REMOVAL:
                return Removal(tuple(map(int, json.loads(text)["orders"])))
            case EntryKind.RESTORATION:
                return Restoration(int(json.loads(text)["removal"]))
            case EntryKind.GONE:
                return Gone()
    except (WireError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise StoreError("a stored entry cannot be read") from error  # not its text, which may quote the conversation


def body_of(entry: Entry) -> Body:
    """Return the entry as it is stored, with its large texts apart.

    Example: a tool result of 1 MB -> its JSON with {"@text":"<hash>"} in place of the text, and the text by its hash
    """
    text = encode_entry(entry)
    if len(text) < LARGE:
        return Body(kind_of(entry), text, {})
    large: dict[str, str] = {}
    return Body(kind_of(entry), _json(_without_large(json.loads(text), large)), large)


def large_texts_in(text: str) -> list[str]:
    """Return the names of the large texts that were taken out of a stored body."""
    return _LARGE_TEXT.findall(text)


def entry_of(kind: int, text: str, large: Mapping[str, str]) -> Entry:
    """Return the entry of a stored body with its large texts put back."""

    def put_back(name: re.Match[str]) -> str:
        if name[1] not in large:
            raise StoreError("a stored text is missing")
        return json.dumps(large[name[1]])

    return decode_entry(kind, _LARGE_TEXT.sub(put_back, text))


def refs_of(entry: Entry) -> frozenset[Ref]:
    """Every reference that may name this entry or something in it: whole messages, parts, parts of results."""
    return frozenset(ref for message in _messages_in(entry) for ref in _refs_of_message(message))


def original_of(entry: Entry, ref: str) -> bytes | None:
    """Return the bytes in this entry that the reference names; None if it names nothing here."""
    for message in _messages_in(entry):
        for part in range(max(1, len(message.parts))):
            content = original_in(message, part, ref)
            if content is not None:
                return content
    return None


def text_of_bytes(data: bytes) -> str:
    """Return the text that `core.bytes_of` turned into these bytes."""
    return data.decode("utf-8", "surrogatepass")


def _json(value: Json) -> str:
    return json.dumps(value, separators=(",", ":"))


def _messages_in(entry: Entry) -> tuple[Message, ...]:
    match entry:
        case Message():
            return (entry,)
        case Point(summary=summary):
            return summary
        case Recalled(message=message):
            return (message,)
        case Withdrawal() | Removal() | Restoration() | Gone():
            return ()
        case _:
            assert_never(entry)


def _refs_of_message(message: Message) -> Iterable[Ref]:
    yield message_ref(message)
    for part in message.parts:
        yield part_ref(part)
        if isinstance(part, ToolResult) and len(part.content) > 1:
            yield from map(part_ref, part.content)


def _without_large(value: Json, large: dict[str, str]) -> Json:
    match value:
        case str() if len(value) >= LARGE:
            name = blake2b(bytes_of(value), digest_size=32).hexdigest()
            large[name] = value
            return {"@text": name}
        case list():
            return [_without_large(item, large) for item in value]
        case dict():
            return {key: _without_large(item, large) for key, item in value.items()}
        case _:
            return value


def _point_out(point: Point) -> JsonObject:
    fields: JsonObject = {
        "boundary": point.boundary,
        "summary": [json.loads(encode(message)) for message in point.summary],
    }
    fields |= {name: getattr(point, name) for name in _POINT_FIELDS if getattr(point, name)}
    if point.edits:
        fields["edits"] = [
            {name: value for name, value in asdict(edit).items() if value is not None} for edit in point.edits
        ]
    if point.figures is not None:
        fields["figures"] = asdict(point.figures)
    return fields


def _point_in(fields: dict[str, Any]) -> Point:
    return Point(
        boundary=int(fields["boundary"]),
        summary=tuple(decode(_json(message)) for message in fields["summary"]),
        edits=tuple(Edit(**{**edit, "action": Action(edit["action"])}) for edit in fields.get("edits", ())),
        figures=_figures_in(fields.get("figures")),
        **{name: fields[name] for name in _POINT_FIELDS if name in fields},
    )


def _figures_in(fields: dict[str, Any] | None) -> Figures | None:
    """The figures of a point; fields of later versions are ignored."""
    return None if fields is None else Figures(**{name: int(fields[name]) for name in _FIGURES if name in fields})


def event_fields(event: Event) -> JsonObject:
    """The event as a JSON object, without its empty fields."""
    filled = {name: value for name, value in asdict(event).items() if value not in (None, "")}
    return filled | {"id": event.id, "kind": event.kind.value, "time": event.time.isoformat()}


def event_in(fields: JsonObject) -> Event:
    """Read what `event_fields` returned. Raises StoreError for anything else."""
    try:
        kind, time = EventKind(str(fields["kind"])), datetime.fromisoformat(str(fields["time"]))
        return Event(**{**fields, "kind": kind, "time": time})  # type: ignore[arg-type]
    except (ValueError, KeyError, TypeError) as error:
        raise StoreError("a stored event cannot be read") from error


def encode_event(event: Event) -> str:
    """The event as one line of JSON."""
    return json.dumps(event_fields(event), separators=(",", ":"))


def decode_event(text: str) -> Event:
    """Read what `encode_event` wrote. Raises StoreError for anything else."""
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise StoreError("a stored event cannot be read") from error
    if not isinstance(fields, dict):
        raise StoreError("a stored event cannot be read")
    return event_in(fields)
