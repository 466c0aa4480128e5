"""Adding to a session file: one write, durable when it returns, at the end of the file only.

The write goes to the end of the file, then the file's time of change (26 bytes in the first line, which nanobot's list
reads) is set in place, then the file is flushed to the disk. What the disk does not take is StoreError, in one line.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

from everlong.errors import StoreBusy, StoreError
from everlong.store.jsonl.index import Session
from everlong.store.jsonl.times import local_text

__all__ = ["TEMPORARY", "add_to_file", "flush_folder", "in_words", "take_back", "write_all", "write_new_file"]

TEMPORARY = ".tmp"  # ends the name of a file that is not whole yet


def add_to_file(path: Path, session: Session, data: bytes, time: datetime) -> None:
    """Write `data` at the end of the session's file, all of it or nothing."""
    if not session.ended:
        data = b"\n" + data
    with in_words(path):
        fd = os.open(path, os.O_WRONLY | os.O_APPEND | getattr(os, "O_BINARY", 0))
        try:
            before = os.fstat(fd)
            if before.st_size != session.size:
                raise StoreBusy(f"{path.name} is being written by a program that takes no lock; try again later")
            try:
                write_all(fd, data)
                if session.stamp >= 0:
                    _set_in_place(path, session.stamp, local_text(time).encode())
                os.fsync(fd)
            except OSError:
                take_back(path, before, os.fstat(fd).st_size)
                raise
            found = os.fstat(fd)
        finally:
            os.close(fd)
    session.size, session.inode, session.mtime = found.st_size, found.st_ino, found.st_mtime_ns
    session.ended = 1


def take_back(path: Path, before: os.stat_result, written: int) -> None:
    """Cut off what we wrote since, up to `written`; the file is as it was, its time of change too.

    So no index is behind it, and what is there reads on. A file that others wrote to meanwhile is left alone.
    """
    with suppress(OSError), path.open("r+b") as file:
        now = os.fstat(file.fileno())
        if os.path.samestat(now, before) and before.st_size < now.st_size == written:
            file.truncate(before.st_size)
            os.fsync(file.fileno())
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def write_new_file(path: Path, first: Iterable[bytes], rest: Iterable[bytes] = ()) -> None:
    """A new file with this content, whole or not at all; one of that name is replaced."""
    beside = path.with_name(f".{path.name}.{os.getpid()}{TEMPORARY}")
    with in_words(path):
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


@contextmanager
def in_words(path: Path) -> Iterator[None]:
    """What the system refuses inside is a StoreError that names the file."""
    try:
        yield
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror or type(error).__name__}") from error


def flush_folder(folder: Path) -> None:
    """Make names in a folder durable, where the system can."""
    if os.name == "nt":
        return
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _set_in_place(path: Path, place: int, data: bytes) -> None:
    fd = os.open(path, os.O_WRONLY | getattr(os, "O_BINARY", 0))
    try:
        os.lseek(fd, place, os.SEEK_SET)
        write_all(fd, data)
    finally:
        os.close(fd)


def write_all(fd: int, data: bytes) -> None:
    """Write all of it, however little the system takes at once; nothing is held back for later."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]
