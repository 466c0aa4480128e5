"""Files with conversations: from the start, only their owner can read and write them, whatever the umask is.

Files are created with mode 0600 and folders with 0700, so that others can never open them. An existing file or folder
that others can open is made private if it is ours, with a line in the log; files of other people stay as they are. A
folder that also has other files stays as it is: only our files in it are made private.
"""

import errno
import logging
import os
import stat
import threading
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from secrets import token_hex

__all__ = [
    "OWN_FOLDER",
    "TEMPORARY",
    "check_is_file",
    "close_to_others",
    "flush_folder",
    "is_open_to_others",
    "make_database",
    "make_folder",
    "open_private",
    "write_private",
]

FILE, FOLDER = 0o600, 0o700
OTHERS = 0o077
OWN_FOLDER = "everlong"  # the name of our folder in the system's folders of data and settings
TEMPORARY = ".tmp"  # the suffix of a file that is not complete yet
#: The files that SQLite keeps next to a database. SQLite gives them the mode of the database.
BESIDE = ("-wal", "-shm", "-journal")

logger = logging.getLogger("everlong.store")
#: Closing any descriptor of a file drops the locks that SQLite holds on it, so nobody may connect while a file is made.
_making = threading.Lock()


def make_folder(path: Path) -> None:
    """Create a folder and its missing parents. If it is ours and open to others, it is made private."""
    with suppress(FileExistsError):
        try:
            path.mkdir(mode=FOLDER)
        except FileNotFoundError:
            make_folder(path.parent)
            path.mkdir(mode=FOLDER)
        return
    if path.name == OWN_FOLDER and path.is_dir():
        close_to_others(path)


def is_open_to_others(state: os.stat_result) -> bool:
    """Whether the file is ours and others may read or write it."""
    return hasattr(os, "geteuid") and state.st_uid == os.geteuid() and bool(state.st_mode & OTHERS)


def close_to_others(path: Path, *, quiet: bool = False) -> None:
    """Make a file or folder private if it is ours. This is logged unless `quiet`."""
    with suppress(OSError):  # it is gone, or the disk has no modes
        state = path.stat()
        if is_open_to_others(state):
            path.chmod(stat.S_IMODE(state.st_mode) & ~OTHERS)
            if not quiet:
                logger.warning("%s was readable by other users; it is now private", path)


def make_database(path: Path) -> None:
    """Create an empty file for SQLite, or make an existing one and SQLite's files next to it private.

    Raises OSError if no file can be made there, or something else is there.
    """
    with _making:
        try:
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, FILE))
        except FileExistsError:
            check_is_file(path.stat())
            for name in (path, *(path.with_name(path.name + suffix) for suffix in BESIDE)):
                close_to_others(name)


def open_private(path: Path, flags: int, *, special: bool = False) -> int:
    """Open a file for writing and return its descriptor. The file is created if it is missing.

    Raises OSError; for a pipe or a device this happens at once, unless `special`.
    """
    waiting = 0 if special else getattr(os, "O_NONBLOCK", 0)
    handle = os.open(path, flags | os.O_CREAT | waiting | getattr(os, "O_BINARY", 0), FILE)
    try:
        state = os.fstat(handle)
        if not stat.S_ISREG(state.st_mode):
            if not special:
                check_is_file(state)
        elif is_open_to_others(state):
            os.fchmod(handle, FILE)
    except OSError:
        os.close(handle)
        raise
    return handle


def check_is_file(state: os.stat_result) -> None:
    """Raise OSError unless it is a plain file."""
    if stat.S_ISDIR(state.st_mode):
        raise IsADirectoryError(errno.EISDIR, "it is a folder, not a file")
    if not stat.S_ISREG(state.st_mode):
        raise BlockingIOError(errno.EAGAIN, "it is a pipe or a device, not a file")


def write_private(path: Path, pieces: Iterable[bytes]) -> None:
    """Write a file durably, completely or not at all. An existing file is replaced."""
    beside = path.with_name(f".{path.name}.{os.getpid()}-{token_hex(4)}{TEMPORARY}")
    try:
        with os.fdopen(open_private(beside, os.O_WRONLY | os.O_EXCL), "wb") as file:
            file.writelines(pieces)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
        flush_folder(path.parent)
    finally:
        beside.unlink(missing_ok=True)


def flush_folder(folder: Path) -> None:
    """Make the names in a folder durable, if the system can."""
    if os.name == "nt":
        return
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
