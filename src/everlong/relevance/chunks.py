"""A message as chunks: the verbatim pieces that an excerpt is made of.

A chunk is up to 20 lines of one part, with a header that says where it came from. Line numbers and
colour codes that tools add are taken off, so that what stands in a chunk is what stands in the file.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import cast

from everlong.core.messages import CallId, Json, Message, Role, Text, ToolCall, ToolResult

__all__ = ["Chunk", "ChunkKind", "Chunker", "plain_lines"]

MOST_LINES = 20
MOST_CHARACTERS = 1_200  # about 300 tokens
LONGEST_LINE = 4_000  # a longer line is split: minified files, encoded data
LONGEST_TEXT = 4_000_000  # characters of one part that are looked at

_NUMBERED = re.compile(r"^[ \t]*(\d{1,7})(?:\t|→|: ?|\| ?)", re.MULTILINE)
_COLOURS = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")

PATH_KEYS = frozenset(
    {"path", "file_path", "filepath", "filename", "file", "notebook_path", "target_file", "relative_path"}
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
    """Consecutive lines of message `at`. `path` is the file they belong to, "" if none is known."""

    at: int
    kind: ChunkKind
    label: str
    path: str
    first_line: int
    text: str


class Chunker:
    """Cuts messages up in order; remembers which call a result answers, for its tool and path."""

    def __init__(self) -> None:
        self._calls: dict[CallId, tuple[str, str]] = {}

    def chunks(self, at: int, message: Message) -> Iterator[Chunk]:
        """The chunks of the next message."""
        for part in message.parts:
            match part:
                case Text(text):
                    yield from _speech(at, message.role, text)
                case ToolCall():
                    yield from self._call(at, part)
                case ToolResult():
                    name, path = self._calls.get(part.call, (part.name or "tool", ""))
                    yield from _pieces(at, ChunkKind.RESULT, name, path, part.text)
                case _:
                    continue

    def _call(self, at: int, call: ToolCall) -> Iterator[Chunk]:
        try:
            arguments = cast(Json, json.loads(call.arguments))
        except (ValueError, RecursionError):
            arguments = {"arguments": call.arguments}
        fields = arguments if isinstance(arguments, dict) else {"arguments": arguments}
        path = next((value for key, value in fields.items() if key in PATH_KEYS and isinstance(value, str)), "")
        self._calls[call.id] = (call.name, path)
        short = []
        for key, value in fields.items():
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            if "\n" in text or len(text) > MOST_CHARACTERS // 2 or key in REPLACED_KEYS or key in WRITTEN_KEYS:
                kind = (
                    ChunkKind.REPLACED
                    if key in REPLACED_KEYS
                    else ChunkKind.WRITTEN
                    if key in WRITTEN_KEYS
                    else ChunkKind.CALL
                )
                yield from _pieces(at, kind, f"{call.name} {key}", path, text)
            else:
                short.append(f"{key}={text}")
        if short:
            yield Chunk(at, ChunkKind.CALL, call.name, path, 0, f"{call.name} {' '.join(short)}")


def _speech(at: int, role: Role, text: str) -> Iterator[Chunk]:
    kind = ChunkKind.ASSISTANT if role is Role.ASSISTANT else ChunkKind.USER
    yield from _pieces(at, kind, role.value, "", text)


def plain_lines(text: str) -> tuple[list[str], int]:
    """The lines as they stand in the file, and the number of the first: colours and line numbers taken off."""
    if "\x1b" in text:
        text = _COLOURS.sub("", text)
    first = 1
    numbered = _NUMBERED.match(text)
    if numbered and len(_NUMBERED.findall(text, 0, 2_000)) * 2 > text.count("\n", 0, 2_000):
        first = int(numbered[1])
        text = _NUMBERED.sub("", text)
    return text.split("\n"), first


def _pieces(at: int, kind: ChunkKind, label: str, path: str, text: str) -> Iterator[Chunk]:
    if not text or text.isspace():
        return
    lines, first = plain_lines(text[:LONGEST_TEXT])
    if len(text) <= MOST_CHARACTERS and len(lines) <= MOST_LINES:
        yield Chunk(at, kind, label, path, first, "\n".join(lines))
        return
    held: list[str] = []
    size, start = 0, first
    for number, line in enumerate(lines, first):
        if held and (size + len(line) > MOST_CHARACTERS or len(held) >= MOST_LINES):
            yield Chunk(at, kind, label, path, start, "\n".join(held))
            held, size, start = [], 0, number
        if len(line) > LONGEST_LINE:
            for cut in range(0, len(line), LONGEST_LINE):
                yield Chunk(at, kind, label, path, number, line[cut : cut + LONGEST_LINE])
            start = number + 1
            continue
        held.append(line)
        size += len(line) + 1
    if held and any(held):
        yield Chunk(at, kind, label, path, start, "\n".join(held))
