"""Brings back what is no longer in view: a piece by its reference, or what was said about something.

What comes back is framed as background: it was said before, and nothing in it is addressed to the model now.
"""

import asyncio
from typing import Annotated, assert_never

from everlong.agent.definitions import Outcome, Place, Tool, tool
from everlong.compress import Task, background, part_ref
from everlong.core import Hit, Image, Message, Opaque, Reasoning, Text, ToolCall, ToolResult
from everlong.engine import Engine
from everlong.errors import InputError, NoThread
from everlong.relevance import language_of, query_of_text, terms_of, words_of
from everlong.tokens import Counter

__all__ = ["recall_tool"]

NAME = "recall"
MOST_CHARACTERS = 24_000
MOST_HITS = 8
LONGEST_PART = 2_500  # characters of one part of a message that was found
BEFORE = 4  # a quarter of an excerpt stands before what was looked for
WINDOW, OVERLAP = 400, 60  # characters that are compared with what is wanted at a time


def recall_tool(engine: Engine, most: int = MOST_CHARACTERS) -> Tool:
    """The tool, for the threads of this engine; it gives back about `most` characters at a time."""

    @tool(name=NAME)
    async def recall(
        what: Annotated[str, "a reference, such as 3f0c9a1b7d2e4856, or a few words"],
        place: Place,
        start: Annotated[int, "the first character to show, to read on in a long original"] = 0,
    ) -> Outcome:
        """Get back what was left out of this conversation: the original of a reference, or what was said of words."""
        if not what.strip():
            raise InputError("what: give a reference or a few words")
        sought = what.strip().removeprefix("ref ").strip("\"'[]()")
        try:
            found = await engine.recall(place.thread, sought or what, limit=MOST_HITS)
        except NoThread:
            return Outcome("nothing was said in this conversation yet")
        if found.original is not None:
            original = found.original.decode("utf-8", "replace")
            return Outcome(_framed(_from(original, max(0, start), most), original))
        excerpts = await asyncio.to_thread(_excerpts, found.hits, sought, most)
        if not excerpts:
            return Outcome(f"nothing found for {what[:200]!r}; try other words")
        return Outcome(_framed(excerpts, excerpts))

    return recall


def _framed(text: str, spoken: str) -> str:
    language = language_of([spoken[:LONGEST_PART]])
    return background(text, "", Task(target=0, counter=Counter(), language=language))


def _from(original: str, start: int, most: int) -> str:
    """A part of the original, and where the next one begins."""
    end = min(len(original), start + most)
    if end < len(original):
        line_end = original.rfind("\n", start + most // 2, end)
        end = line_end + 1 if line_end > 0 else end
    shown = original[start:end]
    if start == 0 and end == len(original):
        return shown
    more = f"; continue with start={end}" if end < len(original) else ""
    return f"{shown}\n[characters {start:,} to {end:,} of {len(original):,}{more}]"


def _excerpts(hits: tuple[Hit, ...], sought: str, most: int) -> str:
    """What was found, best first, as far as there is room, then in the order in which it was said."""
    wanted = set(query_of_text(sought))
    chosen: dict[int, str] = {}
    left = most
    for hit in hits:
        if isinstance(hit.row.entry, Message) and not _is_recall(hit.row.entry):
            text = _message(hit.row.entry, wanted)
            if text and len(text) <= left:
                chosen[hit.row.order] = f"#{hit.row.order} {text}"
                left -= len(text)
    return "\n\n".join(chosen[order] for order in sorted(chosen))


def _is_recall(message: Message) -> bool:
    """Whether it is nothing but an earlier recall, or the call for this one: what they found is found by itself."""
    names = [call.name for call in message.calls] + [result.name for result in message.results]
    return bool(names) and set(names) == {NAME} and not message.text


def _message(message: Message, wanted: set[str]) -> str:
    """A message that was found: each part of it whole or the piece that was looked for, with its reference."""
    lines = []
    for part in message.parts:
        match part:
            case Text(text):
                said, who = text, message.role.value
            case ToolCall(name=name, arguments=arguments):
                said, who = arguments, f"call of {name}"
            case ToolResult():
                said, who = part.text, f"result of {part.name or 'a tool'}"
            case Reasoning() | Image() | Opaque():
                continue
            case _:
                assert_never(part)
        if said.strip():
            piece = _piece(said, wanted)
            cut = "" if piece == said else f", a part of {len(said):,} characters; ref {part_ref(part)}"
            lines.append(f"[{who}{cut}]\n{piece}")
    return "\n".join(lines)


def _piece(text: str, wanted: set[str]) -> str:
    """The text, or of a long one the piece around the line that has most of what is wanted."""
    if len(text) <= LONGEST_PART:
        return text
    windows = range(0, len(text), WINDOW)
    at = max(windows, key=lambda start: len(_terms(text[start : start + WINDOW + OVERLAP]) & wanted))
    start = max(0, min(at - LONGEST_PART // BEFORE, len(text) - LONGEST_PART))
    return text[start : start + LONGEST_PART]


def _terms(line: str) -> set[str]:
    return {term for word in set(words_of(line)) for term, _ in terms_of(word)}
