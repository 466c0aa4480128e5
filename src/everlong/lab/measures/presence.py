"""Presence: whether a text is in what would be sent. This one rule is behind every figure of the lab.

A text is present if it is a substring of any text that the model reads: words, results, reasoning, arguments as they
are sent, and the strings inside them. *Strict* ignores our own list of names, which keeps a name but not its context;
*verbatim* also ignores our summaries.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import cast

from everlong.compress import WORDS
from everlong.core import Json, JsonText, Message, Opaque, Reasoning, Text, ToolCall, ToolResult
from everlong.summarize import NOTICE

__all__ = [
    "SEAM",
    "Finding",
    "Measure",
    "Sent",
    "argument_strings",
    "find_lines",
    "find_texts",
    "texts_of",
    "without_ledger",
]

#: Separates two texts, so that nothing is found across them.
SEAM = "\n\x00\n"
FRAME = "<background-"
#: The line numbers that tools put before the lines of a file. Example: "   12→", "12\t"
LINE_NUMBER = re.compile(r"(?m)^[ \t]*\d{1,7}(?:\t|→)")
REMEMBERED = 4_000  # messages
LONGEST_NOTICE = 400  # characters that contain the notice that a message is a summary


class _Page:
    """The texts of one message, and what is derived from them on first use."""

    def __init__(self, message: Message, *, decoded: bool) -> None:
        self.text = SEAM.join(texts_of(message, decoded=decoded))

    @cached_property
    def strict(self) -> str:
        return SEAM.join(map(without_ledger, self.text.split(SEAM)))

    @cached_property
    def verbatim(self) -> str:
        return "" if any(notice in self.text[:LONGEST_NOTICE] for notice in NOTICE.values()) else self.strict

    @cached_property
    def unnumbered(self) -> str:
        return LINE_NUMBER.sub("", self.text)


class Sent:
    """The messages that would be sent, for searching. Without `decoded`, arguments count only as they are sent."""

    def __init__(self, messages: Sequence[Message], *, decoded: bool = True) -> None:
        self._pages = [_page(message, decoded=decoded) for message in messages]

    def has(self, text: str) -> bool:
        """Return whether the text is there."""
        return any(text in page.text for page in self._pages)

    def has_strictly(self, text: str) -> bool:
        """Return whether the text is there outside the list of names."""
        return any(text in page.text and text in page.strict for page in self._pages)

    def has_verbatim(self, text: str) -> bool:
        """Return whether the text is there verbatim: outside the list of names and outside summaries."""
        return any(text in page.text and text in page.verbatim for page in self._pages)

    def has_lines(self, text: str) -> bool:
        """Return whether the lines are there one after the other; line numbers of file reads are ignored."""
        return self.has(text) or any(text in page.unnumbered for page in self._pages)


@dataclass(frozen=True, slots=True)
class Finding:
    """Whether all wanted texts are there, whether they are there strictly, and which share of them is there."""

    hit: bool
    strict: bool
    share: float


@dataclass(frozen=True, slots=True)
class Measure:
    """A measure by its name: how the wanted texts of a case are searched. With `recall`, their share counts too."""

    name: str
    find: Callable[[Sent, Sequence[str]], Finding]
    recall: bool = False


def find_texts(sent: Sent, wanted: Sequence[str]) -> Finding:
    """Search for each text literally."""
    present = [sent.has(text) for text in wanted]
    strict = all(present) and all(sent.has_strictly(text) for text in wanted)
    return Finding(all(present), strict, sum(present) / len(present))


def find_lines(sent: Sent, wanted: Sequence[str]) -> Finding:
    """Search for the lines of each text, one after the other."""
    present = all(sent.has_lines(text) for text in wanted)
    return Finding(present, present, float(present))


@lru_cache(maxsize=REMEMBERED)
def _page(message: Message, *, decoded: bool) -> _Page:
    return _Page(message, decoded=decoded)


def texts_of(message: Message, *, decoded: bool = True) -> Iterator[str]:
    """Yield every text of a message that the model reads."""
    for part in message.parts:
        match part:
            case Text(text) | Reasoning(text):
                yield text
            case ToolResult():
                yield part.text
            case ToolCall(arguments=arguments):
                yield arguments
                if decoded:
                    yield from argument_strings(arguments)
            case Opaque(body=body):
                yield body
            case _:
                continue


def argument_strings(arguments: JsonText) -> Iterator[str]:
    """Yield the strings inside the arguments of a call, as the tool gets them; none if they are not JSON."""
    try:
        value = cast(Json, json.loads(arguments))
    except (ValueError, RecursionError):
        return
    values = [value]
    while values:
        value = values.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            values.extend(value.values())
        elif isinstance(value, list):
            values.extend(value)


def without_ledger(text: str) -> str:
    """Return one of our texts without its list of names; any other text unchanged."""
    if not text.startswith(FRAME):
        return text
    for _, naming, _ in WORDS.values():
        start = text.rfind(f"\n{naming}\n")
        if start >= 0:
            return text[:start]
    return text
