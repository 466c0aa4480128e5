"""Find boundaries at which a text may be cut: near line ends, never inside a visible character.

Surrogate pairs, combining marks, joined emoji, flags, Hangul syllables and "\\r\\n" stay whole. If the rules of Unicode
need tables that the standard library lacks, characters stay together rather than being separated. This module handles
only texts and numbers, no messages or markers.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from unicodedata import category, combining

__all__ = [
    "Cut",
    "boundary_after",
    "boundary_before",
    "cut_characters",
    "cut_lines",
    "fair_cap",
    "head_end",
    "tail_start",
]

NEAR = 5  # cut at a line end in the last fifth of a head, or the first fifth of a tail,
NEAREST = 400  # if it is at most this many characters away

ZERO_WIDTH_JOINER = "\u200d"
VIRAMA = 9  # the combining class of signs that bind the next consonant
MARKS = frozenset({"Mn", "Mc", "Me", "Cn"})  # a character that this Python does not know may be a mark
#: Characters that extend the one before without being marks: joiners, skin tones, tags, voiced signs, vowel signs.
EXTENDERS = ((0x200C, 0x200D), (0x1F3FB, 0x1F3FF), (0xE0020, 0xE007F), (0xFF9E, 0xFF9F), (0xE33, 0xE33), (0xEB3, 0xEB3))
#: Characters that belong to the next one: number signs of Arabic, Syriac and Kaithi, leading signs of Indic scripts.
PREFIXES = (
    *((0x600, 0x605), (0x6DD, 0x6DD), (0x70F, 0x70F), (0x890, 0x891), (0x8E2, 0x8E2), (0xD4E, 0xD4E)),
    *((0x110BD, 0x110BD), (0x110CD, 0x110CD), (0x111C2, 0x111C3), (0x113D1, 0x113D1), (0x1193F, 0x1193F)),
    *((0x11941, 0x11941), (0x11A84, 0x11A89), (0x11D46, 0x11D46), (0x11F02, 0x11F02)),
)
HANGUL_LEADS = ((0x1100, 0x115F), (0xA960, 0xA97C))
HANGUL_SYLLABLES = ((0xAC00, 0xD7A3),)
HANGUL_FOLLOWERS = ((0x1160, 0x11FF), (0xD7B0, 0xD7FB))
FLAG_LETTERS = ((0x1F1E6, 0x1F1FF),)


@dataclass(frozen=True, slots=True)
class Cut:
    """A cut in a text: `text[:head]` and `text[tail:]` stay, and the part between them goes."""

    text: str
    head: int
    tail: int

    def joined(self, marker: str) -> str:
        """Return what stays, with the marker on its own line in between."""
        before, after = self.text[: self.head], self.text[self.tail :]
        if before and not before.endswith("\n"):
            before += "\n"
        return f"{before}{marker}\n{after}" if after else f"{before}{marker}"

    @property
    def characters(self) -> int:
        """How many characters stay."""
        return self.head + len(self.text) - self.tail

    @property
    def on_lines(self) -> bool:
        """Whether only whole lines go."""
        return all(at == 0 or self.text[at - 1] == "\n" for at in (self.head, self.tail))

    @property
    def lines(self) -> int:
        """How many lines the text has. A newline at the very end does not begin another line."""
        return _lines(self.text)

    @property
    def next_line(self) -> int:
        """The number, from 1, of the first line that is missing or incomplete."""
        return self.text.count("\n", 0, self.head) + 1

    @property
    def lines_shown(self) -> int:
        """How many lines stay, at least in part."""
        return _lines(self.text[: self.head]) + _lines(self.text[self.tail :])


def cut_lines(text: str, head: int, tail: int) -> Cut | None:
    """Keep the first `head` and the last `tail` lines; None if the text has no more than these.

    Example: "a\\nb\\nc\\nd\\n", 1, 1 -> keeps "a\\n" and "d\\n"
    """
    end = 0
    for _ in range(head):
        end = text.find("\n", end) + 1
        if end == 0:
            return None
    start = len(text) - text.endswith("\n")
    for _ in range(tail):
        start = text.rfind("\n", 0, start)
        if start < end:
            return None
    start = start + 1 if tail else len(text)
    return Cut(text, end, start) if end < start else None


def cut_characters(cut: Cut, most: int, tail_share: float) -> Cut:
    """Widen a cut: at most `most` characters stay, about `tail_share` of them at the end.

    Space that one side does not need goes to the other. For a text that is not cut yet, pass `Cut(text, len(text), 0)`.
    """
    text, kept_tail = cut.text, len(cut.text) - cut.tail
    if most >= len(text):
        return Cut(text, len(text), len(text))
    tail = min(kept_tail, int(most * tail_share))
    head = min(cut.head, most - tail)
    tail = min(kept_tail, most - head)
    return Cut(text, head_end(text, head), tail_start(text, tail))


def head_end(text: str, most: int) -> int:
    """Return where a head of at most `most` characters ends."""
    if most >= len(text):
        return len(text)
    end = boundary_before(text, max(0, most))
    line_end = text.rfind("\n", end - min(end // NEAR, NEAREST), end)
    return line_end + 1 if line_end >= 0 else end


def tail_start(text: str, most: int) -> int:
    """Return where a tail of at most `most` characters starts."""
    if most >= len(text):
        return 0
    start = boundary_after(text, len(text) - max(0, most))
    if start == 0 or text[start - 1] == "\n":
        return start
    line_end = text.find("\n", start, start + min((len(text) - start) // NEAR, NEAREST))
    return line_end + 1 if line_end >= 0 else start


def boundary_before(text: str, at: int) -> int:
    """Return the last position at or before `at` where the text may be cut."""
    while 0 < at < len(text) and _joined(text, at):
        at -= 1
    return at


def boundary_after(text: str, at: int) -> int:
    """Return the first position at or after `at` where the text may be cut."""
    while 0 < at < len(text) and _joined(text, at):
        at += 1
    return at


def fair_cap(sizes: Iterable[int], room: int) -> int:
    """Return the largest cap so that all sizes, limited to the cap, add up to at most `room`.

    Example: sizes 10, 40, 90 in a room of 80 -> 35 (10 + 35 + 35)
    """
    left = sorted(sizes)
    largest = left[-1] if left else 0
    while left:
        share = max(0, room) // len(left)
        if left[0] > share:
            return share
        room -= left.pop(0)
    return largest


def _lines(text: str) -> int:
    return text.count("\n") + (text != "" and not text.endswith("\n"))


def _joined(text: str, at: int) -> bool:
    """Whether the characters on both sides of `at` belong together."""
    before, after = text[at - 1], text[at]
    if before < "\x7f" and after < "\x7f":
        return before == "\r" and after == "\n"
    if "\ud800" <= before <= "\udbff" and "\udc00" <= after <= "\udfff":
        return True
    if category(before) == "Cc" or category(after) == "Cc":
        return False
    if _extends(after) or before == ZERO_WIDTH_JOINER or _within(before, PREFIXES):
        return True
    if _within(after, FLAG_LETTERS):
        return _flag_letters_before(text, at) % 2 == 1
    if combining(before) == VIRAMA and category(after) == "Lo":
        return True
    return _one_syllable(before, after)


def _extends(character: str) -> bool:
    return category(character) in MARKS or _within(character, EXTENDERS)


def _one_syllable(before: str, after: str) -> bool:
    if _within(after, HANGUL_FOLLOWERS):
        return any(_within(before, kind) for kind in (HANGUL_LEADS, HANGUL_SYLLABLES, HANGUL_FOLLOWERS))
    return _within(before, HANGUL_LEADS) and (_within(after, HANGUL_LEADS) or _within(after, HANGUL_SYLLABLES))


def _flag_letters_before(text: str, at: int) -> int:
    start = at
    while start > 0 and _within(text[start - 1], FLAG_LETTERS):
        start -= 1
    return at - start


def _within(character: str, ranges: tuple[tuple[int, int], ...]) -> bool:
    return any(low <= ord(character) <= high for low, high in ranges)
