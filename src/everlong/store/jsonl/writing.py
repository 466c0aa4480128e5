"""Adding to a session file: one write, durable when it returns, at the end of the file only.

The write goes to the end of the file, then the file's time of change (26 bytes in the first line, which nanobot's list
reads) is set in place, then the file is flushed to the disk. A write that fails half way is taken back.
"""

import os
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

from everlong.errors import StoreBusy, StoreError
from everlong.store.jsonl.index import Session
from everlong.store.jsonl.times import local_text

__all__ = ["add_to_file", "flush_folder", "write_new_file"]


def add_to_file(path: Path, session: Session, data: bytes, time: datetime) -> int:
    """Write `data` at the end of the session's file; the offset at which it starts."""
    if not session.ended:
        data = b"\n" + data
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | getattr(os, "O_BINARY", 0))
    try:
        start = os.fstat(fd).st_size
        if start != session.size:
            raise StoreBusy(f"{path.name} is being written by a program that takes no lock; try again later")
        _add(fd, path, data, start)
        if session.stamp >= 0:
            _set_in_place(path, session.stamp, local_text(time).encode())
        os.fsync(fd)
        found = os.fstat(fd)
    finally:
        os.close(fd)
    session.size, session.inode, session.mtime = found.st_size, found.st_ino, found.st_mtime_ns
    start += 0 if session.ended else 1
    session.ended = 1
    return start


def write_new_file(path: Path, first: Iterable[bytes], rest: Iterable[bytes] = ()) -> None:
    """A new file with this content, whole or not at all; one of that name is replaced."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with beside.open("wb") as file:
            file.writelines(first)
            file.writelines(rest)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
        flush_folder(path.parent)
    finally:
        beside.unlink(missing_ok=True)


def flush_folder(folder: Path) -> None:
    """Make names in a folder durable, where the system can."""
    if os.name == "nt":
        return
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _add(fd: int, path: Path, data: bytes, start: int) -> None:
    try:
        _write_all(fd, data)
    except OSError as error:
        os.ftruncate(fd, start)
        raise StoreError(f"{path.name} cannot be written: {error.strerror}") from error


def _set_in_place(path: Path, place: int, data: bytes) -> None:
    fd = os.open(path, os.O_WRONLY | getattr(os, "O_BINARY", 0))
    try:
        os.lseek(fd, place, os.SEEK_SET)
        _write_all(fd, data)
    finally:
        os.close(fd)


def _write_all(fd: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]
