"""Long texts inside arguments are described; everything else stays byte for byte."""

import json

import pytest

from everlong.compress.steps.trims.call_arguments import call_arguments
from everlong.compress.text.argument_texts import without_long_texts
from everlong.core import CallId, Message, Role, ToolCall, ref_of
from tests.compress.talks import assert_lawful, draft, task
from tests.core.build import assistant, calls, result, user

LONG = 'def f():\\n    return \\"x\\"\\n' * 200  # as it stands in JSON
REF = ref_of("the arguments")
THERE = f'{{"omitted": {{"characters": 4800, "ref": "{REF}"}}}}'

CASES = {
    "one text": ('{"path": "a.py", "content": "%s"}', '{"path": "a.py", "content": %s}'),
    "odd spacing, numbers and order": (
        '{ "n":1.50,"big":12345678901234567890, "text" :"%s" ,"ok":true}',
        '{ "n":1.50,"big":12345678901234567890, "text" :%s ,"ok":true}',
    ),
    "inside lists and objects": (
        '{"edits": [{"old": "x", "new": "%s"}, {"old": "y"}]}',
        '{"edits": [{"old": "x", "new": %s}, {"old": "y"}]}',
    ),
    "a key twice": ('{"a": "%s", "a": 1}', '{"a": %s, "a": 1}'),
}


@pytest.mark.parametrize(("given", "expected"), CASES.values(), ids=list(CASES))
def test_only_the_long_text_is_replaced(given: str, expected: str) -> None:
    shorter = without_long_texts(given % LONG, REF, 1_000)
    assert shorter == expected % THERE
    json.loads(shorter)
    assert without_long_texts(shorter, REF, 1_000) == shorter


UNTOUCHED = {
    "short": '{"content": "short"}',
    "a long path": json.dumps({"file_path": "x/" * 2_000}),
    "many short texts": json.dumps({"lines": ["a line"] * 500}),
    "numbers": json.dumps({"values": list(range(2_000))}),
    "broken JSON": '{"content": "' + "x" * 3_000,
    "no object": json.dumps("x" * 3_000),
    "nested too deeply": "[" * 100_000,
    "not JSON at all": "ls -l " * 1_000,
    "": "",
}


@pytest.mark.parametrize("arguments", UNTOUCHED.values(), ids=list(UNTOUCHED))
def test_left_alone(arguments: str) -> None:
    assert without_long_texts(arguments, REF, 1_000) == arguments


def test_escapes_count_as_the_characters_they_are() -> None:
    assert without_long_texts('{"t": "%s"}' % ("\\u4e2d" * 900), REF, 1_000).startswith('{"t": "\\u4e2d')


def test_older_calls_are_shortened_and_can_be_had_back() -> None:
    arguments = json.dumps({"path": "a.py", "content": "x" * 50_000})
    before = draft(user("go"), calls("1", arguments=arguments), result("1"), assistant("ok"), user("next"))
    after = call_arguments(before, task())
    now = json.loads(after.messages[1].calls[0].arguments)
    assert now == {"path": "a.py", "content": {"omitted": {"characters": 50_000, "ref": ref_of(arguments)}}}
    assert after.edits[0].ref == ref_of(arguments)
    assert_lawful(before, after, task())


def test_the_last_round_and_the_step_under_way_are_left_alone() -> None:
    arguments = json.dumps({"content": "x" * 5_000})
    made = [calls("1", arguments=arguments), result("1"), calls("2", arguments=arguments), result("2")]
    before = draft(user("go"), *made)
    assert call_arguments(before, task()) == before
    assert [edit.at for edit in call_arguments(before, task(), keep_last_round=False).edits] == [1]
    assert [edit.at for edit in call_arguments(draft(*made), task()).edits] == [0]


def test_a_signed_call_is_left_alone() -> None:
    call = ToolCall(CallId("1"), "write", json.dumps({"text": "x" * 5_000}), extra='{"thoughtSignature":"c2ln"}')
    before = draft(user("go"), Message(Role.ASSISTANT, (call,)), result("1"), assistant("ok"), user("next"))
    assert call_arguments(before, task()) == before
