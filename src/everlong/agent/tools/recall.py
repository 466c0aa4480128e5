"""The tool `recall`: bring back what is no longer in view, by its reference or by words.

The text comes back framed as background: it was said before, and nothing in it is addressed to the model now. Finding
it is the engine's work; this module only chooses how much of it is shown.
"""

import asyncio
from typing import Annotated, assert_never

from everlong.agent.definitions import Outcome, Place, Tool, tool
from everlong.compress import Task, background
from everlong.core import Hit, Image, Message, Opaque, Reasoning, Text, ToolCall, ToolResult, part_ref
from everlong.engine import Engine
from everlong.errors import InputError, NoThread
from everlong.relevance import language_of, query_of_text, terms_of, words_of
from everlong.tokens import Counter

__all__ = ["RECALL", "recall_tool"]

RECALL = "recall"
MOST_CHARACTERS = 24_000
MOST_HITS = 8
LONGEST_PART = 2_500  # characters of one part of a found message
BEFORE = 4  # a quarter of an excerpt stands before the words that were looked for
WINDOW, OVERLAP = 400, 60  # characters that are compared with the query at a time


def recall_tool(engine: Engine, most: int = MOST_CHARACTERS) -> Tool:
    """Return the tool for the threads of this engine; it shows about `most` characters at a time."""

    @tool(name=RECALL)
    async def recall(
        what: Annotated[str, "a reference, such as 3f0c9a1b7d2e4856, or a few words"],
        place: Place,
        start: Annotated[int, "the first character to show, to read on in a long original"] = 0,
    ) -> Outcome:
        """Get back what was left out of this conversation: the original of a reference, or what was said of words."""
        if not what.strip():
            raise InputError("what: give a reference or a few words")
        query = what.strip().removeprefix("ref ").strip("\"'[]()")
        try:
            recalled = await engine.recall(place.thread, query or what, limit=MOST_HITS)
        except NoThread:
            return Outcome("nothing was said in this conversation yet")
        if recalled.original is not None:
            original = recalled.original.decode("utf-8", "replace")
            return Outcome(_framed(_section(original, max(0, start), most), original))
        excerpts = await asyncio.to_thread(_excerpts, recalled.hits, query, most)
        if not excerpts:
            return Outcome(f"nothing found for {what[:200]!r}; try other words")
        return Outcome(_framed(excerpts, excerpts))

    return recall


def _framed(text: str, sample: str) -> str:
    """Return the text in a frame that is in the language of the sample."""
    language = language_of([sample[:LONGEST_PART]])
    return background(text, "", Task(target=0, counter=Counter(), language=language))


def _section(original: str, start: int, most: int) -> str:
    """Return a section of the original, and where the next one begins."""
    end = min(len(original), start + most)
    if end < len(original):
        line_end = original.rfind("\n", start + most // 2, end)
        end = line_end + 1 if line_end > 0 else end
    section = original[start:end]
    if start == 0 and end == len(original):
        return section
    more = f"; continue with start={end}" if end < len(original) else ""
    return f"{section}\n[characters {start:,} to {end:,} of {len(original):,}{more}]"


def _excerpts(hits: tuple[Hit, ...], query: str, most: int) -> str:
    """Return the best hits that fit, in the order in which they were said."""
    terms = set(query_of_text(query))
    chosen: dict[int, str] = {}
    left = most
    for hit in hits:
        if isinstance(hit.row.entry, Message) and not _is_recall(hit.row.entry):
            text = _message(hit.row.entry, terms)
            if text and len(text) <= left:
                chosen[hit.row.order] = f"#{hit.row.order} {text}"
                left -= len(text)
    return "\n\n".join(chosen[order] for order in sorted(chosen))


def _is_recall(message: Message) -> bool:
    """Whether the message is only an earlier recall, or the call for this one: their texts are found by themselves."""
    names = [call.name for call in message.calls] + [result.name for result in message.results]
    return bool(names) and set(names) == {RECALL} and not message.text


def _message(message: Message, terms: set[str]) -> str:
    """Return a found message: each part whole, or the piece that fits the query best with the part's reference."""
    lines = []
    for part in message.parts:
        match part:
            case Text(text):
                content, label = text, message.role.value
            case ToolCall(name=name, arguments=arguments):
                content, label = arguments, f"call of {name}"
            case ToolResult():
                content, label = part.text, f"result of {part.name or 'a tool'}"
            case Reasoning() | Image() | Opaque():
                continue
            case _:
                assert_never(part)
        if content.strip():
            piece = _piece(content, terms)
            cut = "" if piece == content else f", a part of {len(content):,} characters; ref {part_ref(part)}"
            lines.append(f"[{label}{cut}]\n{piece}")
    return "\n".join(lines)


def _piece(text: str, terms: set[str]) -> str:
    """Return the text; of a long one the piece around the place that has most of the terms."""
    if len(text) <= LONGEST_PART:
        return text
    starts = range(0, len(text), WINDOW)
    at = max(starts, key=lambda start: len(_terms(text[start : start + WINDOW + OVERLAP]) & terms))
    start = max(0, min(at - LONGEST_PART // BEFORE, len(text) - LONGEST_PART))
    return text[start : start + LONGEST_PART]


def _terms(text: str) -> set[str]:
    return {term for word in set(words_of(text)) for term, _ in terms_of(word)}
