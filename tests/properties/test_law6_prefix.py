"""Law 6: the prefix is stable. Between two cuts each request starts with the bytes of the one before.

For presets that roll. Those that trim before every call do so because their documents ask for it; what must hold
for them is that the same history gives the same bytes (law 8).
"""

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings, strategies as st
from scripts.laws import moved_prefix, requests

from everlong import fit
from everlong.compress import PRESETS
from everlong.core import History, Message, Role, Text
from everlong.engine import View, ViewOptions, view_of
from tests.properties.histories import FORMATS
from tests.properties.wishes import ROLLING, broken, proper, seen, wish_of, wishes

rolling = pytest.mark.parametrize("preset", ROLLING)
often = settings(max_examples=60, deadline=None)


def walk(history: History, wish: ViewOptions, since: int = 0) -> list[View]:
    """A view at each request, each from the one before, the prefix checked on the way."""
    views: list[View] = []
    for length in requests(history):
        if length <= since:
            continue
        view = seen(history[:length], wish, views[-1] if views else None)
        if view is not None:
            assert not views or list(moved_prefix(views[-1], view, wish.fmt)) == []
            views.append(view)
    return views


@rolling
@often
@given(data=st.data())
def test_law6_each_request_starts_with_the_one_before(preset: str, data: st.DataObject) -> None:
    walk(data.draw(proper(max_rounds=8)), data.draw(wishes(preset, deep=True)))


@rolling
@often
@given(data=st.data())
def test_law6_also_behind_a_broken_past(preset: str, data: st.DataObject) -> None:
    past, wish = data.draw(broken(max_messages=6)), data.draw(wishes(preset, deep=True))
    rest = data.draw(proper(max_rounds=4))
    history = (*past, *(message for message in rest if message.role is not Role.SYSTEM))
    walk(history, wish, since=len(past))


@rolling
@pytest.mark.parametrize("fmt", FORMATS)
def test_law6_edits_come_in_one_batch_and_many_requests_share_it(preset: str, fmt: str) -> None:
    views = walk(small_talk(rounds=120), wish_of(PRESETS[preset], fmt, 2_000, deep=True))
    assert 2 <= views[-1].compactions <= len(views) / 8
    for before, after in pairwise(views):
        if after.compactions == before.compactions:
            assert after.edits == before.edits


def test_law6_a_repeated_question_costs_nothing() -> None:
    history = small_talk(rounds=30)
    wish = wish_of(PRESETS["auto"], "openai-chat", 1_000, deep=True)
    view = view_of(history, wish)
    assert view_of(history, wish, view) is view


def test_law6_a_history_that_was_changed_is_not_continued() -> None:
    history = small_talk(rounds=30)
    wish = wish_of(PRESETS["auto"], "openai-chat", 1_000, deep=True)
    other = (replace(history[0], parts=(Text("something else"),)), *history[1:])
    assert view_of(other, wish, view_of(history[:40], wish)).messages == view_of(other, wish).messages


def test_law6_fit_repeats_what_it_sent_before() -> None:
    chat = [
        {"role": "user" if at % 2 == 0 else "assistant", "content": f"message {at}: " + "words " * 30}
        for at in range(99)
    ]
    before = fit(chat[:61], model="gpt-4o", budget=1_500)
    for length in range(63, 99, 2):
        after = fit(chat[:length], model="gpt-4o", budget=1_500, previous=before)
        if after.view.compactions == before.view.compactions:
            assert after.messages[: len(before.messages)] == before.messages
        before = after


def small_talk(rounds: int) -> History:
    """Short questions and answers, all different."""
    said = [(Role.USER, "question"), (Role.ASSISTANT, "answer")]
    talk = [
        Message(role, (Text(f"{word} {number}: the port of service-{number} is {8_000 + number}, please note it."),))
        for number in range(rounds)
        for role, word in said
    ]
    return tuple(talk[:-1])
