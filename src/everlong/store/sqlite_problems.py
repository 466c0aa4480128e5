"""What can be wrong with a SQLite file, in words that a person can act on; for every engine that keeps one."""

import sqlite3
from pathlib import Path

from everlong.errors import InputError, StoreBusy, StoreError

__all__ = ["code_of", "explained", "is_busy"]

BUSY = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL})

#: SQLite's code -> what a person can do about it.
PROBLEMS = {
    sqlite3.SQLITE_READONLY: "it is read-only",
    sqlite3.SQLITE_FULL: "the disk is full",
    sqlite3.SQLITE_IOERR: "the disk does not take or give it (full, or failing)",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened or made there (folder missing, or no permission)",
    sqlite3.SQLITE_PERM: "no permission",
    sqlite3.SQLITE_CORRUPT: "the file is damaged; `sqlite3 FILE .recover` may save what is readable",
    sqlite3.SQLITE_TOOBIG: "one of the texts is larger than SQLite takes",
}


def code_of(error: sqlite3.Error) -> int:
    """SQLite's primary code of an error; Python's own have none, which is 0."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def is_busy(error: sqlite3.Error) -> bool:
    """Whether somebody else is at the file, and waiting may help."""
    return code_of(error) in BUSY


def explained(path: Path, error: sqlite3.Error) -> StoreError | InputError:
    """The error as one line that says what is wrong with the file."""
    code = code_of(error)
    if code == sqlite3.SQLITE_NOTADB:
        return InputError(f"{path} is not a SQLite database")
    if code in BUSY:
        return StoreBusy(f"{path}: others do not stop writing; try again later")
    return StoreError(f"{path}: {PROBLEMS.get(code, str(error))}")
