"""Files that a person names: read in full, up to a size limit, and only regular files."""

import errno
import os
import stat
from pathlib import Path

from everlong.errors import InputError

__all__ = ["LARGEST_CONFIG", "LARGEST_INPUT", "read_input"]

MEGABYTE = 1_000_000
LARGEST_INPUT = 512 * MEGABYTE  # bytes; a decoded conversation takes several times that
LARGEST_CONFIG = 4 * MEGABYTE
#: Flags for opening: a pipe must not make us wait for its writer, and a terminal must not become our own.
READING = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_BINARY", 0)


def read_input(path: Path, most: int = LARGEST_INPUT) -> bytes:
    """Return the content of a regular file. Raises InputError for a folder, a pipe, a device or a larger file.

    Example: a named pipe -> "talk.fifo: a pipe or a device, not a file (- reads standard input)"
    """
    try:
        handle = os.open(path, READING)
        try:
            _check_kind(os.fstat(handle).st_mode)
            with os.fdopen(handle, "rb", closefd=False) as file:
                data = file.read(most + 1)
        finally:
            os.close(handle)
    except (OSError, ValueError) as error:  # ValueError: a NUL byte in the name
        raise InputError(f"{path}: {_reason(error)}") from None
    if len(data) > most:
        raise InputError(f"{path}: larger than {most // MEGABYTE:,} MB; split it")
    return data


def _check_kind(mode: int) -> None:
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "a folder, not a file")
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "a pipe or a device, not a file (- reads standard input)")


def _reason(error: OSError | ValueError) -> str:
    return str(getattr(error, "strerror", None) or error)
