"""A history that someone else holds, followed by a thread: what is sent begins as before, also if it is rewritten."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from everlong import Call, Prepared, Settings, Usage, open_engine
from everlong.core import Message
from everlong.engine.blocking_engine import BlockingEngine
from everlong.wire import OPENAI_CHAT

Row = dict[str, Any]
WINDOW = 8_000
CALL = Call(model="gpt-4o", max_tokens=500, recall_tool="recall")
TASK = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "The code word is PLOVER. Read all files."},
]


def step(number: int, lines: int = 40) -> list[Row]:
    """Two calls side by side and their results."""
    names = [f"c{number}{letter}" for letter in "ab"]
    made = [
        {"id": name, "type": "function", "function": {"name": "read", "arguments": f'{{"f": "{name}"}}'}}
        for name in names
    ]
    results = [{"role": "tool", "tool_call_id": name, "content": f"line of {name}\n" * (lines // 2)} for name in names]
    return [{"role": "assistant", "content": None, "tool_calls": made}, *results]


def engine(url: str = "memory:") -> BlockingEngine:
    return open_engine(url, settings=Settings(window=WINDOW)).blocking


def send(by: BlockingEngine, thread: str, rows: Sequence[Row]) -> Prepared:
    prepared = by.prepare(thread, CALL, history=rows)
    by.answered(prepared, Usage(prompt=prepared.tokens, output=20))
    return prepared


def assert_sendable(prepared: Prepared) -> None:
    assert prepared.tokens <= WINDOW - 500
    assert not OPENAI_CHAT.problems({"model": "gpt-4o", "messages": prepared.messages})


def breaks(sent: Sequence[list[Row]]) -> int:
    return sum(after[: len(before)] != before for before, after in pairwise(sent))


def test_a_task_of_three_windows_breaks_its_prefix_only_at_compactions() -> None:
    by, rows, sent = engine(), list(TASK), []
    for number in range(60):
        prepared = send(by, "t", rows)
        assert_sendable(prepared)
        assert prepared.messages[0] is rows[0]
        assert prepared.messages[-1] is rows[-1]
        sent.append(prepared.messages)
        rows += step(number)
    assert breaks(sent) == prepared.compactions
    assert 2 <= prepared.compactions <= 6
    assert any("PLOVER" in str(row["content"]) for row in sent[-1])
    assert len(by.context.threads.threads()) == 1
    known = {id(row) for row in rows}
    assert sum(id(row) in known for row in sent[-1]) >= len(sent[-1]) // 2, "what was not touched is the same object"


def test_another_process_sends_what_this_one_would_have_sent(tmp_path: Path) -> None:
    rows = list(TASK)
    url = str(tmp_path / "chat.db")
    first = engine(url)
    for number in range(30):
        send(first, "t", rows)
        rows += step(number)
    here = first.prepare("t", CALL, history=rows)
    there = engine(url).prepare("t", CALL, history=rows)
    assert there.messages == here.messages
    assert there.compactions == here.compactions >= 1


def test_system_text_that_changes_with_each_call_is_sent_as_it_is_and_kept_nowhere() -> None:
    by, rows = engine(), list(TASK[1:])
    for number in range(30):
        prepared = send(by, "t", [{"role": "system", "content": f"It is minute {number}."}, *rows])
        assert_sendable(prepared)
        assert prepared.messages[0]["content"] == f"It is minute {number}."
        rows += step(number)
    assert not by.recall("t", "minute").hits
    assert prepared.compactions <= 3


def test_a_last_message_that_is_rewritten_each_time_costs_no_compaction() -> None:
    by, rows, sent = engine(), list(TASK), []
    for number in range(40):
        prepared = send(by, "t", [*rows, {"role": "user", "content": f"It is minute {number}. Go on."}])
        assert_sendable(prepared)
        sent.append(prepared.messages[:-1])
        rows += step(number)
    assert breaks(sent) == prepared.compactions <= 4


def test_a_history_that_was_changed_far_back_goes_on_from_there() -> None:
    by, rows = engine(), list(TASK)
    for number in range(30):
        send(by, "t", rows)
        rows += step(number)
    changed = [*rows[:8], {"role": "user", "content": "No: the code word is DUNLIN."}]
    prepared = send(by, "t", changed)
    assert prepared.messages == changed
    assert by.recall("t", "DUNLIN").hits
    assert not by.recall("t", "c29a").hits
    assert len(by.context.threads.threads()) == 2
    assert send(by, "t", [*changed, *step(99)]).messages[: len(changed)] == changed


def test_a_history_that_begins_anew_is_another_one() -> None:
    by = engine()
    send(by, "t", [*TASK, *step(1)])
    fresh = [{"role": "user", "content": "Something else."}]
    assert send(by, "t", fresh).messages == fresh


def test_pins_and_recall_go_with_the_history_also_into_a_branch() -> None:
    by, rows = engine(), list(TASK)
    send(by, "t", rows)
    by.pin("t", text="Never delete anything.")
    for number in range(40):
        rows += step(number)
        send(by, "t", rows)
    rows[-1] = {**rows[-1], "content": "rewritten"}
    prepared = send(by, "t", rows)
    assert_sendable(prepared)
    assert any("Never delete anything." in str(row["content"]) for row in prepared.messages)
    assert "line of c1a" in by.recall_text("t", "c1a")


def test_a_refused_request_gives_messages_of_the_same_kind() -> None:
    by, rows = open_engine("memory:").blocking, list(TASK)
    for number in range(30):
        rows += step(number)
    prepared = by.prepare("t", CALL, history=rows)
    assert prepared.messages == rows
    again = by.refused(prepared, RuntimeError("This model's maximum context length is 8000 tokens."))
    assert again.tokens < 8_000
    assert again.messages[0] is rows[0]
    assert not OPENAI_CHAT.problems({"model": "gpt-4o", "messages": again.messages})
    assert by.prepare("t", CALL, history=[*rows, *step(99)]).tokens < 8_000, "what was learned stays"


@given(st.lists(st.tuples(st.sampled_from(["grow", "shrink", "rewrite", "restart"]), st.integers(1, 6)), max_size=12))
def test_whatever_is_done_to_a_history_what_is_sent_is_valid_and_its_own(changes: list[tuple[str, int]]) -> None:
    by, rows, number = engine(), list(TASK), 0
    for change, count in changes:
        match change:
            case "grow":
                for _ in range(count):
                    number += 1
                    rows = [*rows, *step(number, lines=120)]
            case "shrink":
                rows = rows[: max(2, len(rows) - 3 * count)]
            case "rewrite" if len(rows) > 2:
                rows = [*rows[:-1], {**rows[-1], "content": f"other words {number} {count}"}]
            case _:
                by.forget("t")
        prepared = send(by, "t", rows)
        assert_sendable(prepared)
        assert prepared.messages[0] is rows[0]
        assert str(prepared.messages[-1]["content"])[:20] == str(rows[-1]["content"])[:20]
        stored = [row.entry for row in by.context.threads.read(prepared.thread) if isinstance(row.entry, Message)]
        assert len(stored) == len(rows) - 1


@pytest.mark.parametrize("wrong", ["text", 5, {"role": "user"}])
def test_a_history_is_a_list(wrong: Any) -> None:
    with pytest.raises(Exception, match="history must be"):
        engine().prepare("t", CALL, history=wrong)
