"""Recognise texts that say that a request does not fit, and read their figures.

This module decides how a sign's pattern is read and which figures are plausible. Other refusals are in `classify`, and
replies that hide an overflow in `usage.silent_overflow`.
"""

import re
from dataclasses import dataclass
from functools import cache

from everlong.wire.refusals.overflow_signs import HOSTED_SIGNS, OverflowSign
from everlong.wire.refusals.overflow_signs_served import SERVED_SIGNS, SHARED_SIGNS

__all__ = ["NO_FIGURES", "SIGNS", "Figures", "Overflow", "believable", "compiled", "figures_of", "overflow_in"]

SIGNS: tuple[OverflowSign, ...] = (*HOSTED_SIGNS, *SERVED_SIGNS, *SHARED_SIGNS)

SMALLEST_WINDOW = 128  # tokens; a smaller "limit" is a misread number
LARGEST_WINDOW = 100_000_000

# Digits and repeats are bounded, so that the cost for a hostile text grows only with its length.
NUMBER = r"(?:\d{1,3}(?:[,_]\d{3}){1,4}|\d{1,12}(?:\.\d{1,3})?)(?!\d)(?:[km]\b)?"
PLACEHOLDER = re.compile(r"<(limit|below|requested|prompt|reply|over)>")
GAP = r"[^\n]{0,100}?"


@dataclass(frozen=True, slots=True)
class Figures:
    """The sizes in a text, in tokens. `reply` is the part of `requested` that was reserved for the answer."""

    limit: int | None = None
    requested: int | None = None
    reply: int | None = None


NO_FIGURES = Figures()


@dataclass(frozen=True, slots=True)
class Overflow:
    """A sign that was found, its figures, and its position in the text."""

    sign: OverflowSign
    figures: Figures
    at: int

    @property
    def sure(self) -> bool:
        """Whether the text certainly means an overflow, whatever else it says: a sure sign, or both sizes."""
        figures = self.figures
        return self.sign.sure or (figures.limit is not None and figures.requested is not None)


def overflow_in(text: str) -> Overflow | None:
    """Return the best sign in a text: a certain one, otherwise the first; None if there is none.

    Example: "prompt is too long: 213462 tokens > 200000 maximum" -> limit 200,000, requested 213,462
    """
    first = None
    for sign in SIGNS:
        match = compiled(sign.pattern).search(text)
        if match is None:
            continue
        found = Overflow(sign, figures_of(match), match.start())
        if found.sure:
            return found
        first = first or found
    return first


@cache
def compiled(pattern: str) -> re.Pattern[str]:
    """Return a sign's pattern with its placeholders for numbers and gaps filled in."""
    filled = PLACEHOLDER.sub(lambda mark: f"(?P<{mark[1]}>{NUMBER})", pattern).replace("…", GAP)
    return re.compile(filled, re.IGNORECASE | re.MULTILINE)


def believable(limit: int | None, requested: int | None, reply: int | None = None) -> Figures:
    """Return the figures that can be true together.

    A refused request is not smaller than the limit. If it seems so, its size was misread and only the limit stays.
    """
    if limit is not None and not SMALLEST_WINDOW <= limit <= LARGEST_WINDOW:
        limit = None
    if requested is not None and (requested <= 0 or (limit is not None and requested < limit)):
        requested = None
    if reply is not None and (requested is None or reply > requested):
        reply = None
    return Figures(limit, requested, reply)


def figures_of(match: re.Match[str]) -> Figures:
    """Return the figures that a `compiled` pattern found, with sums computed: "A + B > C" requests A + B."""
    named = {name: _number(digits) for name, digits in match.groupdict().items() if digits is not None}
    limit, requested, reply = named.get("limit"), named.get("requested"), named.get("reply")
    if limit is None and "below" in named:
        limit = named["below"] - 1
    if requested is None and "prompt" in named:
        requested = named["prompt"] + (reply or 0)
    if requested is None and limit is not None and "over" in named:
        requested = limit + named["over"]
    return believable(limit, requested, reply)


def _number(digits: str) -> int:
    """Return a number. Example: "1,048,576" -> 1048576, "128k" -> 128000 (the smaller meaning of k is the safe one)."""
    plain = digits.replace(",", "").replace("_", "").lower()
    scale = {"k": 1_000, "m": 1_000_000}.get(plain[-1], 1)
    return int(float(plain.rstrip("km")) * scale)
