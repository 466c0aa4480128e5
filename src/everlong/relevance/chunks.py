"""Split messages into chunks: the verbatim pieces that excerpts consist of.

A chunk has up to 12 lines of one part, or 20 if a person or the model wrote them, and knows where it came from. Line
numbers and colour codes added by tools are removed, so that a chunk has the text of the file.
"""

import re
from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

from everlong.core import CallId, Message, Role, Text, ToolCall, ToolResult
from everlong.relevance.calls import File, TextKind, fields_of, file_of, texts_of_call

__all__ = ["Chunk", "ChunkKind", "Chunker", "pieces_said", "plain_lines"]

MOST_LINES = 12
MOST_CHARACTERS = 800  # about 230 tokens
MOST_LINES_SAID = 20  # what people and models write is less dense than the texts of tools
MOST_CHARACTERS_SAID = 1_200
LONGEST_LINE = 4_000  # a longer line is split: minified files, encoded data
LONGEST_TEXT = 4_000_000  # characters of one part that are used

LONGEST_LABEL = 100

_NUMBERED = re.compile(r"[ \t]*(\d{1,7})(\t|→|[:|])")
_COLOURS = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")


class ChunkKind(StrEnum):
    """Where the text of a chunk comes from."""

    USER = "user"
    ASSISTANT = "assistant"
    CALL = "call"
    REPLACED = "replaced"
    WRITTEN = "written"
    RESULT = "result"


KINDS = {
    TextKind.CALLED: ChunkKind.CALL,
    TextKind.REPLACED: ChunkKind.REPLACED,
    TextKind.WRITTEN: ChunkKind.WRITTEN,
}


class Chunk(NamedTuple):
    """Consecutive lines of message `at`. `path` is the file they belong to, "" if none is known.

    The short arguments of a call are a chunk with the tool's name; its first line is 0. `part` is the index of the
    message's part that has the lines.
    """

    at: int
    kind: ChunkKind
    label: str
    path: str
    first_line: int
    text: str
    part: int = 0


class _Place(NamedTuple):
    """The position of a text: the message, and the part of it."""

    at: int
    part: int


class Chunker:
    """Splits messages into chunks, in order. It remembers calls, because a result gets the file of its call."""

    def __init__(self) -> None:
        self._calls: dict[CallId, tuple[str, File]] = {}

    def chunks(self, at: int, message: Message) -> Iterator[Chunk]:
        """Yield the chunks of the next message."""
        for index, part in enumerate(message.parts):
            place = _Place(at, index)
            match part:
                case Text(text):
                    yield from _speech(place, message.role, text)
                case ToolCall():
                    yield from self._call(place, part)
                case ToolResult():
                    name, file = self._calls.get(part.call, (part.name or "tool", File("")))
                    yield from _pieces(place, ChunkKind.RESULT, name, file, part.text)
                case _:
                    continue

    def _call(self, place: _Place, call: ToolCall) -> Iterator[Chunk]:
        fields = fields_of(call.arguments)
        file = file_of(fields)
        self._calls[call.id] = (call.name, file)
        long, short = texts_of_call(fields, file.path)
        for text in long:
            label = f"{call.name} {text.key}"[:LONGEST_LABEL]
            yield from _pieces(place, KINDS[text.kind], label, File(text.path), text.text)
        if short:
            said = f"{call.name} {' '.join(short)}"
            yield Chunk(place.at, ChunkKind.CALL, call.name, file.path, 0, said, place.part)


def pieces_said(message: Message) -> list[str]:
    """Return the text parts of a message as chunks; calls and results are left out."""
    parts = [(index, part.text) for index, part in enumerate(message.parts) if isinstance(part, Text)]
    return [chunk.text for index, text in parts for chunk in _speech(_Place(0, index), message.role, text)]


def _speech(place: _Place, role: Role, text: str) -> Iterator[Chunk]:
    kind = ChunkKind.ASSISTANT if role is Role.ASSISTANT else ChunkKind.USER
    yield from _pieces(place, kind, role.value, File(""), text)


def plain_lines(text: str, unnumbered: int = 1) -> tuple[list[str], int]:
    """Return the lines without colours and line numbers, as they are in the file, and the number of the first line.

    Numbers that do not count up by one are not line numbers: times, search matches, table columns. Lines without
    numbers begin at `unnumbered`.
    """
    lines = _without_colours(text).split("\n")
    begun = _NUMBERED.match(lines[0])
    if begun is None:
        return lines, unnumbered
    first = int(begun[1])
    starts = [_after_number(line, number) for number, line in enumerate(lines, first)]
    numbered = [line[start:] for line, start in zip(lines, starts, strict=True) if start]
    if len(numbered) < 2 or 2 * len(numbered) < len(lines):
        return lines, unnumbered
    # In "12: x" the space belongs to the number only if every line has it; otherwise it belongs to the line.
    spaced = begun[2] in ":|" and all(rest.startswith(" ") for rest in numbered if rest)
    return [line[start + (1 if spaced and start else 0) :] for line, start in zip(lines, starts, strict=True)], first


def _without_colours(text: str) -> str:
    return _COLOURS.sub("", text) if "\x1b" in text else text


def _after_number(line: str, number: int) -> int:
    """Return where the text after this line number begins; 0 if the line has no number or another one."""
    found = _NUMBERED.match(line)
    return found.end() if found and int(found[1]) == number else 0


def _pieces(place: _Place, kind: ChunkKind, label: str, file: File, text: str) -> Iterator[Chunk]:
    if not text or text.isspace():
        return
    text = text[:LONGEST_TEXT]
    # Only tools number lines: a "1:" written by people or models is part of the text.
    lines, first = (
        plain_lines(text, file.first_line) if kind is ChunkKind.RESULT else (_without_colours(text).split("\n"), 1)
    )
    path = file.path
    is_said = kind in (ChunkKind.USER, ChunkKind.ASSISTANT)
    most_lines = MOST_LINES_SAID if is_said else MOST_LINES
    most_characters = MOST_CHARACTERS_SAID if is_said else MOST_CHARACTERS
    if len(text) <= most_characters and len(lines) <= most_lines:
        yield Chunk(place.at, kind, label, path, first, "\n".join(lines), place.part)
        return
    held: list[str] = []
    size, start = 0, first
    for number, line in enumerate(lines, first):
        if held and (size + len(line) > most_characters or len(held) >= most_lines):
            yield Chunk(place.at, kind, label, path, start, "\n".join(held), place.part)
            held, size, start = [], 0, number
        if len(line) > LONGEST_LINE:
            for cut in range(0, len(line), LONGEST_LINE):
                yield Chunk(place.at, kind, label, path, number, line[cut : cut + LONGEST_LINE], place.part)
            start = number + 1
            continue
        held.append(line)
        size += len(line) + 1
    if held and any(held):
        yield Chunk(place.at, kind, label, path, start, "\n".join(held), place.part)
