"""The events of a session, in a file next to it: one line per recording call, added in one write.

A start has at most one outcome. Lines that cannot be read are skipped with a warning; the next one starts on a new
line.
"""

import io
import json
import os
from collections.abc import Sequence
from pathlib import Path

from everlong.core import STARTS, Event, EventKind
from everlong.errors import StoreError
from everlong.store.bodies import event_fields, event_in
from everlong.store.damage import Damage
from everlong.store.jsonl.files import as_store_errors, undo_write, write_all
from everlong.store.private import open_private
from everlong.store.rules import new_events

__all__ = ["EventLog"]


class EventLog:
    """The events of one file. Used with the folder's lock held."""

    def __init__(self, path: Path, damage: Damage) -> None:
        self._path, self._damage = path, damage
        self._size = self._inode = self._lines = 0
        self.events: dict[str, Event] = {}
        self.ended: set[str] = set()

    def read(self) -> None:
        """Read what any process has added since the last time."""
        if not self._path.is_file():
            self._start_over(0)
            return
        with as_store_errors(self._path), self._path.open("rb") as file:
            state = os.fstat(file.fileno())
            if state.st_ino != self._inode or state.st_size < self._size:
                self._start_over(state.st_ino)
            file.seek(self._size)
            for raw in file:
                if raw.endswith(b"\n"):
                    self._size += len(raw)
                    self._lines += 1
                    events = _events_in(raw)
                    if events is None:
                        where = f"{self._path.name}, line {self._lines}"
                        self._damage.warn(f"{where}: events cannot be read; the stored data is unchanged")
                    self._take(events or [])

    def add(self, thread: str, events: Sequence[Event]) -> None:
        """Record the events that are new, all or none."""
        self.read()
        new = new_events(thread, events, self._kind_of, self.ended.__contains__)
        if new:
            self._write(new)
            self.read()

    def _kind_of(self, name: str) -> EventKind | None:
        return self.events[name].kind if name in self.events else None

    def _start_over(self, inode: int) -> None:
        """Forget everything: the file was replaced."""
        self._size, self._inode, self._lines = 0, inode, 0
        self.events.clear()
        self.ended.clear()

    def _take(self, events: Sequence[Event]) -> None:
        for event in events:
            self.events[event.id] = event
            if event.kind in STARTS:
                self.ended.add(event.parent)

    def _write(self, events: Sequence[Event]) -> None:
        data = json.dumps([event_fields(event) for event in events]).encode() + b"\n"
        with as_store_errors(self._path), _appending(self._path) as file:
            before = os.fstat(file.fileno())
            try:
                write_all(file.fileno(), b"\n" + data if before.st_size > self._size else data)
                os.fsync(file.fileno())
            except OSError:
                undo_write(self._path, before, os.fstat(file.fileno()).st_size)
                raise


def _appending(path: Path) -> io.FileIO:
    return io.FileIO(open_private(path, os.O_WRONLY | os.O_APPEND), "ab")


def _events_in(raw: bytes) -> list[Event] | None:
    """The events of a line; None if it cannot be read."""
    if not raw.strip():
        return []
    try:
        return [event_in(fields) for fields in json.loads(raw)]
    except (StoreError, ValueError, TypeError, RecursionError):
        return None
