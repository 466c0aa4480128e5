"""What cannot be read in a store: what stands in its place, and how it is named.

One bad row costs itself alone. Where a message stood, a note stands; a point that cannot be read covers nothing and
does not stand; a withdrawal is known by the point that it names. The bytes stay in the store. A warning names the place
(the thread and the number of the row) and never the text. Nothing here reads or writes.
"""

import json
import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from threading import Lock

from everlong.core import Entry, JsonText, Message, Point, Recalled, Role, Row, Text, Withdrawal
from everlong.errors import StoreError
from everlong.store.bodies import EntryKind, entry_of

__all__ = ["NOTE", "Damage", "StoredRow", "is_readable"]

NOTE = "[This message cannot be read: its row in the store is damaged.]"
#: The reason of a point that stands for one that cannot be read.
UNREADABLE = "its row in the store is damaged"
MOST_WARNINGS = 1_000  # that are kept; a store may have lost millions of rows
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: How the body of a message begins. Other roles than these would need what is lost: calls, results.
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
        """Keep and log a warning. What stays in a store is noticed each time it is read, and told once."""
        with self._lock:
            if warning in self._warnings or len(self._warnings) >= MOST_WARNINGS:
                return
            self._warnings[warning] = None
        logger.warning("%s", warning)

    def row(self, thread: Callable[[], str], stored: StoredRow, large: Mapping[str, str]) -> Row:
        """Return the row, its large texts put back; with a note where it cannot be read."""
        whole = isinstance(stored.id, str) and isinstance(stored.time, datetime)
        name = stored.id if isinstance(stored.id, str) else f"unreadable-{stored.order}"
        time = stored.time if isinstance(stored.time, datetime) else EPOCH
        entry: Entry | None = None
        if isinstance(stored.kind, int) and isinstance(stored.body, str):
            try:
                entry = entry_of(stored.kind, stored.body, large)
            except StoreError:
                entry = None
        if entry is None:
            entry, whole = _stand_in(stored), False
        if not whole:
            self.warn(f"thread {thread()!r}, row {stored.order} cannot be read; it is left as it is in the store")
        return Row(stored.order, name, time, entry)

    def json_object(self, text: JsonText, thread: str, what: str) -> JsonText:
        """Return settings or metadata; an empty object for what is none."""
        if text == "{}":
            return text
        try:
            if isinstance(json.loads(text), dict):
                return text
        except (ValueError, RecursionError):
            pass
        self.warn(f"thread {thread!r}: its {what} cannot be read; they are left as they are in the store")
        return "{}"

    def event(self, thread: str, number: int) -> None:
        """Warn of an event that cannot be read."""
        self.warn(f"thread {thread!r}, event {number} cannot be read; it is left as it is in the store")


def is_readable(row: Row) -> bool:
    """Whether a row is what was stored. A point that is not covers nothing, so it does not stand."""
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
        case EntryKind.RECALLED | EntryKind.WITHDRAWAL:
            return Recalled(-1, Message(Role.USER, (Text(NOTE),)))  # stands nowhere: it repeated what is there
        case _:
            body = stored.body.decode("ascii", "replace") if isinstance(stored.body, bytes) else stored.body
            begins = _ROLE.match(body) if isinstance(body, str) else None
            return Message(Role(begins[1]) if begins else Role.USER, (Text(NOTE),))
