"""The boundary of a workspace: which paths may be used, and how to open a file so that the check stays true.

A path is first resolved with all its links, and must then be in the workspace or in another allowed folder. The
resolved path is opened folder by folder without following links: if someone puts a link in the way after the check,
opening fails. Only regular files and folders are opened. Nothing else in the agent opens a path that a model names.
"""

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from typing import BinaryIO

from everlong.agent.definitions import Place
from everlong.errors import InputError

__all__ = [
    "inside",
    "open_below",
    "open_folder",
    "open_inner",
    "open_reading",
    "printable",
    "read_named",
    "remove_file",
    "replace_file",
    "shown",
]

LONGEST_SHOWN = 300  # characters of a path in a message
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
#: If a pipe takes the place of a file, opening must not block. If a terminal does, it must not become ours.
READING = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
CREATING = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
PROBLEMS = {
    errno.ENOENT: "there is no such file or folder",
    errno.ENOTDIR: "part of the path is not a folder, or is a link",
    errno.ELOOP: "the path contains a link",
    errno.EACCES: "permission denied",
    errno.EPERM: "permission denied",
    errno.EISDIR: "it is a folder",
    errno.ENAMETOOLONG: "the name is too long",
    errno.ENOSPC: "no space left on the device",
    errno.EROFS: "the file system is read-only",
}
SPECIAL = "it is not a regular file (it is a device, a pipe or a socket)"


def inside(place: Place, path: str) -> Path:
    """Return the real, absolute path that `path` means, in the workspace or an allowed folder; it need not exist.

    It is relative to the workspace; `~` is a name like any other. Raises InputError, in one line, for a path outside.
    Example: "src/../a.txt" in /home/me/project -> /home/me/project/a.txt
    """
    _, _, real = _locate(place, path)
    try:
        mode = real.lstat().st_mode
    except OSError:
        return real
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
        return real
    raise InputError(f"{_quoted(path)}: {PROBLEMS[errno.ELOOP] if stat.S_ISLNK(mode) else SPECIAL}")


def shown(place: Place, path: Path) -> str:
    """Return a path as text: relative to the workspace if it is inside. Control characters are escaped."""
    root = _real(place.workspace)
    return printable(str(path.relative_to(root)) if path.is_relative_to(root) else str(path))


def printable(text: str) -> str:
    """Return the text on one line: nothing in it can break the line or act on a terminal."""
    return "".join(character if character.isprintable() else repr(character)[1:-1] for character in text)


@contextmanager
def open_reading(place: Place, path: str) -> Iterator[BinaryIO]:
    """Open a file to read from. Raises InputError if it may not be used, is not a regular file or cannot be read."""
    with _one_line(path), _parent(place, path) as (folder, name):
        if not stat.S_ISREG(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            raise InputError(f"{_quoted(path)}: {_kind_problem(name, folder)}")
        handle = os.open(name, READING, dir_fd=folder)
        with os.fdopen(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode):  # something else took its place meanwhile
                raise InputError(f"{_quoted(path)}: {SPECIAL}")
            yield file


def read_named(workspace: Path, allowed: tuple[Path, ...], path: str, most: int) -> bytes:
    """Return the bytes of a file that a person names, within the same boundary as tools and up to a limit.

    Raises InputError if it may not be used, is not a regular file, cannot be read or is too large.
    """
    place = Place(thread="", call="", workspace=workspace, allowed=allowed)
    with open_reading(place, path) as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise InputError(f"{_quoted(path)}: larger than {most // 1_000_000:,} MB")
    return data


@contextmanager
def open_folder(place: Place, path: str) -> Iterator[int]:
    """Open a folder as a descriptor. Raises InputError if it may not be used or is not a folder."""
    root, parts, _ = _locate(place, path)
    with _one_line(path):
        folder = open_inner(root, parts)
        try:
            yield folder
        finally:
            os.close(folder)


def replace_file(place: Place, path: str, content: bytes) -> bool:
    """Write a file, whole or not at all, and the folders it needs; return whether it is new. Its mode stays."""
    with _one_line(path), _parent(place, path, make=True) as (folder, name):
        mode = _mode_of(path, name, folder)
        temporary = f".{name[:100]}.{token_hex(6)}.tmp"
        handle = os.open(temporary, CREATING, 0o666, dir_fd=folder)
        try:
            with os.fdopen(handle, "wb") as file:
                if mode is not None:
                    os.fchmod(handle, stat.S_IMODE(mode))
                file.write(content)
                file.flush()
                os.fsync(handle)
            os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        finally:
            with suppress(FileNotFoundError):  # it was renamed, unless something went wrong
                os.unlink(temporary, dir_fd=folder)
        return mode is None


def remove_file(place: Place, path: str) -> None:
    """Remove a file if it exists. Raises InputError if it may not be used."""
    with _one_line(path), _parent(place, path) as (folder, name), suppress(FileNotFoundError):
        if not stat.S_ISREG(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            raise InputError(f"{_quoted(path)}: {_kind_problem(name, folder)}")
        os.unlink(name, dir_fd=folder)


def _mode_of(path: str, name: str, folder: int) -> int | None:
    """Return the mode of an existing file, None if there is none. Raises InputError if it may not be replaced."""
    try:
        mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(mode):
        raise InputError(f"{_quoted(path)}: {_kind_problem(name, folder)}")
    if not os.access(name, os.W_OK, dir_fd=folder):
        raise InputError(f"{_quoted(path)}: it is read-only")
    return mode


def _kind_problem(name: str, folder: int) -> str:
    mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    if stat.S_ISDIR(mode):
        return "it is a folder"
    return PROBLEMS[errno.ELOOP] if stat.S_ISLNK(mode) else SPECIAL


def _locate(place: Place, path: str) -> tuple[Path, tuple[str, ...], Path]:
    """Return the root that contains a path, the names from the root to it, and the resolved path."""
    if not path.strip():
        raise InputError("the path is empty")
    if "\0" in path:
        raise InputError(f"{_quoted(path)}: a path cannot contain a NUL character")
    workspace = _real(place.workspace)
    try:
        real = _real(workspace / path)
    except UnicodeEncodeError:
        raise InputError(f"{_quoted(path)}: not a valid file name") from None
    except OSError as error:
        raise _problem(path, error) from error
    for root in (workspace, *map(_real, place.allowed)):
        if real.is_relative_to(root):
            return root, real.relative_to(root).parts, real
    raise InputError(f"{_quoted(path)}: outside the workspace")


def _real(path: Path) -> Path:
    """Resolve all links. A circle of links stays in the path, and cannot be opened."""
    return Path(os.path.realpath(path))


@contextmanager
def _parent(place: Place, path: str, *, make: bool = False) -> Iterator[tuple[int, str]]:
    """Open the folder that a file is in, as a descriptor; yield it and the file's name there."""
    root, parts, _ = _locate(place, path)
    if not parts:
        raise InputError(f"{_quoted(path)}: it is a folder")
    folder = open_inner(root, parts[:-1], mode=0o777 if make else None)
    try:
        yield folder, parts[-1]
    finally:
        os.close(folder)


def open_inner(root: Path, parts: Sequence[str], *, mode: int | None = None) -> int:
    """Open a folder below the root, name by name without following a link; create what is missing if a `mode` is given.

    Return its descriptor; the caller closes it. Raises OSError.
    """
    folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    for name in parts:
        try:
            if mode is not None:
                with suppress(FileExistsError):
                    os.mkdir(name, mode, dir_fd=folder)
            below = os.open(name, FOLDER, dir_fd=folder)
        finally:
            os.close(folder)
        folder = below
    return folder


def open_below(folder: int, name: str, *, file: bool = False) -> int | None:
    """Open a folder or a file by its name in a folder; None if it cannot be opened, or has become a link."""
    try:
        return os.open(name, READING if file else FOLDER, dir_fd=folder)
    except OSError:
        return None


@contextmanager
def _one_line(path: str) -> Iterator[None]:
    """Turn an OSError about a path into an InputError of one line."""
    try:
        yield
    except OSError as error:
        raise _problem(path, error) from error


def _problem(path: str, error: OSError) -> InputError:
    reason = PROBLEMS.get(error.errno or 0) or (error.strerror or type(error).__name__).lower()
    return InputError(f"{_quoted(path)}: {reason}")


def _quoted(path: str) -> str:
    return printable(path if len(path) <= LONGEST_SHOWN else path[:LONGEST_SHOWN] + "…")
