"""Law 5: everything is accounted for. Every message is sent, or an edit's reference returns its original bytes."""

import json

import pytest
from hypothesis import given, settings, strategies as st
from scripts.laws import broken_laws, requests

from everlong import fit
from everlong.core import Action, History, ref_of
from everlong.errors import BudgetImpossible
from everlong.wire import OPENAI_CHAT, repair_history
from tests.properties.wishes import PRESET_NAMES, ROLLING, broken, proper, seen, wishes

every_preset = pytest.mark.parametrize("preset", PRESET_NAMES)
often = settings(max_examples=40, deadline=None)


@every_preset
@often
@given(data=st.data())
def test_law5_nothing_is_silently_gone(preset: str, data: st.DataObject) -> None:
    history, wish = data.draw(proper() | broken()), data.draw(wishes(preset, deep=True))
    view = seen(history, wish)
    assert view is None or [broken for broken in broken_laws(view, wish) if broken.law == 5] == []


@pytest.mark.parametrize("preset", ROLLING)
@often
@given(data=st.data())
def test_law5_also_while_the_history_grows(preset: str, data: st.DataObject) -> None:
    history, wish = data.draw(proper() | broken()), data.draw(wishes(preset, deep=True))
    view = None
    for length in requests(history):
        view = seen(history[:length], wish, view) or view
        assert view is None or [broken for broken in broken_laws(view, wish) if broken.law == 5] == []


@every_preset
@often
@given(data=st.data())
def test_law5_every_reference_returns_the_bytes_it_is_the_hash_of(preset: str, data: st.DataObject) -> None:
    chat = as_chat(data.draw(proper()))
    try:
        fitted = fit(chat, model="gpt-4o", budget=data.draw(st.sampled_from([300, 1_500])), preset=preset)
    except BudgetImpossible:
        return
    for edit in fitted.edits:
        if edit.action is not Action.INSERT:
            assert edit.ref is not None
            assert ref_of(fitted.original(edit.ref)) == edit.ref


@every_preset
@often
@given(data=st.data())
def test_law5_every_message_of_the_caller_comes_back_or_is_named(preset: str, data: st.DataObject) -> None:
    chat = as_chat(data.draw(proper()))
    try:
        fitted = fit(chat, model="gpt-4o", budget=data.draw(st.sampled_from([300, 1_500])), preset=preset)
    except BudgetImpossible:
        return
    edited = {edit.at for edit in fitted.edits if edit.action is not Action.INSERT}
    sent = iter(json.dumps(message) for message in fitted.messages)
    for at, message in enumerate(chat):
        assert at in edited or json.dumps(message) in sent


def as_chat(history: History) -> list[dict[str, object]]:
    rendered = OPENAI_CHAT.write_history(repair_history(history, "openai-chat").messages)["messages"]
    assert isinstance(rendered, list)
    return [dict(message) for message in rendered if isinstance(message, dict)]
