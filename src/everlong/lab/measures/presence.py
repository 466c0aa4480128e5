"""Whether a text is in what would be sent: the one home of the rule that decides every figure.

A text is present if it is a substring of any text the model reads: words, results, reasoning, arguments as they
are sent and the strings inside them. *Strict* looks away from our own ledger of names, which keeps a name and not
what stood around it; *verbatim* from our summaries too.
"""

import json
import re
from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache
from typing import cast

from everlong.compress import WORDS
from everlong.core import Json, JsonText, Message, Opaque, Reasoning, Text, ToolCall, ToolResult
from everlong.summarize import NOTICE

__all__ = ["Sent", "strings_in", "texts_of", "without_ledger"]

#: Between two texts, so that nothing is found across them.
SEAM = "\n\x00\n"
FRAME = "<background-"
#: How tools number the lines of a file they show. Example: "   12→", "12\t"
LINE_NUMBER = re.compile(r"(?m)^[ \t]*\d{1,7}(?:\t|→)")
REMEMBERED = 4_000  # messages
LONGEST_NOTICE = 400  # characters at the beginning of a summary that say it is one


class _Page:
    """The texts of one message; what is derived from them is made when first asked for."""

    def __init__(self, message: Message, *, decoded: bool) -> None:
        self.text = SEAM.join(texts_of(message, decoded=decoded))

    @cached_property
    def strict(self) -> str:
        return SEAM.join(map(without_ledger, self.text.split(SEAM)))

    @cached_property
    def verbatim(self) -> str:
        return "" if any(notice in self.text[:LONGEST_NOTICE] for notice in NOTICE) else self.strict

    @cached_property
    def unnumbered(self) -> str:
        return LINE_NUMBER.sub("", self.text)


class Sent:
    """What would be sent, to be asked what is in it. Without `decoded`, arguments count only as they are sent."""

    def __init__(self, messages: Sequence[Message], *, decoded: bool = True) -> None:
        self._pages = [_page(message, decoded=decoded) for message in messages]

    def has(self, text: str) -> bool:
        """Whether the text is there."""
        return any(text in page.text for page in self._pages)

    def has_strictly(self, text: str) -> bool:
        """Whether it is there otherwise than in the ledger of names."""
        return any(text in page.text and text in page.strict for page in self._pages)

    def has_verbatim(self, text: str) -> bool:
        """Whether it is there as it was said, neither in the ledger of names nor in a summary."""
        return any(text in page.text and text in page.verbatim for page in self._pages)

    def has_lines(self, text: str) -> bool:
        """Whether the lines are there one after the other, line numbers of file reads aside."""
        return self.has(text) or any(text in page.unnumbered for page in self._pages)


@lru_cache(maxsize=REMEMBERED)
def _page(message: Message, *, decoded: bool) -> _Page:
    return _Page(message, decoded=decoded)


def texts_of(message: Message, *, decoded: bool = True) -> Iterator[str]:
    """Every text of a message that the model reads."""
    for part in message.parts:
        match part:
            case Text(text) | Reasoning(text):
                yield text
            case ToolResult():
                yield part.text
            case ToolCall(arguments=arguments):
                yield arguments
                if decoded:
                    yield from strings_in(arguments)
            case Opaque(body=body):
                yield body
            case _:
                continue


def strings_in(arguments: JsonText) -> Iterator[str]:
    """The strings inside the arguments of a call, as the tool gets them; none if they are not JSON."""
    try:
        value = cast(Json, json.loads(arguments))
    except (ValueError, RecursionError):
        return
    waiting = [value]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)


def without_ledger(text: str) -> str:
    """A text without the names that our block lists; any other text as it is."""
    if not text.startswith(FRAME):
        return text
    for _, naming, _ in WORDS.values():
        start = text.rfind(f"\n{naming}\n")
        if start >= 0:
            return text[:start]
    return text
