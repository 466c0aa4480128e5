"""The similarity of a question to the chunks of a conversation, by their vectors."""

from collections import OrderedDict
from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b
from threading import Lock

from everlong.core import bytes_of
from everlong.relevance.index import Index, Likeness
from everlong.relevance.vectors.embedder import Embedder, embedder_named

__all__ = ["computed_likeness", "likeness_of"]

MOST_KEPT = 50_000  # vectors of texts in memory, 25 to 40 MB
DIGEST_BYTES = 16


def likeness_of(question: bytes, vectors: Sequence[bytes | None]) -> list[float]:
    """Return the similarity of each vector to the question's: the cosine, at least 0, scaled so that the largest is 1.

    A missing vector gives 0, and so does one of another length, which belongs to another model.
    """
    import numpy as np  # noqa: PLC0415 - needed only if vectors are used

    known = [at for at, vector in enumerate(vectors) if vector is not None and len(vector) == len(question)]
    likeness = [0.0] * len(vectors)
    if not known:
        return likeness
    together = b"".join(vectors[at] or b"" for at in known)
    rows = np.frombuffer(together, dtype=np.float16).astype(np.float32).reshape(len(known), -1)
    cosines = np.maximum(rows @ np.frombuffer(question, dtype=np.float16).astype(np.float32), 0)
    best = float(cosines.max())
    if best > 0:
        for at, cosine in zip(known, (cosines / best).tolist(), strict=True):
            likeness[at] = cosine
    return likeness


@lru_cache(maxsize=8)
def computed_likeness(semantic: str) -> Likeness | None:
    """Return a likeness function for the model that the setting names; None for "off". For callers without a store.

    The most recently used vectors are kept in memory, by the digest of their texts.
    """
    embedder = embedder_named(semantic)
    return None if embedder is None else _KeptVectors(embedder).likeness


class _KeptVectors:
    """A cache of vectors, computed on first use. It may be used from several threads."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._kept: OrderedDict[bytes, bytes] = OrderedDict()
        self._mine = Lock()

    def likeness(self, index: Index, question: str) -> list[float]:
        """Return the similarity of each chunk of the index to the question."""
        (asked,) = self._embedder.vectors([question])
        return likeness_of(asked, self._of([chunk.text for chunk in index.chunks]))

    def _of(self, texts: Sequence[str]) -> list[bytes]:
        keys = [blake2b(bytes_of(text), digest_size=DIGEST_BYTES).digest() for text in texts]
        with self._mine:
            vectors = {key: self._kept[key] for key in keys if key in self._kept}
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in vectors}
        if missing:
            vectors |= zip(missing, self._embedder.vectors(list(missing.values())), strict=True)
        with self._mine:
            # Another thread may have removed some of them meanwhile.
            self._kept |= vectors
            for key in vectors:
                self._kept.move_to_end(key)
            while len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)
        return [vectors[key] for key in keys]
