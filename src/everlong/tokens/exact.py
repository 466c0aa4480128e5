"""Exact counts with splintr, whose package contains the vocabularies: no download, no network.

A vocabulary is loaded on first use and kept. Special tokens spelled out in a text count as plain text. Lone surrogates
count as the replacement character that a provider would receive. A table maps each model to its vocabulary, or to the
nearest one.
"""

import re
from array import array
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Protocol

from splintr import Tokenizer

from everlong.tokens.pieces import PIECE, SMALL_PIECE, TOKEN_BYTES, Encoding, bytes_in, counted_pieces, well_formed

__all__ = ["UNKNOWN", "Vocabulary", "count_exact", "encoding_of", "name_segments", "vocabulary_of"]

MARKERS_WORTH_SEARCHING = 4
WORTH_COPYING = 256  # characters; shorter texts are not copied
#: The most tokens of one text to count exactly: four times the largest window of a model with a known vocabulary.
ENOUGH = 8_388_608

#: In these vocabularies, markup and blank lines are ordinary entries that only the full matcher finds.
MATCHED_WHOLE = frozenset({"gemma2", "gemma3", "gemma4"})

#: These vocabularies put a space before the start of a text, and so would before every piece. They put none after a
#: line end, and no token contains a line end and anything else; so later pieces are encoded after a line end.
BEGUN_WITH_SPACE = frozenset({"llama2", "mistral_v1", "mistral_v2"})
LINE_END, ITS_TOKENS = "\n", 2


class _Encoder(Protocol):
    def encode_flat(self, text: str) -> bytes: ...
    def encode_ordinary(self, text: str) -> list[int]: ...
    def decode_token_bytes(self, token: int, /) -> bytes: ...
    def special_tokens(self) -> dict[str, int]: ...


@dataclass(frozen=True, slots=True)
class _Loaded:
    encoder: _Encoder
    #: The beginnings of all special tokens of the vocabulary. If none of them occurs in a text, the packed encoding
    #: finds the same tokens at half the cost.
    markers: tuple[str, ...]


@cache
def _load(name: str) -> _Loaded:
    encoder = Tokenizer.from_pretrained(name)
    if name in MATCHED_WHOLE:
        return _Loaded(encoder, ())
    starts = sorted({token[:2] for token in encoder.special_tokens()})
    if len(starts) > MARKERS_WORTH_SEARCHING:
        starts = sorted({start[0] for start in starts})
    return _Loaded(encoder, tuple(starts))


def count_exact(vocabulary: str, text: str) -> int:
    """Return the tokens of a text in a vocabulary. Example: ("o200k_base", "hello world") -> 2"""
    if len(text) <= 2 * SMALL_PIECE:
        return _count(vocabulary, text)
    encoding = encoding_of(vocabulary)
    if len(text) <= 2 * encoding.piece:
        return _count(vocabulary, text)
    try:
        return _count_long(encoding, text)
    except UnicodeEncodeError:
        return _count_long(encoding, well_formed(text))


def _count_long(encoding: Encoding, text: str) -> int:
    """Count the tokens of a text piece by piece. Once they exceed every window, the rest counts as its bytes."""
    total = 0
    for piece in counted_pieces(encoding, text):
        total += piece.tokens
        if total > ENOUGH:
            return total + bytes_in(text, piece.stop, len(text))
    return total


def _count(vocabulary: str, text: str) -> int:
    loaded = _load(vocabulary)
    try:
        for marker in loaded.markers:
            if marker in text:
                return len(loaded.encoder.encode_ordinary(_own(text)))
        return len(loaded.encoder.encode_flat(_own(text))) // TOKEN_BYTES
    except UnicodeEncodeError:
        return _count(vocabulary, well_formed(text))


def _own(text: str) -> str:
    """Return the text, copied if it is long and not ASCII: encoding caches the UTF-8 bytes in the string object."""
    return text if text.isascii() or len(text) <= WORTH_COPYING else text[:1] + text[1:]


@cache
def encoding_of(vocabulary: str) -> Encoding:
    """Return how a vocabulary encodes the pieces of a text."""
    encoder, markers = _load(vocabulary).encoder, _load(vocabulary).markers

    def pack(text: str, begins: bool) -> bytes:  # noqa: ARG001 - most vocabularies ignore it
        if any(marker in text for marker in markers):
            return array("I", encoder.encode_ordinary(text)).tobytes()
        return encoder.encode_flat(text)

    def pack_after_line_end(text: str, begins: bool) -> bytes:
        return pack(text, begins) if begins else pack(LINE_END + text, begins)[ITS_TOKENS * TOKEN_BYTES :]

    if vocabulary in BEGUN_WITH_SPACE:
        return Encoding(pack_after_line_end, encoder.decode_token_bytes, SMALL_PIECE)
    piece = SMALL_PIECE if vocabulary in MATCHED_WHOLE else PIECE
    return Encoding(pack, encoder.decode_token_bytes, piece)


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """A way to count. `spread` is the relative error to expect: 0 with the model's own tokenizer."""

    name: str
    exact: bool
    spread: float


def _exact(name: str) -> Vocabulary:
    return Vocabulary(name, exact=True, spread=0.0)


def _nearest(name: str, spread: float) -> Vocabulary:
    return Vocabulary(name, exact=False, spread=spread)


#: The error that 19 of 20 estimates stay below: a tenth for a message, much less for a conversation. If a vocabulary
#: needs even more tokens, the first reported usage or a refusal corrects the estimate.
ESTIMATE_ERROR = 0.10

#: For models that nothing is known about: the estimate for o200k.
UNKNOWN = _nearest("o200k_base", ESTIMATE_ERROR)

#: There is no offline tokenizer for a current Claude; its newest vocabularies need more tokens than the published one.
CLAUDE = _nearest("claude", 0.15)

ROWS: tuple[tuple[str, Vocabulary], ...] = (
    ("gpt-4o", _exact("o200k_base")),
    ("gpt-4.1", _exact("o200k_base")),
    ("gpt-4.5", _exact("o200k_base")),
    ("gpt-5", _exact("o200k_base")),
    ("gpt-oss", _exact("o200k_base")),
    ("chatgpt-4o", _exact("o200k_base")),
    ("codex", _exact("o200k_base")),
    ("o1", _exact("o200k_base")),
    ("o3", _exact("o200k_base")),
    ("o4", _exact("o200k_base")),
    ("gpt-4", _exact("cl100k_base")),
    ("gpt-3.5", _exact("cl100k_base")),
    ("gpt-35", _exact("cl100k_base")),
    ("text-embedding", _exact("cl100k_base")),
    ("claude", CLAUDE),
    ("gemini", _exact("gemma3")),
    ("gemini-3.1", _exact("gemma4")),
    ("gemini-3.5", _exact("gemma4")),
    ("gemma", _exact("gemma3")),
    ("gemma-2", _exact("gemma2")),
    ("gemma2", _exact("gemma2")),
    ("gemma-4", _exact("gemma4")),
    ("gemma4", _exact("gemma4")),
    ("qwen", _exact("qwen3")),
    ("qwq", _exact("qwen3")),
    ("qvq", _exact("qwen3")),
    ("deepseek", _exact("deepseek_v3")),
    ("deepseek-r1-distill-qwen", _exact("qwen3")),
    ("deepseek-r1-distill-llama", _exact("llama3")),
    ("kimi", _exact("kimi_k2")),
    ("moonshot", _exact("kimi_k2")),
    ("glm", _exact("glm4")),
    ("chatglm", _exact("glm4")),
    ("glm-5", _nearest("o200k_base", ESTIMATE_ERROR)),
    ("llama-2", _exact("llama2")),
    ("llama2", _exact("llama2")),
    ("llama-3", _exact("llama3")),
    ("llama3", _exact("llama3")),
    ("meta-llama-3", _exact("llama3")),
    ("meta.llama3", _exact("llama3")),
    ("llama-4", _nearest("llama3", ESTIMATE_ERROR)),
    ("llama4", _nearest("llama3", ESTIMATE_ERROR)),
    ("mistral", _exact("mistral_v3")),
    ("ministral", _exact("mistral_v3")),
    ("magistral", _exact("mistral_v3")),
    ("devstral", _exact("mistral_v3")),
    ("pixtral", _exact("mistral_v3")),
    ("open-mistral-nemo", _exact("mistral_v3")),
    ("codestral", _exact("mistral_v2")),
    ("open-mixtral-8x22b", _exact("mistral_v2")),
    ("mixtral-8x22b", _exact("mistral_v2")),
    ("mixtral", _exact("mistral_v1")),
    ("open-mixtral", _exact("mistral_v1")),
    ("mistral-7b", _exact("mistral_v1")),
    ("open-mistral-7b", _exact("mistral_v1")),
    ("phi-4", _exact("phi4")),
    ("phi4", _exact("phi4")),
)

_BY_LENGTH = sorted(ROWS, key=lambda row: -len(row[0]))
_HOST = re.compile(r"^(?:(?:us|eu|ap|apac|global|jp|au)\.)?(?:anthropic\.)?")


def name_segments(model: str) -> list[str]:
    """Return the segments of a model's name, each without a cloud's region and vendor prefix.

    Example: "bedrock/us.anthropic.claude-opus-4-5" -> ["bedrock", "claude-opus-4-5"]
    """
    return [_HOST.sub("", segment) for segment in model.lower().split("/")]


@lru_cache(maxsize=1_024)
def vocabulary_of(model: str) -> Vocabulary:
    """Return the vocabulary of a model, whatever surrounds its name.

    Example: "openrouter/openai/gpt-4o-mini" -> o200k_base, exact; "claude-opus-4-5" -> claude, estimated
    """
    for name in reversed(name_segments(model)):
        for start, vocabulary in _BY_LENGTH:
            if name.startswith(start) and _ends_well(start, name[len(start) : len(start) + 1]):
                return vocabulary
    return UNKNOWN


def _ends_well(start: str, following: str) -> bool:
    """Whether the name may end here: `o1` matches `o1-mini` but not `o100`."""
    return not (start[-1].isdigit() and following.isdigit())
