"""Tiny models of our own, written into a folder in the forms that real ones have."""

import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.normalizers import Lowercase
from tokenizers.pre_tokenizers import Whitespace

__all__ = ["WORDS", "write_bert", "write_static", "write_tensors"]

#: Words by what they are about: those of one subject have one direction.
WORDS = {
    "pets": "dog puppy terrier kitten leash vet",
    "boats": "boat sailing harbour mast anchor",
    "money": "rent salary invoice bank",
    "food": "soup bread garlic oven",
}
DIMENSIONS = 8


def write_static(folder: Path, name: str = "embeddings", **more: np.ndarray) -> Path:
    """A static model: a direction for each subject, a little noise for each word."""
    folder.mkdir(parents=True, exist_ok=True)
    noise = random.Random(7)
    rows = [[0.0] * DIMENSIONS]
    words = ["[UNK]"]
    for subject, listed in enumerate(WORDS.values()):
        for word in listed.split():
            words.append(word)
            rows.append([float(at == subject) + noise.uniform(-0.1, 0.1) for at in range(DIMENSIONS)])
    write_tensors(folder / "model.safetensors", {name: np.array(rows, dtype=np.float32), **more})
    _tokenizer(words).save(str(folder / "tokenizer.json"))
    return folder


def write_bert(folder: Path, *, pooling: Mapping[str, bool] | None = None, **config: object) -> Path:
    """A transformer of one layer with weights by chance; its words are those of the static model."""
    folder.mkdir(parents=True, exist_ok=True)
    words = ["[UNK]", *(word for listed in WORDS.values() for word in listed.split())]
    chance = np.random.default_rng(7)
    shapes: dict[str, Sequence[int]] = {
        "embeddings.word_embeddings.weight": (len(words), 8),
        "embeddings.position_embeddings.weight": (16, 8),
        "embeddings.token_type_embeddings.weight": (2, 8),
        "embeddings.LayerNorm.weight": (8,),
        "embeddings.LayerNorm.bias": (8,),
    }
    place = "encoder.layer.0."
    dense = {f"attention.self.{name}": (8, 8) for name in ("query", "key", "value")}
    dense |= {"attention.output.dense": (8, 8), "intermediate.dense": (12, 8), "output.dense": (8, 12)}
    for name, shape in dense.items():
        shapes |= {f"{place}{name}.weight": shape, f"{place}{name}.bias": shape[:1]}
    for name in ("attention.output.LayerNorm", "output.LayerNorm"):
        shapes |= {f"{place}{name}.weight": (8,), f"{place}{name}.bias": (8,)}
    tensors = {name: chance.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    write_tensors(folder / "model.safetensors", tensors)
    _tokenizer(words).save(str(folder / "tokenizer.json"))
    told = {"model_type": "bert", "num_hidden_layers": 1, "num_attention_heads": 2, "layer_norm_eps": 1e-12, **config}
    (folder / "config.json").write_text(json.dumps(told), encoding="utf-8")
    if pooling is not None:
        (folder / "1_Pooling").mkdir(exist_ok=True)
        (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling), encoding="utf-8")
    return folder


def write_tensors(path: Path, tensors: Mapping[str, np.ndarray]) -> None:
    """A safetensors file: the length of the header, the header, the bytes."""
    kinds = {"float32": "F32", "float16": "F16", "int64": "I64"}
    header, data = {}, b""
    for name, tensor in tensors.items():
        start, data = len(data), data + tensor.tobytes()
        told = {"dtype": kinds[str(tensor.dtype)], "shape": list(tensor.shape), "data_offsets": [start, len(data)]}
        header[name] = told
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def _tokenizer(words: Sequence[str]) -> Tokenizer:
    tokenizer = Tokenizer(WordLevel({word: at for at, word in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.normalizer = Lowercase()
    tokenizer.pre_tokenizer = Whitespace()
    return tokenizer
