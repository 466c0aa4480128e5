"""From figures and strangers' texts to HTML that is safe to open: the only place where text becomes markup."""

from html import escape

from everlong.cli.maps.shown_text import clean, one_line
from everlong.cli.terminal import amount

__all__ = ["figure", "linked", "meter", "preview", "said", "swatch"]

ESCAPED = {"&": 5, "<": 4, ">": 4}  # bytes that a character takes once it is escaped


def said(text: str) -> str:
    """Our own words or a stranger's, on one line."""
    return escape(one_line(text))


def preview(text: str, room: int) -> tuple[str, int]:
    """The front of a stranger's text in at most `room` bytes of markup, and how many characters were left out.

    Only the front is looked at: a text of 10 MB costs no more than one of 10 kB.
    Example: preview("a<b", 5) -> "a&lt;", 1 left out
    """
    front = clean(text[:room])
    used = kept = 0
    for character in front:
        used += ESCAPED.get(character) or len(character.encode())
        if used > room:
            break
        kept += 1
    left = len(text) - (kept if kept < len(front) else min(len(text), room))
    return escape(front[:kept], quote=False), left


def figure(number: int) -> str:
    """12345 -> 12 345 in one piece: the narrow space does not break."""
    return amount(number).replace(" ", "\u202f")


def linked(index: int) -> str:
    """A message by its index."""
    return f'<a href="#m{index}">#{index}</a>'


def swatch(category: str) -> str:
    """The colour of a category."""
    return f'<i class="swatch c-{category}"></i>'


def meter(part: int, whole: int, category: str) -> str:
    """A bar in steps of a hundredth: widths are classes, so the page needs no style attributes."""
    width = min(100, max(0, round(100 * part / whole))) if whole else 0
    return f'<i class="w w{width} c-{category}"></i>'
