"""Search terms as 64-bit keys, so that one index serves every owner and none sees another's.

A key is a hash of the owner, the term and a level: a message has a term's first key if it holds it at all, the
second if it holds much of it, the third if very much. How much is thus known from the index alone.
"""

from collections.abc import Mapping
from hashlib import blake2b

from everlong.core import bytes_of

__all__ = ["LEVELS", "key_of", "keys_of_message", "word_count"]

#: How much of a term a message must hold for each level, and how much it is then taken to hold.
LEVELS: tuple[tuple[float, float], ...] = ((0.0, 1.0), (2.0, 2.5), (5.0, 7.0))


def key_of(owner: str, term: str, level: int) -> int:
    """The key of a term at a level, among one owner's."""
    personal = blake2b(bytes_of(owner), digest_size=16).digest()
    return _key(personal, term, level)


def keys_of_message(owner: str, terms: Mapping[str, float]) -> list[int]:
    """All keys that a message with these terms has."""
    personal = blake2b(bytes_of(owner), digest_size=16).digest()
    return [
        _key(personal, term, level)
        for term, held in terms.items()
        for level, (least, _) in enumerate(LEVELS)
        if held >= least
    ]


def word_count(terms: Mapping[str, float]) -> int:
    """How long a message counts as."""
    return round(sum(terms.values()))


def _key(personal: bytes, term: str, level: int) -> int:
    digest = blake2b(bytes_of(term), digest_size=8, key=personal, salt=bytes((level,))).digest()
    return int.from_bytes(digest, "little", signed=True)
