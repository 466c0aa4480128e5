"""A summary without a model: the lines of a text with many names, numbers and long words, word for word.

Peers that keep a summary ask a model for it. A model that always returns the same 60 tokens would make them lose
everything in a measure of what is left, so in measures that search for words they get this one, which quotes. Like a
summarising model, it does not know what will be asked. Standard library only.
"""

import re
from collections.abc import Callable, Iterator
from functools import lru_cache

__all__ = ["extract", "room_for_summary"]

MOST_TOKENS = 2_000  # what pydantic-ai-harness reserves for a summary
SHARE = 4  # a quarter of a small budget is for the summary
LONGEST = 600  # characters of a line before it is split into sentences
FEWEST_WORDS = 4
LONG = 6  # letters of a significant word
NAMED = 2  # a name, a number or an identifier counts twice
FEW = 20  # added to the words of a line, so that a short line does not win with a single name
_WORD = re.compile(r"[A-Za-z0-9_./-]{2,}|[\u4e00-\u9fff]{2}")
_NAMED = re.compile(r"(?<=[a-z] )[A-Z][\w-]+|[\w./-]*[0-9_/][\w./-]*|[A-Za-z]+[A-Z]\w*")
_SENTENCE = re.compile(r"(?<=[.!?。！？])\s+")


def room_for_summary(budget: int) -> int:
    """Return the tokens for a summary under a budget. Example: 4,000 -> 1,000, 32,000 -> 2,000"""
    return min(MOST_TOKENS, budget // SHARE)


def extract(text: str, room: int, count: Callable[[str], int]) -> str:
    """Return the best lines of a text, in order, within `room` tokens as `count` counts them."""
    lines = list(dict.fromkeys(_lines(text)))
    worthy = [at for at, line in enumerate(lines) if _worth(line) > 0]
    kept: list[int] = []
    for at in sorted(worthy, key=lambda at: -_worth(lines[at])):
        size = count(lines[at]) + 1
        if size <= room:
            kept.append(at)
            room -= size
    return "\n".join(lines[at] for at in sorted(kept)) or "Nothing of note."


@lru_cache(maxsize=100_000)
def _worth(line: str) -> float:
    """Return how dense a line is in what a summary should keep. Example: "Wow, great!" -> 0"""
    words = _WORD.findall(line)
    if len(words) < FEWEST_WORDS:
        return 0.0
    named = set(_NAMED.findall(line))
    long = {word for word in words if len(word) >= LONG or not word.isascii()}
    return (NAMED * len(named) + len(long - named)) / (len(words) + FEW)


def _lines(text: str) -> Iterator[str]:
    for line in text.splitlines():
        stripped = line.strip()
        yield from _SENTENCE.split(stripped) if len(stripped) > LONGEST else (stripped,)
