"""Policies by name, and what each sends of a small conversation."""

from collections.abc import Iterator

import pytest

from everlong.core import History, Role
from everlong.errors import InputError
from everlong.lab.replay.baselines import CLEARED
from everlong.lab.replay.courses import Course, Sending, Terms
from everlong.lab.replay.policies import COMPARED, policy_named
from everlong.lab.replay.tariffs import TARIFFS
from everlong.lab.strategies.strategy import counter
from tests.lab.folders import said, step
from tests.lab.replays import words

#: A budget of 1000 with a front of 100: shares are easy to reckon.
TERMS = Terms(window=1_200, reply=200, front=100, tariff=TARIFFS["anthropic"])
SYSTEM = words(20, Role.SYSTEM)

NAMED = (
    *COMPARED,
    "auto@.4",
    "auto@0.95",
    "auto-trim@.7",
    "auto-model",
    "nanobot",
    "simple-trim",
    "drop",
    "cold",
    "cold@.9/.3/.9",
)
NAMED += ("trim", "trim-each", "summary", "summary@60000", "summary@1", "summary-capped", "bm25", "trimmed")
NAMED += ("newest", "cleared", "clear", "clear@1")


@pytest.mark.parametrize("name", NAMED)
def test_a_policy_is_found_by_its_name_and_begins(name: str) -> None:
    policy = policy_named(name)
    assert policy.name == name
    policy.begin(Terms(window=64_000, tariff=TARIFFS["anthropic"])).close()


PAIR, THREE = "@ needs two shares of the budget", "@ needs three shares of the budget"
ONE, THRESHOLD = "@ needs a share of the budget", "@ needs the threshold, a share from 0.40 to 0.95"
WRONG = {
    PAIR: ("drop@.5", "drop@", "drop@a/b", "drop@nan/.3", "drop@.9/nan", "drop@inf/.3", "drop@.3/.9", "drop@.5/.5"),
    f"{PAIR}, ": ("trim@5/0", "trim@.9/0", "trim@.9/-.1", "trim-each@1.5/.5", "trim@.9/.5/.3", "drop@.95//.3"),
    THREE: ("cold@.9", "cold@.9/.3", "cold@.9/.5/.3", "cold@.9/.3/.95", "cold@.9/.3/.5/.7"),
    ONE: ("summary@0", "summary@-1", "summary@1.5", "summary@999", "summary@inf", "summary@.9/.5", "summary-capped@x"),
    f"{ONE} such as .5": ("clear@0", "clear@1.5", "clear@60000", "clear@.5/.3", "clear@", "clear@nan"),
    THRESHOLD: ("auto@2", "auto@.3", "auto@nan", "auto@.9/.5", "auto@", "nanobot@70", "auto-trim@.96"),
    "it takes no @": ("whole@.5", "whole@", "slide@.9", "slide@"),
    "unknown policy ": ("newest@.5", "best", "", "auto-trim-trim", "-trim", "auto-models"),
}


@pytest.mark.parametrize(("name", "told"), [(name, told) for told, names in WRONG.items() for name in names])
def test_what_cannot_be_is_told_before_anything_is_read(name: str, told: str) -> None:
    with pytest.raises(InputError) as error:
        policy_named(name)
    assert told in str(error.value)
    assert name in str(error.value)


# --- what is sent -------------------------------------------------------------------------------------


def steps(*sizes: int) -> list[History]:
    """A step for each, of so many tokens: a user's word and a call with its result are one size."""
    return [words_in_step(number, size) for number, size in enumerate(sizes)]


def words_in_step(number: int, tokens: int) -> History:
    bare = counter().messages(step(number, ""))
    return step(number, " on" * (tokens - bare))


def sent(course: Course, said_: list[History], moments: Iterator[float] | None = None) -> list[Sending]:
    """What goes out after each piece of the conversation."""
    found = []
    for at, more in enumerate(said_):
        course.say(more)
        found.append(course.ask(float(at) if moments is None else next(moments)))
    return found


def outline(sending: Sending) -> list[int]:
    """Tokens of what is sent."""
    return [counter().message(message) for message in sending.messages]


def numbers(sending: Sending) -> list[str]:
    """The calls whose results are in it."""
    return [result.call for message in sending.messages for result in message.results]


def begun(name: str, terms: Terms = TERMS) -> Course:
    course = policy_named(name).begin(terms)
    course.say((SYSTEM, words(80)))
    return course


def test_steps_are_words_of_the_size_that_was_asked_for() -> None:
    assert [counter().messages(one) for one in steps(50, 200)] == [50, 200]


def test_whole_sends_everything() -> None:
    *_, last = sent(begun("whole"), steps(400, 400, 400))
    assert len(last.messages) == 8
    assert not last.cut


def test_steps_are_dropped_in_batches_down_to_the_low_mark() -> None:
    """Front 100, system 20, user 80, then steps of 200: 800 are over .75; .5 leaves room for 400 - 20 of steps."""
    found = sent(begun("drop@.75/.5"), steps(200, 200, 200, 200, 200, 200))
    assert [numbers(one) for one in found] == [
        ["c0"],
        ["c0", "c1"],
        ["c2"],
        ["c2", "c3"],
        ["c2", "c3", "c4"],
        ["c5"],
    ]
    assert [one.cut for one in found] == [False, False, True, False, False, True]
    assert all(one.messages[0] == SYSTEM for one in found)


def test_the_newest_steps_that_fit_slide_on_with_every_request() -> None:
    """Front 100, system 20, user 80, then steps of 250: three of them fit 1000, whatever went before."""
    found = sent(begun("slide"), steps(*[250] * 6))
    assert [numbers(one) for one in found] == [
        ["c0"],
        ["c0", "c1"],
        ["c0", "c1", "c2"],
        ["c1", "c2", "c3"],
        ["c2", "c3", "c4"],
        ["c3", "c4", "c5"],
    ]
    assert [one.cut for one in found] == [False] * 3 + [True] * 3
    assert all(one.messages[0] == SYSTEM for one in found)


def cleared(sending: Sending) -> list[bool]:
    return [result.text == CLEARED for message in sending.messages for result in message.results]


def test_all_results_but_the_newest_three_are_cleared_from_the_share_on() -> None:
    """200 and steps of 110: the third passes .5, and from the fourth on one more is cleared with every request."""
    found = sent(begun("clear@.5"), steps(*[110] * 6))
    assert [cleared(one) for one in found] == [
        [False],
        [False] * 2,
        [False] * 3,
        [True] + [False] * 3,
        [True] * 2 + [False] * 3,
        [True] * 3 + [False] * 3,
    ]
    assert [one.cut for one in found] == [False] * 3 + [True] * 3
    assert [len(one.messages) for one in found] == [4, 6, 8, 10, 12, 14]  # no message goes
    whole = sent(begun("clear@1"), steps(*[110] * 6))
    assert not any(flag for one in whole for flag in cleared(one))
    assert not any(one.cut for one in whole)


def test_where_clearing_is_not_enough_the_newest_steps_that_fit_stay() -> None:
    found = sent(begun("clear@.5"), steps(300, 300, 300, 300))
    assert [numbers(one) for one in found] == [["c0"], ["c0", "c1"], ["c1", "c2"], ["c2", "c3"]]
    assert not any(flag for one in found for flag in cleared(one))
    assert [one.cut for one in found] == [False, False, True, True]
    assert all(one.messages[0] == SYSTEM for one in found)


def test_a_single_step_over_the_mark_is_no_cut_again_and_again() -> None:
    found = sent(begun("drop@.75/.5"), [*steps(200, 900), (said(Role.ASSISTANT, "so"),)])
    assert [numbers(one) for one in found] == [["c0"], ["c1"], []]
    assert [one.cut for one in found] == [False, True, True]
    found = sent(begun("drop@.75/.5"), [steps(900)[0], ()])
    assert [one.cut for one in found] == [True, False]  # the user's word goes; then there is nothing left to drop


def test_a_cold_cache_is_reason_enough_from_the_last_share_on() -> None:
    moments = iter([0.0, 1.0, 400.0, 401.0])
    found = sent(begun("cold@.95/.4/.6"), steps(200, 200, 50, 50), moments)
    assert [numbers(one) for one in found] == [["c0"], ["c0", "c1"], ["c1", "c2"], ["c1", "c2", "c3"]]
    assert [one.cut for one in found] == [False, False, True, False]


LONG = Terms(window=12_000, reply=2_000, front=1_000, tariff=TARIFFS["anthropic"])


def test_old_results_are_cut_to_their_ends_only_when_it_is_due() -> None:
    """1100 and steps of 2000: the ninth passes 18000. Five are old and about halved; two later it is due again."""
    terms = Terms(window=22_000, reply=2_000, front=1_000, tariff=TARIFFS["anthropic"])
    found = sent(begun("trim@.9/.75", terms), steps(*[2_000] * 11))
    assert [one.cut for one in found] == [False] * 8 + [True, False, True]
    short = ["[…]" in message.results[0].text for message in found[8].messages if message.results]
    assert short == [True] * 5 + [False] * 4
    assert found[9].messages[:-2] == found[8].messages  # and so it stays
    assert numbers(found[10]) == [f"c{number}" for number in range(2, 11)]  # two more are old: not enough, so steps go


def test_where_short_results_are_not_enough_steps_are_dropped_too() -> None:
    found = sent(begun("trim@.9/.6", LONG), steps(*[2_000] * 4))
    assert [numbers(one) for one in found] == [["c0"], ["c0", "c1"], ["c0", "c1", "c2"], ["c2", "c3"]]


def test_results_are_cut_as_soon_as_they_are_old_where_that_is_asked_for() -> None:
    found = sent(begun("trim-each@.9/.6", LONG), steps(*[1_500] * 6))
    assert [one.cut for one in found] == [False] * 4 + [True, True]


def test_a_summary_is_asked_on_the_prefix_and_stands_before_the_newest() -> None:
    terms = Terms(window=42_000, reply=2_000, front=1_000, tariff=TARIFFS["anthropic"])
    found = sent(begun("summary@.8", terms), steps(*[4_000] * 9))
    assert [one.cut for one in found] == [False] * 7 + [True, False]
    assert [one.summarised for one in found] == [False] * 7 + [True, True]
    (asked,) = found[7].beside
    assert asked.messages[:-1] == (*found[6].messages, *steps(*[4_000] * 8)[7])
    assert outline(found[7])[0] == 20
    assert outline(found[7])[1] == pytest.approx(asked.output, abs=15)
    assert numbers(found[7]) == ["c6", "c7"]  # 10 000 tokens at most
    assert not found[8].beside


def test_a_mark_in_tokens_and_results_that_are_capped_when_they_come() -> None:
    found = sent(begun("summary@6000", LONG), steps(*[2_000] * 3))
    assert [one.cut for one in found] == [False, False, True]
    course = begun("summary-capped@.95", LONG)
    (one,) = sent(course, steps(6_000))
    assert 2_000 < sum(outline(one)) < 3_000


def test_a_strategy_is_asked_anew_and_only_what_does_not_extend_is_a_cut() -> None:
    found = sent(begun("newest"), steps(300, 300, 300, 300))
    assert [numbers(one) for one in found] == [["c0"], ["c0", "c1"], ["c1", "c2"], ["c2", "c3"]]
    assert [one.cut for one in found] == [False, False, True, True]


@pytest.mark.parametrize("model", ["gpt-4o", "claude-sonnet-4-5", "gemini-2.5-pro"])
@pytest.mark.parametrize("name", ["newest", "cleared", "bm25"])
def test_a_strategy_keeps_within_the_room_as_the_replay_counts(model: str, name: str) -> None:
    terms = Terms(window=3_000, reply=500, front=500, tariff=TARIFFS["anthropic"], model=model)
    course = begun(name, terms)
    for at in range(20):
        text = "请把配置文件里的端口改成 8080。" * 12 if at % 2 else f"line {at}: value = {at * 7919} # note\n" * 12
        course.say((words(30), *step(at, text)))
        sending = course.ask(float(at))
        assert terms.counter.messages(sending.messages) <= terms.budget - terms.front
        assert sending.messages


def test_what_a_strategy_finds_no_room_for_is_refused() -> None:
    course = policy_named("tests.lab.own_strategies:finds_no_room").begin(TERMS)
    course.say((words(80),))
    sending = course.ask(0.0)
    assert sending.messages == ()
    assert "all of it" in sending.refused
