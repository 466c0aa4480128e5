"""The lines of a session file: how nanobot writes texts and times, good and bad lines, entries as lines and back.

A message is a line as nanobot writes it, plus our mark, which nanobot keeps and does not send: the row's id and time.
If the line cannot express the whole message, the mark has its body; large texts that the line already has are not
repeated. A message with several results is several lines; the mark is on the first. What nanobot must never send
(system text, points, withdrawals, recalled blocks, removals, erased rows) is written as a line that nanobot takes for a
command: it keeps such lines, never shows them and never sends them. Nothing here writes files.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import blake2b
from typing import BinaryIO, TypeAlias

from everlong.core import (
    Entry,
    Json,
    JsonObject,
    Message,
    Point,
    Recalled,
    Restoration,
    Role,
    Row,
    Withdrawal,
    bytes_of,
)
from everlong.errors import StoreError, WireError
from everlong.store.bodies import LARGE, EntryKind, body_of, entry_of, kind_of
from everlong.wire import NANOBOT, OPENAI_CHAT, nanobot_lines

__all__ = [
    "MARK",
    "Fault",
    "Line",
    "Mark",
    "Scanned",
    "as_bytes",
    "exact_text",
    "fingerprint",
    "is_whole",
    "lines_of",
    "local_text",
    "mark_of",
    "moment",
    "parse_entry",
    "referring",
    "refers_to",
    "scan",
    "whole",
]

MARK = "_everlong"  # the field of a line that holds our mark
BLANK = b" \t\r\n"

# Texts and times as nanobot writes them


def is_whole(text: str) -> bool:
    """Return whether the text has no lone surrogate, which UTF-8, databases and nanobot refuse."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def whole(text: str) -> str:
    """The text with a replacement sign for each lone surrogate. Example: "a\\ud83d" -> "a�"."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def local_text(time: datetime) -> str:
    """The time as nanobot writes it: local, of one length. Example: 2026-01-02T03:04:05.000000"""
    try:
        local = time.astimezone()
    except (OverflowError, ValueError, OSError):  # the first and last days of the calendar
        local = time
    return local.replace(tzinfo=None).isoformat(timespec="microseconds")


def exact_text(time: datetime) -> str:
    """The time in UTC, written so that texts sort as times do."""
    return time.astimezone(UTC).isoformat(timespec="microseconds")


def moment(written: object) -> datetime | None:
    """The time of a text, in UTC; None if it is not a time. Without a zone it is local time."""
    if not isinstance(written, str):
        return None
    try:
        return datetime.fromisoformat(written).astimezone(UTC)
    except (OverflowError, ValueError, OSError):
        return None


# Lines of a file, one at a time, good and bad


@dataclass(frozen=True, slots=True)
class Line:
    """A line with a JSON object. `raw` are its bytes with the line end, `number` counts from 1."""

    number: int
    offset: int
    raw: bytes
    fields: JsonObject

    @property
    def whole(self) -> bool:
        """Whether it ends with a line feed."""
        return self.raw.endswith(b"\n")


@dataclass(frozen=True, slots=True)
class Fault:
    """Bytes that are not a record, and why. `torn`: the file ends in them. `stays`: nanobot can load them."""

    number: int
    offset: int
    raw: bytes
    why: str
    torn: bool = False
    stays: bool = False


Scanned: TypeAlias = Line | Fault


def fingerprint(raw: bytes) -> bytes:
    """The hash by which a line is recognised after the file was rewritten."""
    return blake2b(raw.strip(BLANK), digest_size=12).digest()


def scan(file: BinaryIO, offset: int, number: int) -> Iterator[Scanned]:
    """Read the lines from `offset` on, one at a time; `number` lines come before it."""
    file.seek(offset)
    for raw in file:
        number += 1
        if raw.strip(BLANK):
            yield _line(number, offset, raw)
        offset += len(raw)


def _line(number: int, offset: int, raw: bytes) -> Scanned:
    torn = not raw.endswith(b"\n")
    filled = raw.strip(b"\0" + BLANK)
    if not filled:
        return Fault(number, offset, raw, "NUL bytes", torn)
    if b"\0" in raw:
        return _after_nul(number, offset, raw, torn)
    why = ""
    try:
        fields = json.loads(raw.decode("utf-8"))
    except UnicodeDecodeError:
        why = "not UTF-8"
    except (ValueError, RecursionError):
        why = "cut off" if torn else "not JSON"
    else:
        if isinstance(fields, dict):
            return Line(number, offset, raw, fields)
        why = f"not an object but {type(fields).__name__}"
    return Fault(number, offset, raw, why, torn)


def _after_nul(number: int, offset: int, raw: bytes, torn: bool) -> Scanned:
    """Return the record after a block of NULs, which a lost page left; a fault if no complete record follows."""
    start = len(raw) - len(raw.lstrip(b"\0" + BLANK))
    rest = _line(number, offset + start, raw[start:]) if b"\0" not in raw[start:] else None
    if isinstance(rest, Line):
        return Line(number, offset, raw, rest.fields)
    return Fault(number, offset, raw, "NUL bytes", torn)


# Entries as lines


@dataclass(frozen=True, slots=True)
class Mark:
    """Our mark on a line. `left` is how many lines of the same write follow.

    `anchor` is the id of the row that the entry refers to. Without it, that is the row itself, or the one `ahead` rows
    later. `anchors` are the ids of the rows that a removal names.
    """

    id: str
    time: datetime | None
    kind: EntryKind = EntryKind.MESSAGE
    left: int = 0
    anchor: str | None = None
    ahead: int = 0
    #: The line continues the message of the line before.
    goes_on: bool = False
    anchors: tuple[str, ...] = ()


def as_bytes(fields: JsonObject) -> bytes:
    """The line as nanobot itself writes it, so that its next save changes nothing."""
    try:
        return json.dumps(fields, ensure_ascii=False).encode() + b"\n"
    except UnicodeEncodeError:  # a name with a lone surrogate
        return json.dumps(fields).encode() + b"\n"


def lines_of(row: Row, anchor: str | None = None, anchors: Sequence[str] = ()) -> list[JsonObject]:
    """Return the lines of one row.

    `anchor` is the id of the earlier row that it refers to, `anchors` are those it removes.
    """
    if isinstance(row.entry, Message) and row.entry.role is not Role.SYSTEM:
        rendered = [_clean(line) for line in _rendered(row.entry)]
        if rendered:
            return _message_lines(row, row.entry, rendered)
    mark = _mark(row) | {"kind": int(kind_of(row.entry))} | _body_fields(row.entry, [])
    target = refers_to(row.entry)
    if anchors:
        mark["anchors"] = list(anchors)
    if anchor is not None:
        mark["anchor"] = anchor
    elif target is not None and target > row.order:
        mark["ahead"] = target - row.order
    return [_hidden(row, mark)]


def mark_of(fields: JsonObject) -> Mark | None:
    """Return our mark on a line, or None. Raises StoreError if the mark cannot be read."""
    mark = fields.get(MARK)
    if mark is None:
        return None
    try:
        if not isinstance(mark, dict) or not isinstance(mark["id"], str):
            raise StoreError("a mark without an id")
        anchor, anchors = mark.get("anchor"), mark.get("anchors")
        return Mark(
            id=mark["id"],
            time=moment(mark.get("time")),
            kind=EntryKind(mark.get("kind", 0)),  # type: ignore[arg-type]
            left=_number(mark.get("left")),
            anchor=anchor if isinstance(anchor, str) else None,
            ahead=_number(mark.get("ahead")),
            goes_on=mark.get("goes_on") is True,
            anchors=tuple(map(str, anchors)) if isinstance(anchors, list) else (),
        )
    except (KeyError, ValueError) as error:
        raise StoreError("a mark that cannot be read") from error


def parse_entry(lines: Sequence[JsonObject]) -> Entry | None:
    """Read the entry in the lines of one row; None for nanobot's own records. Raises StoreError, WireError."""
    first = lines[0]
    mark = first.get(MARK)
    if not isinstance(mark, dict):
        record = NANOBOT.read_record(first, "")
        return record if isinstance(record, Message) else None
    body = mark.get("body")
    if not isinstance(body, str):
        return _plain(first, mark)
    try:
        rest = json.loads(str(mark.get("large", "{}")))
    except ValueError as error:
        raise StoreError("a stored entry cannot be read") from error
    large = {_name(text): text for text in _large_strings(lines)} | rest
    return entry_of(int(str(mark.get("kind", 0))), body, large)


def refers_to(entry: Entry) -> int | None:
    """The order of the row that an entry refers to; None if it refers to none."""
    match entry:
        case Point(boundary=order) | Withdrawal(order) | Recalled(before=order) | Restoration(order):
            return order
        case _:
            return None


def referring(entry: Entry, order: int) -> Entry:
    """Return the entry, referring to the row of that order: rows move when nanobot adds or removes earlier ones."""
    match entry:
        case Point():
            return replace(entry, boundary=order)
        case Withdrawal():
            return Withdrawal(order)
        case Restoration():
            return Restoration(order)
        case Recalled():
            return replace(entry, before=order)
        case _:
            return entry


def _number(value: Json) -> int:
    return value if type(value) is int and value > 0 else 0


def _mark(row: Row) -> JsonObject:
    return {"id": row.id, "time": row.time.isoformat()}


def _hidden(row: Row, mark: JsonObject) -> JsonObject:
    silent: JsonObject = {"role": "assistant", "content": "", "_command": True, "_hidden_history": True}
    return silent | {"timestamp": local_text(row.time), MARK: mark}


def _rendered(message: Message) -> list[JsonObject]:
    """Return the lines that nanobot sees of a message.

    If the rules of its origin cannot write it, the origin is ignored.
    """
    for candidate in (message, replace(message, origin="")):
        try:
            return nanobot_lines(candidate)
        except (ValueError, KeyError, TypeError, AttributeError):
            continue
    return []


def _message_lines(row: Row, message: Message, rendered: list[JsonObject]) -> list[JsonObject]:
    plain = _mark(row)
    if message.origin != NANOBOT.name:
        plain["origin"] = message.origin
        if message.time is not None:
            plain["said"] = message.time.isoformat()
    if "timestamp" not in rendered[0] or message.origin != NANOBOT.name:
        plain["stamped"] = True
        rendered = [{**line, "timestamp": local_text(message.time or row.time)} for line in rendered]
    first = rendered[0] | {MARK: plain}
    if len(rendered) == 1 and _says(first, message):
        return [first]
    whole_mark: Json = {**_mark(row), **_body_fields(message, rendered)}
    more: Json = {"id": row.id, "goes_on": True}
    return [rendered[0] | {MARK: whole_mark}, *(line | {MARK: more} for line in rendered[1:])]


def _says(line: JsonObject, message: Message) -> bool:
    """Whether the line alone expresses the whole message, also after nanobot has read and written it."""
    try:
        return parse_entry([json.loads(as_bytes(line))]) == message
    except (StoreError, WireError):
        return False


def _plain(line: JsonObject, mark: Mapping[str, Json]) -> Entry:
    fields = {key: value for key, value in line.items() if key != MARK}
    if mark.get("stamped"):
        fields.pop("timestamp", None)
    if "origin" not in mark:
        record = NANOBOT.read_record(fields, "")
        if not isinstance(record, Message):
            raise StoreError("a row that is not a message")
        return record
    said = mark.get("said")
    try:
        time = datetime.fromisoformat(said) if isinstance(said, str) else None
    except ValueError as error:
        raise StoreError("a stored entry cannot be read") from error
    return replace(OPENAI_CHAT.read_message(fields), origin=str(mark["origin"]), time=time)


def _body_fields(entry: Entry, lines: Sequence[JsonObject]) -> JsonObject:
    """The body of an entry, and those of its large texts that the lines do not have."""
    body = body_of(entry)
    in_lines = {_name(text) for text in _large_strings(lines)}
    rest = {name: text for name, text in body.large.items() if name not in in_lines}
    return {"body": body.text, **({"large": json.dumps(rest)} if rest else {})}


def _name(text: str) -> str:
    return blake2b(bytes_of(text), digest_size=32).hexdigest()


def _large_strings(lines: Sequence[JsonObject]) -> Iterator[str]:
    waiting: list[Json] = [value for line in lines for key, value in line.items() if key != MARK]
    while waiting:
        match waiting.pop():
            case str(text) if len(text) >= LARGE:
                yield text
            case list(items):
                waiting.extend(items)
            case dict(fields):
                waiting.extend(fields.values())
            case _:
                continue


def _clean(line: JsonObject) -> JsonObject:
    """The line without lone surrogates, which nanobot cannot save."""
    text = json.dumps(line, ensure_ascii=False)
    cleaned: JsonObject = line if is_whole(text) else json.loads(whole(text))
    return cleaned
