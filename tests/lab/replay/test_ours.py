"""Our own engine in a replay: its marks, its front, its cuts and its summaries are those of real requests."""

import json
from dataclasses import replace
from itertools import pairwise

import pytest

from everlong.core import History, Role
from everlong.engine import Request, counter_for
from everlong.engine.contracts import Caching
from everlong.lab.replay.courses import Beside, OverheadForm, Sending, Terms
from everlong.lab.replay.ours import Ours, marks_of
from everlong.lab.replay.tariffs import TARIFFS
from everlong.wire import Usage
from tests.lab.folders import said, step

TERMS = Terms(window=16_000, reply=1_000, front=2_000, tariff=TARIFFS["anthropic"])
OPENING = (said(Role.SYSTEM, "Work carefully."), said(Role.USER, "Look at every page and tell me what is in it."))


def sent(course: Ours, steps: int) -> list[Sending]:
    """What goes out for each step of a long piece of work, with what a provider would report."""
    return worked(course, steps)[0]


def worked(course: Ours, steps: int, more: History = ()) -> tuple[list[Sending], tuple[Beside, ...]]:
    """The same, and what was called beside after the last of it."""
    found = []
    course.say((*OPENING, *more))
    for number in range(steps):
        sending = course.ask(float(number))
        found.append(sending)
        size = TERMS.front + TERMS.counter.messages(sending.messages)
        lines = "\n".join(f"page {number}, line {line}: value {line * 7919 + number}" for line in range(40))
        answer, *results = step(number, lines, json.dumps({"page": number}))
        course.receive(Usage(prompt=size, output=20), answer)
        course.say(tuple(results))
    return found, course.close()


@pytest.mark.parametrize("front", [0, 40, 2_000, 2_001, 12_000])
@pytest.mark.parametrize("model", ["gpt-4o", "claude-sonnet-4-5", "deepseek-chat", "gemini-2.5-pro"])
def test_the_front_is_a_tool_of_as_many_tokens(model: str, front: int) -> None:
    course = Ours(Terms(window=64_000, front=front, tariff=TARIFFS["anthropic"], model=model))
    tools = course.tools
    course.close()
    assert counter_for(model).tools(tools) == front
    assert len(tools) == (front > 0)
    assert all(isinstance(json.loads(tool), dict) for tool in tools)


@pytest.mark.parametrize("front", [8, 2_000, 2_001, 12_000])
@pytest.mark.parametrize("form", ["system", "both"])
def test_the_overhead_may_be_system_text_which_the_engine_counts_and_the_replay_adds_by_itself(
    front: int, form: OverheadForm
) -> None:
    given = replace(TERMS, window=64_000, front=front, form=form)
    course = Ours(given)
    course.say(OPENING)
    sending = course.ask(1.0)
    assert sending.messages == OPENING, "the bill adds the overhead to every policy's messages"
    assert sending.marks == (1, 2)
    assert bool(course.tools) == (form == "both" and front > 100)
    course.close()


def test_with_system_text_as_overhead_requests_are_cut_summarised_and_extend_each_other() -> None:
    course = Ours(replace(TERMS, form="system"), summaries="on")
    found, _ = worked(course, 60)
    beside = [call for sending in found for call in sending.beside]
    assert beside
    assert any(sending.cut for sending in found)
    overhead = "tool " * 20
    for messages in (*(call.messages for call in beside), *(sending.messages for sending in found)):
        assert not any(overhead in message.text for message in messages)
    for before, after in pairwise(found):
        assert after.cut or after.messages[: len(before.messages)] == before.messages


def test_nothing_is_set_that_production_leaves_to_the_engine() -> None:
    """A threshold that someone set counts otherwise than the usual one; prices come from the replay's own table."""
    for given, threshold in ((None, None), (0.7, 0.7)):
        course = Ours(TERMS, threshold=given)
        settings = course.engine.blocking.context.settings
        assert (settings.threshold, settings.low_mark) == (threshold, None)
        course.say(OPENING)
        course.ask(1.0)
        course.close()


MARKS: dict[str, tuple[Caching | None, tuple[int, ...]]] = {
    "nothing comes again": (None, ()),
    "behind the system text, and at the end": (Caching(lasting=4), (1, 4)),
    "where what stands until the next cut ends": (Caching(stable=2, lasting=4), (1, 2, 4)),
    "what is said only once is not marked": (Caching(stable=1, lasting=3), (1, 3)),
}


@pytest.mark.parametrize(("caching", "marks"), MARKS.values(), ids=MARKS)
def test_where_the_marks_of_a_request_are(caching: Caching | None, marks: tuple[int, ...]) -> None:
    assert marks_of(Request(model="m", messages=(*OPENING, *step(0, "x")), caching=caching)) == marks


def test_requests_bear_the_marks_that_go_out_to_anthropic() -> None:
    found = sent(Ours(TERMS, summaries=None), 12)
    first, second, *_ = found
    assert first.marks == (1, 2)  # behind the system text, and at the end
    assert second.marks == (1, 4)
    for sending in found:
        assert sending.marks is not None
        assert len(sending.marks) <= 4
        assert sending.marks[-1] == len(sending.messages)


def test_a_summary_is_asked_with_marks_behind_the_front_or_alone_without_any() -> None:
    found = sent(Ours(TERMS, summaries="on"), 60)
    beside = [call for sending in found for call in sending.beside]
    assert beside
    for call in beside:
        assert call.marks is not None
        assert bool(call.marks) is not call.alone
        assert all(mark < len(call.messages) for mark in call.marks)  # the question itself comes only once


def test_a_summary_is_told_of_once_it_stands() -> None:
    found = sent(Ours(TERMS, summaries="on"), 60)
    first = next(at for at, sending in enumerate(found) if sending.beside)
    assert not any(sending.summarised for sending in found[:first])
    assert found[-1].summarised
    assert not any(sending.summarised for sending in sent(Ours(TERMS, summaries=None), 60))


def test_what_was_called_beside_since_the_last_request_is_told_at_the_end() -> None:
    found, over = worked(Ours(TERMS, summaries="on"), 60)
    first = next(at for at, sending in enumerate(found) if sending.beside)
    assert (
        worked(Ours(TERMS, summaries="on"), first)[1] == found[first].beside
    )  # the conversation ends where the next would tell it
    assert worked(Ours(TERMS, summaries="on"), first + 1)[1] == ()  # it is told once
    assert over == ()


def test_what_code_tells_is_no_call_and_no_credit() -> None:
    asked = (said(Role.ASSISTANT, "Which of them?"), said(Role.USER, "All pages, and note the totals of each."))
    found, _ = worked(Ours(TERMS), 60, asked)
    assert any(sending.cut for sending in found)
    assert not any(sending.beside or sending.summarised for sending in found)
    assert any("no model wrote it" in message.text for message in found[-1].messages)


def extends(one: History, other: History) -> bool:
    return other[: len(one)] == one


@pytest.mark.parametrize("preset", ["auto", "simple", "nanobot", "nanobot-v3", "chatbox", "static-buffer"])
def test_a_cut_is_where_what_was_sent_is_no_longer_the_beginning(preset: str) -> None:
    found = sent(Ours(TERMS, preset=preset), 50)
    assert not found[0].cut
    assert any(sending.cut for sending in found)
    for before, sending in pairwise(found):
        assert sending.cut is not extends(before.messages, sending.messages)
