"""Errors as values: they travel between processes with everything they say."""

import pickle

import pytest

from everlong.errors import (
    BudgetImpossible,
    ContextOverflow,
    EverlongError,
    NotRecovered,
    Refused,
    StoreBusy,
    WireError,
)

ERRORS = [
    WireError("not a list", fmt="pi", where="line 3"),
    BudgetImpossible(10, [("system text", 20), ("pins", 5)]),
    ContextOverflow("too long", provider="x", status=400, limit=8_000, requested=9_000, ceiling=True),
    NotRecovered("太长了", limit=5, parts=[("a", 1)]),
    StoreBusy("held"),
    Refused("too many requests", status=429, kind="too_many_requests", after=7),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_error_comes_back_as_it_was(error: EverlongError) -> None:
    back = pickle.loads(pickle.dumps(error))
    assert type(back) is type(error)
    assert str(back) == str(error)
    assert vars(back) == vars(error)
