"""A request as passages: sentences and lines, each with its place. Pure.

A passage is a piece of the request, character for character. Passages of one text belong to one block.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

from everlong.core import CallId, FrameKind, Message, Role, Text, ToolResult, frames_in
from everlong.engine import RECALL
from everlong.llm.witness.words import is_own_answer, is_own_line
from everlong.summarize import NOTICE

__all__ = ["Passage", "Where", "passages_of"]

LONGEST_LINE = 90  # characters, a Chinese one counted twice; a longer line is split into its sentences
SHORTEST = 2  # characters that say something

_SENTENCE_END = re.compile(r"(?<=[。！？；])(?=.)|(?<=[.!?])[\"'”’)\]]*\s+(?=[\"'“‘(\[*`A-Z0-9\u4e00-\u9fff])")
_MARKER = re.compile(r"\s*(?:(?:[-*+•>]\s+|#{1,6}\s+|\d{1,3}[.)、]\s*|[一二三四五六七八九十]、\s*)(?=\S))*")
_HEADER = re.compile(r"^\[(\d+)(?: ([^\]\n]*))?\]$")


class Where(StrEnum):
    """The kind of text that a passage comes from."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    RESULT = "result"
    SUMMARY = "summary"
    #: What a compaction quoted; it numbers messages as they stood before it.
    EXCERPT = "excerpt"
    #: What the recall tool found; it numbers messages as they stand in the thread.
    RECALLED = "recalled_excerpt"


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A sentence or a line. `number` is the number of its message in the request; for recalled text, in the thread.

    `after` is the text that follows, in case the passage only announces it.
    """

    text: str
    where: Where
    block: int
    number: int = 0
    name: str = ""
    after: str = ""


@dataclass(frozen=True, slots=True)
class _Source:
    """A text of the request and its place."""

    text: str
    where: Where
    number: int
    name: str = ""


def passages_of(messages: Sequence[Message]) -> list[Passage]:
    """Return the passages of a request, in order. Earlier answers of the witness itself are left out."""
    passages: list[Passage] = []
    block = 0
    for source in _sources(messages):
        for lines, number, name in _blocks(source):
            block += 1
            if any(map(is_own_line, lines)):
                continue
            for text, after in _pieces(lines):
                place = {"where": source.where, "block": block, "number": number, "name": name}
                passages.append(Passage(text=text, after=after, **place))  # type: ignore[arg-type]
    return passages


def _sources(messages: Sequence[Message]) -> Iterator[_Source]:
    frames = frames_in(messages)
    called: dict[CallId, str] = {}
    number = 0
    for at, message in enumerate(messages):
        number += message.role is not Role.SYSTEM
        called |= {call.id: call.name for call in message.calls}
        framed = frames.get(at)
        for part in message.parts:
            if isinstance(part, ToolResult):
                yield from _of_result(part.text, number, part.name or called.get(part.call, "tool"))
            elif isinstance(part, Text) and framed is not None and framed.kind is FrameKind.OURS:
                yield _of_ours(part.text, number)
            elif isinstance(part, Text) and not (message.role is Role.ASSISTANT and is_own_answer(part.text)):
                yield _Source(part.text, _spoken(message.role), number)


def _spoken(role: Role) -> Where:
    return {Role.SYSTEM: Where.SYSTEM, Role.ASSISTANT: Where.ASSISTANT}.get(role, Where.USER)


def _of_result(text: str, number: int, name: str) -> Iterator[_Source]:
    """Yield the source of a tool result. A recall returns excerpts; an empty recall is not evidence."""
    if text.startswith("<background-"):
        yield _Source(text, Where.RECALLED, number)
    elif not name.endswith(RECALL):
        yield _Source(text, Where.RESULT, number, name)


def _of_ours(text: str, number: int) -> _Source:
    is_summary = any(notice in text for notice in NOTICE.values())
    return _Source(text, Where.SUMMARY if is_summary else Where.EXCERPT, number)


def _blocks(source: _Source) -> Iterator[tuple[list[str], int, str]]:
    """Yield lines of a text with the number and name of their place. In excerpts, a line before them names it."""
    lines = source.text.split("\n")
    if source.where not in (Where.SUMMARY, Where.EXCERPT, Where.RECALLED):
        yield lines, source.number, source.name
        return
    inside = [line for line in lines[1:] if not line.startswith(("</background-", "<background-"))]
    notices = (
        *NOTICE.values(),
        "Quoted word for word",
        "以下逐字摘自",
        f"{RECALL} ",
    )  # the search words are not evidence
    inside = [line for line in inside if not line.startswith(notices)]
    if source.where is Where.SUMMARY:
        yield from (([line], source.number, "") for line in inside if not line.startswith("## "))
        return
    held: list[str] = []
    number, name = source.number, ""
    for line in inside:
        header = _HEADER.match(line)
        if header is not None:
            yield held, number, name
            held, number, name = [], int(header[1]), header[2] or ""
        else:
            held.append(line)
    yield held, number, name


def _pieces(lines: list[str]) -> Iterator[tuple[str, str]]:
    """Yield each sentence or line, with what follows it in the same text."""
    for at, line in enumerate(lines):
        start = _MARKER.match(line)
        bare = line[start.end() if start else 0 :].rstrip()
        cuts = [0, *(end.start() for end in _SENTENCE_END.finditer(bare)), len(bare)]
        if len(bare) + sum(not character.isascii() for character in bare) <= LONGEST_LINE:
            cuts = [0, len(bare)]
        for first, last in pairwise(cuts):
            piece = bare[first:last].strip()
            if len(piece) >= SHORTEST and any(map(str.isalnum, piece)):
                ends = last == len(bare) and line.endswith(piece)
                yield piece, "\n".join(lines[at + 1 : at + 4]) if ends else ""
