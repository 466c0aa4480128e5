"""Reads a file for the model: some of its lines, a picture, or one line that says what it is."""

import base64
import io
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated, BinaryIO

from everlong.agent.definitions import Outcome, Place, tool
from everlong.agent.tools.encodings import LOOKED_AT, Encoding, encoding_of, media_type_of
from everlong.agent.workspace import open_reading
from everlong.core import Image
from everlong.errors import InputError

__all__ = ["read_file"]

MOST_LINES = 2_000
MOST_CHARACTERS = 100_000
MOST_COUNTED = 64_000_000  # characters read on, to say how many lines there are
LARGEST_PICTURE = 4_000_000  # bytes; providers refuse more
PIECE = 65_536  # characters of a line at a time
#: Controls inside a line are shown, not sent to a terminal: they are what the file says.
VISIBLE = {code: f"\\x{code:02x}" for code in (*range(9), *range(11, 32), *range(0x7F, 0xA0))}


@tool
def read_file(
    path: Annotated[str, "relative to the workspace"],
    place: Place,
    offset: Annotated[int, "number of the first line, from 1"] = 1,
    limit: Annotated[int, "how many lines"] = MOST_LINES,
    numbers: Annotated[bool, "put its number before each line"] = False,
) -> Outcome:
    """Read a text file, or look at a picture (png, jpeg, gif, webp). Long files are read in parts, by offset."""
    if offset < 1 or limit < 1:
        raise InputError("offset and limit are numbers of lines, from 1")
    with open_reading(place, path) as file:
        beginning = file.read(LOOKED_AT)
        size = os.fstat(file.fileno()).st_size
        kind = media_type_of(beginning)
        if kind:
            return _picture(kind, beginning, file, size)
        encoding = encoding_of(beginning)
        if encoding is None:
            return Outcome(f"{path}: a binary file, {size:,} bytes; it cannot be read as text")
        if not beginning[len(encoding.mark) :]:
            return Outcome("(the file is empty)")
        file.seek(len(encoding.mark))
        part = _Part(offset, min(limit, MOST_LINES), numbers)
        for number, piece in _pieces(file, encoding):
            if not part.take(number, piece):
                break
    return part.outcome(encoding)


def _picture(kind: str, beginning: bytes, file: BinaryIO, size: int) -> Outcome:
    if size > LARGEST_PICTURE:
        return Outcome(f"a picture ({kind}), {size:,} bytes: too large to look at, the limit is {LARGEST_PICTURE:,}")
    data = beginning + file.read(LARGEST_PICTURE)
    return Outcome(
        f"a picture ({kind}), {len(data):,} bytes", images=(Image(base64.b64encode(data).decode("ascii"), kind),)
    )


def _pieces(file: BinaryIO, encoding: Encoding) -> Iterator[tuple[int, str]]:
    """(line number, piece) of a file; a long line comes in several."""
    text = io.TextIOWrapper(file, encoding.name, errors="replace")
    number = 1
    try:
        while piece := text.readline(PIECE):
            yield number, piece
            number += piece.endswith("\n")
    finally:
        text.detach()  # the file is closed by the one who opened it


@dataclass(slots=True)
class _Part:
    """The lines that were asked for, collected; then only counted."""

    offset: int
    limit: int
    numbers: bool
    pieces: list[str] = field(default_factory=list)
    characters: int = 0
    counted: int = 0
    #: The last line that is shown, in part or whole, and the last there is as far as is known.
    shown: int = 0
    last: int = 0
    inside: bool = False
    all_counted: bool = True

    def take(self, number: int, piece: str) -> bool:
        """One more piece; False when nothing more needs to be read."""
        new = number != self.last
        self.last = number
        self.counted += len(piece)
        if self.counted > MOST_COUNTED and (self.full(number) or number < self.offset):
            self.all_counted = False
            return False
        if number < self.offset or self.full(number):
            return True
        room = MOST_CHARACTERS - self.characters
        if new and self.pieces and len(piece) > room:  # a line that does not fit begins the next part
            self.characters = MOST_CHARACTERS
            return True
        self.inside = len(piece) > room
        said = piece[:room].translate(VISIBLE)
        self.pieces.append(f"{number}\t{said}" if self.numbers and new else said)
        self.characters += len(said)
        self.shown = number
        return True

    def full(self, number: int) -> bool:
        """Whether a line of that number is not wanted any more."""
        return number >= self.offset + self.limit or self.characters >= MOST_CHARACTERS

    def outcome(self, encoding: Encoding) -> Outcome:
        """What was read, and a last line that says what was not."""
        total = f"{self.last:,}" if self.all_counted else f"more than {self.last:,}"
        if not self.pieces:
            return Outcome(f"there is no line {self.offset:,}: the file has {total} lines", failed=True)
        notes = []
        if self.inside:
            notes.append(f"line {self.shown:,} is longer than {MOST_CHARACTERS:,} characters and cut off here")
        if self.offset > 1 or self.shown < self.last or not self.all_counted:
            notes.append(f"lines {self.offset:,} to {self.shown:,} of {total}")
        if self.shown < self.last:
            notes.append(f"continue with offset={self.shown + 1}")
        if encoding.name != "utf-8":
            notes.append(f"encoding {encoding.name}")
        text = "".join(self.pieces)
        if notes:
            text += ("" if text.endswith("\n") else "\n") + f"[{'; '.join(notes)}]"
        return Outcome(text)
