"""What a call needs: the strings in its arguments that an agent does not make up."""

import json

import pytest
from hypothesis import given, strategies as st

from everlong.core import CallId, ToolCall
from everlong.lab.resume.needs import NEED_KINDS, SHORTEST, needs_of, same_call


def called(arguments: object, name: str = "run") -> ToolCall:
    return ToolCall(CallId("c"), name, arguments if isinstance(arguments, str) else json.dumps(arguments))


NEEDS: dict[str, tuple[object, list[tuple[str, str]]]] = {
    "a path": ({"file": "src/harbour/lamp.py"}, [("path", "src/harbour/lamp.py")]),
    "a path from the root": ({"command": "cat /var/log/lamp"}, [("path", "/var/log/lamp")]),
    "a path in quotes, with a stop behind it": ({"say": 'see "~/boats/red.txt".'}, [("path", "~/boats/red.txt")]),
    "two words with a slash are no path": ({"say": "red and/or blue"}, []),
    "a file in a folder is one": ({"say": "boats/red.txt"}, [("path", "boats/red.txt")]),
    "an address": ({"url": "see https://harbour.example/a?b=1 now"}, [("path", "https://harbour.example/a?b=1")]),
    "a hash, a number and a code": (
        {"a": "git show 3fa9c1e", "b": 48_213, "c": "seat HAT014"},
        [("id", "3fa9c1e"), ("id", "48213"), ("id", "HAT014")],
    ),
    "a short number is none": ({"limit": 200, "on": True, "none": None}, []),
    "names": (
        {"query": "read_lamp or readLamp in os.path, def lamp"},
        [("name", "readLamp"), ("name", "read_lamp")],
    ),
    "what a dot joins is taken apart": (
        {"code": "self.red_boat.sailHome(strings.Contains)"},
        [
            ("name", "red_boat"),
            ("name", "sailHome"),
        ],
    ),
    "a round number is made up": ({"timeout": 120_000, "size": "60000"}, []),
    "a file name is a path where it is all of an argument": (
        {"file": "lamp.py", "say": "is lamp.js"},
        [("path", "lamp.py")],
    ),
    "a command of a chat is no path": ({"say": "type /help or /clear"}, []),
    "dots and slashes alone": ({"path": "../..", "from": "./."}, []),
    "plain words are no needs": ({"description": "Light the lamp, then wait for the boat"}, []),
    "replaced lines, without their indentation": (
        {"old_string": "  if lamp.dark:\n\tlight(lamp)\n}\n", "new_string": "pass"},
        [("line", "if lamp.dark:"), ("line", "light(lamp)")],
    ),
    "replaced texts in a list": ({"edits": [{"oldText": "the old lamp"}]}, [("line", "the old lamp")]),
    "what stands inside another need counts once": (
        {"path": "src/red_boat.py", "old": "sail(red_boat)", "new": "sail(red_boat, blue_boat)"},
        [("line", "sail(red_boat)"), ("path", "src/red_boat.py"), ("name", "blue_boat")],
    ),
    "arguments that are not JSON": ("cat src/harbour/lamp.py", [("path", "src/harbour/lamp.py")]),
    "data is not a name": ({"picture": "aB" * 100}, []),
    "words in other scripts": ({"query": "查看 harbour/船.txt 的灯"}, []),
}


@pytest.mark.parametrize(("arguments", "wanted"), NEEDS.values(), ids=NEEDS)
def test_needs_are_named_with_their_kind(arguments: object, wanted: list[tuple[str, str]]) -> None:
    assert sorted((need.kind, need.text) for need in needs_of(called(arguments))) == sorted(wanted)


VALUES = st.recursive(
    st.text(max_size=60) | st.integers() | st.floats(allow_nan=False) | st.booleans() | st.none(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["old", "path", "new"]), inner),
    max_leaves=8,
)


@given(VALUES)
def test_every_need_stands_in_the_arguments_and_none_inside_another(arguments: object) -> None:
    needs = needs_of(called(arguments))
    for need in needs:
        assert need.kind in NEED_KINDS
        assert len(need.text) >= SHORTEST[need.kind]
        assert not any(need.text in other.text for other in needs if other is not need)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (called('{"a": 1, "b": 2}'), called('{"b":2,"a":1}'), True),
        (called({"a": 1}), called({"a": 2}), False),
        (called({"a": 1}), called({"a": 1}, "look"), False),
        (called("not json"), called("not json"), True),
        (called("not json"), called("not  json"), False),
    ],
)
def test_equal_calls_have_the_same_tool_and_arguments(one: ToolCall, other: ToolCall, same: bool) -> None:
    assert (same_call(one) == same_call(other)) is same
