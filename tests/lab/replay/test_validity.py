"""What a provider would refuse of a request: the same as when each is looked at as a whole."""

import pytest
from hypothesis import given, settings, strategies as st

from everlong.core import History, Role
from everlong.lab.replay.playback import Validity
from everlong.wire import OPENAI_CHAT, problems
from tests.lab.folders import said, step
from tests.properties.histories import histories

WORK = (said(Role.SYSTEM, "be brief"), said(Role.USER, "go"), *step(1, "one"), *step(2, "two"), *step(3, "three"))


def plain(messages: History) -> set[str]:
    """Looked at as a whole, by the validator alone."""
    body = {"messages": [raw for message in messages for raw in OPENAI_CHAT.write_message(message)]}
    return {problem.text for problem in problems(OPENAI_CHAT.name, body)}


@given(histories(), histories(), st.lists(st.tuples(st.integers(0, 12), st.booleans()), max_size=6))
@settings(max_examples=150, deadline=None)
def test_piece_by_piece_is_as_good_as_whole(one: History, other: History, row: list[tuple[int, bool]]) -> None:
    looking = Validity(user_first=True)
    for length, turned in [*row, (len(one), False)]:
        messages = (*one[:length], *(other[:3] if turned else ()))
        assert set(looking.all_of(messages)) == plain(messages)


#: name -> messages, what is told where the user must speak first, and where anyone may.
REQUESTS = {
    "whole": (WORK, (), ()),
    "assistant first": (WORK[2:], ("first message is from assistant, not from the user",), ()),
    "assistant first behind system text": (
        (WORK[0], *WORK[2:]),
        ("first message is from assistant, not from the user",),
        (),
    ),
    "a result without its call": (
        (WORK[1], *WORK[3:]),
        ("tool result c1 has no matching call in the message before it",),
        ("tool result c1 has no matching call in the message before it",),
    ),
    "a call without its result": (
        WORK[:3],
        ("call c1 has no result directly after it",),
        ("call c1 has no result directly after it",),
    ),
    "system text alone": (WORK[:1], ("there are only system messages",), ("there are only system messages",)),
    "nothing": ((), ("there are no messages",), ("there are no messages",)),
}


@pytest.mark.parametrize(("messages", "marked", "other"), REQUESTS.values(), ids=REQUESTS)
def test_only_anthropic_wants_the_user_first(
    messages: History, marked: tuple[str, ...], other: tuple[str, ...]
) -> None:
    assert Validity(user_first=True).refusals(messages) == marked
    assert Validity(user_first=False).refusals(messages) == other


def test_what_was_wrong_before_is_not_told_and_of_the_rest_only_a_few() -> None:
    broken = tuple(message for number in range(6) for message in step(number, "x")[1:])
    every = Validity(user_first=True).all_of(broken)
    assert len(every) == 7
    assert Validity(True, frozenset(every)).refusals(broken) == ()
    assert Validity(True, frozenset(every[:2])).refusals(broken) == every[2:5]
