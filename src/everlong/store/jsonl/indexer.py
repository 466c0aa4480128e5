"""Bring the index up to date with a session file.

A file that only grew is read from where the index ends. A rewritten file (nanobot rewrites on each save) is read from
its start, but unchanged rows are only moved: what is derived from them stays. Bytes that are not a record are returned
as faults. Called with the folder's lock held, inside a transaction.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import BinaryIO

from everlong.core import Entry, Message, ref_of
from everlong.errors import StoreError, WireError
from everlong.store.bodies import EntryKind
from everlong.store.jsonl.index import Index, IndexRow, Session
from everlong.store.jsonl.lines import (
    MARK,
    Fault,
    Line,
    Mark,
    Scanned,
    exact_text,
    fingerprint,
    local_text,
    mark_of,
    moment,
    parse_entry,
    refers_to,
    scan,
)
from everlong.store.jsonl.metadata import is_header, merged_header, stored_header, time_of_change_place

__all__ = ["IndexReport", "catch_up"]

#: Rows that change which compaction is in force.
OF_POINTS = frozenset({EntryKind.POINT, EntryKind.WITHDRAWAL, EntryKind.REMOVAL, EntryKind.RESTORATION})
REMEMBERED = 1_000  # last rows that were known before, to distinguish them from an interrupted write
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(slots=True)
class IndexReport:
    """What was noticed while indexing a file."""

    faults: list[Fault] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    #: How many known rows are no longer in the file.
    lost: int = 0


def catch_up(index: Index, session: Session, file: BinaryIO, *, whole: bool) -> IndexReport:
    """Index a file, from its start if `whole`. Sets the session's figures; the caller stores them."""
    return _IndexPass(index, session, whole).run(file)


def _why(error: StoreError | WireError) -> str:
    """Return why a line is not a row, without the format's error text, which may quote the line."""
    return str(error) if isinstance(error, StoreError) else "no message of a known kind"


class _IndexPass:
    """One pass over a file."""

    def __init__(self, index: Index, session: Session, whole: bool) -> None:
        self._index, self._session = index, session
        self._report = IndexReport()
        self._old_first = session.first
        self._known: set[str] = set()
        self._whole = self._same = whole
        #: Lines and rows of a write whose end has not been seen yet, and how many of its lines are missing.
        self._open: list[tuple[Line, IndexRow]] = []
        self._due = 0
        #: The line numbers of the last metadata line and of the last point or withdrawal.
        self._header_at = self._point_at = 0
        #: The lines of one row, and its number among nanobot's messages.
        self._group: list[Line] = []
        self._group_said = 0
        index.forget_own_summary(session)
        self._before = session.length
        self._start = self._order = 0 if whole else session.length
        if whole:
            session.length = session.messages = session.points = 0
            session.size = session.lines = session.said = 0
            session.first = session.header = session.updated = ""
            session.stamp, session.ended, session.generation = -1, 1, session.generation + 1

    def run(self, file: BinaryIO) -> IndexReport:
        session = self._session
        end = session.size
        for scanned in scan(file, session.size, session.lines):
            session.lines = scanned.number
            end = scanned.offset + len(scanned.raw)
            session.ended = int(scanned.raw.endswith(b"\n"))
            self._take(scanned)
        session.size = max(end, file.seek(0, 2)) if session.ended else end
        self._end_group()
        self._close(unfinished=True)
        if self._same and self._order < self._before:
            self._differ()
        self._settle_header()
        self._index.count(session, self._start)
        self._add_own_summary()
        return self._report

    # Lines

    def _take(self, scanned: Scanned) -> None:
        if isinstance(scanned, Fault):
            self._report.faults.append(scanned)
        elif is_header(scanned.fields):
            self._take_header(scanned)
        elif scanned.fields.get("_type") != "provider_state":
            number = self._session.said
            self._session.said += 1
            self._take_message(scanned, number)

    def _take_header(self, line: Line) -> None:
        text = line.raw.decode().strip("\0 \t\r\n")
        if not self._session.first:
            self._session.first = text
            self._session.stamp = time_of_change_place(line) if line.number == 1 else -1
        self._session.header = text
        self._session.stale = 0
        self._header_at = line.number

    def _take_message(self, line: Line, number: int) -> None:
        mark = line.fields.get(MARK)
        if isinstance(mark, dict) and mark.get("goes_on") is True:
            if self._group:
                self._group.append(line)
            elif not self._same:
                self._fault(line, "the end of a row whose beginning is missing")
            return
        self._end_group()
        if not (self._same and self._stays(line, number)):
            self._group, self._group_said = [line], number

    def _end_group(self) -> None:
        """Index the row whose lines are complete."""
        lines, self._group = self._group, []
        if not lines:
            return
        try:
            mark = mark_of(lines[0].fields)
            last = mark_of(lines[-1].fields)
            entry = parse_entry([line.fields for line in lines])
        except (StoreError, WireError) as error:
            self._fault(lines[0], _why(error))
            return
        if mark is None:
            self._close()
        if entry is not None:
            self._take_row(lines, mark, entry)
            self._due = last.left if last else 0
            if not self._due:
                self._close()

    def _take_row(self, lines: list[Line], mark: Mark | None, entry: Entry) -> None:
        line = lines[0]
        print_ = fingerprint(line.raw)
        name = self._free_name(line, mark, print_)
        if name is None:
            self._report.faults.append(Fault(line.number, line.offset, line.raw, "a row that exists already"))
            return
        time = (mark and mark.time) or moment(line.fields.get("timestamp")) or moment(self._session.updated) or EPOCH
        placed = IndexRow(
            ord=self._order,
            id=name,
            kind=EntryKind.MESSAGE if mark is None else mark.kind,
            role=entry.role.value if isinstance(entry, Message) else "",
            time=exact_text(time),
            place=line.offset,
            size=lines[-1].offset + len(lines[-1].raw) - line.offset,
            print=print_,
            said=self._group_said,
            target=self._target(mark, entry),
            removes=self._removes(mark),
        )
        self._order += 1
        self._open.append((line, placed))
        self._note_point(line, placed)

    def _note_point(self, line: Line, placed: IndexRow) -> None:
        if placed.kind in OF_POINTS:
            self._point_at = line.number

    def _fault(self, line: Line, why: str) -> None:
        self._report.faults.append(Fault(line.number, line.offset, line.raw, why, stays=True))

    def _stays(self, line: Line, number: int) -> bool:
        """Whether the line is the known row of this order, which has only moved, or is not a row."""
        known = self._index.at(self._session.session, self._order)
        if known is None or known.print != fingerprint(line.raw):
            if MARK not in line.fields and self._is_no_row(line):
                return True
            self._differ()
            return False
        move = "UPDATE rows SET place = ?, said = ? WHERE session = ? AND ord = ?"
        self._index.do(move, [(line.offset, number, self._session.session, self._order)])
        self._session.updated = known.time
        self._order += 1
        self._note_point(line, known)
        return True

    def _is_no_row(self, line: Line) -> bool:
        try:
            return parse_entry([line.fields]) is None
        except (StoreError, WireError) as error:
            self._fault(line, _why(error))
            return True

    def _differ(self) -> None:
        """Drop the rest of the index, because the file differs from here on."""
        self._same = False
        rest = self._index.rows(self._session.session, "AND ord >= ? ORDER BY ord DESC", (self._order,))
        self._known = {row.id for row in rest[:REMEMBERED]}
        self._report.lost = len(rest)
        self._index.cut(self._session, self._order)

    def _close(self, *, unfinished: bool = False) -> None:
        """Index the rows of a write. A write with missing lines at the end of the file was never acknowledged."""
        rows = [placed for _, placed in self._open]
        if unfinished and self._due and self._broke_off(rows):
            first = self._open[0][0]
            self._order -= len(rows)
            self._session.size, self._session.said = first.offset, rows[0].said
            self._session.lines = first.number - 1
            self._report.faults = [fault for fault in self._report.faults if fault.offset < first.offset]
            self._report.faults.append(Fault(first.number, first.offset, b"", "an interrupted write", torn=True))
        elif rows:
            self._index.add(self._session, rows)
            self._session.updated = rows[-1].time
            self._report.lost -= sum(row.id in self._known for row in rows)
        self._open, self._due = [], 0

    def _broke_off(self, rows: list[IndexRow]) -> bool:
        """Whether a write with missing lines was interrupted, not shortened later by another program.

        A complete write also sets the time of change, and rows that were known before belong to a complete write.
        """
        if any(row.id in self._known for row in rows):
            return False
        changed = stored_header(self._session.first, "", EPOCH).changed
        return not self._session.ended or (bool(changed) and changed < local_text(datetime.fromisoformat(rows[0].time)))

    # Names and references of rows

    def _free_name(self, line: Line, mark: Mark | None, print_: bytes) -> str | None:
        name = mark.id if mark else f"n{print_.hex()}"
        taken = self._named(name)
        if taken is None:
            return name
        if mark and taken.print == print_:
            return None
        number = 2
        while self._named(f"{name}~{number}"):
            number += 1
        if mark:
            self._report.notes.append(
                f"line {line.number}: the id {name!r} already exists; the row is now {name}~{number}"
            )
        return f"{name}~{number}"

    def _named(self, name: str) -> IndexRow | None:
        for _, placed in self._open:
            if placed.id == name:
                return placed
        return self._index.named(self._session.session, name)

    def _target(self, mark: Mark | None, entry: Entry) -> int | None:
        if mark is None or refers_to(entry) is None:
            return None
        if mark.anchor is None:
            return self._order + mark.ahead
        anchor = self._named(mark.anchor)
        if anchor is not None:
            return anchor.ord
        return -1 if mark.kind == EntryKind.WITHDRAWAL else 0

    def _removes(self, mark: Mark | None) -> str:
        """The orders of the rows that a removal names, as far as they exist."""
        if mark is None or mark.kind != EntryKind.REMOVAL:
            return ""
        named = (self._named(name) for name in mark.anchors)
        return " ".join(str(row.ord) for row in named if row is not None)

    # Metadata

    def _settle_header(self) -> None:
        session = self._session
        if self._whole and self._old_first and session.header not in ("", session.first):
            header_line = merged_header(self._old_first, session.first, session.header)
            session.stale |= int(header_line != session.header)
            session.header = header_line
        header = stored_header(session.header, session.name, EPOCH)
        if self._point_at > self._header_at and (self._header_at != 1 or not header.own_ref):
            session.stale = 1  # the write was interrupted between a point and its metadata
        session.owner, session.archived = header.owner, int(header.archived)
        session.updated = max(session.updated, exact_text(header.updated))

    def _add_own_summary(self) -> None:
        """Add nanobot's own summary as a point at the end, until it is written as a row."""
        session = self._session
        header = stored_header(session.header, session.name, EPOCH)
        text = header.foreign_summary
        if not text:
            return
        after = self._index.rows(session.session, "AND said >= ? ORDER BY ord LIMIT 1", (header.consolidated,))
        name = f"nanobot-{ref_of(text)}"
        row = IndexRow(
            ord=session.length,
            id=name if self._named(name) is None else f"{name}~{session.length}",
            kind=EntryKind.POINT,
            role="",
            time=exact_text(header.updated),
            place=-1,
            size=0,
            print=b"",
            said=session.said,
            target=after[0].ord if after else session.length,
        )
        self._index.add(session, [row])
        self._index.count(session, row.ord)
