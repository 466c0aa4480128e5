"""Law 2: it fits. What is sent is within the limit, or a typed error lists the parts and their sizes."""

from dataclasses import replace

import pytest
from hypothesis import given, settings, strategies as st

from everlong.compress import PRESETS
from everlong.core import History, Message, Role, Text
from everlong.engine import View, ViewOptions, view_of
from everlong.errors import BudgetImpossible
from tests.properties.wishes import COUNTER, PRESET_NAMES, attempt, broken, proper, seen, wish_of, wishes

every_preset = pytest.mark.parametrize("preset", PRESET_NAMES)
often = settings(max_examples=40, deadline=None)


def fits_or_says_why(history: History, wish: ViewOptions) -> None:
    match attempt(history, wish):
        case View() as view:
            assert view.tokens == COUNTER.messages(view.messages) <= wish.limit
        case error:
            assert error.needed > error.limit == wish.limit
            assert all(name and size > 0 for name, size in error.parts)
            assert all(f"{name} {size:,}" in str(error) for name, size in error.parts)
            assert len(str(error).splitlines()) == 1


@every_preset
@often
@given(data=st.data())
def test_law2_a_proper_history_fits(preset: str, data: st.DataObject) -> None:
    fits_or_says_why(data.draw(proper()), data.draw(wishes(preset, pins=True)))


@every_preset
@often
@given(data=st.data())
def test_law2_any_history_fits(preset: str, data: st.DataObject) -> None:
    fits_or_says_why(data.draw(broken()), data.draw(wishes(preset, deep=True)))


@every_preset
@often
@given(data=st.data())
def test_law2_what_fits_deep_or_not_fits_anyway(preset: str, data: st.DataObject) -> None:
    """A low target is a wish, not a demand: what fits into the limit is never refused for it."""
    history, wish = data.draw(proper()), data.draw(wishes(preset))
    if seen(history, wish):
        for share in (2, 4, 100):
            assert view_of(history, replace(wish, target=wish.limit // share)).tokens <= wish.limit


@every_preset
@pytest.mark.parametrize("fmt", ["openai-chat", "openai-responses", "anthropic", "gemini", "ollama"])
def test_law2_a_question_alone_that_is_too_long_is_named_with_its_size(preset: str, fmt: str) -> None:
    asked = Message(Role.USER, (Text("why? " * 4_000),))
    with pytest.raises(BudgetImpossible) as caught:
        view_of((asked,), wish_of(PRESETS[preset], fmt, 1_000))
    assert caught.value.parts == (("last user message", COUNTER.message(asked)),)
    assert caught.value.limit == 1_000


@every_preset
def test_law2_nothing_at_all_fits(preset: str) -> None:
    assert view_of((), wish_of(PRESETS[preset], "openai-chat", 0)).messages == ()
