"""Records of session files: what every format does with a line before it knows what the line says.

Owns the reading of times and of fields, and the rule for a line that is not what its format promises: it stays in
place as an aside and is named in a warning. Which records make the conversation is the format's own business.
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
    """Every line as a record, and a warning for each that had to stay as it is. A line is (where, its JSON)."""
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
    """A copy of the record's fields."""
    if not isinstance(raw, dict):
        raise WireError(f"a record is an object, not {type(raw).__name__}", fmt=fmt, where=where)
    return dict(raw)


def aside(raw: Json) -> Aside:
    """The record as it is."""
    return Aside(dump(raw))


def fields_of(record: Record) -> JsonObject:
    """What stands in the record around its message; of an aside, everything."""
    if isinstance(record, Message):
        return unpack(record.extra)[0]
    body = load(record.body)
    return body if isinstance(body, dict) else {}


def take_text(fields: JsonObject, key: str) -> str:
    """The text under `key`, taken out; "" if there is none. Anything else, empty text included, stays to be carried."""
    value = fields.get(key)
    if isinstance(value, str) and value:
        del fields[key]
        return value
    return ""


def time_of(value: Json) -> datetime | None:
    """A moment, written as ISO text or as milliseconds since 1970; None if it is neither."""
    try:
        if isinstance(value, str):
            return datetime.fromisoformat(value)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value / 1_000, UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return None


def stamp(time: datetime | None) -> str:
    """The moment as these programs write it. Example: 2026-01-02T03:04:05.678Z; without one, the start of 1970."""
    if time is None:
        return EPOCH
    return _utc(time).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def milliseconds(time: datetime | None) -> int:
    """The moment in milliseconds since 1970."""
    return 0 if time is None else round(_utc(time).timestamp() * 1_000)


def _utc(time: datetime) -> datetime:
    return time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)


def fresh_id(seed: str, taken: set[str]) -> str:
    """Eight hex digits that are not taken; they are from now on."""
    turn = 0
    while (name := ref_of(f"{turn}:{seed}")[:8]) in taken:
        turn += 1
    taken.add(name)
    return name


def fresh_uuid(seed: str, taken: set[str]) -> str:
    """A UUID that is not taken; it is from now on."""
    turn = 0
    while (name := str(uuid5(NAMESPACE_URL, f"everlong:{turn}:{ref_of(seed)}"))) in taken:
        turn += 1
    taken.add(name)
    return name


@dataclass(frozen=True, slots=True)
class Link:
    """The id of a record, "" if it has none, and its parent's: None at a root, "" if the record does not say."""

    id: str
    parent: str | None = ""


def parents_of(links: Sequence[Link | None], *, fmt: str) -> tuple[tuple[int | None, ...], tuple[str, ...]]:
    """The index of each record's parent, and a warning for each that is missing or each id that comes twice.

    A None among the links is a record outside the tree: nothing follows it.
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
            warnings.append(f"{fmt}: parent {link.parent} is missing, the record before is taken (at record {at + 1})")
        parents.append(before if known is None and link.parent is not None else known)
        if link.id and link.id in newest:
            warnings.append(f"{fmt}: id {link.id} comes twice (at record {at + 1})")
        newest[link.id] = before = at
    return tuple(parents), tuple(warnings)


def path_to(last: int, parents: Sequence[int | None]) -> tuple[int, ...]:
    """The indexes from the root to `last`."""
    path: list[int] = []
    at: int | None = last
    while at is not None:
        path.append(at)
        at = parents[at]
    return tuple(reversed(path))
