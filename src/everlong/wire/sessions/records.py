"""Records of session files: shared code for reading lines, times, fields and trees.

A line that does not match its format stays in place as an aside, and a warning names it. Each format decides which
records belong to the conversation.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import NAMESPACE_URL, uuid5

from everlong.core import Json, JsonObject, Message, ref_of
from everlong.errors import WireError
from everlong.wire.document import Aside, Record
from everlong.wire.fields import dump, load, unpack

__all__ = [
    "Link",
    "as_object",
    "aside",
    "fields_of",
    "fresh_id",
    "fresh_uuid",
    "milliseconds",
    "parents_of",
    "path_to",
    "records_of",
    "stamp",
    "take_text",
    "time_of",
]

EPOCH = "1970-01-01T00:00:00.000Z"


def records_of(
    lines: Iterable[tuple[str, Json]], parse_record: Callable[[Json, str], Record]
) -> tuple[tuple[Record, ...], tuple[str, ...]]:
    """Return every line as a record, and a warning for each that became an aside. A line is (place, JSON)."""
    records: list[Record] = []
    warnings: list[str] = []
    for where, raw in lines:
        try:
            records.append(parse_record(raw, where))
        except WireError as error:
            records.append(aside(raw))
            warnings.append(str(error))
    return tuple(records), tuple(warnings)


def as_object(raw: Json, *, fmt: str, where: str) -> JsonObject:
    """Return a copy of the record's fields. Raises WireError if it is not an object."""
    if not isinstance(raw, dict):
        raise WireError(f"a record must be an object, not {type(raw).__name__}", fmt=fmt, where=where)
    return dict(raw)


def aside(raw: Json) -> Aside:
    """Return the record unchanged, as an aside."""
    return Aside(dump(raw))


def fields_of(record: Record) -> JsonObject:
    """Return the fields of the record around its message; of an aside, all fields."""
    if isinstance(record, Message):
        return unpack(record.extra)[0]
    body = load(record.body)
    return body if isinstance(body, dict) else {}


def take_text(fields: JsonObject, key: str) -> str:
    """Remove and return the text under `key`; "" if there is none. Anything else, even empty text, stays."""
    value = fields.get(key)
    if isinstance(value, str) and value:
        del fields[key]
        return value
    return ""


def time_of(value: Json) -> datetime | None:
    """Return a time from ISO text or milliseconds since 1970; None if it is neither."""
    try:
        if isinstance(value, str):
            return datetime.fromisoformat(value)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value / 1_000, UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return None


def stamp(time: datetime | None) -> str:
    """Return the time as these programs write it; None is the start of 1970. Example: 2026-01-02T03:04:05.678Z"""
    if time is None:
        return EPOCH
    return _utc(time).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def milliseconds(time: datetime | None) -> int:
    """Return the time in milliseconds since 1970."""
    return 0 if time is None else round(_utc(time).timestamp() * 1_000)


def _utc(time: datetime) -> datetime:
    return time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)


def fresh_id(seed: str, taken: set[str]) -> str:
    """Return eight hex digits that are not in `taken`, and add them to it."""
    turn = 0
    while (name := ref_of(f"{turn}:{seed}")[:8]) in taken:
        turn += 1
    taken.add(name)
    return name


def fresh_uuid(seed: str, taken: set[str]) -> str:
    """Return a UUID that is not in `taken`, and add it there."""
    turn = 0
    while (name := str(uuid5(NAMESPACE_URL, f"everlong:{turn}:{ref_of(seed)}"))) in taken:
        turn += 1
    taken.add(name)
    return name


@dataclass(frozen=True, slots=True)
class Link:
    """The id of a record ("" if it has none) and of its parent (None for a root, "" if the record does not name it)."""

    id: str
    parent: str | None = ""


def parents_of(links: Sequence[Link | None], *, fmt: str) -> tuple[tuple[int | None, ...], tuple[str, ...]]:
    """Return the index of each record's parent, and a warning for each missing parent and repeated id.

    A None among the links is a record outside the tree.
    Example: a (root), b of a, x of lost, c of a -> None, 0, 1, 0
    """
    newest: dict[str, int] = {}
    parents: list[int | None] = []
    warnings: list[str] = []
    before: int | None = None
    for at, link in enumerate(links):
        if link is None:
            parents.append(None)
            continue
        known = newest.get(link.parent) if link.parent else None
        if link.parent and known is None and before is not None:
            warnings.append(
                f"{fmt}: parent {link.parent} is missing; the previous record is used instead (at record {at + 1})"
            )
        parents.append(before if known is None and link.parent is not None else known)
        if link.id and link.id in newest:
            warnings.append(f"{fmt}: id {link.id} appears twice (at record {at + 1})")
        newest[link.id] = before = at
    return tuple(parents), tuple(warnings)


def path_to(last: int, parents: Sequence[int | None]) -> tuple[int, ...]:
    """Return the indexes from the root to `last`."""
    path: list[int] = []
    at: int | None = last
    while at is not None:
        path.append(at)
        at = parents[at]
    return tuple(reversed(path))
