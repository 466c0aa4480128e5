"""Read the files in a model's folder: the weights (safetensors), the tokenizer, the settings.

A safetensors file has the length of its header, the header as JSON (name, type, shape and position of each tensor),
then the data. Tensors are views of the mapped file, so that only what is used takes memory.
"""

import json
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer
from tokenizers.processors import BertProcessing

from everlong.core import JsonObject
from everlong.errors import InputError

__all__ = ["WEIGHTS", "Floats", "Tensor", "Tensors", "fingerprint", "read_json", "read_tensors", "read_tokenizer"]

Floats: TypeAlias = NDArray[np.float32]
Tensor: TypeAlias = NDArray[Any]
Tensors: TypeAlias = dict[str, Tensor]

WEIGHTS = "model.safetensors"
TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1", "U8": "u1"}
BFLOAT = "BF16"  # the upper half of a float32
LENGTH_BYTES = 8
LARGEST_HEADER = 100_000_000  # bytes; a file that claims more is not a safetensors file
LOOKED_AT = 65_536  # bytes at each end of the weights that identify a model


def read_tensors(path: Path) -> Tensors:
    """Return the tensors of a safetensors file by name. Raises InputError if it is not one."""
    header, start = _header(path)
    data = np.memmap(path, dtype=np.uint8, mode="r").view(np.ndarray)[start:]
    tensors: Tensors = {}
    for name, entry in header.items():
        if name == "__metadata__" or not isinstance(entry, dict):
            continue
        try:
            kind, shape = str(entry["dtype"]), tuple(cast("list[int]", entry["shape"]))
            first, last = cast("list[int]", entry["data_offsets"])
            if kind == BFLOAT:
                halves = data[first:last].view("<u2").astype("<u4") << 16
                tensors[name] = halves.view("<f4").reshape(shape)
            else:
                tensors[name] = data[first:last].view(TYPES[kind]).reshape(shape)
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"{path}: tensor {name!r} cannot be read ({error})") from None
    return tensors


def _header(path: Path) -> tuple[JsonObject, int]:
    """Return the header of the file, and where its data begins."""
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(LENGTH_BYTES), "little")
            header = json.loads(file.read(length)) if length < LARGEST_HEADER else None
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    except ValueError:
        header = None
    if not isinstance(header, dict):
        raise InputError(f"{path} is not a safetensors file")
    return header, LENGTH_BYTES + length


def fingerprint(path: Path) -> str:
    """Return a short name for the weights, which depends only on their content."""
    digest = blake2b(digest_size=8)
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            digest.update(size.to_bytes(8, "little") + file.read(LOOKED_AT))
            file.seek(max(0, size - LOOKED_AT))
            digest.update(file.read(LOOKED_AT))
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    return digest.hexdigest()


def read_json(path: Path) -> JsonObject:
    """Return the JSON object in a file; an empty one if there is no such file."""
    try:
        value = json.loads(path.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read: {error}") from None
    return value if isinstance(value, dict) else {}


def read_tokenizer(folder: Path, longest: int) -> Tokenizer:
    """Return the tokenizer in a file or a folder. It truncates after `longest` tokens.

    In a folder, it is tokenizer.json, or built from vocab.txt.
    """
    path, words = (folder / "tokenizer.json" if folder.is_dir() else folder), folder / "vocab.txt"
    if path.is_file():
        tokenizer = Tokenizer.from_str(path.read_text(encoding="utf-8"))
    elif words.is_file():
        tokenizer = _by_words(
            words, lowercase=bool(read_json(folder / "tokenizer_config.json").get("do_lower_case", True))
        )
    else:
        raise InputError(f"{folder} has no tokenizer.json")
    tokenizer.no_padding()
    tokenizer.enable_truncation(longest)
    return tokenizer


def _by_words(path: Path, *, lowercase: bool) -> Tokenizer:
    """Return BERT's tokenizer, built from a list of word pieces, one per line."""
    pieces = {piece: at for at, piece in enumerate(path.read_text(encoding="utf-8").split("\n")) if piece}
    tokenizer = Tokenizer(WordPiece(pieces, unk_token="[UNK]"))
    tokenizer.normalizer = BertNormalizer(lowercase=lowercase)
    tokenizer.pre_tokenizer = BertPreTokenizer()
    if "[CLS]" in pieces and "[SEP]" in pieces:
        tokenizer.post_processor = BertProcessing(("[SEP]", pieces["[SEP]"]), ("[CLS]", pieces["[CLS]"]))
    return tokenizer
