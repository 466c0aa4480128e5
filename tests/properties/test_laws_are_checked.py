"""The checks of the laws notice a broken one: good views, each spoilt in one way."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from scripts.laws import broken_laws, differs, moved_prefix, requests

from everlong.compress import PRESETS
from everlong.core import Action, History, Message, Ref, Role, Text
from everlong.engine import View, view_of
from tests.core.build import assistant, calls, result, system, user
from tests.properties.wishes import wish_of

HISTORY: History = (
    system("You are kind."),
    user("Read the log. " * 20),
    calls("a"),
    result("a", "2026-01-01 INFO started, nothing else happened here\n" * 60),
    assistant("Nothing happened. " * 20),
    user("Then read the other one."),
    calls("b"),
    result("b", "all is well\n" * 5),
)
WISH = wish_of(PRESETS["auto"], "openai-chat", 250)
GOOD = view_of(HISTORY, WISH)

Spoil = Callable[[View], View]


def without(view: View, at: int) -> View:
    return replace(view, messages=view.messages[:at] + view.messages[at + 1 :])


def with_message(view: View, at: int, message: Message) -> View:
    return replace(view, messages=(*view.messages[:at], message, *view.messages[at + 1 :]))


def first_drop_without_reference(view: View) -> View:
    at = next(at for at, edit in enumerate(view.edits) if edit.action is Action.DROP)
    spoilt = replace(view.edits[at], ref=Ref("0" * 16))
    return replace(view, edits=(*view.edits[:at], spoilt, *view.edits[at + 1 :]))


#: name -> (the law, how the view is spoilt)
SPOILT: dict[str, tuple[int, Spoil]] = {
    "a message too many": (2, lambda view: replace(view, messages=(*view.messages, *HISTORY))),
    "a result without its call": (3, lambda view: without(view, -2)),
    "system text changed": (4, lambda view: with_message(view, 0, system("You are mean."))),
    "something before the system text": (4, lambda view: replace(view, messages=(user("hi"), *view.messages))),
    "the question changed": (4, lambda view: with_message(view, view.messages.index(HISTORY[5]), user("Then what?"))),
    "an unread result left out": (4, lambda view: replace(view, messages=view.messages[:-1])),
    "a message gone without an edit": (5, lambda view: without(view, view.messages.index(HISTORY[5]))),
    "the edits forgotten": (5, lambda view: replace(view, edits=())),
    "a reference to something else": (5, first_drop_without_reference),
    "an edit of a message that does not exist": (
        5,
        lambda view: replace(view, edits=(*view.edits, replace(view.edits[0], at=99))),
    ),
    "tokens made up": (9, lambda view: replace(view, tokens=view.tokens - 1)),
    "an edit that saves what it does not": (
        9,
        lambda view: replace(view, edits=(replace(view.edits[0], before=9_999), *view.edits[1:])),
    ),
    "an edit without a reason": (
        9,
        lambda view: replace(view, edits=(replace(view.edits[0], reason=""), *view.edits[1:])),
    ),
    "a message that nobody announced": (9, lambda view: replace(view, messages=(*view.messages, user("psst")))),
}


def test_the_good_view_was_cut_and_keeps_the_laws() -> None:
    assert {edit.action for edit in GOOD.edits} >= {Action.DROP}
    assert broken_laws(GOOD, WISH) == []


@pytest.mark.parametrize(("law", "spoil"), SPOILT.values(), ids=SPOILT)
def test_a_broken_law_is_noticed(law: int, spoil: Spoil) -> None:
    assert law in {broken.law for broken in broken_laws(spoil(GOOD), WISH)}


def test_a_moved_prefix_is_noticed() -> None:
    later = view_of((*HISTORY, assistant("Fine.")), WISH, GOOD)
    assert list(moved_prefix(GOOD, later, WISH.fmt)) == []
    moved = with_message(later, 1, user("something else"))
    assert [broken.law for broken in moved_prefix(GOOD, moved, WISH.fmt)] == [6]
    assert list(moved_prefix(GOOD, replace(moved, compactions=later.compactions + 1), WISH.fmt)) == []


def test_another_answer_to_the_same_question_is_noticed() -> None:
    assert list(differs(GOOD, view_of(HISTORY, WISH))) == []
    assert [broken.law for broken in differs(GOOD, without(GOOD, 1))] == [8]
    assert [broken.law for broken in differs(GOOD, replace(GOOD, edits=()))] == [8]


def test_requests_are_made_where_the_assistant_speaks_next() -> None:
    words = Message(Role.ASSISTANT, (Text("done"),))
    parallel = (user("a"), calls("1", "2"), result("1"), result("2"), words, user("b"))
    assert requests(parallel) == [1, 4, 6]
