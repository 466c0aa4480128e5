"""The tools `read_file`, `write_file` and `edit_file`, and how files are decoded and encoded without loss.

A file keeps its encoding, its byte order mark and its line ends. `workspace` opens every path; nothing here does.
"""

import base64
import codecs
import io
import os
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from pathlib import Path
from typing import Annotated, Any, BinaryIO

from everlong.agent.changes import LARGEST, digest, keep_change
from everlong.agent.definitions import Outcome, Place, tool
from everlong.agent.permissions.action import Action
from everlong.agent.tools.diffs import unified_diff
from everlong.agent.workspace import inside, open_reading, replace_file, shown
from everlong.core import Image
from everlong.errors import InputError

__all__ = ["LOOKED_AT", "Encoding", "edit_file", "encoding_of", "read_file", "write_file"]

LOOKED_AT = 65_536  # bytes at the beginning of a file that decide its kind and encoding
MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
PICTURES = ((b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"GIF8", "image/gif"))
MOST_LINES = 2_000
MOST_CHARACTERS = 100_000
MOST_COUNTED = 64_000_000  # characters that are read in order to count the lines
LARGEST_PICTURE = 4_000_000  # bytes; providers refuse more
PIECE = 65_536  # characters of a line at a time
#: Control characters are written out, so that the model sees them and no terminal acts on them.
VISIBLE = {code: f"\\x{code:02x}" for code in (*range(9), *range(11, 32), *range(0x7F, 0xA0))}
AROUND = 2  # lines shown before and after the nearest one
MOST_COMPARED_LINES = 20_000  # of a file
LONGEST_LINE = 200  # characters that are compared and shown
MOST_COMPARED = 300  # lines that are compared letter by letter, of those that may be alike
ALIKE = 0.6  # the ratio above which two lines are alike
NOT_KEPT = " (the previous content could not be saved)"
MOST_PLACES = 20  # line numbers that are named
#: An edit reads, changes and writes a file. If two ran at once, one of them could be lost.
_ONE_AT_A_TIME = threading.Lock()


@dataclass(frozen=True, slots=True)
class Encoding:
    """How a file is encoded: the name of the encoding, and the byte order mark that the file begins with."""

    name: str
    mark: bytes = b""


@tool
def read_file(
    path: Annotated[str, "relative to the workspace"],
    place: Place,
    offset: Annotated[int, "the first line to read, counting from 1"] = 1,
    limit: Annotated[int, "how many lines to read"] = MOST_LINES,
    numbers: Annotated[bool, "put the line number before each line"] = False,
) -> Outcome:
    """Read a text file, or view an image (png, jpeg, gif, webp). Use offset to read a long file in parts."""
    if offset < 1 or limit < 1:
        raise InputError("offset and limit must be at least 1")
    with open_reading(place, path) as file:
        beginning = file.read(LOOKED_AT)
        size = os.fstat(file.fileno()).st_size
        kind = _media_type(beginning)
        if kind:
            return _picture(kind, beginning, file, size)
        encoding = encoding_of(beginning)
        if encoding is None:
            return Outcome(f"{path}: a binary file of {size:,} bytes; it cannot be read as text")
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
        return Outcome(
            f"an image ({kind}) of {size:,} bytes: too large to view, the limit is {LARGEST_PICTURE:,} bytes"
        )
    data = beginning + file.read(LARGEST_PICTURE)
    return Outcome(
        f"an image ({kind}) of {len(data):,} bytes", images=(Image(base64.b64encode(data).decode("ascii"), kind),)
    )


def _pieces(file: BinaryIO, encoding: Encoding) -> Iterator[tuple[int, str]]:
    """Yield (line number, piece) of a file; a long line comes in several pieces."""
    text = io.TextIOWrapper(file, encoding.name, errors="replace")
    number = 1
    try:
        while piece := text.readline(PIECE):
            yield number, piece
            number += piece.endswith("\n")
    finally:
        text.detach()  # the caller closes the file


@dataclass(slots=True)
class _Part:
    """The requested lines, collected; the lines after them are only counted."""

    offset: int
    limit: int
    numbers: bool
    pieces: list[str] = field(default_factory=list)
    characters: int = 0
    counted: int = 0
    #: The last line that is shown, in part or whole, and the last line that is known.
    shown: int = 0
    last: int = 0
    inside: bool = False
    all_counted: bool = True

    def take(self, number: int, piece: str) -> bool:
        """Take one more piece; return False when nothing more needs to be read."""
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
        text = piece[:room].translate(VISIBLE)
        self.pieces.append(f"{number}\t{text}" if self.numbers and new else text)
        self.characters += len(text)
        self.shown = number
        return True

    def full(self, number: int) -> bool:
        """Return whether the line of that number is beyond a limit."""
        return number >= self.offset + self.limit or self.characters >= MOST_CHARACTERS

    def outcome(self, encoding: Encoding) -> Outcome:
        """Return the lines that were read, with a note about the others."""
        total = f"{self.last:,}" if self.all_counted else f"more than {self.last:,}"
        if not self.pieces:
            return Outcome(f"there is no line {self.offset:,}: the file has {total} lines", failed=True)
        notes = []
        if self.inside:
            notes.append(f"line {self.shown:,} is longer than {MOST_CHARACTERS:,} characters and is cut off here")
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


def _describe_writing(arguments: Mapping[str, Any], place: Place) -> Action:
    path, content = arguments["path"], arguments["content"]
    target = inside(place, path)
    _check_own(target.parts)
    return _described("write_file", place, target, _present(place, path), _written(content))


@tool(action=_describe_writing)
def write_file(path: Annotated[str, "relative to the workspace"], content: str, place: Place) -> str:
    """Create or replace a file, with the folders it needs. For small changes, use edit_file."""
    target = inside(place, path)
    _check_own(target.parts)
    data = _written(content)
    with _ONE_AT_A_TIME:
        before = _present(place, path)
        _check_unchanged(place, before)
        with keep_change(place, "write_file", _subject(place, target), before, data) as kept:
            new = replace_file(place, path, data)
    lines = content.count("\n") + (content != "" and not content.endswith("\n"))
    done = f"{'wrote' if new else 'replaced'} {shown(place, target)}: {lines:,} lines, {len(data):,} bytes"
    return done if kept else done + NOT_KEPT


def _describe_editing(arguments: Mapping[str, Any], place: Place) -> Action:
    target = inside(place, arguments["path"])
    _check_own(target.parts)
    edit = _edit(place, **arguments)
    return _described("edit_file", place, target, edit.before, edit.after)


@tool(action=_describe_editing)
def edit_file(
    path: Annotated[str, "relative to the workspace"],
    old_text: Annotated[
        str, "the text to replace, exactly as it is in the file, with enough context to match only once"
    ],
    new_text: Annotated[str, "the text to put in its place"],
    place: Place,
    replace_all: Annotated[bool, "replace every occurrence"] = False,
) -> str:
    """Replace text in a file. The text must occur exactly once, unless replace_all is true."""
    target = inside(place, path)
    _check_own(target.parts)
    with _ONE_AT_A_TIME:
        edit = _edit(place, path, old_text, new_text, replace_all)
        _check_unchanged(place, edit.before)
        with keep_change(place, "edit_file", _subject(place, target), edit.before, edit.after) as kept:
            replace_file(place, path, edit.after)
    done = f"edited {shown(place, target)}: {len(edit.places)} replaced, in line {_listed(edit.places)}"
    return done if kept else done + NOT_KEPT


@dataclass(frozen=True, slots=True)
class _Edit:
    """A file before and after an edit, and the lines in which something is replaced."""

    before: bytes
    after: bytes
    places: list[int]


def _edit(place: Place, path: str, old_text: str, new_text: str, replace_all: bool) -> _Edit:
    """Return the result of an edit of the current file, without writing it. Raises InputError."""
    if not old_text:
        raise InputError("old_text: must not be empty; use write_file for a new file")
    before, text, encoding = _read(place, path)
    old, new = _with_line_ends(text, old_text, new_text)
    if old == new:
        raise InputError("old_text and new_text are the same: nothing to change")
    places = _places(text, old)
    if not places:
        raise InputError(_missing(text, old_text))
    if len(places) > 1 and not replace_all:
        raise InputError(
            f"old_text: found {len(places)} times, in lines {_listed(places)}; add more context, or set replace_all"
        )
    return _Edit(before, encoding.mark + _encoded(text.replace(old, new), encoding), places)


def _written(content: str) -> bytes:
    try:
        return content.encode("utf-8")
    except UnicodeEncodeError:
        raise InputError("content: contains half of a surrogate pair, which cannot be written to a file") from None


def _present(place: Place, path: str) -> bytes | None:
    """Return the content of the file now; None if there is no file. Of a very large file, return only the beginning."""
    if not inside(place, path).exists():
        return None
    with open_reading(place, path) as file:
        return file.read(LARGEST + 1)


def _described(tool_name: str, place: Place, target: Path, before: bytes | None, after: bytes) -> Action:
    """Describe a change of a file by a diff with its content on disk."""
    old, new = (None if content is None else _decoded(content) for content in (before, after))
    unreadable = before is not None and (old is None or len(before) > LARGEST)
    note = f"a new file of {len(after):,} bytes" if before is None else ""
    if unreadable and before is not None:
        size = f"{len(before):,} bytes" if len(before) <= LARGEST else f"more than {LARGEST:,} bytes"
        note = f"a binary or very large file ({size}) is replaced completely; only the new content is shown"
    shown_before = "" if unreadable or old is None else old[0]
    details = unified_diff(shown_before, new[0]) if new is not None else f"(binary, {len(after):,} bytes)"
    return Action(
        tool=tool_name,
        kind="file",
        subject=_subject(place, target),
        details=details or "(the text does not change)",
        hint=note,
        path=target,
        basis=digest(before),
    )


def _subject(place: Place, target: Path) -> str:
    root = Path(os.path.realpath(place.workspace))
    return target.relative_to(root).as_posix() if target.is_relative_to(root) else target.as_posix()


def _check_unchanged(place: Place, before: bytes | None) -> None:
    """Refuse to overwrite content that the person who allowed the change has not seen."""
    if place.asked is not None and place.asked.basis != digest(before):
        raise InputError("the file has been changed since it was shown; read it again")


def _check_own(parts: tuple[str, ...]) -> None:
    """Refuse files in .git, from which git runs programs, and in .everlong, which has the copies for restoring."""
    names = {part.casefold() for part in parts}
    if ".git" in names:
        raise InputError("files inside .git can be changed only by git")
    if ".everlong" in names:
        raise InputError("files inside .everlong can be changed only by Everlong")


def _read(place: Place, path: str) -> tuple[bytes, str, Encoding]:
    with open_reading(place, path) as file:
        content = file.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise InputError(f"{path}: larger than {LARGEST:,} bytes; change it with a program")
    decoded = _decoded(content)
    if decoded is None:
        raise InputError(f"{path}: a binary file, not text")
    return content, *decoded


def _with_line_ends(text: str, old: str, new: str) -> tuple[str, str]:
    """Return both texts with the line ends of the file: a model writes "\\n", whatever the file has."""
    windows = text.count("\r\n")
    if windows * 2 <= text.count("\n") or (old in text and "\r\n" in old):
        return old, new
    wanted, instead = (given.replace("\r\n", "\n").replace("\n", "\r\n") for given in (old, new))
    return (wanted, instead) if wanted in text or old not in text else (old, new)


def _places(text: str, old: str) -> list[int]:
    """Return the line number of each occurrence of the text."""
    places, at, line, counted = [], text.find(old), 1, 0
    while at >= 0:
        line += text.count("\n", counted, at)
        counted = at
        places.append(line)
        at = text.find(old, at + len(old))
    return places


def _listed(places: list[int]) -> str:
    numbers = list(dict.fromkeys(places))
    return ", ".join(map(str, numbers[:MOST_PLACES])) + (" …" if len(numbers) > MOST_PLACES else "")


def _missing(text: str, old: str) -> str:
    """Return the error for a text that is not in the file, with the most similar lines."""
    near = _nearest_lines(text, old)
    if not near:
        return "old_text: not found in the file, and no line resembles its first line"
    spaces = " (only white space differs)" if "".join(old.split()) in "".join(text.split()) else ""
    return f"old_text: not found in the file{spaces}; the most similar lines are\n{near}"


def _nearest_lines(text: str, wanted: str) -> str:
    """Return the lines of the text that are most like the first line of `wanted`, with numbers; "" if none is.

    Example: "def add(a, b):" where the file has "def add(a: int, b: int):" -> "3\\tdef add(a: int, b: int):"
    """
    first_line = next((line.strip() for line in wanted.splitlines() if line.strip()), "")[:LONGEST_LINE]
    lines = text.splitlines()
    if not first_line:
        return ""
    matcher = SequenceMatcher(b=first_line, autojunk=False)
    best, at, compared = ALIKE, -1, 0
    for number, line in enumerate(lines[:MOST_COMPARED_LINES]):
        matcher.set_seq1(line.strip()[:LONGEST_LINE])
        if matcher.real_quick_ratio() <= best or matcher.quick_ratio() <= best:
            continue
        compared += 1
        if matcher.ratio() > best:
            best, at = matcher.ratio(), number
        if best == 1 or compared == MOST_COMPARED:
            break
    if at < 0:
        return ""
    start = max(0, at - AROUND)
    around = lines[start : at + AROUND + 1]
    return "\n".join(f"{number}\t{line[:LONGEST_LINE]}" for number, line in enumerate(around, start + 1))


def encoding_of(beginning: bytes) -> Encoding | None:
    """Return the encoding of the bytes; None if they are not text."""
    for mark, name in MARKS:
        if beginning.startswith(mark):
            return Encoding(name, mark)
    if b"\0" in beginning:
        return None
    if _reads_as(beginning, "utf-8") is not None:
        return Encoding("utf-8")
    chinese = _reads_as(beginning, "gb18030")
    if chinese is not None:
        foreign = [character for character in chinese if character > "\x7f"]
        common = sum(
            "\u4e00" <= c <= "\u9fff" or "\u3000" <= c <= "\u303f" or "\uff00" <= c <= "\uffef" for c in foreign
        )
        if common * 10 >= len(foreign) * 9:
            return Encoding("gb18030")
    controls = sum(byte < 32 and byte not in b"\t\n\r\f\x1b" for byte in beginning)
    return None if controls * 20 > len(beginning) else Encoding("latin-1")


def _decoded(content: bytes) -> tuple[str, Encoding] | None:
    """Return a whole file as text without its mark, if encoding it again gives the same bytes; None otherwise."""
    encoding = encoding_of(content[:LOOKED_AT])
    if encoding is None:
        return None
    for name in dict.fromkeys((encoding.name, "latin-1")):
        if encoding.mark and name != encoding.name:
            return None
        try:
            text = content[len(encoding.mark) :].decode(name)
        except UnicodeDecodeError:
            continue
        if text.encode(name) == content[len(encoding.mark) :]:
            return text, Encoding(name, encoding.mark)
    return None


def _encoded(text: str, encoding: Encoding) -> bytes:
    try:
        return text.encode(encoding.name)
    except UnicodeEncodeError as error:
        character = error.object[error.start]
        raise InputError(f"new_text: the file is in {encoding.name}, which has no {character!r}") from None


def _media_type(beginning: bytes) -> str:
    """Return the kind of picture that models can see, "" for anything else."""
    if beginning[:4] == b"RIFF" and beginning[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for sign, kind in PICTURES if beginning.startswith(sign)), "")


def _reads_as(content: bytes, name: str) -> str | None:
    """Return the bytes decoded with that encoding, None if that fails. The last character may be incomplete."""
    try:
        return codecs.getincrementaldecoder(name)().decode(content)
    except UnicodeDecodeError:
        return None
