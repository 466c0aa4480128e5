"""The metadata line of a session: nanobot's fields, and ours inside its `metadata` object.

nanobot keeps everything in that object and drops unknown fields outside it. Its list reads the first line of a file,
its loader the last metadata line: changes that it makes only in the first line are merged into the last. The summary
that it continues with is `_last_summary`; `own_ref` (stored as "told") is the reference of the one that we wrote, so
that any other is known to be nanobot's own.
"""

import json
import re
from dataclasses import dataclass, field, replace
from datetime import datetime

from everlong.core import Json, JsonObject, JsonText, ref_of
from everlong.errors import StoreError
from everlong.store.jsonl.lines import Line, is_whole, local_text, moment, whole
from everlong.wire import dump, summary_in

__all__ = [
    "OURS",
    "VERSION",
    "Header",
    "StoredPin",
    "header_fields",
    "is_header",
    "merged_header",
    "parse_header",
    "stored_header",
    "time_of_change_place",
    "titled",
]

OURS = "everlong"
FIRST, VERSION = 1, 2  # versions of a session; the second has removed messages
LAST_SUMMARY = "_last_summary"
EDITED = "title_user_edited"


@dataclass(frozen=True, slots=True)
class StoredPin:
    """A pin as it is stored: a row is named by its id, since nanobot may move rows."""

    id: str
    row: str | None
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """A metadata line. `settings` and `metadata` are as they were given; None if nothing was given."""

    key: str
    created: datetime
    updated: datetime
    owner: str = ""
    title: str = ""
    archived: bool = False
    parent: tuple[str, int] = ("", 0)
    settings: JsonText = "{}"
    metadata: JsonText | None = None
    pins: tuple[StoredPin, ...] = ()
    #: The summary that nanobot sees, how many messages it covers, and the reference of the last one that we wrote.
    summary: str = ""
    consolidated: int = 0
    own_ref: str = ""
    version: int = FIRST
    #: The time of change as nanobot wrote it; only read.
    changed: str = ""
    #: Everything else in nanobot's `metadata` object.
    others: JsonObject = field(default_factory=dict)

    @property
    def shown_metadata(self) -> JsonText:
        """The metadata of the thread: the one that was given, else nanobot's."""
        return dump(self.others) if self.metadata is None else self.metadata

    @property
    def foreign_summary(self) -> str:
        """The summary that nanobot wrote itself; "" if there is none or it is ours."""
        return self.summary if self.summary and ref_of(self.summary) != self.own_ref else ""


def is_header(fields: JsonObject) -> bool:
    """Whether the line is a metadata line."""
    return fields.get("_type") == "metadata"


def parse_header(fields: JsonObject, key: str, time: datetime) -> Header:
    """Read a metadata line. `key` and `time` are used where it has none. Raises StoreError for a newer version."""
    inner = _object(fields.get("metadata"))
    ours = _ours_in(inner.pop(OURS, None))
    version = ours.get("version", FIRST)
    if not isinstance(version, int) or version > VERSION:
        known = f"version {version}" if isinstance(version, int) else "an unknown version"
        raise StoreError(f"session {key!r} was written by a newer Everlong ({known}, this one reads {VERSION})")
    summary = summary_in(fields)
    inner.pop(LAST_SUMMARY, None)
    title = inner.pop("title", "")
    created = moment(ours.get("created")) or moment(fields.get("created_at")) or time
    metadata, inside = ours.get("metadata"), fields.get("key")
    return Header(
        key=inside if isinstance(inside, str) else key,
        created=created,
        updated=moment(ours.get("updated")) or moment(fields.get("updated_at")) or created,
        owner=_text(ours.get("owner")),
        title=_text(ours.get("title")) or _text(title),
        archived=ours.get("archived") is True,
        parent=_parent(ours.get("parent")),
        settings=_text(ours.get("settings")) or "{}",
        metadata=metadata if isinstance(metadata, str) else None,
        pins=_pins(ours.get("pins")),
        summary=summary,
        consolidated=_consolidated(fields),
        own_ref=_text(ours.get("told")),
        version=version,
        changed=_text(fields.get("updated_at")),
        others=inner,
    )


def header_fields(header: Header) -> JsonObject:
    """The metadata line, with the fields in nanobot's order."""
    ours: JsonObject = {"version": header.version, "created": _exact(header.created), "updated": _exact(header.updated)}
    optional: JsonObject = {
        "owner": header.owner,
        "archived": header.archived,
        "parent": list(header.parent) if header.parent[0] or header.parent[1] else "",
        "settings": "" if header.settings == "{}" else header.settings,
        "pins": [_pin_out(pin) for pin in header.pins],
        "told": header.own_ref,
    }
    ours |= {name: value for name, value in optional.items() if value}
    if header.metadata is not None:
        ours["metadata"] = header.metadata
    metadata: JsonObject = dict(header.others)
    if header.title:
        metadata["title"] = whole(header.title)
        ours |= {} if is_whole(header.title) else {"title": header.title}
    if header.summary:
        metadata[LAST_SUMMARY] = {"text": header.summary, "last_active": local_text(header.updated)}
    return {
        "_type": "metadata",
        "key": header.key,
        "created_at": local_text(header.created),
        "updated_at": local_text(header.updated),
        "metadata": {**metadata, OURS: ours if is_whole(dump(ours)) else json.dumps(ours)},
        "last_archived": header.consolidated,
        "last_consolidated": header.consolidated,
    }


def titled(header: Header, title: str) -> Header:
    """The header with a title of ours, marked as a person's choice so that nanobot does not replace it."""
    others = {key: value for key, value in header.others.items() if key != EDITED}
    return replace(header, title=title, others={**others, EDITED: True} if title else others)


def _ours_in(value: Json) -> JsonObject:
    """Our fields. They are JSON text where nanobot cannot save them otherwise."""
    try:
        return _object(json.loads(value) if isinstance(value, str) else value)
    except ValueError:
        return {}


def _pin_out(pin: StoredPin) -> Json:
    return {"id": pin.id, "row": pin.row, "text": pin.text}


def _pins(values: Json) -> tuple[StoredPin, ...]:
    pins: list[StoredPin] = []
    for pin in values if isinstance(values, list) else ():
        if isinstance(pin, dict) and isinstance(pin.get("id"), str):
            row = pin.get("row")
            pins.append(StoredPin(_text(pin.get("id")), row if isinstance(row, str) else None, _text(pin.get("text"))))
    return tuple(pins)


def _parent(value: Json) -> tuple[str, int]:
    match value:
        case [str(thread), int(rows)]:
            return thread, rows
        case _:
            return "", 0


def _consolidated(fields: JsonObject) -> int:
    for name in ("last_archived", "last_consolidated"):
        offset = fields.get(name)
        if type(offset) is int and offset >= 0:
            return offset
    return 0


def _object(value: Json) -> JsonObject:
    return dict(value) if isinstance(value, dict) else {}


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""


def _exact(time: datetime) -> str:
    return time.isoformat()


STAMP = re.compile(
    rb'\{"_type": "metadata", "key": "(?:[^"\\]|\\.)*", "created_at": "[^"]*", "updated_at": "([-0-9T:.]{26})"'
)


def stored_header(text: str, key: str, time: datetime) -> Header:
    """Read a metadata line that the index keeps; without one, return an empty header."""
    return parse_header(json.loads(text), key, time) if text else Header(key=key, created=time, updated=time)


def time_of_change_place(line: Line) -> int:
    """The offset of the file's time of change, so that it can be set in place; -1 if it cannot."""
    stamp = STAMP.match(line.raw)
    return line.offset + stamp.start(1) if stamp else -1


def merged_header(old_first: str, new_first: str, counts: str) -> str:
    """Return the line `counts`, updated with the changes from the old to the new first line."""
    old, new = _inner(old_first), _inner(new_first)
    if old == new:
        return counts
    line: JsonObject = json.loads(counts)
    inner = _inner(counts)
    for key in old.keys() | new.keys():
        if key != OURS and old.get(key) != new.get(key):
            inner.pop(key, None)
            inner |= {key: new[key]} if key in new else {}
    return json.dumps(line | {"metadata": inner}, ensure_ascii=False)


def _inner(text: str) -> JsonObject:
    metadata = json.loads(text).get("metadata") if text else None
    return dict(metadata) if isinstance(metadata, dict) else {}
