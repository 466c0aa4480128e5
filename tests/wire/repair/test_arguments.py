"""Arguments that are no JSON any more say what can still be read."""

import json

import pytest

from everlong.wire.repair.arguments import closings, repaired_arguments

MENDED = {
    '{"path": "a.py", "text": "def': '{"path":"a.py","text":"def"}',
    '{"a": [1, [2], {"b": {"c": 1}, "d": x': '{"a":[1,[2],{"b":{"c":1}}]}',
    '{"a": 1, "b"': '{"a":1}',
    '{"a": 1,': '{"a":1}',
    '{"a": tr': "{}",
    '{"a":': "{}",
    '{"a": "x\\': '{"a":"x"}',
    '{"a": "x\\u00e': '{"a":"x"}',
    '{"a": "x\\\\': '{"a":"x\\\\"}',
    '{"a": 1}}': '{"a":1}',
    '{"a": 1} and so on': '{"a":1}',
    '{"a": "line\nline"}': '{"a":"line\\nline"}',
    '{"a": NaN}': '{"a":null}',
    "{'a': 'x', 'b': None, 'c': True}": '{"a":"x","b":null,"c":true}',
    '"{\\"a\\": 1}"': '{"a":1}',
    '["a"]': '{"value":["a"]}',
    "null": "{}",
    '{"a": "\\ud83d"}': '{"a":"\ufffd"}',
    "": "{}",
    "ls -l": "{}",
    "{'a': {1, 2}}": "{}",
}


@pytest.mark.parametrize(("broken", "whole"), MENDED.items(), ids=lambda text: ascii(text)[:40])
def test_arguments_say_what_can_still_be_read(broken: str, whole: str) -> None:
    assert repaired_arguments(broken) == whole
    json.loads(whole)


@pytest.mark.parametrize("opening", ["[", '{"a":', '[{"a":'])
def test_hostile_nesting_is_given_up(opening: str) -> None:
    assert repaired_arguments(opening * 50_000) == "{}"


def test_closings_show_both_ways_to_end_a_text() -> None:
    assert closings('{"a": [1, {"b": "x') == ('{"a": [1, {"b": "x"}]}', '{"a": [1, {}]}')
