"""Law 7: it ends. Every attempt is strictly smaller or stops; the floor needs no model.

That a summary which fails, is empty, refuses, grows or lies is not committed is shown where summaries are made.
"""

from dataclasses import replace

import pytest
from hypothesis import given, settings, strategies as st

from everlong.adapters.keeper import Keeper
from everlong.core import History
from everlong.engine import View, ViewOptions, view_of
from everlong.errors import BudgetImpossible, ContextOverflow, NotRecovered
from tests.properties.wishes import PRESET_NAMES, broken, proper, seen, wishes

every_preset = pytest.mark.parametrize("preset", PRESET_NAMES)
often = settings(max_examples=30, deadline=None)


def at(history: History, wish: ViewOptions, limit: int) -> View | None:
    return seen(history, replace(wish, limit=limit, target=limit))


@every_preset
@often
@given(data=st.data())
def test_law7_asked_for_less_it_is_smaller_until_it_says_stop(preset: str, data: st.DataObject) -> None:
    """As after an overflow: each try may have less than the last one took."""
    history, wish = data.draw(proper() | broken()), data.draw(wishes(preset))
    view, tries = at(history, wish, wish.limit), 0
    while view is not None and view.tokens > 0:
        smaller = at(history, wish, view.tokens * 3 // 4)
        assert smaller is None or smaller.tokens < view.tokens
        view, tries = smaller, tries + 1
    assert tries <= 40


@every_preset
@often
@given(data=st.data())
def test_law7_what_was_impossible_stays_impossible_with_less(preset: str, data: st.DataObject) -> None:
    history, wish = data.draw(proper()), data.draw(wishes(preset))
    if at(history, wish, wish.limit) is None:
        for share in (2, 5):
            assert at(history, wish, wish.limit // share) is None


@pytest.mark.parametrize("preset", PRESET_NAMES)
@often
@given(data=st.data())
def test_law7_what_was_brought_down_is_not_brought_down_again(preset: str, data: st.DataObject) -> None:
    history, wish = data.draw(proper()), data.draw(wishes(preset))
    view = at(history, wish, wish.limit)
    if view is not None:
        again = view_of(view.messages, wish)
        assert again.tokens <= view.tokens
        assert view_of(again.messages, wish).messages == again.messages


#: Words of one message: far below the window, about as large as it, and larger.
WORDS = st.sampled_from([3, 300, 2_000, 5_500, 7_000, 12_000])
WINDOW = 8_000


@settings(max_examples=60, deadline=None)
@given(
    sizes=st.lists(st.tuples(WORDS, WORDS), max_size=4),
    last=WORDS,
    model=st.sampled_from(["gpt-4o", "a-model-of-mine"]),
    names_limit=st.booleans(),
    factor=st.sampled_from([None, 1.0, 1.8]),
)
def test_law7_no_request_of_a_followed_history_is_sent_twice(
    sizes: list[tuple[int, int]], last: int, model: str, names_limit: bool, factor: float | None
) -> None:
    """A provider that refuses everything, in the ways that providers do, after histories of messages of every size.

    What must stay may be larger than the window. If its tokens are estimated it is sent all the same, but once.
    """
    said = [
        {"role": role, "content": f"{at} " + "word " * size}
        for at, pair in enumerate(sizes)
        for role, size in zip(("user", "assistant"), pair, strict=True)
    ]
    keeper = Keeper(window=WINDOW)
    try:
        prepared = keeper.prepare("t", [*said, {"role": "user", "content": "word " * last}], model=model)
    except BudgetImpossible:
        return
    for _ in range(3):
        requested = None if factor is None else max(WINDOW + 1, int(prepared.tokens * factor))
        error = ContextOverflow("too long", limit=WINDOW if names_limit else None, requested=requested)
        try:
            smaller = keeper.refused(prepared, error)
        except NotRecovered:
            return
        assert smaller is not None
        assert smaller.counted < prepared.counted
        prepared = smaller
    raise AssertionError("it does not end")
