"""Recognise random strings: many of their neighbouring characters do not follow each other in words."""

import re
from itertools import pairwise

__all__ = ["CERTAIN", "LIKELY", "is_hex", "is_mixed", "is_random"]

#: The 230 commonest pairs of letters in English text and code, 93 % of all: a letter, then the letters that follow it.
_FOLLOWERS = (
    "abcdgiklmnprstuvy baeiloruy caehiklortu dadeilosu eacdefglmnpqrstvwxy faefiloru gehilmnrs haeiot "
    "iabcdefglmnoprstvxz ke ladefilostuy mabeilmopu nacdefgiostuv oabcdgklmnoprstuvw paeiloprstuy qu racdegiklmnorstuy "
    "sacehilopstuy tacehiloprstuy uabdefilmnprst vaei wahio xet yglpsw ze"
)
COMMON = frozenset(row[0] + after for row in _FOLLOWERS.split() for after in row[1:])
#: Shares of uncommon pairs. Random letters and digits have about 0.7, names about 0.2.
LIKELY, CERTAIN = 0.4, 0.5
HUMP = 0.5  # weight of a capital after a small letter: common in names, more common in random strings

_HEX = re.compile(r"(?:[0-9a-f]+|[0-9A-F]+)\Z")
_CLASSES = tuple(map(re.compile, ("[a-z]", "[A-Z]", "[0-9]")))


def is_hex(text: str) -> bool:
    """Return whether a text is hex digits of one case."""
    return _HEX.match(text) is not None


def is_mixed(text: str) -> bool:
    """Return whether a text has small letters, capitals and digits."""
    return all(kind.search(text) for kind in _CLASSES)


def is_random(text: str, least: float = CERTAIN) -> bool:
    """Return whether at least this share of the pairs is uncommon. Example: "xK9pQ2vR7mT4" -> True"""
    pairs = 0
    surprises = 0.0
    for one, other in pairwise(text):
        if one.isalpha() and other.isalpha():
            pairs += 1
            if one.islower() and other.isupper():
                surprises += HUMP
            elif ord(other) - ord(one) != 1:  # "abcd" is not random
                surprises += (one + other).lower() not in COMMON
        elif one.isalnum() and other.isalnum() and not (one.isdigit() and other.isdigit()):
            pairs += 1
            surprises += 1
    return pairs > 0 and surprises / pairs >= least
