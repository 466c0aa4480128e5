"""Law 9: it explains itself. Every edit is a value, and together they account for every token."""

import pytest
from hypothesis import given, settings, strategies as st
from scripts.laws import broken_laws, requests

from everlong.core import Action, History
from everlong.engine import ViewOptions, view_of
from tests.properties.wishes import COUNTER, PRESET_NAMES, ROLLING, broken, proper, seen, wishes

every_preset = pytest.mark.parametrize("preset", PRESET_NAMES)
often = settings(max_examples=40, deadline=None)


def explained(history: History, wish: ViewOptions) -> None:
    view = seen(history, wish)
    assert view is None or [broken for broken in broken_laws(view, wish) if broken.law == 9] == []


@every_preset
@often
@given(data=st.data())
def test_law9_the_edits_account_for_every_token(preset: str, data: st.DataObject) -> None:
    explained(data.draw(proper() | broken()), data.draw(wishes(preset)))


@pytest.mark.parametrize("preset", ROLLING)
@often
@given(data=st.data())
def test_law9_also_while_the_history_grows(preset: str, data: st.DataObject) -> None:
    history, wish = data.draw(proper() | broken()), data.draw(wishes(preset, deep=True))
    view = None
    for length in requests(history):
        view = seen(history[:length], wish, view) or view
        assert view is None or [broken for broken in broken_laws(view, wish) if broken.law == 9] == []


@every_preset
@often
@given(data=st.data())
def test_law9_what_is_dropped_says_what_it_weighed(preset: str, data: st.DataObject) -> None:
    """The first edit of a message finds it as it was given."""
    history, wish = data.draw(proper()), data.draw(wishes(preset))
    view = seen(history, wish)
    touched: set[int] = set()
    for edit in view.edits if view else ():
        if edit.action is Action.DROP and edit.part is None and edit.at not in touched:
            assert edit.before == COUNTER.message(history[edit.at])
        if edit.action is not Action.INSERT:
            touched.add(edit.at)


@pytest.mark.parametrize("preset", ROLLING)
@often
@given(data=st.data())
def test_law9_what_fits_is_not_edited(preset: str, data: st.DataObject) -> None:
    """Not so for presets that trim before every call: they may cut what would fit, as their documents ask."""
    history, wish = data.draw(proper()), data.draw(wishes(preset))
    if COUNTER.messages(history) <= wish.limit:
        view = view_of(history, wish)
        assert (view.messages, view.compactions, view.edits) == (history, 0, ())
