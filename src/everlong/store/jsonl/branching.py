"""The first rows of a session, copied for a branch, few at a time."""

import json
from collections.abc import Iterator

from everlong.core import JsonObject
from everlong.store.jsonl.appending import anchored_lines
from everlong.store.jsonl.folder import SessionFolder
from everlong.store.jsonl.index import Placed, Session
from everlong.store.jsonl.lines import MARK, as_bytes

__all__ = ["copied_rows"]

AT_ONCE = 256


def copied_rows(folder: SessionFolder, session: Session, order: int) -> Iterator[bytes]:
    """The lines of the first `order` rows. The last of them ends its write, whatever followed it here."""
    for start in range(0, order, AT_ONCE):
        clause = "AND ord >= ? AND ord < ? ORDER BY ord"
        placed = folder.index.rows(session.session, clause, (start, min(order, start + AT_ONCE)))
        with folder.file(session).open("rb") as file:
            for one in placed:
                if one.place < 0:
                    yield _own_summary(folder, session, one)
                    continue
                file.seek(one.place)
                raw = file.read(one.size).strip(b"\0 \t\r\n") + b"\n"
                yield _ended(raw) if one.ord == order - 1 else raw


def _own_summary(folder: SessionFolder, session: Session, placed: Placed) -> bytes:
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
