"""The models that make vectors: static tables, and small transformers in plain numpy and float32.

In a static model each token has one vector, whatever its context, and a text has their mean: 0.1 ms per text. It reads
the files of model2vec (`embeddings`, optionally with `weights` per token and a `mapping` into a smaller table) and of
the static models of sentence-transformers (`embedding.weight`).

A transformer like BERT, such as all-MiniLM-L6-v2, reads words in context: better, and 100 times slower. Its folder has
the layout of sentence-transformers: config.json, model.safetensors, tokenizer.json, and 1_Pooling/config.json if the
vector of a text is not the mean over its tokens.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import cast

import numpy as np

from everlong.core import JsonObject
from everlong.errors import InputError
from everlong.relevance.vectors.weights import (
    WEIGHTS,
    Floats,
    Tensor,
    Tensors,
    read_json,
    read_tensors,
    read_tokenizer,
)

__all__ = ["BertModel", "StaticModel", "static_table"]

#: The names of the table of vectors in the files of static models.
TABLES = ("embeddings", "embedding.weight")
LONGEST_STATIC = 512  # tokens of one text


def static_table(tensors: Tensors) -> Tensor | None:
    """Return the vectors of the tokens, one per row; None if this is another kind of model."""
    found = [tensors[name] for name in TABLES if name in tensors]
    return found[0] if found and found[0].ndim == 2 else None


class StaticModel:
    """A static model: a table of vectors, and its tokenizer."""

    def __init__(self, weights: Path, tokenizer: Path | None = None) -> None:
        tensors = read_tensors(weights)
        table = static_table(tensors)
        if table is None:
            raise InputError(f"{weights} has no table of vectors ({' or '.join(TABLES)})")
        self._table = table
        self._shares = tensors.get("weights")
        self._rows = tensors.get("mapping")
        self._tokenizer = read_tokenizer(tokenizer or weights.parent, LONGEST_STATIC)
        unknown = getattr(self._tokenizer.model, "unk_token", None)
        self._unknown = self._tokenizer.token_to_id(unknown) if unknown else None
        self._most = len(table) if self._rows is None else len(self._rows)

    def __call__(self, texts: Sequence[str]) -> Floats:
        """Return the vectors of texts, a row each."""
        vectors = np.zeros((len(texts), self._table.shape[1]), dtype=np.float32)
        for at, text in enumerate(texts):
            known = self._tokenizer.encode(text, add_special_tokens=False).ids
            tokens = np.array([token for token in known if token != self._unknown and token < self._most], dtype=int)
            if not len(tokens):
                continue
            rows = self._table[tokens if self._rows is None else self._rows[tokens]].astype(np.float32)
            if self._shares is not None:
                rows *= self._shares[tokens].astype(np.float32)[:, None]
            vectors[at] = rows.mean(axis=0)
        return vectors


KINDS = ("bert", "roberta", "xlm-roberta")
LONGEST = 256  # tokens; small models were trained with no more, and longer texts take longer
GELU = (np.float32(0.7978845608), np.float32(0.044715))  # √(2/π), and the factor of x³
PLACES = "embeddings.position_embeddings.weight"


class BertModel:
    """A transformer like BERT: its weights by name, its layers and heads, and its pooling."""

    def __init__(self, folder: Path) -> None:
        config = read_json(folder / "config.json")
        if config.get("model_type") not in KINDS:
            raise InputError(
                f"{folder}: model type {config.get('model_type')!r} is not supported, only {', '.join(KINDS)}"
            )
        self._layers, self._heads = _number(config, "num_hidden_layers"), _number(config, "num_attention_heads")
        self._tiny = np.float32(cast(float, config.get("layer_norm_eps", 1e-12)))
        tensors = read_tensors(folder / WEIGHTS)
        # All float32: a single float64 would turn all later results into float64, which is four times slower.
        self._weights = {
            name.removeprefix("bert.").removeprefix("roberta."): np.ascontiguousarray(tensor, dtype=np.float32)
            for name, tensor in tensors.items()
            if tensor.dtype.kind == "f"
        }
        if PLACES not in self._weights:
            raise InputError(f"{folder}: {WEIGHTS} has no {PLACES}")
        #: In models like RoBERTa, the first positions are for padding.
        self._first = 0 if config["model_type"] == "bert" else _number(config, "pad_token_id", 1) + 1
        length = _number(read_json(folder / "sentence_bert_config.json"), "max_seq_length", LONGEST)
        self._tokenizer = read_tokenizer(folder, min(length, LONGEST, len(self._weights[PLACES]) - self._first))
        pooling = read_json(folder / "1_Pooling" / "config.json")
        self._by_first_token = bool(pooling.get("pooling_mode_cls_token", False))

    def __call__(self, texts: Sequence[str]) -> Floats:
        """Return the vectors of texts, a row each."""
        return np.stack([self._vector(text) for text in texts])

    def _vector(self, text: str) -> Floats:
        tokens = np.array(self._tokenizer.encode(text).ids)
        weights = self._weights
        x = weights["embeddings.word_embeddings.weight"][tokens]
        x = x + weights[PLACES][self._first : self._first + len(tokens)]
        x = self._normed(x + weights["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
        for layer in range(self._layers):
            place = f"encoder.layer.{layer}."
            x = self._normed(x + self._attention(x, place), f"{place}attention.output.LayerNorm")
            inner = self._gelu(self._linear(x, f"{place}intermediate.dense"))
            x = self._normed(x + self._linear(inner, f"{place}output.dense"), f"{place}output.LayerNorm")
        return cast(Floats, x[0] if self._by_first_token else x.mean(axis=0))

    def _attention(self, x: Floats, place: str) -> Floats:
        query, key, value = (
            self._linear(x, f"{place}attention.self.{name}").reshape(len(x), self._heads, -1).transpose(1, 0, 2)
            for name in ("query", "key", "value")
        )
        scores = query @ key.transpose(0, 2, 1) * np.float32(query.shape[-1] ** -0.5)
        shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
        mixed = (shares / shares.sum(axis=-1, keepdims=True)) @ value
        return self._linear(mixed.transpose(1, 0, 2).reshape(len(x), -1), f"{place}attention.output.dense")

    def _linear(self, x: Floats, name: str) -> Floats:
        return cast(Floats, x @ self._weights[f"{name}.weight"].T + self._weights[f"{name}.bias"])

    def _normed(self, x: Floats, name: str) -> Floats:
        centred = x - x.mean(axis=-1, keepdims=True)
        spread = np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + self._tiny)
        return cast(Floats, centred / spread * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"])

    def _gelu(self, x: Floats) -> Floats:
        root, share = GELU
        inner = np.tanh(root * (x + share * (x * x * x)))  # `x ** 3` would call pow for each number
        return cast(Floats, np.float32(0.5) * x * (1 + inner))


def _number(config: JsonObject, name: str, default: int | None = None) -> int:
    value = config.get(name, default)
    if not isinstance(value, int):
        raise InputError(f"config.json: {name} must be an integer, not {value!r}")
    return value
