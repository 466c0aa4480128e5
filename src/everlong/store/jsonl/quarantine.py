"""Bytes that are no record are set aside: kept in a file beside, taken out of the session, and told.

The copy comes first. A torn end is cut off; a bad line in the middle is overwritten with blanks, which every reader
skips, so nothing moves. What nanobot can load stays where it is. Where the folder cannot be written, it is only told.
"""

import os
from collections.abc import Sequence
from pathlib import Path

from everlong.store.jsonl.index import Session
from everlong.store.jsonl.scanning import Fault

__all__ = ["CORRUPT", "set_aside"]

CORRUPT = ".corrupt"
MOST_COMPARED = 64 * 1024 * 1024  # bytes of the file beside that are looked through for the same thing


def set_aside(path: Path, session: Session, faults: Sequence[Fault]) -> list[str]:
    """Take the faults out of the file; one warning for each. The session is what the file is afterwards."""
    try:
        _copy(path, faults)
        _take_out(path, session, faults)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        return [_told(path, fault, f"not set aside: {reason}") for fault in faults]
    return [_told(path, fault, f"kept in {path.name}{CORRUPT}") for fault in faults]


def _told(path: Path, fault: Fault, outcome: str) -> str:
    return f"{path.name}, line {fault.number}: {fault.why}; {outcome}"


def _copy(path: Path, faults: Sequence[Fault]) -> None:
    beside = path.with_name(path.name + CORRUPT)
    known = beside.read_bytes() if beside.exists() and beside.stat().st_size <= MOST_COMPARED else b""
    with beside.open("ab") as copy:
        for fault in faults:
            raw = _bytes_of(path, fault)
            if raw not in known:
                copy.write(f"# line {fault.number}: {fault.why}\n".encode() + raw + b"\n" * (not raw.endswith(b"\n")))
        copy.flush()
        os.fsync(copy.fileno())


def _bytes_of(path: Path, fault: Fault) -> bytes:
    if not fault.torn:
        return fault.raw
    with path.open("rb") as file:
        file.seek(fault.offset)
        return file.read()


def _take_out(path: Path, session: Session, faults: Sequence[Fault]) -> None:
    with path.open("r+b") as file:
        for fault in faults:
            if fault.torn:
                file.truncate(fault.offset)
                session.size, session.lines, session.ended = fault.offset, fault.number - 1, 1
            elif not fault.stays:
                file.seek(fault.offset)
                file.write(b" " * (len(fault.raw) - 1) + b"\n")
        file.flush()
        os.fsync(file.fileno())
