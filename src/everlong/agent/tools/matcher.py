"""The program behind `search_files`: it looks for a pattern in files and writes each finding as a line of JSON.

`isolation` runs it in a process of its own, so that a pattern that never ends can be stopped. It reads one `Query` as
JSON, and writes nothing but findings.
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
from everlong.agent.tools.folders import Entry, walk
from everlong.agent.workspace import open_below, open_folder, open_reading
from everlong.errors import InputError

__all__ = ["Ended", "Finding", "Looking", "Match", "Query", "main"]

LARGEST = 20_000_000  # bytes of a file that is searched
LONGEST_LINE = 500  # characters of a line that is shown


class Query(msgspec.Struct, frozen=True):
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
    """This file is being searched."""

    path: str


class Match(msgspec.Struct, frozen=True, tag=True):
    """A line that matches, with the lines around it; `first` is the number of the first of them."""

    path: str
    line: int
    first: int
    lines: tuple[str, ...]


class Ended(msgspec.Struct, frozen=True, tag=True):
    """The search is over: all was searched, enough was found, or there is a problem with the query."""

    files: int = 0
    enough: bool = False
    #: Files that were too large to be searched.
    skipped: int = 0
    problem: str = ""


Finding = Looking | Match | Ended


def main(source: BinaryIO, output: BinaryIO) -> None:
    """Search for the query in `source`; write every finding to `output`."""
    encoder = msgspec.json.Encoder()
    query = msgspec.json.decode(source.read(), type=Query)
    try:
        for finding in _search(query):
            output.write(encoder.encode(finding) + b"\n")
            output.flush()
    except (InputError, re.error, RecursionError, OverflowError) as error:
        output.write(encoder.encode(Ended(problem=str(error))) + b"\n")
        output.flush()


def _search(query: Query) -> Iterator[Finding]:
    pattern = re.compile(query.pattern if query.regex else re.escape(query.pattern))
    files = skipped = matches = 0
    for path, size, content in _files(query):
        lines = None if content is None else _lines(content)
        if lines is None:
            skipped += size > LARGEST
            continue
        files += 1
        yield Looking(path)
        for match in _matches(path, lines, pattern, query.context):
            yield match
            matches += 1
            if matches >= query.most:
                yield Ended(files, True, skipped)
                return
    yield Ended(files, False, skipped)


def _files(query: Query) -> Iterator[tuple[str, int, bytes | None]]:
    """Yield (path, size, content) of every file that the query names; content is None if it is not searched."""
    place = Place(thread="", call="", workspace=Path(query.workspace), allowed=tuple(map(Path, query.allowed)))
    if (place.workspace / query.path).is_file():
        with open_reading(place, query.path) as file:
            content = file.read(LARGEST + 1)
        yield query.path, len(content), content if len(content) <= LARGEST else None
        return
    above = "" if query.path in (".", "./") else query.path.rstrip("/")
    with open_folder(place, query.path) as top:
        for folder, entry in walk(top, above):
            if _fits(entry, query.glob):
                yield entry.path, entry.size, _content(folder, entry)


def _fits(entry: Entry, glob: str) -> bool:
    """Return whether the glob matches the file: its path if the glob has a slash, else its name."""
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
    """Return the lines of a file; None if it is not text."""
    encoding = encoding_of(content[:LOOKED_AT])
    if encoding is None:
        return None
    text = content[len(encoding.mark) :].decode(encoding.name, "replace")
    return text.replace("\r\n", "\n").replace("\r", "\n").removesuffix("\n").split("\n")


def _matches(path: str, lines: list[str], pattern: re.Pattern[str], context: int) -> Iterator[Match]:
    for at, line in enumerate(lines):
        match = pattern.search(line)
        if match:
            first = max(0, at - context)
            around = [_shortened(other, 0) for other in lines[first : at + context + 1]]
            around[at - first] = _shortened(line, match.start())
            yield Match(path, at + 1, first + 1, tuple(around))


def _shortened(line: str, at: int) -> str:
    """Return the part of a long line around a place in it."""
    if len(line) <= LONGEST_LINE:
        return line
    start = max(0, min(at - LONGEST_LINE // 4, len(line) - LONGEST_LINE))
    end = start + LONGEST_LINE
    return ("…" if start else "") + line[start:end] + ("…" if end < len(line) else "")


if __name__ == "__main__":
    main(sys.stdin.buffer, sys.stdout.buffer)
