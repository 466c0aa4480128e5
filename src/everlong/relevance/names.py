"""The names in a text: identifiers, file names, hashes. They stand for what cannot be quoted."""

import re
from functools import lru_cache

__all__ = ["names_in"]

SHORTEST, LONGEST = 4, 60
LONGEST_WORD = 160  # characters; what is longer is encoded data, and slow to look through

_CANDIDATE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./-]{3,}")
_NAME = re.compile(
    r".*[A-Za-z0-9]/[A-Za-z0-9_].*"  # a path
    r"|[A-Za-z0-9]*[a-z0-9][A-Z][A-Za-z0-9_]*"  # camelCase
    r"|[A-Za-z0-9]*[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)+"  # snake_case
    r"|[A-Za-z]+-[A-Za-z-]*[0-9]+"  # a ticket
    r"|[A-Za-z_][A-Za-z0-9_-]*\.[a-z]{1,4}"  # a file
    r"|(?=[a-f]*[0-9])(?=[0-9]*[a-f])[0-9a-f]{7,40}"  # a hash
)
#: What a search puts between a file and a line beside a match. Example: app.py-42-
_LINE_NUMBER = re.compile(r"(?<=\.)([A-Za-z]{1,5})-[0-9]+$")


def names_in(text: str) -> list[str]:
    """Every name once, in order. Example: "fix readFile in src/app.py (a1b2c3d)" -> [readFile, src/app.py, a1b2c3d]"""
    words = dict.fromkeys(_CANDIDATE.findall(text))
    return list(dict.fromkeys(name for word in words if len(word) <= LONGEST_WORD for name in _names(word)))


@lru_cache(maxsize=100_000)
def _names(word: str) -> tuple[str, ...]:
    """The word as a name, or the names between its dots; () for a plain word or number."""
    whole = _LINE_NUMBER.sub(r"\1", word.rstrip("./-"))
    names = [whole] if _NAME.fullmatch(whole) else [piece for piece in whole.split(".") if _NAME.fullmatch(piece)]
    return tuple(name for name in names if SHORTEST <= len(name) <= LONGEST)
