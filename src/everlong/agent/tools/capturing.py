"""The output of a command as it comes: its head and its tail in memory, the whole in a file, both bounded.

The file lies in a folder of the workspace that version control and our own listings leave out; it is made only when
the output is longer than what is kept in memory, and the oldest files go when there are too many.
"""

import os
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_hex
from typing import BinaryIO

__all__ = ["FOLDER", "Capture"]

FOLDER = ".everlong/output"
MOST_FILES = 20
NOT_FOR_GIT = "*\n"


@dataclass(slots=True)
class Capture:
    """What a command has written so far. `head` and `tail` are bytes kept of its beginning and end."""

    workspace: Path
    head_size: int = 24_000
    tail_size: int = 16_000
    file_size: int = 64_000_000
    head: bytearray = field(default_factory=bytearray)
    tail: bytearray = field(default_factory=bytearray)
    total: int = 0
    #: The file with the whole, relative to the workspace; "" if all is in memory or it could not be made.
    path: str = ""
    _file: BinaryIO | None = None
    _failed: bool = False

    def take(self, piece: bytes) -> None:
        """More output."""
        before = bytes(self.head + self.tail) if self.total <= self._in_memory else b""
        self.total += len(piece)
        if self.total > self._in_memory:
            self._spill(before, piece)
        room = self.head_size - len(self.head)
        self.head += piece[:room]
        self.tail += piece[room:]
        if len(self.tail) > 2 * self.tail_size:
            del self.tail[: -self.tail_size]

    def close(self) -> None:
        """Nothing more comes."""
        if self.total > self._in_memory:
            del self.tail[: -self.tail_size]
        if self._file is not None:
            with suppress(OSError):
                self._file.close()
            self._file = None

    @property
    def left_out(self) -> int:
        """Bytes that are neither in the head nor in the tail."""
        return self.total - len(self.head) - len(self.tail)

    @property
    def file_is_whole(self) -> bool:
        """Whether everything is in the file."""
        return bool(self.path) and not self._failed and self.total <= self.file_size

    @property
    def _in_memory(self) -> int:
        return self.head_size + self.tail_size

    def _spill(self, before: bytes, piece: bytes) -> None:
        """Write to the file; a disk that is full is no reason to end the command."""
        if self._failed:
            return
        try:
            if self._file is None:
                self._file = self._new_file()
                self._file.write(before)
            self._file.write(piece[: max(0, self.file_size - self._file.tell())])
        except OSError:
            self._failed = True

    def _new_file(self) -> BinaryIO:
        """A new file in the folder, which is opened without following links: a command could have put one there."""
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        folder = os.open(self.workspace, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        for name in FOLDER.split("/"):
            try:
                with suppress(FileExistsError):
                    os.mkdir(name, dir_fd=folder)
                below = os.open(name, flags, dir_fd=folder)
            finally:
                os.close(folder)
            folder = below
        try:
            _keep_from_git(folder)
            _remove_oldest(folder)
            name = f"{token_hex(4)}.txt"
            handle = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=folder)
        finally:
            os.close(folder)
        self.path = f"{FOLDER}/{name}"
        return os.fdopen(handle, "wb")


def _keep_from_git(folder: int) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    with suppress(FileExistsError), os.fdopen(os.open(".gitignore", flags, 0o644, dir_fd=folder), "w") as file:
        file.write(NOT_FOR_GIT)


def _remove_oldest(folder: int) -> None:
    with os.scandir(folder) as listing:
        dated = sorted(
            (item.stat(follow_symlinks=False).st_mtime_ns, item.name) for item in listing if item.name.endswith(".txt")
        )
    for _, name in dated[: max(0, len(dated) - MOST_FILES + 1)]:
        with suppress(OSError):
            os.unlink(name, dir_fd=folder)
