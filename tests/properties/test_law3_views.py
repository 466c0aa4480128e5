"""Law 3 for whole views: what a preset leaves is valid for the provider, from scratch and while the history grows."""

import pytest
from hypothesis import given, settings, strategies as st
from scripts.laws import broken_laws

from tests.properties.wishes import PRESET_NAMES, ROLLING, broken, proper, seen, wishes

often = settings(max_examples=40, deadline=None)


@pytest.mark.parametrize("preset", PRESET_NAMES)
@often
@given(data=st.data())
def test_law3_every_view_is_valid(preset: str, data: st.DataObject) -> None:
    history, wish = data.draw(proper() | broken()), data.draw(wishes(preset, deep=True, pins=True))
    view = seen(history, wish)
    assert view is None or [broken for broken in broken_laws(view, wish) if broken.law == 3] == []


@pytest.mark.parametrize("preset", ROLLING)
@often
@given(data=st.data())
def test_law3_also_while_the_history_grows_message_by_message(preset: str, data: st.DataObject) -> None:
    """Every length, not only those at which a client would ask: results may still be on their way."""
    history, wish = data.draw(proper() | broken()), data.draw(wishes(preset, deep=True))
    view = None
    for length in range(1, len(history) + 1):
        view = seen(history[:length], wish, view) or view
        assert view is None or [broken for broken in broken_laws(view, wish) if broken.law == 3] == []
