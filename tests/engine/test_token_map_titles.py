"""Titles: one line that tells a message from its neighbours."""

import pytest

from everlong.core import CallId, Image, Message, Reasoning, Role, Text, ToolCall
from everlong.engine.token_map import TITLE_LENGTH, call_title, message_title, text_title
from tests.core.build import assistant, calls, result, user


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("fix the till", "fix the till"),
        ("\n\n  fix\n\tthe   till \n", "fix the till"),
        ("<command-name>/init</command-name>\n<command-args>all of it</command-args>", "/init all of it"),
        ("<only-a-tag/>", "<only-a-tag/>"),
        ("if a < b and c > d", "if a < b and c > d"),
        ("## Summary\n\nDone.", "Summary Done."),
        ("大家好，我是林姐。", "大家好，我是林姐。"),
        ("", ""),
    ],
    ids=["plain", "white space", "wrapped by a client", "a tag alone", "no tag", "heading", "Chinese", "empty"],
)
def test_a_text_is_named_by_its_first_words(text: str, title: str) -> None:
    assert text_title(text) == title


def test_titles_are_short_however_long_the_text() -> None:
    assert len(text_title("word " * 100_000)) <= TITLE_LENGTH
    assert text_title("word " * 100_000).endswith("…")


@pytest.mark.parametrize(
    ("arguments", "title"),
    [
        ('{"path": "a.py"}', "read a.py"),
        ('{"limit": 5, "path": "a.py", "note": "x"}', "read a.py"),
        ('{"why": "to see", "n": 1}', "read to see"),
        ('{"command": "cd /home/ada/shop && make test"}', "read make test"),
        ('{"path": "/home/ada/code/shop/src/till/layout.py"}', "read …/code/shop/src/till/layout.py"),
        ('{"path": "a.p', 'read {"path": "a.p'),
        ("{}", "read"),
        ("", "read"),
    ],
    ids=["path", "the telling one", "first words", "folder left out", "end of a path", "torn", "none", "empty"],
)
def test_a_call_is_named_by_its_tool_and_what_tells_most(arguments: str, title: str) -> None:
    assert call_title(ToolCall(CallId("1"), "read", arguments)) == title


CALL = ToolCall(CallId("1"), "read", '{"path": "a.py"}')


@pytest.mark.parametrize(
    ("message", "called", "title"),
    [
        (user("hello"), [], "hello"),
        (assistant("I look.", reasoning="hm"), [], "I look."),
        (calls("1"), [CALL], "read a.py"),
        (Message(Role.ASSISTANT, (Text("I look."), CALL)), [CALL], "I look."),
        (result("1", "text of the file"), [CALL], "read a.py"),
        (calls("1"), [CALL] * 5, "read a.py · read a.py · read a.py · +2"),
        (Message(Role.ASSISTANT, (Reasoning("only a thought"),)), [], "only a thought"),
        (Message(Role.USER, (Image(url="x"),)), [], ""),
    ],
    ids=["words", "words first", "call", "words before call", "result", "many calls", "thought", "picture"],
)
def test_a_message_is_named_by_what_it_says_calls_or_answers(
    message: Message, called: list[ToolCall], title: str
) -> None:
    assert message_title(message, called) == title
