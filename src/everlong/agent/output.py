"""The output of a tool as the thread stores it: plain text of a bounded size.

Owns which characters are removed before a model or a terminal sees them. It cuts nothing that fits a window: the engine
shortens requests and keeps the original.
"""

import re
from dataclasses import replace

from everlong.agent.definitions import Outcome
from everlong.compress import Cut, as_shown, cut_characters

__all__ = ["MOST_KEPT", "plain", "storable"]

MOST_KEPT = 4_000_000  # characters; more than any window holds
TAIL_SHARE = 1 / 3

#: What a terminal may act on or a reader cannot see, besides what `as_shown` handles: control characters, marks that
#: change the writing direction, and invisible tag letters.
HIDDEN = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]")
LINE_END = re.compile(r"\r\n?|[\x0b\x0c\x85\u2028\u2029]")
NOT_KEPT = "[{left:,} of {total:,} characters left out here; they were not stored]"


def storable(outcome: Outcome) -> Outcome:
    """Return an outcome as it is appended to the thread: plain text, cut to `MOST_KEPT` characters."""
    text = outcome.text
    if len(text) <= MOST_KEPT:
        return replace(outcome, text=plain(text))
    cut = cut_characters(Cut(text, len(text), 0), MOST_KEPT, TAIL_SHARE)
    marker = NOT_KEPT.format(left=len(text) - cut.characters, total=len(text))
    return replace(outcome, text="\n".join((plain(text[: cut.head]), marker, plain(text[cut.tail :]))))


def plain(output: str | bytes) -> str:
    """Return text that neither moves a cursor nor hides anything: no escape codes, controls, or half characters.

    Example: b"\\x1b[31m10%\\r100%\\x1b[0m \\xff" -> "100% \\ufffd"
    """
    text = output.decode("utf-8", "replace") if isinstance(output, bytes) else output
    if not text.isascii():
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return LINE_END.sub("\n", HIDDEN.sub("", as_shown(text)))
