"""Unreadable data in a store: what replaces it, and how it is reported.

A bad row affects only itself. A note replaces an unreadable message. An unreadable point covers nothing and is not in
force. A withdrawal stays in force if the point that it names is known. The bytes stay in the store. A warning names the
place (the thread and the number of the row) and never the text. Nothing here reads or writes.
"""

import json
import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from threading import Lock

from everlong.core import (
    Entry,
    Gone,
    JsonText,
    Message,
    Point,
    Recalled,
    Removal,
    Restoration,
    Role,
    Row,
    Text,
    Withdrawal,
)
from everlong.errors import StoreError
from everlong.store.bodies import EntryKind, entry_of

__all__ = ["NOTE", "Damage", "StoredRow", "is_readable"]

NOTE = "[This message cannot be read: its row in the store is damaged.]"
#: The reason of a point that replaces an unreadable one.
UNREADABLE = "its row in the store is damaged"
MOST_WARNINGS = 1_000  # warnings that are kept; a store may have lost millions of rows
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: How the body of a message begins. A message of another role needs the calls or results that are lost.
_ROLE = re.compile(r'\{"role":"(system|user|assistant)"')

logger = logging.getLogger("everlong.store")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRow:
    """A row as a database returned it. Any field but `order` may be damaged; `body` is None if it is gone."""

    order: int
    id: object
    time: object
    kind: object
    body: object
    target: object = None
    #: Whether a removal names the row: then nothing of it is read.
    removed: bool = False


class Damage:
    """The warnings of a store since it was opened, each once. Every call may come from any thread."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._warnings: dict[str, None] = {}

    @property
    def warnings(self) -> tuple[str, ...]:
        """What could not be read, by its place."""
        with self._lock:
            return tuple(self._warnings)

    def warn(self, warning: str) -> None:
        """Keep and log a warning. A problem that stays in the store is found at each read, but reported once."""
        with self._lock:
            if warning in self._warnings or len(self._warnings) >= MOST_WARNINGS:
                return
            self._warnings[warning] = None
        logger.warning("%s", warning)

    def row(self, thread: Callable[[], str], stored: StoredRow, large: Mapping[str, str]) -> Row:
        """Return the row with its large texts put back; a note replaces what cannot be read."""
        whole = isinstance(stored.id, str) and isinstance(stored.time, datetime)
        name = stored.id if isinstance(stored.id, str) else f"unreadable-{stored.order}"
        time = stored.time if isinstance(stored.time, datetime) else EPOCH
        entry: Entry | None = Gone() if stored.removed else None
        if entry is None and isinstance(stored.kind, int) and isinstance(stored.body, str):
            try:
                entry = entry_of(stored.kind, stored.body, large)
            except StoreError:
                entry = None
        if entry is None:
            entry, whole = _stand_in(stored), False
        if not whole:
            self.warn(f"thread {thread()!r}, row {stored.order} cannot be read; the stored data is unchanged")
        return Row(stored.order, name, time, entry)

    def json_object(self, text: JsonText, thread: str, what: str) -> JsonText:
        """Return settings or metadata; an empty object if it cannot be read."""
        if text == "{}":
            return text
        try:
            if isinstance(json.loads(text), dict):
                return text
        except (ValueError, RecursionError):
            pass
        self.warn(f"thread {thread!r}: its {what} cannot be read; the stored data is unchanged")
        return "{}"

    def event(self, thread: str, number: int) -> None:
        """Warn of an event that cannot be read."""
        self.warn(f"thread {thread!r}, event {number} cannot be read; the stored data is unchanged")


def is_readable(row: Row) -> bool:
    """Return whether a row is what was stored. A damaged point covers nothing, so it is not in force."""
    match row.entry:
        case Point(boundary=0, reason=reason):
            return reason != UNREADABLE
        case Message(parts=parts):
            return parts != (Text(NOTE),)
        case _:
            return True


def _stand_in(stored: StoredRow) -> Entry:
    match stored.kind:
        case EntryKind.POINT:
            return Point(boundary=0, summary=(), reason=UNREADABLE)
        case EntryKind.WITHDRAWAL if isinstance(stored.target, int):
            return Withdrawal(stored.target)
        case EntryKind.RESTORATION if isinstance(stored.target, int):
            return Restoration(stored.target)
        case EntryKind.REMOVAL:
            return Removal(())  # the removed rows are marked themselves
        case EntryKind.GONE:
            return Gone()
        case EntryKind.RECALLED | EntryKind.WITHDRAWAL | EntryKind.RESTORATION:
            return Recalled(-1, Message(Role.USER, (Text(NOTE),)))  # no place in a view: it only repeated other rows
        case _:
            body = stored.body.decode("ascii", "replace") if isinstance(stored.body, bytes) else stored.body
            begins = _ROLE.match(body) if isinstance(body, str) else None
            return Message(Role(begins[1]) if begins else Role.USER, (Text(NOTE),))
