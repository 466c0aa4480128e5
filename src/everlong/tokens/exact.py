"""Exact counts with splintr, which carries its vocabularies inside: no download, no network.

A vocabulary is loaded when it is first needed and kept. Special tokens spelled out in a text are
text. Lone surrogates count as the replacement character that a provider would receive. A table says which
vocabulary a model has, or which is nearest.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Protocol

from splintr import Tokenizer

__all__ = ["UNKNOWN", "Vocabulary", "count_exact", "name_segments", "pieces_of", "vocabulary_of", "well_formed"]

TOKEN_BYTES = 4  # `encode_flat` packs each id into 32 bits
MARKERS_WORTH_SEARCHING = 4

#: In these, markup and blank lines are ordinary entries of the vocabulary that only the full matcher finds.
MATCHED_WHOLE = frozenset({"gemma2", "gemma3", "gemma4"})

#: In these a space begins a word at the start of a text too, so pieces count more than the whole.
COUNTED_WHOLE = MATCHED_WHOLE | {"llama2", "mistral", "mistral_v1", "mistral_v2"}
#: A long text is counted in pieces of about so many characters: the encoder lets no other thread run meanwhile.
PIECE = 32_768
#: A word ends before such a sign in every other vocabulary, so no token reaches across.
#: Not an apostrophe: some keep "don't" together.
_BETWEEN_WORDS = re.compile("(?<=[A-Za-z0-9\u4e00-\u9fff])[ \\n，。、](?=[A-Za-z\u4e00-\u9fff])")


class _Encoder(Protocol):
    def encode_flat(self, text: str) -> bytes: ...
    def encode_ordinary(self, text: str) -> list[int]: ...
    def special_tokens(self) -> dict[str, int]: ...


@dataclass(frozen=True, slots=True)
class _Loaded:
    encoder: _Encoder
    #: How every special token of the vocabulary begins; without any of them in a text the packed
    #: encoding, half as expensive, finds the same tokens.
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


def well_formed(text: str) -> str:
    """The text with surrogate pairs joined and lone ones replaced, as UTF-8 demands."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def count_exact(vocabulary: str, text: str) -> int:
    """How many tokens the text is in that vocabulary. Example: ("o200k_base", "hello world") -> 2"""
    if len(text) > 2 * PIECE and vocabulary not in COUNTED_WHOLE:
        return sum(_count(vocabulary, piece) for piece in pieces_of(text, PIECE))
    return _count(vocabulary, text)


def pieces_of(text: str, size: int) -> Iterator[str]:
    """The text in pieces of at least `size` characters, cut only where no token can reach across."""
    start = 0
    while len(text) - start > size:
        gap = _BETWEEN_WORDS.search(text, start + size)
        if gap is None:
            break
        yield text[start : gap.start()]
        start = gap.start()
    yield text[start:]


def _count(vocabulary: str, text: str) -> int:
    loaded = _load(vocabulary)
    try:
        for marker in loaded.markers:
            if marker in text:
                return len(loaded.encoder.encode_ordinary(text))
        return len(loaded.encoder.encode_flat(text)) // TOKEN_BYTES
    except UnicodeEncodeError:
        return _count(vocabulary, well_formed(text))


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


#: Nothing known: the estimate for o200k; other vocabularies differ from it by up to about this much.
UNKNOWN = _nearest("o200k_base", 0.25)

#: No tokenizer of a current Claude exists offline; its newest vocabularies write up to a fifth more.
CLAUDE = _nearest("claude", 0.20)

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
    ("glm-5", _nearest("o200k_base", 0.15)),
    ("llama-2", _exact("llama2")),
    ("llama2", _exact("llama2")),
    ("llama-3", _exact("llama3")),
    ("llama3", _exact("llama3")),
    ("meta-llama-3", _exact("llama3")),
    ("meta.llama3", _exact("llama3")),
    ("llama-4", _nearest("llama3", 0.15)),
    ("llama4", _nearest("llama3", 0.15)),
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
    """The pieces of a model's name, each without the region and vendor that a cloud writes before it.

    Example: "bedrock/us.anthropic.claude-opus-4-5" -> ["bedrock", "claude-opus-4-5"]
    """
    return [_HOST.sub("", segment) for segment in model.lower().split("/")]


@lru_cache(maxsize=1_024)
def vocabulary_of(model: str) -> Vocabulary:
    """The vocabulary of a model, whatever stands around its name.

    Example: "openrouter/openai/gpt-4o-mini" -> o200k_base, exact; "claude-opus-4-5" -> claude, estimated
    """
    for name in reversed(name_segments(model)):
        for start, vocabulary in _BY_LENGTH:
            if name.startswith(start) and _ends_well(start, name[len(start) : len(start) + 1]):
                return vocabulary
    return UNKNOWN


def _ends_well(start: str, following: str) -> bool:
    """`o1` is `o1-mini` but not `o100`."""
    return not (start[-1].isdigit() and following.isdigit())
