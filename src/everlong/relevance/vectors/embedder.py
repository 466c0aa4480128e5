"""Load the model that makes vectors, as named by the setting `semantic`.

off                 none
static              the static vectors of the package wordllama, if it is installed
PATH                a folder with a model: static vectors, or a transformer of BERT's kind
module:function     a function of the user's own: texts in, a row of numbers for each out
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any, TypeAlias

from everlong.core import function_named
from everlong.errors import InputError
from everlong.extras import expect_extras

__all__ = ["Embedder", "EmbeddingFunction", "embedder_named"]

OFF, STATIC = "off", "static"
LONGEST_REASON = 300  # characters

#: Takes texts and returns a row of numbers for each: a list of lists, or an array.
EmbeddingFunction: TypeAlias = Callable[[Sequence[str]], Any]


@dataclass(frozen=True, slots=True)
class _Explained:
    """Turns exceptions from other people's code into an InputError of one line: `what` failed, and why."""

    what: str

    def __enter__(self) -> None:
        return

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if isinstance(error, Exception) and not isinstance(error, InputError):
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            raise InputError(f"{self.what}: {reason[:LONGEST_REASON]}") from error


@dataclass(frozen=True, slots=True)
class Embedder:
    """A model that makes vectors. Only vectors of the same `name` are comparable; `quick` means below a millisecond."""

    name: str
    function: EmbeddingFunction
    quick: bool = False

    def vectors(self, texts: Sequence[str]) -> list[bytes]:
        """Return the vector of each text, of length one, as float16. Raises InputError if the function fails."""
        import numpy as np  # noqa: PLC0415 - needed only if a model is used

        with _Explained(f"semantic: {self.name} failed"):
            given = self.function(list(texts))
        try:
            rows = np.asarray(given, dtype=np.float32)
        except (TypeError, ValueError) as error:
            raise InputError(f"semantic: {self.name} did not return rows of numbers: {error}") from None
        if rows.ndim != 2 or len(rows) != len(texts) or not rows.shape[1]:
            wanted = f"{len(texts)} rows of numbers, one for each text"
            raise InputError(f"semantic: {self.name} returned {rows.shape} instead of {wanted}")
        rows = np.nan_to_num(rows, nan=0.0, posinf=0.0, neginf=0.0)
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        units = rows / np.where(lengths > 0, lengths, np.float32(1))
        return [row.tobytes() for row in units.astype(np.float16)]


@lru_cache(maxsize=8)
def embedder_named(value: str) -> Embedder | None:
    """Return the model that the setting names; None for "off". Raises InputError with what to do."""
    if value in ("", OFF):
        return None
    expect_extras("semantic", "semantic")
    if value == STATIC:
        return _installed()
    folder = Path(value).expanduser()
    if folder.is_dir():
        return _in_folder(folder)
    if ":" in value and not folder.exists():
        return Embedder(value, function_named(value, "semantic"))
    raise InputError(
        f"semantic: there is no folder {value!r}; use off, static, a folder with a model, or module:function"
    )


def _in_folder(folder: Path) -> Embedder:
    """Return the model in a folder: a table of vectors, or a transformer."""
    from everlong.relevance.vectors.models import BertModel, StaticModel, static_table  # noqa: PLC0415 - loads numpy
    from everlong.relevance.vectors.weights import WEIGHTS, fingerprint, read_tensors  # noqa: PLC0415

    places = [folder / WEIGHTS, folder / "0_StaticEmbedding" / WEIGHTS]
    weights = next((path for path in places if path.is_file()), None)
    if weights is None:
        raise InputError(f"semantic: {folder} has no {WEIGHTS}")
    name = f"{folder.resolve().name}-{fingerprint(weights)}"
    with _Explained(f"semantic: {folder} cannot be read"):  # tokenizers raise only a plain Exception
        if static_table(read_tensors(weights)) is not None:
            return Embedder(name, StaticModel(weights), quick=True)
        return Embedder(name, BertModel(folder))


def _installed() -> Embedder:
    """Return the static vectors in the package wordllama, whose own loader would download the tokenizer."""
    spec = find_spec("wordllama")
    found = Path(spec.submodule_search_locations[0]) if spec and spec.submodule_search_locations else None
    weights = sorted(found.glob("weights/*_256.safetensors")) if found else []
    tokenizers = sorted(found.glob("tokenizers/*.json")) if found else []
    if not weights or not tokenizers:
        raise InputError(
            "semantic: no static vectors are installed: name a folder with a static model, "
            "or pip install --no-deps wordllama"
        )
    from everlong.relevance.vectors.models import StaticModel  # noqa: PLC0415 - loads numpy
    from everlong.relevance.vectors.weights import fingerprint  # noqa: PLC0415

    return Embedder(f"wordllama-{fingerprint(weights[0])}", StaticModel(weights[0], tokenizers[0]), quick=True)
