"""A tool made of a function: its schema, the check of its arguments, its failures."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict

import pytest
from hypothesis import given, settings, strategies as st

from everlong.agent.definitions import Outcome, Place, Tool, tool
from everlong.errors import InputError

PLACE = Place(thread="t", call="c", workspace=Path())


def called(made: Tool, **arguments: Any) -> Outcome:
    return asyncio.run(made.run(arguments, PLACE))


@dataclass
class Point:
    x: int
    title: str = ""


class Box(TypedDict):
    width: float


@tool
def everything(
    name: Annotated[str, "whose"],
    place: Place,
    count: int = 1,
    size: float = 1.5,
    loud: bool = False,
    kind: Literal["cat", "狗"] = "cat",
    tags: list[str] | None = None,
    ages: dict[str, int] | None = None,
    point: Point | None = None,
    box: Box | None = None,
) -> list[Any]:
    """Say all of it.

    And more.
    """
    return [name, place.thread, count, size, loud, kind, tags, ages, point and point.x, box]


def test_the_schema_is_what_the_hints_say() -> None:
    schema = json.loads(everything.parameters)
    assert (everything.name, everything.description) == ("everything", "Say all of it.\n\nAnd more.")
    assert schema["required"] == ["name"]
    assert schema["additionalProperties"] is False
    assert "place" not in schema["properties"]
    assert schema["properties"]["name"] == {"type": "string", "description": "whose"}
    assert schema["properties"]["count"] == {"type": "integer", "default": 1}
    assert schema["properties"]["kind"]["enum"] == ["cat", "狗"]
    assert "$ref" not in everything.parameters
    fields = next(one for one in schema["properties"]["point"]["anyOf"] if one.get("type") == "object")["properties"]
    assert set(fields) == {"x", "title"}


@pytest.mark.parametrize(
    ("arguments", "at", "value"),
    [
        ({"name": "a"}, 1, "t"),
        ({"name": "a", "count": "5"}, 2, 5),
        ({"name": "a", "count": 5.0}, 2, 5),
        ({"name": "a", "size": 2}, 3, 2.0),
        ({"name": "a", "loud": "true"}, 4, True),
        ({"name": "a", "kind": "狗"}, 5, "狗"),
        ({"name": "a", "kind": None}, 5, "cat"),
        ({"name": "a", "tags": '["x", "y"]'}, 6, ["x", "y"]),
        ({"name": "a", "ages": {"b": "7"}}, 7, {"b": 7}),
        ({"name": "a", "point": {"x": 3}}, 8, 3),
        ({"name": "a", "box": {"width": 1}}, 9, {"width": 1.0}),
    ],
    ids=lambda value: str(value)[:40],
)
def test_arguments_arrive_as_their_types(arguments: dict[str, Any], at: int, value: object) -> None:
    outcome = called(everything, **arguments)
    assert not outcome.failed
    assert json.loads(outcome.text)[at] == value


@pytest.mark.parametrize(
    ("arguments", "begins"),
    [
        ({}, "name: missing"),
        ({"name": 5}, "name: Expected `str`"),
        ({"name": None}, "name: Expected `str`"),
        ({"name": "a", "count": "five"}, "count: Expected `int`"),
        ({"name": "a", "count": 1.5}, "count: Expected `int`"),
        ({"name": "a", "kind": "bird"}, "kind: Invalid enum value 'bird'"),
        ({"name": "a", "tags": [1]}, "tags: Expected"),
        ({"name": "a", "tags": "[broken"}, "tags:"),
        ({"name": "a", "point": {}}, "point: Object missing required field `x`"),
        ({"name": "a", "colour": 1}, "colour: unknown argument; known arguments: name, count"),
        ({"name": "a", "place": {}}, "place: unknown argument"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_each_wrong_argument_is_one_line(arguments: dict[str, Any], begins: str) -> None:
    outcome = called(everything, **arguments)
    assert outcome.failed
    assert outcome.text.startswith(begins)
    assert "\n" not in outcome.text


def test_all_wrong_arguments_are_told_at_once() -> None:
    outcome = called(everything, count="x", size="y", other=1)
    assert [line.partition(":")[0] for line in outcome.text.splitlines()] == ["other", "name", "count", "size"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=80, deadline=None)
@given(st.dictionaries(st.sampled_from(["name", "count", "tags", "ages", "point", "box", "z"]), JSON, max_size=4))
def test_no_arguments_make_it_raise(arguments: dict[str, Any]) -> None:
    outcome = called(everything, **arguments)
    assert outcome.failed == (not outcome.text.startswith("["))


def failing(error: Callable[[], BaseException]) -> tuple[Tool, Tool]:
    @tool(name="sync")
    def in_thread() -> str:
        """Fail."""
        raise error()

    @tool(name="async")
    async def in_loop() -> str:
        """Fail."""
        raise error()

    return in_thread, in_loop


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (lambda: ValueError("no 你好"), "ValueError: no 你好"),
        (lambda: KeyError("a"), "KeyError: 'a'"),
        (lambda: RuntimeError(), "RuntimeError"),
        (lambda: SystemExit(3), "SystemExit: 3"),
        (lambda: InputError("one clear line"), "one clear line"),
        (lambda: ExceptionGroup("two", [ValueError(), OSError()]), "ExceptionGroup: two (2 sub-exceptions)"),
    ],
    ids=["value", "key", "empty", "exit", "ours", "group"],
)
def test_what_a_function_raises_is_a_failed_outcome(error: Callable[[], BaseException], said: str) -> None:
    for made in failing(error):
        assert called(made) == Outcome(said, failed=True)


def test_the_end_of_an_iterator_does_not_hang_the_call() -> None:
    for made in failing(StopIteration):
        outcome = called(made)
        assert outcome.failed
        assert "StopIteration" in outcome.text


def test_a_cancellation_passes_through() -> None:
    started = asyncio.Event()

    @tool
    async def wait() -> str:
        """Wait."""
        started.set()
        await asyncio.Event().wait()
        return "never"

    async def run() -> None:
        task = asyncio.create_task(wait.run({}, PLACE))
        await started.wait()
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(run())


def test_a_plain_function_does_not_hold_the_event_loop() -> None:
    async def run() -> Outcome:
        loop, seen = asyncio.get_running_loop(), asyncio.Event()

        @tool
        def ask_the_loop() -> str:
            """Ask."""

            async def answer() -> str:
                seen.set()
                return "it runs"

            return asyncio.run_coroutine_threadsafe(answer(), loop).result(30)

        return await ask_the_loop.run({}, PLACE)

    assert asyncio.run(run()).text == "it runs"


@pytest.mark.parametrize(
    ("value", "text"),
    [("words", "words"), (None, "done"), ({"a": [1, "你"]}, '{"a":[1,"你"]}'), (Path("x"), '"x"'), (3, "3")],
    ids=str,
)
def test_what_is_given_back(value: object, text: str) -> None:
    @tool
    def give() -> object:
        """Give it."""
        return value

    assert called(give) == Outcome(text)


def test_an_outcome_is_given_back_as_it_is_and_asks_is_kept() -> None:
    @tool(asks=True, name="act", description="Act on the world.")
    async def other() -> Outcome:
        return Outcome("no", failed=True)

    assert (other.name, other.description, other.action is not None) == ("act", "Act on the world.", True)
    assert called(other) == Outcome("no", failed=True)


def no_docstring(a: int) -> None: ...


def starred(*numbers: int) -> None:
    """Say."""


def double_starred(**numbers: int) -> None:
    """Say."""


def untyped(a) -> None:  # type: ignore[no-untyped-def]
    """Say."""


def unknown_type(a: "Missing") -> None:  # type: ignore[name-defined]  # noqa: F821
    """Say."""


def strange_type(a: asyncio.Event) -> None:
    """Say."""


def by_position(a: int, /) -> None:
    """Say."""


def 中文() -> None:
    """Say."""


def generator():  # type: ignore[no-untyped-def]
    """Say."""
    yield 1


@dataclass
class Tree:
    below: "list[Tree]"


def endless(tree: Tree) -> None:
    """Say."""


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (no_docstring, "needs a docstring"),
        (starred, r"takes \*numbers"),
        (double_starred, r"takes \*\*numbers"),
        (untyped, "parameter a needs a type"),
        (unknown_type, "type hints cannot be read"),
        (strange_type, "the type of parameter a has no JSON schema"),
        (by_position, "by position only"),
        (中文, "is not a tool name"),
        (generator, "only plain and async functions"),
        (Point, "only plain and async functions"),
        (endless, "refers to itself"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_function_that_no_model_could_call_is_refused(function: Callable[..., Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        tool(function)
