"""The log of a session: rows written to its file and its index, changed metadata, and rows copied for a branch.

All rows of an append go into the file in one write. A new point in force also becomes nanobot's summary, so the write
then ends with a metadata line. Called with the folder's lock held, inside a transaction.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from everlong.core import (
    Gone,
    JsonObject,
    Message,
    Point,
    Removal,
    Restoration,
    Role,
    Row,
    Withdrawal,
    ref_of,
)
from everlong.store.bodies import kind_of
from everlong.store.jsonl.files import add_to_file, as_store_errors, write_new_file
from everlong.store.jsonl.folder import SessionFolder
from everlong.store.jsonl.index import IndexRow, Session
from everlong.store.jsonl.lines import MARK, Line, as_bytes, exact_text, fingerprint, lines_of, refers_to, scan, whole
from everlong.store.jsonl.metadata import VERSION, Header, header_fields
from everlong.wire import summary_text

__all__ = ["add_rows", "anchored_lines", "copied_rows", "gone_line", "put_header", "with_newest_summary"]

#: Largest file in bytes that is rewritten when its title or state changes, so that nanobot's list shows it at once.
SMALL = 1024 * 1024


def add_rows(folder: SessionFolder, session: Session, rows: Sequence[Row], time: datetime) -> None:
    """Write rows at the end of a session; their orders continue those of the session."""
    own = folder.index.own_summary(session)
    adopted = folder.rows(session, [own]) or [] if own else []
    folder.index.forget_own_summary(session)
    header = folder.header(session)
    if adopted:
        header = replace(header, own_ref=ref_of(header.summary))
    every = [*adopted, *rows]
    data, placed = _layout(folder, session, every)
    folder.index.add(session, placed)
    folder.index.count(session, session.length)
    if any(isinstance(row.entry, Removal | Restoration) for row in rows):
        header = replace(header, version=VERSION)
    changes = Point | Withdrawal | Removal | Restoration
    if adopted or session.stale or any(isinstance(row.entry, changes) for row in rows):
        header = replace(with_newest_summary(folder, session, header, every), updated=time)
        data += _header_bytes(session, header)
        session.lines += 1
    add_to_file(folder.file(session), session, data, time)
    session.updated = exact_text(time)


def put_header(folder: SessionFolder, session: Session, header: Header) -> None:
    """Write changed metadata: into the first line of a small file, at the end of a large one."""
    if session.size > SMALL:
        data = _header_bytes(session, header)
        add_to_file(folder.file(session), session, data, header.updated)
        session.lines += 1
    else:
        path = folder.file(session)
        with as_store_errors(path), path.open("rb") as file:
            rows = [line.raw.rstrip(b"\n") + b"\n" for line in scan(file, 0, 0) if _is_row(line)]
        write_new_file(path, [as_bytes(header_fields(header)), *rows])
        folder.read_again(session)
    session.owner, session.archived = header.owner, int(header.archived)
    session.updated = exact_text(header.updated)


def with_newest_summary(folder: SessionFolder, session: Session, header: Header, fresh: Sequence[Row] = ()) -> Header:
    """The metadata with the summary of the newest point in force; `fresh` rows are not in the file yet."""
    newest = folder.index.newest_point(session.session, session.length)
    if newest is None:
        return replace(header, summary="", consolidated=0, own_ref="")
    at_hand = [row for row in fresh if row.order == newest.ord] or folder.rows(session, [newest]) or []
    entries = [row.entry for row in at_hand if isinstance(row.entry, Point)]
    text = whole("\n\n".join(summary_text(message) for entry in entries for message in entry.summary if message.text))
    if not text:
        return replace(header, summary="", consolidated=0, own_ref="")
    return replace(header, summary=text, consolidated=_replayed_from(folder, session, newest), own_ref=ref_of(text))


def anchored_lines(folder: SessionFolder, session: Session, row: Row, fresh: dict[int, str]) -> list[JsonObject]:
    """Return the lines of a row, with the ids of rows it refers to; `fresh` are ids that the index lacks so far."""
    if isinstance(row.entry, Removal):
        names = (_name_at(folder, session, order, fresh) for order in row.entry.orders)
        return lines_of(row, anchors=[name for name in names if name is not None])
    target = refers_to(row.entry)
    if target is None or not 0 <= target < row.order:
        return lines_of(row)
    return lines_of(row, _name_at(folder, session, target, fresh))


def _name_at(folder: SessionFolder, session: Session, order: int, fresh: dict[int, str]) -> str | None:
    known = None if order in fresh else folder.index.at(session.session, order)
    return fresh.get(order) or (known.id if known else None)


def _layout(folder: SessionFolder, session: Session, rows: Sequence[Row]) -> tuple[bytes, list[IndexRow]]:
    """The bytes of the rows, and their rows in the index."""
    fresh = {row.order: row.id for row in rows}
    lines = [anchored_lines(folder, session, row, fresh) for row in rows]
    left = sum(map(len, lines))
    session.lines += left
    place = session.size + (0 if session.ended else 1)
    data, placed = bytearray(), []
    for row, its_lines in zip(rows, lines, strict=True):
        written: list[bytes] = []
        for line in its_lines:
            left -= 1
            mark = line[MARK]
            written.append(as_bytes(line | ({MARK: {**mark, "left": left}} if left and isinstance(mark, dict) else {})))
        raw = b"".join(written)
        placed.append(_index_row(row, place + len(data), raw, written[0], session.said))
        data += raw
        session.said += len(its_lines)
    return bytes(data), placed


def _index_row(row: Row, place: int, raw: bytes, first: bytes, number: int) -> IndexRow:
    return IndexRow(
        ord=row.order,
        id=row.id,
        kind=kind_of(row.entry),
        role=row.entry.role.value if isinstance(row.entry, Message) else "",
        time=exact_text(row.time),
        place=place,
        size=len(raw),
        print=fingerprint(first),
        said=number,
        target=refers_to(row.entry),
        removes=" ".join(map(str, row.entry.orders)) if isinstance(row.entry, Removal) else "",
    )


def _replayed_from(folder: SessionFolder, session: Session, point: IndexRow) -> int:
    """The message from which nanobot continues: always a user's message, so at or before the boundary.

    Example: user, call, result | call, result -> 0, the user's message again; user, answer | user -> 2
    """
    index, boundary = folder.index, point.target or 0
    messages = "AND kind = 0 AND role <> 'system' AND removed IS NULL"
    after = index.rows(session.session, f"{messages} AND ord >= ? ORDER BY ord LIMIT 1", (boundary,))
    if not after:
        return session.said
    if after[0].role == Role.USER.value:
        return after[0].said
    clause = f"{messages} AND ord < ? AND role = ? ORDER BY ord DESC LIMIT 1"
    before = index.rows(session.session, clause, (boundary, Role.USER.value))
    return before[0].said if before else after[0].said


def _header_bytes(session: Session, header: Header) -> bytes:
    data = as_bytes(header_fields(header))
    session.header, session.stale = data.decode().strip(), 0
    return data


def _is_row(line: object) -> bool:
    return isinstance(line, Line) and line.fields.get("_type") != "metadata"


AT_ONCE = 256


def copied_rows(folder: SessionFolder, session: Session, order: int) -> Iterator[bytes]:
    """Read the lines of the first `order` rows, a few at a time. The last row ends its write.

    Removed rows are copied as marks.
    """
    for start in range(0, order, AT_ONCE):
        clause = "AND ord >= ? AND ord < ? ORDER BY ord"
        placed = folder.index.rows(session.session, clause, (start, min(order, start + AT_ONCE)))
        with folder.file(session).open("rb") as file:
            for row in placed:
                if row.gone:
                    yield gone_line(Row(row.ord, row.id, datetime.fromisoformat(row.time), Gone()))
                    continue
                if row.place < 0:
                    yield _own_summary(folder, session, row)
                    continue
                file.seek(row.place)
                raw = file.read(row.size).strip(b"\0 \t\r\n") + b"\n"
                yield _ended(raw) if row.ord == order - 1 else raw


def gone_line(row: Row) -> bytes:
    """Return the line that replaces an erased row."""
    return b"".join(map(as_bytes, lines_of(replace(row, entry=Gone()))))


def _own_summary(folder: SessionFolder, session: Session, placed: IndexRow) -> bytes:
    rows = folder.rows(session, [placed]) or []
    return b"".join(as_bytes(line) for row in rows for line in anchored_lines(folder, session, row, {}))


def _ended(raw: bytes) -> bytes:
    lines: list[JsonObject] = [json.loads(line) for line in raw.splitlines() if line]
    for at, line in enumerate(lines, start=1):
        mark = line.get(MARK)
        if isinstance(mark, dict):
            mark.pop("left", None)
            if at < len(lines):
                mark["left"] = len(lines) - at
    return b"".join(map(as_bytes, lines))
