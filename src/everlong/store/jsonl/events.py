"""The events of a session, in a file beside it: a line for each call that recorded some, added in one write.

Exactly one outcome for a start. Lines that cannot be read are passed over; the next one starts on a new line.
"""

import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from pathlib import Path

from everlong.core.events import STARTS, Event, EventKind
from everlong.errors import StoreError

__all__ = ["EventLog"]


class EventLog:
    """The events of one file, read as far as it was written. Used with the folder's lock held."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._size = self._inode = 0
        self.events: dict[str, Event] = {}
        self.ended: set[str] = set()

    def read(self) -> None:
        """Take in what was added, by whomever."""
        try:
            file = self._path.open("rb")
        except FileNotFoundError:
            self._start_over(0)
            return
        with file:
            found = os.fstat(file.fileno())
            if found.st_ino != self._inode or found.st_size < self._size:
                self._start_over(found.st_ino)
            file.seek(self._size)
            for raw in file:
                if raw.endswith(b"\n"):
                    self._size += len(raw)
                    self._take(_events_in(raw))

    def add(self, thread: str, events: Sequence[Event]) -> None:
        """Record events that are not there yet, all or none."""
        self.read()
        new: dict[str, Event] = {}
        ended: set[str] = set()
        for event in events:
            if event.id in self.events or event.id in new:
                continue
            if event.kind in STARTS:
                if event.parent in self.ended | ended:
                    raise StoreError(f"thread {thread!r}: event {event.parent!r} has an outcome already")
                ended.add(event.parent)
            new[event.id] = event
        if new:
            self._write(list(new.values()))
            self.read()

    def _start_over(self, inode: int) -> None:
        """It is another file than before."""
        self._size, self._inode = 0, inode
        self.events.clear()
        self.ended.clear()

    def _take(self, events: Sequence[Event]) -> None:
        for event in events:
            self.events[event.id] = event
            if event.kind in STARTS:
                self.ended.add(event.parent)

    def _write(self, events: Sequence[Event]) -> None:
        data = json.dumps([_out(event) for event in events]).encode() + b"\n"
        with self._path.open("ab") as file:
            size = file.tell()
            file.write(b"\n" + data if size > self._size else data)
            file.flush()
            os.fsync(file.fileno())


def _out(event: Event) -> dict[str, object]:
    fields = {name: value for name, value in asdict(event).items() if value not in (None, "")}
    return fields | {"time": event.time.isoformat()}


def _events_in(raw: bytes) -> list[Event]:
    try:
        return [
            Event(**{**fields, "kind": EventKind(fields["kind"]), "time": datetime.fromisoformat(fields["time"])})
            for fields in json.loads(raw)
        ]
    except (ValueError, KeyError, TypeError):
        return []
