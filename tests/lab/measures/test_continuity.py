"""What stands after a compaction: the task, the last steps and the last words, each as a message of its own role."""

import json
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from everlong.core import CallId, History, Message, Role, Text, ToolCall, ToolResult
from everlong.engine import counter_for
from everlong.lab.measures.continuity import Standing, judge, observations_in
from tests.lab.folders import said, step

COUNTER = counter_for("gpt-4o")
MOVABLE = 10_000
LINES = "\n".join(f"line {number} of the report says {number * 7_919}" for number in range(100))  # over 1000 tokens
SHORT = "three boats in the harbour"
LONG_TASK = "Repair the harbour.\n" + "The wall leans and the lamp is dark. " * 300 + "\nAsk before you paint."
TASK, ASKED = said(Role.USER, "Look after the harbour."), said(Role.USER, "Now paint the boats.")
DONE = said(Role.ASSISTANT, "The harbour is well.")
WORK = (*step(1, SHORT), *step(2, LINES, '{"page": 2}'), *step(3, SHORT), *step(4, "done"))
HISTORY = (TASK, *step(0, SHORT), DONE, ASKED, *WORK)
NOTE = said(Role.USER, "<background-1>\nLook after the harbour. Now paint the boats.\n</background-1>")


def at(sent: History, place: int, message: Message | None) -> History:
    """The same messages with one replaced or, by None, left out."""
    return (*sent[:place], *(() if message is None else (message,)), *sent[place + 1 :])


def result(number: int, text: str) -> Message:
    return step(number, text)[1]


def called(number: int, arguments: str) -> Message:
    return step(number, "", arguments)[0]


KEPT = (TASK, NOTE, ASKED, *WORK[2:])  # the last three steps of four
#: The page of the second step begins at 3: call, result, call, result, call, result.
QUARTER, LESS = LINES[: len(LINES) // 3], LINES[: len(LINES) // 8]

STANDS: dict[str, tuple[History, tuple[str, ...]]] = {
    "everything": (HISTORY, ()),
    "task, words and three steps": (KEPT, ()),
    "nothing": ((), ("task", "words", "step")),
    "a quotation is no message": ((NOTE, ASKED, *WORK[2:]), ("task",)),
    "the task from another mouth": (at(KEPT, 0, replace(TASK, role=Role.ASSISTANT)), ("task",)),
    "the task behind the words": ((NOTE, ASKED, TASK, *WORK[2:]), ("task",)),
    "a small task may not be shortened": (at(KEPT, 0, said(Role.USER, "Look after …")), ("task",)),
    "the words changed by a blank": (at(KEPT, 2, said(Role.USER, "Now paint the boats. ")), ("task", "words")),
    "one step less": (KEPT[:3] + WORK[4:], ("step",)),
    "a call of another name": (
        at(KEPT, 3, Message(Role.ASSISTANT, (ToolCall(CallId("c2"), "walk", '{"page": 2}'),))),
        ("call",),
    ),
    "a small call that was changed": (at(KEPT, 3, called(2, '{"page": 3}')), ("call",)),
    "a result left out": (at(KEPT, 4, None), ("result",)),
    "a small result changed": (at(KEPT, 6, result(3, "three boats …")), ("result",)),
    "a third of a large result": (at(KEPT, 4, result(2, f"{QUARTER}\n[…]")), ()),
    "its end": (at(KEPT, 4, result(2, f"[…]\n{LINES[-len(QUARTER) :]}")), ()),
    "lines from its middle": (at(KEPT, 4, result(2, "[…]\n" + "\n".join(LINES.split("\n")[30:65]) + "\n[…]")), ()),
    "an eighth of it": (at(KEPT, 4, result(2, f"{LESS}\n[…]")), ("result",)),
    "as many words of something else": (at(KEPT, 4, result(2, LINES.replace("report", "letter")[400:])), ("result",)),
    "a result that stands before its call": ((*KEPT[:3], KEPT[4], KEPT[3], *KEPT[5:]), ("result",)),
}


@pytest.mark.parametrize(("sent", "missing"), STANDS.values(), ids=STANDS)
def test_what_is_missing_is_named(sent: History, missing: tuple[str, ...]) -> None:
    assert judge(HISTORY, sent, COUNTER, movable=MOVABLE).missing == missing


def test_long_arguments_may_be_shortened_but_the_call_stays() -> None:
    history = (TASK, *step(1, SHORT, json.dumps({"text": LINES})))
    for sent, missing in ((step(1, SHORT, '{"text": "line 0 …"}'), ()), (step(2, SHORT), ("step",))):
        assert judge(history, (TASK, *sent), COUNTER, movable=MOVABLE).missing == missing


@pytest.mark.parametrize(("movable", "missing"), [(10_000, ("result",)), (100, ())])
def test_a_quarter_of_each_result_is_asked_where_there_is_room_for_it(movable: int, missing: tuple[str, ...]) -> None:
    sent = at(KEPT, 4, result(2, f"{LESS}\n[…]"))
    assert judge(HISTORY, sent, COUNTER, movable=movable).missing == missing


@pytest.mark.parametrize(
    ("missing", "stood"),
    [
        ((), (True, True, True)),
        (("task",), (False, True, True)),
        (("task", "words"), (False, True, False)),
        (("step",), (True, False, True)),
        (("call",), (True, False, True)),
        (("result",), (True, False, True)),
    ],
)
def test_what_stands_follows_from_what_is_missing(missing: tuple[str, ...], stood: tuple[bool, ...]) -> None:
    standing = Standing(missing)
    assert (standing.task, standing.steps, standing.words) == stood


ENDS = said(Role.USER, f"{LONG_TASK[:400]}\n[…]\n{LONG_TASK[-400:]}")
LARGE: dict[str, tuple[Message, int, bool]] = {
    "whole": (said(Role.USER, LONG_TASK), 100_000, True),
    "with its ends, where it is more than a tenth": (ENDS, 10_000, True),
    "with its ends, where it is less": (ENDS, 100_000, False),
    "without its end": (said(Role.USER, LONG_TASK[:4_000]), 10_000, False),
    "without its beginning": (said(Role.USER, LONG_TASK[2_000:]), 10_000, False),
}


@pytest.mark.parametrize(("sent", "movable", "stands"), LARGE.values(), ids=LARGE)
def test_a_large_task_may_stand_with_its_ends(sent: Message, movable: int, stands: bool) -> None:
    history = (said(Role.USER, LONG_TASK), DONE, ASKED, *WORK)
    assert judge(history, (sent, *history[2:]), COUNTER, movable=movable).task is stands


def test_the_only_words_of_the_user_stand_byte_for_byte_whatever_their_size() -> None:
    history = (said(Role.USER, LONG_TASK), *WORK)
    assert judge(history, (ENDS, *WORK), COUNTER, movable=100).missing == ("task", "words")


def test_a_running_round_that_is_shorter_than_three_steps_stands_whole() -> None:
    history = (TASK, *WORK, DONE, ASKED, *step(9, SHORT))
    assert judge(history, (TASK, ASKED, *step(9, SHORT)), COUNTER, movable=MOVABLE) == Standing()
    assert judge(history, (TASK, ASKED), COUNTER, movable=MOVABLE).missing == ("step",)
    assert judge((*history, DONE, TASK), (TASK,), COUNTER, movable=MOVABLE) == Standing()


def test_of_two_calls_in_one_message_each_has_its_result() -> None:
    calls = tuple(ToolCall(CallId(key), "run", "{}") for key in "ab")
    both = (Message(Role.ASSISTANT, calls), result_of("a"), result_of("b"))
    history = (TASK, *both)
    assert judge(history, history, COUNTER, movable=MOVABLE) == Standing()
    assert judge(history, history[:-1], COUNTER, movable=MOVABLE).missing == ("result",)


def result_of(key: str) -> Message:
    return Message(Role.TOOL, (ToolResult(CallId(key), (Text(f"result of {key}"),)),))


@given(st.integers(0, 8), st.booleans())
def test_the_identity_has_everything_and_what_lacks_the_task_lacks_it(steps: int, asked: bool) -> None:
    work = tuple(message for number in range(steps) for message in step(number, SHORT * number))
    history = (TASK, *work, *((ASKED,) if asked else ()))
    assert judge(history, history, COUNTER, movable=MOVABLE) == Standing()
    assert not judge(history, history[1:], COUNTER, movable=MOVABLE).task


# --- results that come as user messages -------------------------------------------------------------


def acted(number: int, told: str = SHORT) -> History:
    return (
        said(Role.ASSISTANT, f"Thought: I look.\n```\nlook {number}\n```"),
        said(Role.USER, f"Observation: {number}: {told}"),
    )


def test_in_a_session_without_calls_what_answers_an_action_is_an_observation() -> None:
    history = (TASK, *acted(1), *acted(2), DONE, ASKED, *acted(3))
    assert observations_in(history) == {2, 4, 8}
    assert observations_in((TASK, *acted(1), said(Role.USER, "Error: no such page"), *acted(2))) == {2, 3, 5}
    assert observations_in((TASK, DONE, ASKED)) == frozenset()
    assert observations_in((TASK, *acted(1), *step(2, SHORT))) == frozenset(), "who can call does not act in words"


def test_an_observation_is_a_result_and_not_the_users_word() -> None:
    history = (TASK, *acted(1), *acted(2), *acted(3), *acted(4, LINES))
    seen = observations_in(history)
    kept = (TASK, *history[3:])

    def missing(sent: History) -> tuple[str, ...]:
        return judge(history, sent, COUNTER, movable=MOVABLE, observations=seen).missing

    assert missing(kept) == ()
    assert missing(kept[1:]) == ("task", "words")
    assert missing((TASK, *history[5:])) == ("step",)
    assert missing(at(kept, 2, said(Role.USER, "Observation: …"))) == ("result",)
    assert missing(at(kept, 6, said(Role.USER, f"Observation: 4: {QUARTER}"))) == ()
    assert missing(at(kept, 6, None)) == ("result",)
