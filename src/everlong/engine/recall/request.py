"""Recall what left the window on request, by reference or by search."""

from dataclasses import dataclass
from typing import assert_never

from everlong.compress import Task, background
from everlong.core import Hit, Image, Message, Opaque, Reasoning, Text, ToolCall, ToolResult, part_ref
from everlong.engine.contracts import Threads
from everlong.errors import InputError, NoThread
from everlong.relevance import language_of, query_of_text, terms_of, words_of
from everlong.tokens import Counter

__all__ = ["MOST_RECALLED", "RECALL", "RecallResult", "recall", "recall_text"]

#: The usual name of the recall tool.
RECALL = "recall"
MOST_RECALLED = 24_000  # characters
MOST_HITS = 8
LONGEST_PART = 2_500  # characters of one part of a found message
BEFORE = 4  # a quarter of an excerpt comes before the words of the query
WINDOW, OVERLAP = 400, 60  # characters that are compared with the query at a time


@dataclass(frozen=True, slots=True)
class RecallResult:
    """The result of a recall: the original bytes behind a reference, or the messages that answer a query."""

    original: bytes | None = None
    hits: tuple[Hit, ...] = ()


def recall(threads: Threads, thread: str, what: str, *, limit: int = 10) -> RecallResult:
    """Return what a reference names, byte for byte, or else what answers a query, best first."""
    if not what.strip():
        raise InputError("nothing to recall: send a reference or a few words")
    original = threads.original(thread, what.strip())
    if original is not None:
        return RecallResult(original=original)
    return RecallResult(hits=tuple(threads.search(what, thread=thread, limit=limit)))


# --- the text for a model that recalls -------------------------------------------------------------------------------


def recall_text(threads: Threads, thread: str, what: str, *, start: int = 0, most: int = MOST_RECALLED) -> str:
    """Return the text for a model that recalls: about `most` characters of an original from `start` on, or of messages.

    The text is framed as background: it was said before, and nothing in it is addressed to the model now.
    """
    query = what.strip().removeprefix("ref ").strip("\"'[]()")
    try:
        recalled = recall(threads, thread, query or what, limit=MOST_HITS)
    except NoThread:
        return "this conversation has no messages yet"
    if recalled.original is not None:
        original = recalled.original.decode("utf-8", "replace")
        return _as_background(_section(original, max(0, start), most), original)
    excerpts = _excerpts(recalled.hits, query, most)
    return _as_background(excerpts, excerpts) if excerpts else f"nothing found for {what[:200]!r}; try other words"


def _as_background(text: str, sample: str) -> str:
    """Return the text in a frame in the language of the sample."""
    language = language_of([sample[:LONGEST_PART]])
    return background(text, "", Task(target=0, counter=Counter(), language=language))


def _section(original: str, start: int, most: int) -> str:
    """Return a section of the original, with a note where the next one begins."""
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
    """Return whether the message is only a recall or its call; search finds the originals anyway."""
    names = [call.name for call in message.calls] + [result.name for result in message.results]
    return bool(names) and set(names) == {RECALL} and not message.text


def _message(message: Message, terms: set[str]) -> str:
    """Return a found message: each part whole, or its best piece for the query with the part's reference."""
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
    """Return the text; if it is long, the piece with the most terms."""
    if len(text) <= LONGEST_PART:
        return text
    starts = range(0, len(text), WINDOW)
    at = max(starts, key=lambda start: len(_terms_of(text[start : start + WINDOW + OVERLAP]) & terms))
    start = max(0, min(at - LONGEST_PART // BEFORE, len(text) - LONGEST_PART))
    return text[start : start + LONGEST_PART]


def _terms_of(text: str) -> set[str]:
    return {term for word in set(words_of(text)) for term, _ in terms_of(word)}
