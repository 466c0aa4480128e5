"""The program behind `search_files`: looks for a pattern in files and writes what it finds, a line of JSON each time.

Run by `aside`, so that a pattern without end is ended from outside. Its input is one `Wanted` as JSON.
"""

import os
import re
import sys
from collections.abc import Iterator
from fnmatch import translate
from pathlib import Path
from typing import BinaryIO

import msgspec

from everlong.agent.definitions import Place
from everlong.agent.tools.files import LOOKED_AT, encoding_of
from everlong.agent.tools.folders import Entry, open_below, walk
from everlong.agent.workspace import open_folder, open_reading
from everlong.errors import InputError

__all__ = ["Ended", "Looking", "Match", "Said", "Wanted", "main"]

LARGEST = 20_000_000  # bytes of a file that is searched
LONGEST_LINE = 500  # characters of a line that is shown


class Wanted(msgspec.Struct, frozen=True):
    """What to look for, and where."""

    workspace: str
    allowed: tuple[str, ...]
    path: str
    pattern: str
    regex: bool
    glob: str
    context: int
    most: int


class Looking(msgspec.Struct, frozen=True, tag=True):
    """This file is being looked through."""

    path: str


class Match(msgspec.Struct, frozen=True, tag=True):
    """A line that matches, with the lines around it; `first` is the number of the first of them."""

    path: str
    line: int
    first: int
    lines: tuple[str, ...]


class Ended(msgspec.Struct, frozen=True, tag=True):
    """All that was asked for was done, or what is wrong with it."""

    files: int = 0
    enough: bool = False
    #: Files that were too large to be looked through.
    skipped: int = 0
    problem: str = ""


Said = Looking | Match | Ended


def main(given: BinaryIO, output: BinaryIO) -> None:
    """Look for what is wanted; every line that is written is a `Said`."""
    encoder = msgspec.json.Encoder()
    wanted = msgspec.json.decode(given.read(), type=Wanted)
    try:
        for said in _search(wanted):
            output.write(encoder.encode(said) + b"\n")
            output.flush()
    except (InputError, re.error, RecursionError, OverflowError) as error:
        output.write(encoder.encode(Ended(problem=str(error))) + b"\n")
        output.flush()


def _search(wanted: Wanted) -> Iterator[Said]:
    pattern = _pattern(wanted)
    files = skipped = found = 0
    for path, size, content in _files(wanted):
        lines = None if content is None else _lines(content)
        if lines is None:
            skipped += size > LARGEST
            continue
        files += 1
        yield Looking(path)
        for match in _matches(path, lines, pattern, wanted.context):
            yield match
            found += 1
            if found >= wanted.most:
                yield Ended(files, True, skipped)
                return
    yield Ended(files, False, skipped)


def _pattern(wanted: Wanted) -> re.Pattern[str]:
    return re.compile(wanted.pattern if wanted.regex else re.escape(wanted.pattern))


def _files(wanted: Wanted) -> Iterator[tuple[str, int, bytes | None]]:
    """(path, size, content) of every file that is to be looked through; content None where it is not."""
    place = Place(thread="", call="", workspace=Path(wanted.workspace), allowed=tuple(map(Path, wanted.allowed)))
    if (place.workspace / wanted.path).is_file():
        with open_reading(place, wanted.path) as file:
            content = file.read(LARGEST + 1)
        yield wanted.path, len(content), content if len(content) <= LARGEST else None
        return
    above = "" if wanted.path in (".", "./") else wanted.path.rstrip("/")
    with open_folder(place, wanted.path) as top:
        for folder, entry in walk(top, above):
            if _fits(entry, wanted.glob):
                yield entry.path, entry.size, _content(folder, entry)


def _fits(entry: Entry, glob: str) -> bool:
    """Whether a glob names the file: by its name, or by its path where the glob has a slash."""
    if not glob:
        return True
    if "/" not in glob:
        return re.fullmatch(translate(glob), entry.name) is not None
    return any(re.fullmatch(translate(form), entry.path) for form in {glob, glob.replace("**/", "")})


def _content(folder: int, entry: Entry) -> bytes | None:
    if entry.size > LARGEST:
        return None
    handle = open_below(folder, entry.name, file=True)
    if handle is None:
        return None
    try:
        with os.fdopen(handle, "rb") as file:
            return file.read(LARGEST)
    except OSError:
        return None


def _lines(content: bytes) -> list[str] | None:
    """The lines of a file; None if it is no text."""
    encoding = encoding_of(content[:LOOKED_AT])
    if encoding is None:
        return None
    text = content[len(encoding.mark) :].decode(encoding.name, "replace")
    return text.replace("\r\n", "\n").replace("\r", "\n").removesuffix("\n").split("\n")


def _matches(path: str, lines: list[str], pattern: re.Pattern[str], context: int) -> Iterator[Match]:
    for at, line in enumerate(lines):
        found = pattern.search(line)
        if found:
            first = max(0, at - context)
            around = [_shortened(other, 0) for other in lines[first : at + context + 1]]
            around[at - first] = _shortened(line, found.start())
            yield Match(path, at + 1, first + 1, tuple(around))


def _shortened(line: str, at: int) -> str:
    """The part of a long line around a place in it."""
    if len(line) <= LONGEST_LINE:
        return line
    start = max(0, min(at - LONGEST_LINE // 4, len(line) - LONGEST_LINE))
    end = start + LONGEST_LINE
    return ("…" if start else "") + line[start:end] + ("…" if end < len(line) else "")


if __name__ == "__main__":
    main(sys.stdin.buffer, sys.stdout.buffer)
