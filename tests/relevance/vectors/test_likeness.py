"""How alike texts are: cosines of vectors kept as float16, laws of the ranking they count in."""

from collections.abc import Sequence

import numpy as np
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays

from everlong.relevance import Embedder, Index, likeness_of, ranked
from everlong.relevance.vectors.likeness import MOST_KEPT, _KeptVectors
from tests.core.build import assistant, user

rows = arrays(np.float32, st.tuples(st.integers(1, 6), st.just(8)), elements=st.floats(-100, 100, width=32))


@given(rows)
def test_a_vector_kept_as_float16_points_where_it_pointed(given_rows: np.ndarray) -> None:
    kept = Embedder("mine", lambda _: given_rows).vectors(["x"] * len(given_rows))
    for row, vector in zip(given_rows, kept, strict=True):
        again = np.frombuffer(vector, dtype=np.float16).astype(np.float64)
        length = float(np.linalg.norm(row.astype(np.float64)))
        assert len(vector) == 16
        if length > 1e-3:
            assert float(again @ (row / length)) > 0.998
        assert float(np.linalg.norm(again)) < 1.01


@given(rows, st.lists(st.booleans(), min_size=6, max_size=6))
def test_likeness_is_from_0_to_1_and_0_without_a_vector(given_rows: np.ndarray, known: list[bool]) -> None:
    kept = Embedder("mine", lambda _: given_rows).vectors(["x"] * len(given_rows))
    vectors = [vector if there else None for vector, there in zip(kept, known, strict=False)]
    likeness = likeness_of(kept[0], vectors)
    assert len(likeness) == len(vectors)
    assert all(0.0 <= like <= 1.0 for like in likeness)
    assert all(like == 0.0 for like, vector in zip(likeness, vectors, strict=True) if vector is None)


def test_a_vector_that_is_no_number_counts_as_none() -> None:
    kept = Embedder("mine", lambda _: [[float("nan"), 0.0], [1.0, 0.0]]).vectors(["a", "b"])
    assert likeness_of(kept[1], kept) == [0.0, 1.0]


def test_vectors_of_another_model_count_as_none() -> None:
    assert likeness_of(b"\0\x3c" * 4, [b"\0\x3c" * 4, b"\0\x3c" * 6, None]) == [1.0, 0.0, 0.0]


def test_without_vectors_an_index_ranks_as_if_there_were_none() -> None:

    said = [user("The dog is ill"), assistant("Poor thing"), user("We went sailing"), assistant("Nice")]
    index = Index()
    index.extend(said)
    question = [*said, user("How is the dog?")]
    before = ranked(index, question).numbers
    index.likeness = lambda _, __: ()
    assert ranked(index, question).numbers == before
    index.likeness = lambda index, _: [0.0] * len(index.chunks)
    assert ranked(index, question).numbers == before


def test_vectors_that_another_thread_removes_meanwhile_are_still_returned() -> None:
    turns = iter(range(10))

    def vectors(texts: Sequence[str]) -> list[list[float]]:
        if next(turns) == 1:  # while "b" is computed, so many others are that "a" has no place any more
            kept._of([f"other {number}" for number in range(MOST_KEPT)])
        return [[float(len(text)), 1.0] for text in texts]

    kept = _KeptVectors(Embedder("mine", vectors))
    (first,) = kept._of(["a"])
    again, new = kept._of(["a", "bb"])
    assert again == first
    assert new != first
