"""When all results together are too large, the oldest become one line each."""

import pytest

from everlong.compress.steps.trims.hard_trim import hard_trim
from everlong.core import CallId, Image, Message, Role, Text, ToolResult, message_ref, ref_of
from tests.compress.talks import COUNTER, assert_lawful, draft, task
from tests.core.build import assistant, calls, result, user

WORDS = "word " * 300


def steps(*ids: str, text: str = WORDS) -> list[Message]:
    return [message for call in ids for message in (calls(call, arguments='{"path": "src/a.py"}'), result(call, text))]


def shortened(*messages: Message, window: int = 2_000, **settings: bool) -> list[bool]:
    """Which of the results became a line."""
    what = task(window=window)
    before = draft(*messages, what=what)
    after = hard_trim(before, what, **settings)
    assert_lawful(before, after, what)
    return [len(one.text) < 200 for message in after.messages for one in message.results]


def test_oldest_first_and_no_more_than_needed() -> None:
    messages = [user("go"), *steps("1", "2", "3", "4"), assistant("ok"), user("next")]
    assert shortened(*messages) == [True, False, False, False]


def test_below_the_share_nothing_happens() -> None:
    assert shortened(user("go"), *steps("1", "2", "3"), assistant("ok"), user("next")) == [False] * 3


def test_the_last_round_is_counted_but_not_touched() -> None:
    messages = [user("go"), *steps("1"), user("next"), *steps("2", "3", "4", "5"), assistant("ok")]
    assert shortened(*messages) == [True, False, False, False, False]
    assert shortened(*messages, keep_last_round=False) == [True, True, False, False, False]


def test_a_line_names_tool_file_and_size() -> None:
    before = draft(user("go"), *steps("1", "2", "3", "4"), user("next"))
    after = hard_trim(before, task())
    size = COUNTER.message(before.messages[2])
    expected = f"[result of read_file left out: src/a.py, about {size} tokens; ref {ref_of(WORDS)}]"
    assert after.messages[2].results[0].text == expected


def test_short_results_are_not_made_longer() -> None:
    assert shortened(user("go"), *steps("1", text="ok"), *steps("2", "3", "4", "5"), user("x"))[:2] == [True, True]
    after = hard_trim(draft(user("go"), *steps("1", text="ok"), *steps("2", "3", "4", "5"), user("x")), task())
    assert after.messages[2].results[0].text == "ok"


def test_pictures_go_too_and_come_back_with_the_message() -> None:
    shown = Message(Role.TOOL, (ToolResult(CallId("1"), (Text(WORDS), Image(data="aGk=", media_type="image/png"))),))
    after = hard_trim(draft(user("go"), calls("1"), shown, *steps("2", "3", "4"), user("next")), task())
    line = after.messages[2].results[0]
    assert [type(part) for part in line.content] == [Text]
    assert "with 1 image(s)" in line.text
    assert after.edits[0].ref == message_ref(shown)


@pytest.mark.parametrize("arguments", ["", "{", "[]", '{"path": 3}', '{"path": " "}', "null"])
def test_arguments_without_a_path_are_no_problem(arguments: str) -> None:
    messages = [user("go"), calls("1", arguments=arguments), result("1", WORDS), *steps("2", "3", "4"), user("next")]
    assert shortened(*messages)[0]
