"""Trim large tool results to their first and last lines.

It applies to results above a share of the window or a number of characters. Cuts are at line ends, or inside lines if
there are only a few long ones. An informative ending (an error, a total, the end of a JSON document) gets more space.
The output is within the limit, so trimming it again changes nothing.
"""

import re
from dataclasses import dataclass
from typing import Literal

from everlong.compress.draft import Draft, Task
from everlong.compress.text.boundaries import Cut, cut_characters, cut_lines
from everlong.compress.text.changes import Cause, Change, Origins, rewrite
from everlong.compress.text.tool_results import PlacedResult, results_in, shortened
from everlong.core import Ref, ToolResult, part_ref

__all__ = ["Unit", "soft_trim"]

Unit = Literal["tokens", "characters"]

CAUSE = Cause("soft_trim", "the result exceeds its share of the window")

CHARACTERS_PER_TOKEN = 3  # characters that may stay per token of the limit, before tokens are counted
SMALLEST_TOKENS = 200  # the lowest limit: the marker alone has half as many
SMALLEST_CHARACTERS = 600
MARKER_CHARACTERS = 250  # reserved for the marker

LONGEST_ENDING = 4  # times the usual lines of the tail
ENDING_CHARACTERS = 4_000  # characters at the end of a result that are searched for how it ended
ENDING = re.compile(
    r"error|exception|traceback|fail(?:ed|ure)|fatal|panic|exit(?:ed)?\b.{0,10}\b(?:code|status)|\btotal\b|summary|"
    r"\bpassed\b|错误|异常|失败|退出码|合计|总计|汇总|小结",
    re.IGNORECASE,
)
JSON_END = re.compile(r"[}\]]\s*\Z")


@dataclass(frozen=True, slots=True)
class Limit:
    """The limit of a text: above `tokens` or `characters` (None: no limit), it is trimmed to `room` characters."""

    tokens: int | None
    characters: int | None
    room: int
    lines: tuple[int, int]

    def longer(self, text: str) -> bool:
        """Return whether the text has too many characters."""
        return self.characters is not None and len(text) > self.characters


def soft_trim(
    draft: Draft,
    task: Task,
    *,
    share: float = 0.3,
    unit: Unit = "tokens",
    lines: tuple[int, int] = (20, 10),
    most_characters: int | None = None,
) -> Draft:
    """Trim every result above `share` of the window, counted in `unit`, or above `most_characters`.

    Example: a result of 10 000 lines -> its first 20 and last 10 lines, and a marker between them
    """
    limit = _limit(int(task.window * share), unit, lines, most_characters)
    origins = Origins(draft)
    changes = []
    for found in results_in(draft, task.counter):
        # On arrival, each message is seen alone. Only other messages show that a user message is a result, so skip
        # those.
        if not found.open or not isinstance(found.result, ToolResult) or not _may_exceed(found, limit):
            continue
        original = origins.part(found.slot, found.part)
        ref = part_ref(found.result if original is None else original)
        text = _trimmed(found.text, task, limit, ref)
        if text is not None:
            changes.append(Change(found.position, found.part, found.saying(text), ref))
    return rewrite(draft, task, CAUSE, changes)


def _limit(size: int, unit: Unit, lines: tuple[int, int], most_characters: int | None) -> Limit:
    most = None if most_characters is None else max(SMALLEST_CHARACTERS, most_characters)
    if unit == "tokens":
        tokens = max(SMALLEST_TOKENS, size)
        room = tokens * CHARACTERS_PER_TOKEN
        return Limit(tokens, most, room if most is None else min(room, most), lines)
    characters = max(SMALLEST_CHARACTERS, size)
    room = characters if most is None else min(characters, most)
    return Limit(None, room, room, lines)


def _trimmed(text: str, task: Task, limit: Limit, ref: Ref) -> str | None:
    if not limit.longer(text) and (limit.tokens is None or task.counter.text(text) <= limit.tokens):
        return None
    head, tail = limit.lines
    end = text[-ENDING_CHARACTERS:]
    tail_share = 0.5 if ENDING.search(end) or JSON_END.search(end) else tail / max(1, head + tail)
    room = min(limit.room - MARKER_CHARACTERS, len(text) - 1)
    cut = cut_lines(text, head, _ending(end, tail)) or Cut(text, len(text), 0)
    if cut.characters > room:
        cut = cut_characters(cut, room, tail_share)
    return shortened(cut, ref, task, limit.tokens, tail_share)


def _may_exceed(found: PlacedResult, limit: Limit) -> bool:
    """Whether the text must be counted: most results are far below the limit by their known total."""
    return limit.longer(found.text) or (limit.tokens is not None and found.tokens > limit.tokens)


def _ending(end: str, tail: int) -> int:
    """Return how many lines to keep at the end: `tail`, or more to include the first line that says how it ended."""
    last = end.removesuffix("\n").split("\n")[-LONGEST_ENDING * max(1, tail) :]
    for number, line in enumerate(last):
        if ENDING.search(line):
            return max(tail, len(last) - number)
    return tail
