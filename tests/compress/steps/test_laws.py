"""What holds for every step that leaves something out, on any history and with any pins."""

from functools import partial

import pytest
from hypothesis import given, settings, strategies as st

from everlong.compress.draft import Draft, Step, Task, draft_of
from everlong.compress.steps.choice.newest import newest
from everlong.compress.steps.choice.priority import priority
from everlong.compress.steps.choice.tool_rounds import tool_rounds
from everlong.compress.steps.emergency import emergency, floor
from everlong.compress.steps.trims.call_arguments import call_arguments
from everlong.compress.steps.trims.hard_trim import hard_trim
from everlong.compress.steps.trims.images import images
from everlong.compress.steps.trims.long_messages import long_messages
from everlong.compress.steps.trims.reasoning import reasoning
from everlong.compress.steps.trims.soft_trim import soft_trim
from everlong.core import History, ToolResult
from everlong.errors import BudgetImpossible
from tests.compress.talks import assert_accounted, assert_lawful, assert_pairs, assert_readable, talks, task
from tests.properties.histories import FORMATS, histories

STEPS: dict[str, Step] = {
    "soft_trim": partial(soft_trim, share=0.2),
    "soft_trim by characters": partial(soft_trim, unit="characters", most_characters=700),
    "hard_trim": partial(hard_trim, share=0.2),
    "tool_rounds": partial(tool_rounds, rounds=1),
    "long_messages": partial(long_messages, user=900, assistant=600),
    "call_arguments": partial(call_arguments, longest=300),
    "images": partial(images, keep=1),
    "reasoning": reasoning,
    "reasoning everywhere": partial(reasoning, keep_last_round=False),
    "priority": priority,
    "newest": newest,
    "newest messages": partial(newest, most_messages=5, most_tokens=10**9),
    "newest, cut deep": partial(newest, most_messages=6, least_messages=3),
    "newest steps": partial(newest, most_messages=4, whole_rounds=False),
}
LAST_RESORTS: dict[str, Step] = {
    "emergency": emergency,
    "emergency by messages": partial(emergency, keep=(10, 4), unit="messages"),
    "floor": floor,
}

pins = st.frozensets(st.integers(0, 20), max_size=2)
formats = st.sampled_from(FORMATS)


def named(steps: dict[str, Step]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("step", steps.values(), ids=list(steps))


def asked(history: History, pinned: frozenset[int], fmt: str, target: int = 1_000) -> Task:
    return task(target, pins=frozenset(at for at in pinned if at < len(history)), fmt=fmt)


@named(STEPS)
@given(talks(), pins, formats)
@settings(max_examples=25, deadline=None)
def test_long_talks(step: Step, history: History, pinned: frozenset[int], fmt: str) -> None:
    check(step, history, asked(history, pinned, fmt))


@named(STEPS)
@given(histories(), pins, formats)
@settings(max_examples=25, deadline=None)
def test_broken_histories(step: Step, history: History, pinned: frozenset[int], fmt: str) -> None:
    check(step, history, asked(history, pinned, fmt, target=100))


def check(step: Step, history: History, what: Task) -> None:
    before = draft_of(history, what)
    after = step(before, what)
    assert_lawful(before, after, what)
    assert step(after, what) == after
    assert step(draft_of(history, what), what) == after


@named(LAST_RESORTS)
@given(talks(), pins, formats)
@settings(max_examples=40, deadline=None)
def test_last_resorts_fit_or_name_what_must_stay(
    step: Step, history: History, pinned: frozenset[int], fmt: str
) -> None:
    what = asked(history, pinned, fmt)
    before = draft_of(history, what)
    try:
        after = step(before, what)
    except BudgetImpossible as error:
        too_large = error
    else:
        too_large = None
        check_last_resort(step, before, after, what)
    assert too_large is None or too_large.needed > what.target


def check_last_resort(step: Step, before: Draft, after: Draft, what: Task) -> None:
    assert after.total <= what.target
    assert_accounted(after, what)
    assert_pairs(after)
    assert_readable(after)
    assert_protected_but_for_unread_results(before, after, what)
    assert step(after, what) == after


def assert_protected_but_for_unread_results(before: Draft, after: Draft, what: Task) -> None:
    kept = {slot.at: slot.message for slot in after.slots}
    for at in before.protected:
        said = [part for part in kept[at].parts if not isinstance(part, ToolResult)]
        assert said == [part for part in before.history[at].parts if not isinstance(part, ToolResult)]
        assert at not in what.pins or kept[at] == before.history[at]


@named(STEPS | LAST_RESORTS)
def test_an_empty_history_stays_empty(step: Step) -> None:
    assert step(draft_of((), task()), task()).messages == ()


@named(STEPS)
@given(talks(max_rounds=3))
@settings(max_examples=10, deadline=None)
def test_a_second_reader_of_the_result_finds_nothing_to_do(step: Step, history: History) -> None:
    """What was sent, given back as a history of its own, is not shortened again where it was within the limits."""
    what = task(10**9)
    once = step(draft_of(history, what), what).messages
    again = step(draft_of(once, what), what)
    assert again.messages == once


@given(talks(), pins, st.permutations(list(STEPS)))
@settings(max_examples=60, deadline=None)
def test_steps_after_each_other_in_any_order(history: History, pinned: frozenset[int], order: list[str]) -> None:
    what = asked(history, pinned, "openai-chat")
    before = after = draft_of(history, what)
    for name in order:
        after = STEPS[name](after, what)
    assert_lawful(before, after, what)
