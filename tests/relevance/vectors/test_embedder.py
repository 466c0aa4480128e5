"""The setting `semantic`: which model makes vectors, from a folder or from a function of one's own."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from everlong.errors import InputError
from everlong.relevance import Embedder, embedder_named, likeness_of
from tests.relevance.vectors.models import write_bert, write_static, write_tensors


def alike(embedder: Embedder | None, one: str, *others: str) -> list[float]:
    assert embedder is not None
    return likeness_of(embedder.vectors([one])[0], embedder.vectors(others))


def test_off_is_no_model() -> None:
    assert embedder_named("off") is None
    assert embedder_named("") is None


@pytest.mark.parametrize("name", ["embeddings", "embedding.weight"])
def test_a_folder_with_static_vectors(tmp_path: Path, name: str) -> None:
    embedder = embedder_named(str(write_static(tmp_path / "model", name)))
    pet, boat, nothing = alike(embedder, "How is your dog", "The puppy chewed its leash", "We went sailing", "xyzzy")
    assert pet == 1.0
    assert boat < 0.5
    assert nothing == 0.0
    assert embedder is not None
    assert embedder.quick


def test_a_static_model_of_sentence_transformers_stands_in_a_folder_of_its_own(tmp_path: Path) -> None:
    write_static(tmp_path / "model" / "0_StaticEmbedding", "embedding.weight")
    assert alike(embedder_named(str(tmp_path / "model")), "dog", "puppy", "boat")[0] == 1.0


def test_weights_and_a_smaller_table_of_static_vectors_are_used(tmp_path: Path) -> None:
    table = np.eye(3, dtype=np.float32)
    rows = np.array([0, *([1] * 6), *([2] * 13)], dtype=np.int64)
    shares = np.ones(20, dtype=np.float32)
    shares[1] = 9.0  # dog
    folder = write_static(tmp_path / "model")
    write_tensors(folder / "model.safetensors", {"embeddings": table, "mapping": rows, "weights": shares})
    embedder = embedder_named(str(folder))
    assert embedder is not None
    both, pet, boat = (np.frombuffer(vector, np.float16) for vector in embedder.vectors(["dog boat", "puppy", "boat"]))
    assert float(both @ pet) > 0.99 > 0.2 > float(both @ boat)


@pytest.mark.parametrize("kind", [{}, {"model_type": "xlm-roberta", "pad_token_id": 1}])
def test_a_folder_with_a_transformer(tmp_path: Path, kind: dict[str, object]) -> None:
    embedder = embedder_named(str(write_bert(tmp_path / "model", **kind)))
    assert embedder is not None
    assert not embedder.quick
    one, same, other, long = embedder.vectors(["dog boat", "dog boat", "boat dog", "soup " * 400])
    assert one == same
    assert one != other, "places count"
    assert len(long) == len(one) == 16


def test_what_stands_for_a_text_is_the_mean_or_the_first_token(tmp_path: Path) -> None:
    mean = embedder_named(str(write_bert(tmp_path / "mean", pooling={"pooling_mode_mean_tokens": True})))
    first = embedder_named(str(write_bert(tmp_path / "first", pooling={"pooling_mode_cls_token": True})))
    assert mean is not None
    assert first is not None
    assert mean.vectors(["dog"]) == first.vectors(["dog"])
    assert mean.vectors(["dog boat soup"]) != first.vectors(["dog boat soup"])


def test_a_transformer_computes_what_a_plain_reading_of_it_computes(tmp_path: Path) -> None:
    folder = write_bert(tmp_path / "model")
    embedder = embedder_named(str(folder))
    assert embedder is not None
    found = np.frombuffer(embedder.vectors(["dog boat"])[0], np.float16)
    assert np.allclose(found, _plainly(folder, [1, 7]), atol=2e-3)


def _plainly(folder: Path, tokens: list[int]) -> np.ndarray:
    """One layer of BERT written out in float64, word for word as it was published."""
    raw = (folder / "model.safetensors").read_bytes()
    length = int.from_bytes(raw[:8], "little")
    w = {
        name: np.frombuffer(raw[8 + length :][told["data_offsets"][0] : told["data_offsets"][1]], np.float32)
        .reshape(told["shape"])
        .astype(np.float64)
        for name, told in json.loads(raw[8 : 8 + length]).items()
    }

    def norm(x: np.ndarray, name: str) -> np.ndarray:
        return (x - x.mean(-1, keepdims=True)) / x.std(-1, keepdims=True) * w[f"{name}.weight"] + w[f"{name}.bias"]

    def dense(x: np.ndarray, name: str) -> np.ndarray:
        return np.einsum("ti,oi->to", x, w[f"{name}.weight"]) + w[f"{name}.bias"]

    x = w["embeddings.word_embeddings.weight"][tokens] + w["embeddings.position_embeddings.weight"][: len(tokens)]
    x = norm(x + w["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
    layer = "encoder.layer.0."
    heads = []
    for head in (slice(0, 4), slice(4, 8)):
        q, k, v = (dense(x, f"{layer}attention.self.{name}")[:, head] for name in ("query", "key", "value"))
        scores = np.exp(q @ k.T / 2.0)
        heads.append(scores / scores.sum(-1, keepdims=True) @ v)
    mixed = dense(np.concatenate(heads, -1), f"{layer}attention.output.dense")
    x = norm(x + mixed, f"{layer}attention.output.LayerNorm")
    inner = dense(x, f"{layer}intermediate.dense")
    inner = 0.5 * inner * (1 + np.tanh(np.sqrt(2 / np.pi) * (inner + 0.044715 * inner**3)))
    x = norm(x + dense(inner, f"{layer}output.dense"), f"{layer}output.LayerNorm").mean(0)
    return x / np.linalg.norm(x)


def test_the_words_of_a_vocabulary_serve_where_there_is_no_tokenizer(tmp_path: Path) -> None:
    folder = write_static(tmp_path / "model")
    words = list(json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))["model"]["vocab"])
    (folder / "tokenizer.json").unlink()
    (folder / "vocab.txt").write_text("\n".join(words), encoding="utf-8")
    assert alike(embedder_named(str(folder)), "DOG?", "puppy", "boat")[0] == 1.0


def test_a_function_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_vectors.py").write_text(
        "def lengths(texts):\n    return [[len(text), 1.0] for text in texts]\n", encoding="utf-8"
    )
    monkeypatch.chdir(tmp_path)
    embedder = embedder_named("my_vectors:lengths")
    assert embedder is not None
    assert embedder.name == "my_vectors:lengths"
    assert alike(embedder, "four", "five", "twenty-four characters..")[0] == 1.0


def test_other_weights_have_another_name(tmp_path: Path) -> None:
    one = embedder_named(str(write_static(tmp_path / "a" / "model")))
    same = embedder_named(str(write_static(tmp_path / "b" / "model")))
    other = embedder_named(str(write_static(tmp_path / "c" / "model", extra=np.ones(3, dtype=np.float32))))
    assert one is not None
    assert same is not None
    assert other is not None
    assert one.name == same.name != other.name


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("/no/such/folder", "there is no folder"),
        ("no_such_module:function", "No module named"),
        ("json:no_such_function", "no_such_function"),
        ("json:__name__", "is not a function"),
    ],
)
def test_what_is_wrong_is_one_line(value: str, told: str) -> None:
    with pytest.raises(InputError, match=told) as raised:
        embedder_named(value)
    assert "semantic" in str(raised.value)
    assert "\n" not in str(raised.value)


def test_without_the_extra_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(
        InputError, match=r"semantic needs more packages \(tokenizers\): pip install 'everlong\[semantic\]'"
    ):
        embedder_named("my_vectors:not_looked_at")


WRONG_FILES = {
    "nothing in it": ({}, "has no model.safetensors"),
    "no weights": ({"model.safetensors": b"hello"}, "not a safetensors file"),
    "no such type": (
        {"model.safetensors": b'\x3f\0\0\0\0\0\0\0{"embeddings":{"dtype":"Q4","shape":[1],"data_offsets":[0,1]}}'},
        "cannot be read|no safetensors",
    ),
}


@pytest.mark.parametrize(("files", "told"), WRONG_FILES.values(), ids=WRONG_FILES)
def test_a_folder_that_holds_no_model(tmp_path: Path, files: dict[str, bytes], told: str) -> None:
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=told):
        embedder_named(str(tmp_path))


def test_a_folder_with_another_kind_of_model(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="'t5' is not supported, only bert"):
        embedder_named(str(write_bert(tmp_path / "t5", model_type="t5")))
    (write_static(tmp_path / "broken") / "tokenizer.json").write_text("{}", encoding="utf-8")
    with pytest.raises(InputError, match="broken cannot be read"):
        embedder_named(str(tmp_path / "broken"))
    (write_static(tmp_path / "static") / "tokenizer.json").unlink()
    with pytest.raises(InputError, match=r"no tokenizer\.json"):
        embedder_named(str(tmp_path / "static"))


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ([[1.0]], "instead of 2 rows"),
        ([1.0, 2.0], "instead of 2 rows"),
        ([["a"], ["b"]], "did not return rows of numbers"),
    ],
)
def test_a_function_that_gives_something_else(rows: object, told: str) -> None:
    with pytest.raises(InputError, match=told):
        Embedder("mine", lambda texts: rows).vectors(["a", "b"])


def test_a_function_that_fails_says_why_in_one_line() -> None:
    def fail(texts: object) -> object:
        raise RuntimeError("no\nconnection")

    with pytest.raises(InputError, match="mine failed: RuntimeError: no connection"):
        Embedder("mine", fail).vectors(["a"])
