"""A message as chunks: the verbatim pieces that an excerpt is made of.

A chunk is up to 12 lines of one part, 20 of what was said, and knows where it came from. Line numbers and
colour codes that tools add are taken off, so that what stands in a chunk is what stands in the file.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, TypeGuard, cast

from everlong.core import CallId, Json, Message, Role, Text, ToolCall, ToolResult

__all__ = ["PATH_KEYS", "Chunk", "ChunkKind", "Chunker", "plain_lines"]

MOST_LINES = 12
MOST_CHARACTERS = 800  # about 230 tokens
MOST_LINES_SAID = 20  # what people and models say is less dense than what tools handle
MOST_CHARACTERS_SAID = 1_200
LONGEST_ARGUMENT = 600  # characters; a longer one is a chunk of its own
LONGEST_LINE = 4_000  # a longer line is split: minified files, encoded data
LONGEST_TEXT = 4_000_000  # characters of one part that are looked at

LONGEST_PATH = 300
LONGEST_LABEL = 100

_NUMBERED = re.compile(r"[ \t]*(\d{1,7})(\t|→|[:|])")
_COLOURS = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")

#: Under which names tools take the file they work on.
PATH_KEYS = (
    *("path", "file_path", "filepath", "filePath", "filename", "file", "target_file", "notebook_path"),
    *("relative_path", "uri"),
)
REPLACED_KEYS = frozenset({"old_string", "old_str", "old_text", "oldText", "old"})
WRITTEN_KEYS = frozenset({"new_string", "new_str", "new_text", "newText", "new", "content", "file_text", "contents"})


class ChunkKind(StrEnum):
    """Whose words they are."""

    USER = "user"
    ASSISTANT = "assistant"
    CALL = "call"
    REPLACED = "replaced"
    WRITTEN = "written"
    RESULT = "result"


@dataclass(frozen=True, slots=True)
class Chunk:
    """Consecutive lines of message `at`. `path` is the file they belong to, "" if none is known.

    The short arguments of a call are a chunk with the tool's name; its first line is 0. `part` is the index of the
    message's part that they stand in.
    """

    at: int
    kind: ChunkKind
    label: str
    path: str
    first_line: int
    text: str
    part: int = 0


class _Place(NamedTuple):
    """Where a text stands: the message, and which of its parts."""

    at: int
    part: int


class Chunker:
    """Cuts messages up in order; remembers which call a result answers, for its tool and path."""

    def __init__(self) -> None:
        self._calls: dict[CallId, tuple[str, str]] = {}

    def chunks(self, at: int, message: Message) -> Iterator[Chunk]:
        """The chunks of the next message."""
        for index, part in enumerate(message.parts):
            place = _Place(at, index)
            match part:
                case Text(text):
                    yield from _speech(place, message.role, text)
                case ToolCall():
                    yield from self._call(place, part)
                case ToolResult():
                    name, path = self._calls.get(part.call, (part.name or "tool", ""))
                    yield from _pieces(place, ChunkKind.RESULT, name, path, part.text)
                case _:
                    continue

    def _call(self, place: _Place, call: ToolCall) -> Iterator[Chunk]:
        try:
            arguments = cast(Json, json.loads(call.arguments))
        except (ValueError, RecursionError):
            arguments = {"arguments": call.arguments}
        fields = arguments if isinstance(arguments, dict) else {"arguments": arguments}
        path = next((value for key, value in fields.items() if key in PATH_KEYS and _is_path(value)), "")
        self._calls[call.id] = (call.name, path)
        short = []
        for key, value in fields.items():
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            if "\n" in text or len(text) > LONGEST_ARGUMENT or key in REPLACED_KEYS or key in WRITTEN_KEYS:
                yield from _pieces(place, _argument_kind(key), f"{call.name} {key}"[:LONGEST_LABEL], path, text)
            else:
                short.append(f"{key}={text}")
        if short:
            text = f"{call.name} {' '.join(short)}"
            yield Chunk(place.at, ChunkKind.CALL, call.name, path, 0, text, place.part)


def _speech(place: _Place, role: Role, text: str) -> Iterator[Chunk]:
    kind = ChunkKind.ASSISTANT if role is Role.ASSISTANT else ChunkKind.USER
    yield from _pieces(place, kind, role.value, "", text)


def _argument_kind(key: str) -> ChunkKind:
    if key in REPLACED_KEYS:
        return ChunkKind.REPLACED
    return ChunkKind.WRITTEN if key in WRITTEN_KEYS else ChunkKind.CALL


def _is_path(value: Json) -> TypeGuard[str]:
    return isinstance(value, str) and len(value) <= LONGEST_PATH and "\n" not in value


def plain_lines(text: str) -> tuple[list[str], int]:
    """The lines as they stand in the file, and the number of the first: colours and line numbers taken off.

    Numbers that do not count up by one are no line numbers: times, matches of a search, columns of a table.
    """
    lines = _without_colours(text).split("\n")
    begun = _NUMBERED.match(lines[0])
    if begun is None:
        return lines, 1
    first = int(begun[1])
    starts = [_after_number(line, number) for number, line in enumerate(lines, first)]
    numbered = [line[start:] for line, start in zip(lines, starts, strict=True) if start]
    if len(numbered) < 2 or 2 * len(numbered) < len(lines):
        return lines, 1
    # "12: x" is a number, a colon and a space where every line has that space; else it belongs to the line.
    spaced = begun[2] in ":|" and all(rest.startswith(" ") for rest in numbered if rest)
    return [line[start + (1 if spaced and start else 0) :] for line, start in zip(lines, starts, strict=True)], first


def _without_colours(text: str) -> str:
    return _COLOURS.sub("", text) if "\x1b" in text else text


def _after_number(line: str, number: int) -> int:
    """Where the line begins that bears this number; 0 if it bears none or another."""
    found = _NUMBERED.match(line)
    return found.end() if found and int(found[1]) == number else 0


def _pieces(place: _Place, kind: ChunkKind, label: str, path: str, text: str) -> Iterator[Chunk]:
    if not text or text.isspace():
        return
    text = text[:LONGEST_TEXT]
    # Only tools number lines: what people and models write "1:" before is theirs.
    lines, first = plain_lines(text) if kind is ChunkKind.RESULT else (_without_colours(text).split("\n"), 1)
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
