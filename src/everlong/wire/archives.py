"""Zip archives: read the conversations in one from elsewhere, and write one piece by piece.

A small archive can unpack to thousands of times its size. So unpacking is limited, only files that may contain
conversations are read, and nothing is written to disk: the names of members are never used as paths.
"""

import io
import lzma
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from typing import IO

from everlong.errors import InputError
from everlong.wire.sessions import SESSION_SUFFIXES

__all__ = ["ARCHIVE_START", "files_in", "is_archive", "packed"]

MEGABYTE = 1_000_000
ARCHIVE_START = b"PK\x03\x04"
MOST_MEMBERS = 50_000  # an export with images has thousands of files
LARGEST_MEMBER = 256 * MEGABYTE  # bytes, unpacked
LARGEST_TOTAL = 1_024 * MEGABYTE  # bytes of all files that are read, unpacked
SUFFIXES = (*SESSION_SUFFIXES, *(f"{suffix}.gz" for suffix in SESSION_SUFFIXES))
DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    EOFError,
    NotImplementedError,
    ValueError,
    OSError,
)
LONGEST_NAME = 120  # characters of a member's name; the end is kept


def is_archive(start: bytes) -> bool:
    """Return whether a file that starts like this is a zip archive."""
    return start.startswith(ARCHIVE_START)


def files_in(
    data: IO[bytes], *, largest: int = LARGEST_MEMBER, total: int = LARGEST_TOTAL, members: int = MOST_MEMBERS
) -> Iterator[tuple[str, bytes]]:
    """Yield the files of an archive that may contain conversations. Raises InputError if it exceeds a limit.

    Example: a ChatGPT export -> ("conversations.json", …), ("user.json", …); images are skipped
    """
    try:
        archive = zipfile.ZipFile(data)
    except DAMAGE as error:
        raise InputError(f"damaged zip file: {error}") from None
    with archive:
        listed = archive.infolist()
        if len(listed) > members:
            raise InputError(f"the archive contains more than {members:,} files: split it")
        left = total
        for info in listed:
            if info.is_dir() or not info.filename.lower().endswith(SUFFIXES) or _is_hidden(info.filename):
                continue
            content = _read(archive, info, min(largest, left))
            left -= len(content)
            yield info.filename[-LONGEST_NAME:], content


def _is_hidden(name: str) -> bool:
    """Whether a file is hidden, such as the metadata that macOS adds. Example: __MACOSX/._talk.json"""
    return name.startswith("__MACOSX/") or name.rpartition("/")[2].startswith(".")


def _read(archive: zipfile.ZipFile, info: zipfile.ZipInfo, most: int) -> bytes:
    name = info.filename[-LONGEST_NAME:]
    if info.flag_bits & 1:
        raise InputError(f"{name} is locked with a password: unpack the archive first")
    try:
        with archive.open(info) as file:
            content = file.read(most + 1)
    except (*DAMAGE, RuntimeError) as error:
        raise InputError(f"damaged zip file: {name}: {error}") from None
    if len(content) > most:
        raise InputError(f"{name} unpacks to more than {most // MEGABYTE:,} MB: unpack the archive and split it")
    return content


class _Sink(io.RawIOBase):
    """Collects what an archive writes until it is fetched. It cannot seek, so it holds only what was written last."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def writable(self) -> bool:
        """Return True: it accepts bytes."""
        return True

    def write(self, data: object) -> int:
        """Collect some bytes."""
        piece = bytes(data)  # type: ignore[call-overload]
        self._pieces.append(piece)
        return len(piece)

    def fetch(self) -> bytes:
        """Return the bytes written since the last call."""
        pieces, self._pieces = self._pieces, []
        return b"".join(pieces)


def packed(files: Iterable[tuple[str, bytes]]) -> Iterator[bytes]:
    """Yield the files as a zip archive, piece by piece, with one file in memory at a time."""
    sink = _Sink()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files:
            archive.writestr(name, content)
            yield sink.fetch()
    yield sink.fetch()
