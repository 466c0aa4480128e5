"""What each provider rejects: a request that it takes has no problems, and every change that spoils it is found."""

from collections.abc import Iterator
from typing import Any

import pytest

from everlong.errors import InputError
from everlong.wire.formats import FORMATS, problems
from everlong.wire.formats.validation import Problem
from tests.wire.sample_requests import ACCEPTED, REFUSED, Payload, Spoiled

ROWS = [(fmt, row) for fmt, rows in REFUSED.items() for row in rows]


@pytest.mark.parametrize("fmt", ACCEPTED)
def test_a_request_that_the_provider_takes_has_no_problems(fmt: str) -> None:
    assert problems(fmt, ACCEPTED[fmt]()) == []


def test_every_format_has_its_validator() -> None:
    assert set(FORMATS) == set(ACCEPTED)
    with pytest.raises(InputError, match="unknown format 'morse'"):
        problems("morse", {})


def test_a_problem_reads_as_one_line() -> None:
    assert str(Problem("messages[3]", "text block is empty")) == "messages[3]: text block is empty"


@pytest.mark.parametrize(("fmt", "row"), ROWS, ids=[f"{fmt} {row.path}: {row.text}" for fmt, row in ROWS])
def test_one_change_is_found_where_it_is(fmt: str, row: Spoiled) -> None:
    found = problems(fmt, row.apply(ACCEPTED[fmt]()))
    assert any(row.text in problem.text and row.is_at(problem.where) for problem in found), found


def test_an_open_turn_must_begin_with_thinking_only_where_that_is_enabled() -> None:
    closed = ACCEPTED["anthropic"]()
    closed["messages"][1]["content"].pop(0)
    still_open = closed | {"messages": closed["messages"][:3]}
    enabled, adaptive = ({"thinking": {"type": mode}} for mode in ("enabled", "adaptive"))
    assert problems("anthropic", closed | enabled) == []
    assert problems("anthropic", still_open | adaptive) == []
    assert [problem.where for problem in problems("anthropic", still_open | enabled)] == ["messages[1]"]


def test_an_old_function_call_is_answered_by_name() -> None:
    messages: list[Payload] = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": None, "function_call": {"name": "read", "arguments": "{}"}},
        {"role": "function", "name": "read", "content": "ok"},
    ]
    assert problems("openai-chat", {"messages": messages}) == []
    assert problems("openai-chat", {"messages": messages[:2]}) == [
        Problem("messages[1]", "call function read has no result directly after it")
    ]


def test_an_answer_may_be_a_refusal_or_sound() -> None:
    asked = {"role": "user", "content": "hi"}
    for said in ({"refusal": "No."}, {"audio": {"id": "audio_1"}}):
        message: Payload = {"role": "assistant", "content": None, **said}
        assert problems("openai-chat", {"messages": [asked, message]}) == []


def test_a_compaction_of_the_provider_may_come_first() -> None:
    items: list[Payload] = [{"type": "compaction", "encrypted_content": "gAAA"}, {"role": "user", "content": "hi"}]
    assert problems("openai-responses", {"input": items}) == []


def paths(value: Any) -> Iterator[tuple[str | int, ...]]:
    """Every place in a payload."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (key,)
        yield from ((key, *rest) for rest in paths(inner))


@pytest.mark.parametrize("fmt", ACCEPTED)
@pytest.mark.parametrize("junk", [None, 5, "", "x", [], {}, [[]], [None], {"type": []}, {"role": {}}], ids=repr)
def test_junk_anywhere_is_an_answer_and_never_an_exception(fmt: str, junk: Any) -> None:
    for *steps, last in paths(ACCEPTED[fmt]()):
        payload = ACCEPTED[fmt]()
        place: Any = payload
        for step in steps:
            place = place[step]
        place[last] = junk
        assert isinstance(problems(fmt, payload), list)
