"""The tool results of a draft, each with its call, and the ways to shorten one.

A *placeholder* is one line; an *excerpt* is the head and the tail around one marker; an *abridged* result has its
needed parts, in order. All have the reference of the original. A result in a user message is a text; the line that
frames it stays before the replacement. The steps decide which results are shortened, when and how far.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from everlong.compress.draft import OURS, Draft, Slot, Task
from everlong.compress.text.boundaries import Cut, cut_characters
from everlong.compress.text.changes import Change, Origins, part_tokens, sealed
from everlong.compress.text.markers import gap_in_result, is_placeholder, parts_shown, piece_at, result_placeholder
from everlong.core import FrameKind, Image, JsonText, Ref, Text, ToolCall, ToolResult, frames_in, pairs_of
from everlong.relevance import PATH_KEYS, Chunk
from everlong.tokens import Counter

__all__ = [
    "PlacedResult",
    "abridged",
    "placeholder",
    "results_in",
    "shortened",
    "string_argument",
    "texts_at",
    "with_text",
]

WORTH = 20  # tokens; a result is not replaced to save fewer
LONGEST_FRAME = 200  # characters of the line that marks a user message as a result


@dataclass(frozen=True, slots=True)
class PlacedResult:
    """A result in a draft. `open` says whether a step may change it; `frame` comes before the text."""

    position: int
    part: int
    slot: Slot
    result: ToolResult | Text
    call: ToolCall | None
    tokens: int
    open: bool
    frame: str = ""

    @property
    def tool(self) -> str:
        """The name of the tool; "" if it is unknown."""
        named = self.result.name if isinstance(self.result, ToolResult) else ""
        return named or (self.call.name if self.call else "")

    @property
    def text(self) -> str:
        """The text of the result, without its frame."""
        return self.result.text.removeprefix(self.frame)

    def saying(self, text: str, *, alone: bool = False) -> ToolResult | Text:
        """Return the same result with another text; with `alone`, without its images."""
        if isinstance(self.result, Text):
            return replace(self.result, text=self.frame + text)
        if alone:
            return replace(self.result, content=(Text(text, _first_extra(self.result)),))
        return with_text(self.result, text)


def results_in(draft: Draft, counter: Counter) -> Iterator[PlacedResult]:
    """Yield every result, oldest first."""
    messages = draft.messages
    calls = {pair.result: messages[pair.call[0]].parts[pair.call[1]] for pair in pairs_of(messages)}
    frames = frames_in(messages)
    for position, slot in enumerate(draft.slots):
        if position in frames and frames[position].kind is FrameKind.RESULT and slot.at != OURS:
            yield from texts_at(draft, position, counter, frame=True)
            continue
        free = slot.at != OURS and slot.at not in draft.protected
        for index, part in enumerate(slot.message.parts):
            if isinstance(part, ToolResult):
                call = calls.get((position, index))
                known = call if isinstance(call, ToolCall) else None
                yield PlacedResult(position, index, slot, part, known, part_tokens(slot, index, counter), free)


def texts_at(draft: Draft, position: int, counter: Counter, *, frame: bool = False) -> Iterator[PlacedResult]:
    """Yield the texts of one message as results. With `frame`, the first line of the first text is its frame."""
    slot = draft.slots[position]
    free = slot.at != OURS and slot.at not in draft.protected
    for index, part in enumerate(slot.message.parts):
        if isinstance(part, Text) and part.text and not sealed(part):
            line = _first_line(part.text) if frame else ""
            frame = False
            yield PlacedResult(position, index, slot, part, None, part_tokens(slot, index, counter), free, line)


def placeholder(found: PlacedResult, origins: Origins, task: Task, least: int = WORTH) -> tuple[Change, int] | None:
    """Return the result as one line, and the tokens saved; None if it is one already or saves fewer than `least`."""
    if is_placeholder(found.text):
        return None
    given = origins.part(found.slot, found.part)
    original = given if isinstance(given, ToolResult | Text) else found.result
    size = found.tokens if original == found.result else task.counter.part(original)
    ref = origins.ref(found.slot, found.part)
    path = string_argument(found.call.arguments, PATH_KEYS) if found.call else ""
    content = original.content if isinstance(original, ToolResult) else ()
    pictures = sum(isinstance(inner, Image) for inner in content)
    line = result_placeholder(found.tool, path, size, pictures, ref, task)
    now = found.saying(line, alone=True)
    saved = found.tokens - task.counter.part(now)
    return (Change(found.position, found.part, now, ref), saved) if saved >= least else None


def shortened(cut: Cut, ref: Ref, task: Task, most_tokens: int | None, tail_share: float) -> str:
    """Return the head and the tail of a result with the marker between, within `most_tokens` if the marker fits."""
    whole = task.counter.text(cut.text)
    while True:
        left_out = max(0, whole - _tokens_kept(cut, task.counter))
        text = cut.joined(gap_in_result(cut, left_out, ref, task))
        size = task.counter.text(text)
        if most_tokens is None or size <= most_tokens or cut.characters == 0:
            return text
        # Tokens are unevenly distributed over a text: aim a little lower, and always get shorter.
        aim = int(cut.characters * most_tokens / size * 0.95)
        cut = cut_characters(cut, min(aim, cut.characters - 1), tail_share)


def abridged(text: str, pieces: Sequence[Chunk], left_out: int, ref: Ref, task: Task) -> str:
    """Return pieces of a text, in order, each after its line number unless it directly follows the previous one.

    Example: "[excerpts: 2 of 90 lines, about 800 tokens left out; ref …]⏎[… line 41]⏎def f():⏎    return 1"
    """
    shown = sum(piece.text.count("\n") + 1 for piece in pieces)
    said = [parts_shown(min(shown, text.count("\n") + 1), text.count("\n") + 1, left_out, ref, task)]
    follows = 0
    for piece in pieces:
        if piece.first_line not in (follows, follows - 1) and piece.first_line > 1:  # a long line may be two pieces
            said.append(piece_at(piece.first_line, task))
        said.append(piece.text)
        follows = piece.first_line + piece.text.count("\n") + 1
    return "\n".join(said)


def with_text(result: ToolResult, text: str) -> ToolResult:
    """Return the same result with another text. Images and other parts stay where they are."""
    said = Text(text, _first_extra(result))
    at = next((index for index, inner in enumerate(result.content) if isinstance(inner, Text)), 0)
    after = (inner for inner in result.content[at:] if not isinstance(inner, Text))
    return replace(result, content=(*result.content[:at], said, *after))


def string_argument(arguments: JsonText, keys: tuple[str, ...]) -> str:
    """Return the first of these arguments that is given, as text; "" if none is, or if they are not a JSON object."""
    try:
        fields = json.loads(arguments)
    except (ValueError, RecursionError):
        return ""
    if not isinstance(fields, dict):
        return ""
    for key in keys:
        value = fields.get(key)
        if isinstance(value, list):
            value = " ".join(item for item in value if isinstance(item, str))
        if isinstance(value, str) and value.strip():
            return value
    return ""


def _tokens_kept(cut: Cut, counter: Counter) -> int:
    return counter.text(cut.text[: cut.head]) + counter.text(cut.text[cut.tail :])


def _first_extra(result: ToolResult) -> JsonText:
    return next((inner.extra for inner in result.content if isinstance(inner, Text)), "")


def _first_line(text: str) -> str:
    """Return the first line with its line end; "" if it is too long for a frame, or the only line."""
    end = text.find("\n", len(text) - len(text.lstrip()), LONGEST_FRAME)
    return text[: end + 1]
