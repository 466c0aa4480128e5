"""The files of a session folder: names, permissions, writing, bad bytes, and removal.

Names: a session's name is data. Whatever it is, its file has a plain name inside the folder: nanobot's (base64url of
the key) if possible, else a hash (for names that are too long for a file system, the empty name, and text that is not
UTF-8). The key inside the file is the one that counts.

Writing: one write at the end of the file; then the time of change (26 bytes in the first line, which nanobot's list
reads) is set in place; then the file is flushed to the disk. Disk errors are StoreErrors with one line.

Bad bytes: they are copied to another file first. A torn end is cut off; a bad line in the middle is overwritten with
blanks, which every reader skips, so nothing moves. Bytes that nanobot can load stay. In a folder that cannot be
written, there is only a warning.

Removal: together with `erasure`, the only place that deletes what was written, for retention and privacy. The session
file is renamed first; from then on the thread is gone. Then the files next to it are deleted, then the renamed file. If
the process is killed, the renamed file remains as a mark, and the next process finishes. Called with the folder's lock
held.
"""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from hashlib import blake2b
from itertools import chain
from pathlib import Path

from everlong.core import bytes_of
from everlong.errors import InputError, StoreBusy, StoreError
from everlong.store.jsonl.index import Session
from everlong.store.jsonl.lines import Fault, local_text
from everlong.store.private import (
    TEMPORARY,
    close_to_others,
    flush_folder,
    is_open_to_others,
    open_private,
    write_private,
)
from everlong.wire import SUFFIX, file_name, legacy_file_name, session_key

__all__ = [
    "CORRUPT",
    "EVENTS",
    "SUFFIX",
    "add_to_file",
    "as_store_errors",
    "candidates",
    "close_folder",
    "events_beside",
    "finish_removal",
    "finish_removals",
    "hashed_name",
    "is_session",
    "key_by_name",
    "remove_files",
    "remove_unfinished",
    "session_folder",
    "set_aside",
    "undo_write",
    "usual_name",
    "write_all",
    "write_new_file",
]

EVENTS = ".events.jsonl"
CORRUPT = ".corrupt"
REMOVED = ".removed"
MOST_COMPARED = 64 * 1024 * 1024  # bytes of the file of bad bytes that are searched for the same bytes
#: nanobot adds up to 38 characters for files next to it; file systems allow 255.
LONGEST_STEM = 216
_HASHED = "h~"  # not part of any base64 name
_WORKSPACE = re.compile(r"[0-9a-f]{32}")


# Names


def usual_name(key: str) -> str:
    """The file of a new session. Example: cli:direct -> Y2xpOmRpcmVjdA.jsonl; 300 characters -> h~<hash>.jsonl"""
    try:
        name = file_name(key)
    except UnicodeEncodeError:
        return hashed_name(key)
    return name if 0 < len(name) - len(SUFFIX) <= LONGEST_STEM else hashed_name(key)


def hashed_name(key: str) -> str:
    """The file of a session that cannot have nanobot's name, or whose name another session has taken."""
    return f"{_HASHED}{blake2b(bytes_of(key), digest_size=20).hexdigest()}{SUFFIX}"


def candidates(key: str) -> tuple[str, ...]:
    """The files that may hold a session, the likeliest first."""
    names = (usual_name(key), hashed_name(key), _legacy_name(key))
    return tuple(dict.fromkeys(name for name in names if name))


def key_by_name(name: str) -> str:
    """The key of a session whose file has no key inside."""
    return session_key(name)


def events_beside(path: Path) -> Path:
    """The file that holds the events of a session. Example: a/Y2xp.jsonl -> a/Y2xp.events.jsonl"""
    return path.with_name(path.name.removesuffix(SUFFIX) + EVENTS)


def is_session(name: str) -> bool:
    """Whether a file of this name is a session: not hidden, not an events file, not one of our own."""
    return name.endswith(SUFFIX) and not name.startswith(".") and not name.endswith(EVENTS)


def session_folder(folder: Path) -> Path:
    """Return the folder of the session files, given that folder, nanobot's folder of all sessions, or a workspace.

    nanobot up to 0.3.0 keeps them in WORKSPACE/sessions, later ones in SESSIONS/<workspace id>.
    """
    if not folder.is_dir() or any(is_session(entry.name) for entry in folder.iterdir()):
        return folder
    spaces = sorted(entry for entry in folder.iterdir() if _WORKSPACE.fullmatch(entry.name) and entry.is_dir())
    if len(spaces) > 1:
        listing = ", ".join(f"{space.name} ({_workspace_of(space)})" for space in spaces)
        raise InputError(f"{folder} contains the sessions of several workspaces; choose one: {listing}")
    if spaces:
        return spaces[0]
    if (folder / ".nanobot").is_dir() and (folder / "sessions").is_dir():
        return folder / "sessions"
    return folder


def _workspace_of(space: Path) -> str:
    try:
        return (space / ".workspace").read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        return "unknown"


def _legacy_name(key: str) -> str:
    """The old name if it is a plain name of an allowed length; "" if not."""
    name = legacy_file_name(key)
    stem = name.removesuffix(SUFFIX)
    plain = stem and not stem.startswith(".") and stem.isprintable() and is_session(name)
    return name if plain and len(bytes_of(stem)) <= LONGEST_STEM else ""


# Permissions


def close_folder(folder: Path) -> None:
    """Make a folder that others can open private, with all our files in it. If it has other files, it stays open."""
    with as_store_errors(folder):
        if not is_open_to_others(folder.stat()):
            return
        inside = list(folder.iterdir())
    sessions = [path for path in inside if _is_ours(path.name)]
    for path in sessions:
        close_to_others(path, quiet=True)
    if len(sessions) == len(inside):
        close_to_others(folder)


def _is_ours(name: str) -> bool:
    """Return whether a file of this name is a session or one of our index files."""
    return name.startswith(".") or name.endswith((SUFFIX, SUFFIX + CORRUPT))


# Writing


def add_to_file(path: Path, session: Session, data: bytes, time: datetime) -> None:
    """Write `data` at the end of the session's file, all of it or nothing."""
    if not session.ended:
        data = b"\n" + data
    with as_store_errors(path):
        fd = os.open(path, os.O_WRONLY | os.O_APPEND | getattr(os, "O_BINARY", 0))
        try:
            before = os.fstat(fd)
            if before.st_size != session.size:
                raise StoreBusy(f"{path.name} is being written by a program that does not lock it; try again later")
            try:
                write_all(fd, data)
                if session.stamp >= 0:
                    _set_in_place(path, session.stamp, local_text(time).encode())
                os.fsync(fd)
            except OSError:
                undo_write(path, before, os.fstat(fd).st_size)
                raise
            after = os.fstat(fd)
        finally:
            os.close(fd)
    session.size, session.inode, session.mtime = after.st_size, after.st_ino, after.st_mtime_ns
    session.ended = 1


def undo_write(path: Path, before: os.stat_result, written: int) -> None:
    """Cut off what we wrote since `before`, up to size `written`, and restore the time of change.

    Then the index is still right. A file that others have written to in the meantime is left alone.
    """
    with suppress(OSError), path.open("r+b") as file:
        now = os.fstat(file.fileno())
        if os.path.samestat(now, before) and before.st_size < now.st_size == written:
            file.truncate(before.st_size)
            os.fsync(file.fileno())
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def write_new_file(path: Path, first: Iterable[bytes], rest: Iterable[bytes] = ()) -> None:
    """Write a file completely or not at all; it replaces an existing file."""
    with as_store_errors(path):
        write_private(path, chain(first, rest))


@contextmanager
def as_store_errors(path: Path) -> Iterator[None]:
    """Raise errors of the system inside as StoreErrors that name the file."""
    try:
        yield
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror or type(error).__name__}") from error


def _set_in_place(path: Path, place: int, data: bytes) -> None:
    fd = os.open(path, os.O_WRONLY | getattr(os, "O_BINARY", 0))
    try:
        os.lseek(fd, place, os.SEEK_SET)
        write_all(fd, data)
    finally:
        os.close(fd)


def write_all(fd: int, data: bytes) -> None:
    """Write all bytes, however few the system accepts at once, without buffering."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]


# Bad bytes


def set_aside(path: Path, session: Session, faults: Sequence[Fault]) -> list[str]:
    """Take the bad bytes out of the file and correct the session's figures; return a warning for each fault."""
    try:
        _copy_faults(path, faults)
        _blank_out(path, session, faults)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        return [_warning(path, fault, f"it could not be saved elsewhere: {reason}") for fault in faults]
    return [_warning(path, fault, f"saved in {path.name}{CORRUPT}") for fault in faults]


def _warning(path: Path, fault: Fault, outcome: str) -> str:
    return f"{path.name}, line {fault.number}: {fault.why}; {outcome}"


def _copy_faults(path: Path, faults: Sequence[Fault]) -> None:
    beside = path.with_name(path.name + CORRUPT)
    known = beside.read_bytes() if beside.exists() and beside.stat().st_size <= MOST_COMPARED else b""
    with os.fdopen(open_private(beside, os.O_WRONLY | os.O_APPEND), "ab") as copy:
        for fault in faults:
            raw = _fault_bytes(path, fault)
            if raw not in known:
                copy.write(f"# line {fault.number}: {fault.why}\n".encode() + raw + b"\n" * (not raw.endswith(b"\n")))
        copy.flush()
        os.fsync(copy.fileno())


def _fault_bytes(path: Path, fault: Fault) -> bytes:
    if not fault.torn:
        return fault.raw
    with path.open("rb") as file:
        file.seek(fault.offset)
        return file.read()


def _blank_out(path: Path, session: Session, faults: Sequence[Fault]) -> None:
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


# Removal


def remove_files(path: Path) -> None:
    """Remove a session file and our files next to it."""
    with as_store_errors(path):
        path.replace(_removal_mark(path))
        flush_folder(path.parent)
    finish_removal(path)


def finish_removal(path: Path) -> None:
    """Finish the removal of a session file, if one was interrupted."""
    mark = _removal_mark(path)
    with as_store_errors(path):
        if not mark.is_file():
            return
        events_beside(path).unlink(missing_ok=True)
        path.with_name(path.name + CORRUPT).unlink(missing_ok=True)
        remove_unfinished(path)
        mark.unlink(missing_ok=True)
        flush_folder(path.parent)


def remove_unfinished(path: Path) -> None:
    """Remove the temporary files that a killed writer of this file left. Raises OSError."""
    for beside in path.parent.iterdir():
        if beside.name.startswith(f".{path.name}.") and beside.name.endswith(TEMPORARY):
            beside.unlink(missing_ok=True)


def finish_removals(folder: Path) -> None:
    """Finish all interrupted removals in a folder. One that fails is tried again next time; its thread stays gone."""
    with as_store_errors(folder):
        marks = [entry for entry in folder.iterdir() if entry.name.startswith(".") and entry.name.endswith(REMOVED)]
    for mark in marks:
        with suppress(StoreError):
            finish_removal(mark.with_name(mark.name.removeprefix(".").removesuffix(REMOVED)))


def _removal_mark(path: Path) -> Path:
    """The renamed session file; hidden, so that it is not taken for a session."""
    return path.with_name(f".{path.name}{REMOVED}")
