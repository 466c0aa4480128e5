"""Make text fully visible for a person who is asked about it. No two texts look the same.

Invisible characters are written out between ⟨ and ⟩: control characters, marks that change the writing direction,
characters without width, spaces at the end of a line, long runs of spaces. So is ⟨ itself. Every omission has a mark.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["LONGEST", "MOST_LINES", "Cut", "cut", "is_plain", "visible"]

LONGEST = 20_000  # characters of a command or of arguments that a person can be asked about
MOST_LINES = 400
MOST_DIFF_LINES = 1_000  # of a diff that are shown; a longer one shows its head and its tail
MOST_DIFF_CHARACTERS = 100_000
LONGEST_DIFF_LINE = 2_000
FEW_SPACES = 16  # in a row that can still be counted by eye
FEW_LINE_ENDS = 2
FEW_MARKS = 2  # combining marks on one letter
TAB = "⇥   "
#: Characters that Python calls printable but nobody sees: fillers, variation selectors, the empty Braille pattern.
UNSEEN = "\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef"
MARKS = "\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20f0\ufe20-\ufe2f"
#: Everything that may have to be written out. The rest is shown as it is.
LOOKED_AT = re.compile(
    rf"(?P<ends>\n{{{FEW_LINE_ENDS + 1},}})|(?P<spaces> {{{FEW_SPACES + 1},}}| +(?=\n|\Z))|(?P<tab>\t)"
    rf"|(?P<marks>[{MARKS}]{{{FEW_MARKS + 1},}})|(?P<other>[⟨⇥{UNSEEN}]|[^\n -~])"
)


def visible(text: str) -> str:
    """Return the text with everything visible; different texts never give the same result.

    Example: "ls \\x1b[2K" -> "ls ⟨U+001B⟩[2K"; "ls" and 21000 spaces -> "ls⟨21000 spaces⟩"
    """
    return LOOKED_AT.sub(_written_out, text)


def is_plain(text: str) -> bool:
    """Whether the text is one line that is shown as it is."""
    return "\n" not in text and visible(text) == text


def _written_out(found: re.Match[str]) -> str:
    text = found[0]
    match found.lastgroup:
        case "ends":
            return f"⟨{len(text)} line ends⟩\n"
        case "spaces":
            return f"⟨{len(text)} space{'s' if len(text) > 1 else ''}⟩"
        case "tab":
            return TAB
        case "marks":
            return "".join(map(_code, text))
    seen = text.isprintable() and not re.match(rf"[⟨⇥{UNSEEN}]", text)
    return text if seen else _code(text)


def _code(character: str) -> str:
    return f"⟨U+{ord(character):04X}⟩"


@dataclass(frozen=True, slots=True)
class Cut:
    """A diff as it is shown, and how many of its lines are hidden or shortened."""

    text: str
    hidden: int = 0


def cut(diff: str) -> Cut:
    """Return a diff with everything visible. A long one has only its head and its tail, with a mark between them."""
    lines, hidden = [], 0
    for line in (f"{each[:1]}{visible(each[1:])}" for each in diff.split("\n")):
        if len(line) > LONGEST_DIFF_LINE:
            half = LONGEST_DIFF_LINE // 2
            left = len(line) - 2 * half
            lines.append(f"{line[:half]}⟨{left:,} characters not shown⟩{line[-half:]}")
            hidden += 1
        else:
            lines.append(line)
    head = _within(lines)
    if head == len(lines):
        return Cut("\n".join(lines), hidden)
    tail = _within(reversed(lines[head:]))
    left = len(lines) - head - tail
    if left <= 0:
        return Cut("\n".join(lines), hidden)
    shown = (*lines[:head], f"⟨{left:,} lines not shown⟩", *lines[len(lines) - tail :])
    return Cut("\n".join(shown), hidden + left)


def _within(lines: Iterable[str]) -> int:
    """Return how many of the lines fit into half of the space."""
    room, count = MOST_DIFF_CHARACTERS // 2, 0
    for line in lines:
        room -= len(line) + 1
        if room < 0 or count == MOST_DIFF_LINES // 2:
            break
        count += 1
    return count
