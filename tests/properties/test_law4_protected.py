"""Law 4: the protected stays. System text, pins and the last user message are sent byte for byte.

The task stays at its place, whole or shortened, where the preset keeps it. Results that the model has not read keep
the form in which they arrived, unless what must stay does not fit with them: then they are cut, with a reference. What
a provider would refuse in any case is repaired.
"""

from dataclasses import replace

import pytest
from hypothesis import given, settings, strategies as st
from scripts.laws import broken_laws

from everlong.compress import OURS, PRESETS
from everlong.core import (
    Action,
    FrameKind,
    History,
    Message,
    Protection,
    Role,
    encode,
    frames_in,
    head_length,
    protected,
    steps_of,
)
from everlong.engine import view_of
from tests.core.build import assistant, system, user
from tests.properties.histories import Dice
from tests.properties.wishes import COUNTER, LIMITS, LONG, PRESET_NAMES, broken, proper, seen, wish_of, wishes

every_preset = pytest.mark.parametrize("preset", PRESET_NAMES)
often = settings(max_examples=40, deadline=None)

REPAIRS = 60  # tokens that the last repair may add


@every_preset
@often
@given(data=st.data())
def test_law4_system_text_pins_and_the_question_stay_byte_for_byte(preset: str, data: st.DataObject) -> None:
    history, wish = data.draw(proper()), data.draw(wishes(preset, pins=True))
    view = seen(history, wish)
    if view is not None:
        sent = [encode(message) for message in view.messages]
        head = head_length(history)
        assert sent[:head] == [encode(message) for message in history[:head]]
        for at, why in protected(history, wish.pins, keeps_task=False).items():
            assert why is Protection.UNREAD or encode(history[at]) in sent


@every_preset
@often
@given(data=st.data())
def test_law4_in_any_history_what_a_provider_takes_stays(preset: str, data: st.DataObject) -> None:
    history, wish = data.draw(broken()), data.draw(wishes(preset, deep=True, pins=True))
    view = seen(history, wish)
    assert view is None or [broken for broken in broken_laws(view, wish) if broken.law == 4] == []


@every_preset
@often
@given(data=st.data())
def test_law4_results_not_read_yet_are_cut_only_where_they_must_be(preset: str, data: st.DataObject) -> None:
    history = in_a_tool_loop(data.draw(proper()))
    # In a small window the emergencies of some presets aim below the limit, as their documents ask.
    wish = wish_of(PRESETS[preset], "openai-chat", data.draw(st.sampled_from(LIMITS)), window=128_000)
    view = seen(history, wish)
    if view is None:
        return
    unread = {at for at, why in protected(history).items() if why is Protection.UNREAD}
    # On arrival a message may be shaped by itself alone, whatever the budget.
    shaped = {edit.at for edit in view_of(history, replace(wish, limit=10**9, target=10**9)).edits}
    cut = {edit.at for edit in view.edits if edit.at in unread - shaped and edit.action is not Action.REPAIR}
    assert not cut or must_stay(history, keeps_task=PRESETS[preset].keeps_task) > wish.limit - REPAIRS
    answered = {result.call for message in view.messages for result in message.results}
    assert {result.call for at in unread for result in history[at].results} <= answered


def in_a_tool_loop(history: History) -> History:
    """The history up to its last results, if there are any."""
    last = max((at for at, message in enumerate(history) if message.role is Role.TOOL), default=len(history) - 1)
    return history[: last + 1]


def must_stay(history: History, *, keeps_task: bool) -> int:
    """Tokens of the steps in which something is protected: a step stays or goes as a whole."""
    kept = protected(history, keeps_task=keeps_task)
    steps = [step for step in steps_of(history) if any(at in kept for at in range(step.start, step.stop))]
    return sum(COUNTER.messages(history[step.start : step.stop]) for step in steps)


@every_preset
@often
@given(data=st.data())
def test_law4_anything_of_ours_follows_the_system_text(preset: str, data: st.DataObject) -> None:
    history, wish = data.draw(proper()), data.draw(wishes(preset, deep=True))
    view = seen(history, wish)
    ours = [at for at, message in enumerate(view.messages) if message not in history] if view else []
    assert all(at >= head_length(history) for at in ours)


# --- agents without a tool role, and system text in the middle ------------------------------------------------------

ACTIONS = ("Thought: I look.\nAction: ls", "<tool_call>\n{}\n</tool_call>")
FILES = "I have *added these files to the chat* so you can go ahead and edit them.\n\n"


@st.composite
def text_work(draw: st.DrawFn) -> History:
    """Rounds of words, actions with observations, system text and files between them; it ends with words or results."""
    dice = Dice(draw(st.integers(0, 2**256)))
    messages: list[Message] = [system("You act.")] if dice.throw(2) else []
    for _ in range(1 + dice.throw(5)):
        if dice.throw(4) == 3:
            messages += [user(FILES + dice.pick(LONG)), assistant("Ok.")]
        messages.append(user(dice.pick((f"Please: {dice.pick(LONG)}", "Mend the pump.", "continue"))))
        for _ in range(dice.throw(4)):
            messages.append(assistant(dice.pick(ACTIONS)))
            if dice.throw(4) == 3:
                messages.append(system(f"Told: {dice.pick(LONG[:7])}"))
            messages.append(user(f"Observation:\n{dice.pick(LONG)}"))
        if dice.throw(3):
            messages.append(assistant("Done."))
    return tuple(messages)


@every_preset
@often
@given(data=st.data())
def test_law4_system_text_stands_wherever_it_stood_byte_for_byte(preset: str, data: st.DataObject) -> None:
    history, wish = data.draw(text_work()), data.draw(wishes(preset, deep=True))
    view = seen(history, wish)
    if view is not None:
        told = [message for message in history if message.role is Role.SYSTEM]
        assert [message for message in view.messages if message.role is Role.SYSTEM] == told
        places = [place for place in view.places or range(len(view.messages)) if place != OURS]
        assert places == sorted(places)


@every_preset
@often
@given(data=st.data())
def test_law4_an_observation_stays_with_its_action_and_is_no_question(preset: str, data: st.DataObject) -> None:
    history, wish = data.draw(text_work()), data.draw(wishes(preset, deep=True))
    view = seen(history, wish)
    if view is None:
        return
    kept = set(view.places or range(len(view.messages)))
    for at, framed in frames_in(history).items():
        if framed.kind is FrameKind.RESULT:
            assert (at in kept) == (framed.answers in kept)
    for at, why in protected(history, keeps_task=False).items():
        assert at in kept
        assert why is Protection.UNREAD or history[at] in view.messages


@every_preset
@often
@given(data=st.data())
def test_law4_and_all_others_hold_for_agents_without_a_tool_role(preset: str, data: st.DataObject) -> None:
    history, wish = data.draw(text_work()), data.draw(wishes(preset, deep=True, pins=True))
    view = seen(history, wish)
    assert view is None or broken_laws(view, wish) == []


@pytest.mark.parametrize("preset", [name for name, preset in PRESETS.items() if preset.keeps_task])
@often
@given(data=st.data())
def test_law4_the_task_and_the_newest_files_stand_in_their_places(preset: str, data: st.DataObject) -> None:
    history, wish = data.draw(text_work()), data.draw(wishes(preset, deep=True))
    view = seen(history, wish)
    if view is None:
        return
    places = view.places or tuple(range(len(view.messages)))
    edited = {edit.at for edit in view.edits if edit.action is Action.SHORTEN}
    fits = must_stay(history, keeps_task=True) <= wish.target
    for at, why in protected(history).items():
        if why in (Protection.TASK, Protection.CONTEXT):
            stands = view.messages[places.index(at)]
            assert stands.role is Role.USER
            assert stands == history[at] or at in edited
            assert stands == history[at] or why is Protection.TASK or not fits
