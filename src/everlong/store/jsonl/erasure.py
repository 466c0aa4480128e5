"""Erase messages for privacy. Apart from the removal of whole files, nothing else deletes what was written.

Each file that has the rows is written again, completely or not at all: a mark replaces each row, and metadata that
mentions it is removed. A plan is written first, without any of the erased text. If the process is killed, the next one
that opens the folder finishes the plan. The index and the counts next to the files are rewritten too, so that no page
contains the text. Called with the folder's lock held.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from secrets import token_hex
from typing import Any

from everlong.core import Gone, Message, Row
from everlong.errors import StoreError
from everlong.store.erasure import Erasure, erasure_of
from everlong.store.jsonl.events import EventLog
from everlong.store.jsonl.files import CORRUPT, as_store_errors, events_beside, remove_unfinished, write_new_file
from everlong.store.jsonl.folder import SessionFolder
from everlong.store.jsonl.index import Session
from everlong.store.jsonl.indexer import EPOCH
from everlong.store.jsonl.learned import Learned
from everlong.store.jsonl.lines import MARK, Line, as_bytes, exact_text, fingerprint, mark_of, moment, scan
from everlong.store.jsonl.log import anchored_lines, gone_line, put_header, with_newest_summary
from everlong.store.jsonl.metadata import VERSION, Header, header_fields, is_header
from everlong.store.rules import new_name

__all__ = ["Erasures"]

PLAN = ".everlong-erasing-"


@dataclass(frozen=True, slots=True)
class _FilePlan:
    """What is erased from one session: rows by name, each with its time; and events with erased text."""

    key: str
    rows: Mapping[str, str]
    events: Sequence[str]
    #: The line that informs other readers of the thread, and its name; "" if none of the erased rows could be read.
    told: str
    told_name: str
    #: Whether nanobot's own summary mentions the rows.
    summary: bool


class Erasures:
    """Erases messages in one folder."""

    def __init__(self, folder: SessionFolder, learned: Learned) -> None:
        self._folder, self._learned = folder, learned

    def erase(self, thread: str, orders: Sequence[int], now: datetime) -> dict[str, tuple[int, ...]]:
        """Erase messages and return the erased orders, by thread."""
        erasure = self._erasure_in(self._folder.session(thread), orders)
        going = {thread: erasure} | self._shared_with(thread, erasure)
        going = {key: one for key, one in going.items() if one.rows}
        if not going:
            return {}
        plans = [self._planned(key, one, now) for key, one in going.items()]
        refs = sorted({ref for one in going.values() for ref in one.refs})
        content = {"files": [_fields(plan) for plan in plans], "refs": refs}
        path = self._folder.path / f"{PLAN}{token_hex(8)}"
        write_new_file(path, [json.dumps(content).encode()])
        self._follow(path)
        return {key: one.orders for key, one in going.items()}

    def finish(self) -> None:
        """Finish the plans that a killed process left."""
        for path in sorted(self._folder.path.glob(f"{PLAN}*")):
            with suppress(StoreError):  # tried again next time
                self._follow(path)

    def _erasure_in(self, session: Session, orders: Sequence[int]) -> Erasure:
        placed = self._folder.index.rows(session.session, "ORDER BY ord")
        rows = self._folder.rows(session, placed, as_read=False) or []
        return erasure_of(session.name, rows, orders, [row.ord for row in placed if row.removed is not None])

    def _shared_with(self, thread: str, erasure: Erasure) -> dict[str, Erasure]:
        """Return the other sessions of the owner that contain one of these messages, and what is erased from each."""
        self._folder.refresh()
        owner = self._folder.session(thread).owner
        messages = [row for row in erasure.rows if isinstance(row.entry, Message)]
        shared: dict[str, Erasure] = {}
        for session in self._folder.index.sessions("WHERE owner = ?", (owner,)):
            if session.name != thread:
                orders = [row.order for row in messages if self._has(session, row)]
                if orders:
                    shared[session.name] = self._erasure_in(session, orders)
        return shared

    def _has(self, session: Session, row: Row) -> bool:
        """Whether a session has exactly this row: a branch copies order, name and content from its parent."""
        known = self._folder.index.at(session.session, row.order)
        if known is None or known.id != row.id:
            return False
        rows = self._folder.rows(session, [known], as_read=False) or []
        return [one.entry for one in rows] == [row.entry]

    def _planned(self, key: str, erasure: Erasure, now: datetime) -> _FilePlan:
        session = self._folder.session(key)
        own = self._folder.index.own_summary(session)
        notice = Row(session.length, new_name(), now, erasure.removal)
        lines = anchored_lines(self._folder, session, notice, {}) if erasure.shown else []
        log = EventLog(events_beside(self._folder.file(session)), self._folder.damage)
        log.read()
        return _FilePlan(
            key,
            {row.id: exact_text(row.time) for row in erasure.rows},
            [event.id for event in erasure.scrubbed(log.events.values())],
            "".join(as_bytes(line).decode() for line in lines),
            notice.id,
            own is not None and own.ord in erasure.orders,
        )

    def _follow(self, path: Path) -> None:
        """Carry out a plan; each of its steps may already be done."""
        with as_store_errors(path):
            content = json.loads(path.read_bytes())
        plans = [_FilePlan(**fields) for fields in content["files"]]
        for plan in plans:
            if self._folder.find(plan.key) is not None:
                self._rewrite(plan)
        self._folder.index.rewrite()
        self._learned.forget(content["refs"], [(plan.key, row) for plan in plans for row in plan.rows])
        with as_store_errors(path):
            path.unlink(missing_ok=True)

    def _rewrite(self, plan: _FilePlan) -> None:
        session = self._folder.session(plan.key)
        path = self._folder.file(session)
        header = _without(self._folder.header(session), plan)
        write_new_file(path, [as_bytes(header_fields(header))], list(_kept_lines(path, plan)))
        _scrub_events(events_beside(path), frozenset(plan.events))
        with as_store_errors(path):
            path.with_name(path.name + CORRUPT).unlink(missing_ok=True)
            remove_unfinished(path)
        with self._folder.index.writing():
            self._folder.index.forget(session.file)
        with self._folder.writing(plan.key) as made:
            if not header.summary and made.standing:
                put_header(self._folder, made, with_newest_summary(self._folder, made, header))


def _fields(plan: _FilePlan) -> dict[str, Any]:
    return {name: getattr(plan, name) for name in _FilePlan.__slots__}


def _without(header: Header, plan: _FilePlan) -> Header:
    """The metadata without pins of the erased rows, and without a summary, unless nanobot's own may stay."""
    pins = tuple(pin for pin in header.pins if pin.row not in plan.rows)
    header = replace(header, pins=pins, version=VERSION)
    if header.foreign_summary and not plan.summary:
        return header
    return replace(header, summary="", consolidated=0, own_ref="")


def _kept_lines(path: Path, plan: _FilePlan) -> Iterator[bytes]:
    """Return the lines of a session, with a mark in place of each erased row."""
    names: dict[str, int] = {}
    going = present = False
    with as_store_errors(path), path.open("rb") as file:
        for line in scan(file, 0, 0):
            if not isinstance(line, Line) or is_header(line.fields):
                continue
            mark = mark_of(line.fields) if MARK in line.fields else None
            if mark is not None and mark.goes_on:
                if not going:
                    yield _ended(line)
                continue
            name = mark.id if mark is not None else _found_name(line, names)
            present = present or name == plan.told_name
            going = name in plan.rows
            yield gone_line(Row(0, name, moment(plan.rows[name]) or EPOCH, Gone())) if going else _ended(line)
    if plan.told and not present:
        yield plan.told.encode()


def _found_name(line: Line, names: dict[str, int]) -> str:
    """The name that the index gives a row without a mark."""
    name = f"n{fingerprint(line.raw).hex()}"
    names[name] = names.get(name, 0) + 1
    return name if names[name] == 1 else f"{name}~{names[name]}"


def _ended(line: Line) -> bytes:
    return line.raw.rstrip(b"\n") + b"\n"


def _scrub_events(path: Path, names: frozenset[str]) -> None:
    """Remove the text from the named events; unreadable lines are deleted."""
    if not names or not path.is_file():
        return
    lines: list[bytes] = []
    with as_store_errors(path):
        for raw in path.read_bytes().splitlines():
            with suppress(ValueError, TypeError):
                events = [_scrubbed(fields, names) for fields in json.loads(raw)]
                lines.append(json.dumps(events).encode() + b"\n")
    write_new_file(path, lines)


def _scrubbed(fields: dict[str, Any], names: frozenset[str]) -> dict[str, Any]:
    if fields.get("id") not in names:
        return fields
    return {name: value for name, value in fields.items() if name not in ("reason", "data")}
