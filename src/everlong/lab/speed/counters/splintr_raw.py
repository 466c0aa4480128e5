"""splintr, the tokenizer that everlong counts with, called directly on every text: the lower bound."""

from collections.abc import Callable
from functools import cache
from itertools import chain
from typing import Any

from splintr import Tokenizer

from everlong.lab.peers.rules import texts
from everlong.lab.peers.shapes import Counting, Message

TOKEN_BYTES = 4


@cache
def _vocabulary() -> Any:
    return Tokenizer.from_pretrained("o200k_base")


def _texts(messages: list[Message]) -> list[str]:
    return list(chain.from_iterable(map(texts, messages)))


def _ordinary(pieces: list[str]) -> int:
    encode = _vocabulary().encode_ordinary
    return sum(len(encode(piece)) for piece in pieces)


def _packed(pieces: list[str]) -> int:
    encode = _vocabulary().encode_flat
    return sum(len(encode(piece)) // TOKEN_BYTES for piece in pieces)


def _alone(count: Callable[[list[str]], int]) -> Callable[[Any], Callable[[list[str]], int]]:
    """Count only the new texts: a direct user of a tokenizer keeps the sum too."""
    return lambda _: count


COUNTERS = {
    "ordinary": Counting(read=_texts, count=_ordinary, grow=_alone(_ordinary)),
    "packed": Counting(read=_texts, count=_packed, grow=_alone(_packed)),
}
