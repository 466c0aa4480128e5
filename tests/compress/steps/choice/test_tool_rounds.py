"""Calls and results of older rounds are left out; what was said stays."""

import pytest

from everlong.compress.draft import draft_of
from everlong.compress.steps.choice.tool_rounds import tool_rounds
from everlong.core import CallId, Message, Reasoning, Role, Text, ToolCall, ToolResult, message_ref
from tests.compress.talks import assert_lawful, draft, task
from tests.core.build import assistant, calls, result, system, user


def one_round(number: int) -> list[Message]:
    call = f"call_{number}"
    return [user(f"question {number}"), calls(call), result(call), assistant(f"answer {number}")]


def texts(messages: tuple[Message, ...]) -> list[str]:
    return [message.text or "tool use" for message in messages]


def test_older_than_the_last_two_rounds() -> None:
    before = draft(system("s"), *one_round(1), *one_round(2), *one_round(3))
    after = tool_rounds(before, task())
    assert texts(after.messages)[:4] == ["s", "question 1", "answer 1", "question 2"]
    assert len(after.messages) == len(before.messages) - 2
    assert_lawful(before, after, task())


def test_two_rounds_or_fewer_stay_as_they_are() -> None:
    before = draft(*one_round(1), *one_round(2))
    assert tool_rounds(before, task()) == before


@pytest.mark.parametrize(
    "pending",
    [(user("now"),), (user("now"), calls("x"), result("x")), (user("never answered"), user("now"))],
    ids=["a question", "a running loop", "two questions"],
)
def test_a_question_without_its_answer_is_no_round(pending: tuple[Message, ...]) -> None:
    """Two finished pairs keep their calls while the next question is asked, and one that is older does not."""
    before = draft(*one_round(1), *one_round(2), *one_round(3), *pending)
    after = tool_rounds(before, task())
    assert texts(after.messages)[:4] == ["question 1", "answer 1", "question 2", "tool use"]
    assert after.messages[2:] == before.messages[4:]
    assert_lawful(before, after, task())


def test_no_round_may_be_exempt_but_what_is_protected_is() -> None:
    before = draft(*one_round(1), user("now"), calls("x"), result("x"))
    after = tool_rounds(before, task(), rounds=0)
    assert texts(after.messages) == ["question 1", "answer 1", "now", "tool use", "tool use"]
    assert_lawful(before, after, task())


def test_words_beside_calls_and_results_stay_and_thoughts_go_with_their_calls() -> None:
    said = Message(Role.ASSISTANT, (Reasoning("hm"), Text("let me look"), ToolCall(CallId("1"), "ls", "{}")))
    answered = Message(Role.TOOL, (ToolResult(CallId("1"), (Text("a b"),)), Text("hurry up")))
    before = draft(user("go"), said, answered, user("next"), assistant("ok"), user("more"))
    after = tool_rounds(before, task(), rounds=1)
    assert after.messages[1].parts == (Text("let me look"),)
    assert after.messages[2].parts == (Text("hurry up"),)
    assert after.edits[1].ref == message_ref(said)
    assert_lawful(before, after, task())


def test_a_pinned_result_keeps_its_call_and_a_pinned_call_its_results() -> None:
    history = (*one_round(1), *one_round(2), *one_round(3), *one_round(4))
    for pin in (1, 2):
        what = task(pins=frozenset({pin}))
        before = draft_of(history, what)
        after = tool_rounds(before, what)
        assert after.messages[:4] == history[:4]
        assert len(after.messages) == len(history) - 2
        assert_lawful(before, after, what)


def test_of_several_calls_only_the_pinned_result_stays_with_its_own() -> None:
    history = (user("go"), calls("1", "2"), result("1"), result("2"), assistant("ok"), user("next"), assistant("x"))
    what = task(pins=frozenset({3}))
    after = tool_rounds(draft_of(history, what), what, rounds=1)
    assert [call.id for call in after.messages[1].calls] == ["2"]
    assert [one.call for message in after.messages for one in message.results] == ["2"]
