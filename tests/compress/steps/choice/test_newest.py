"""The newest rounds stay whole."""

import pytest

from everlong.compress.draft import draft_of
from everlong.compress.steps.choice.newest import newest
from everlong.core import Message
from tests.compress.talks import COUNTER, assert_lawful, draft, task
from tests.core.build import assistant, calls, result, system, user

MUCH = 10**9


def chat(rounds: int) -> list[Message]:
    return [message for n in range(rounds) for message in (user(f"question {n}"), assistant(f"answer {n}"))]


def loop(steps: int) -> list[Message]:
    return [user("go"), *(message for n in range(steps) for message in (calls(str(n)), result(str(n))))]


def kept(*messages: Message, **settings: int | bool | None) -> list[int]:
    before = draft(*messages, what=task(MUCH))
    after = newest(before, task(MUCH), **settings)  # type: ignore[arg-type]
    assert_lawful(before, after, task(MUCH))
    return [slot.at for slot in after.slots]


def test_whole_rounds_from_the_end() -> None:
    assert kept(*chat(5), most_messages=5) == [6, 7, 8, 9]
    assert kept(*chat(5), user("next"), most_messages=6) == [6, 7, 8, 9, 10]


def test_within_the_limits_nothing_happens() -> None:
    assert kept(*chat(5), most_messages=10) == list(range(10))


def test_system_text_stays_and_does_not_count() -> None:
    assert kept(system("a"), system("b"), *chat(3), most_messages=4) == [0, 1, 4, 5, 6, 7]


def test_steps_where_the_document_does_not_ask_for_rounds() -> None:
    assert kept(*chat(5), most_messages=5, whole_rounds=False) == [5, 6, 7, 8, 9]


def test_calls_and_results_are_one_step() -> None:
    messages = [user("a"), calls("1", "2"), result("1"), result("2"), assistant("b"), user("c")]
    assert kept(*messages, most_messages=4, whole_rounds=False) == [4, 5]
    assert kept(*messages, most_messages=5, whole_rounds=False) == [1, 2, 3, 4, 5]


def test_tokens_limit_too_and_none_means_the_target() -> None:
    messages = [system("s"), *chat(20)]
    for given, limit in ((task(MUCH), 100), (task(100 + COUNTER.message(messages[0])), None)):
        before = draft_of(messages, given)
        after = newest(before, given, most_tokens=limit)
        size = COUNTER.messages(after.messages[1:])
        assert 100 - COUNTER.messages(messages[1:3]) < size <= 100


def test_cut_deep_at_once_to_the_fewest_rounds_with_enough_messages() -> None:
    assert kept(*chat(25), most_messages=50, least_messages=10) == list(range(50))
    assert kept(*chat(26), most_messages=50, least_messages=10) == list(range(42, 52))
    assert kept(*chat(27), user("next"), most_messages=50, least_messages=10) == list(range(44, 55))


def test_a_last_round_above_the_limit_keeps_its_question_and_its_newest_steps() -> None:
    assert kept(*loop(25), most_messages=50) == [0, *range(3, 51)]
    assert kept(*chat(2), *loop(25), most_messages=10) == [4, *range(47, 55)]


def test_a_round_is_kept_whole_when_the_cut_goes_deep() -> None:
    assert kept(*chat(2), *loop(30), most_messages=50, least_messages=10) == list(range(4, 65))


def test_pins_stay_with_their_step() -> None:
    history = (*loop(1), *chat(10))
    what = task(MUCH, pins=frozenset({2, 7}))
    before = draft_of(history, what)
    after = newest(before, what, most_messages=7)
    assert [slot.at for slot in after.slots] == [1, 2, 7, 19, 20, 21, 22]
    assert_lawful(before, after, what)


@pytest.mark.parametrize("limit", [0, 1])
def test_something_always_stays(limit: int) -> None:
    assert kept(assistant("hello"), assistant("anybody?"), most_messages=limit, most_tokens=limit) == [1]
    assert kept(*chat(3), most_messages=limit, most_tokens=limit) == [4]
    assert kept(most_messages=limit) == []
