"""Counting messages: everything counts, and each message is counted once."""

import json

import pytest
from hypothesis import given, settings, strategies as st

from everlong.core import CallId, Message, Opaque, Reasoning, Role, Text, ToolCall, ToolResult
from everlong.tokens.counter import CALL_FRAME, MESSAGE_FRAME, REMEMBERED, TOOL_FRAME, Counter, Tally
from everlong.tokens.exact import Vocabulary, count_exact
from tests.core.build import assistant, calls, result, user


class CountingCounter(Counter):
    """Records the characters it really had to look at."""

    scanned = 0

    def text(self, text: str) -> int:
        self.scanned += len(text)
        return super().text(text)


def test_text_alone() -> None:
    assert Counter("gpt-4o").text("hello world") == 2


def test_a_message_is_its_text_and_its_frame() -> None:
    assert Counter("gpt-4o").message(user("hello world")) == 2 + MESSAGE_FRAME


def test_calls_count_by_name_and_arguments() -> None:
    arguments = json.dumps({"path": "src/app.py"})
    expected = count_exact("o200k_base", "read_file") + count_exact("o200k_base", arguments) + CALL_FRAME
    assert Counter("gpt-4o").message(calls("1", arguments=arguments)) == expected + MESSAGE_FRAME


def test_each_result_of_one_message_has_its_frame() -> None:
    both = Message(Role.TOOL, tuple(ToolResult(CallId(n), (Text("ok"),)) for n in "12"))
    counter = Counter("gpt-4o")
    assert counter.message(both) == counter.message(result("1", "ok")) + counter.message(result("2", "ok"))


def test_reasoning_counts_and_sealed_reasoning_counts_by_its_size() -> None:
    counter = Counter("gpt-5")
    plain, thinking = counter.message(assistant("a")), counter.message(assistant("a", reasoning="because " * 50))
    assert thinking - plain == pytest.approx(50, abs=2)
    assert counter.part(Reasoning("", signature="x" * 5_000)) == 1_000


def test_an_opaque_file_is_not_counted_by_its_bytes() -> None:
    pdf = Opaque("document", json.dumps({"type": "document", "source": {"data": "A" * 3_000_000}}))
    assert Counter("claude-opus-4-5").part(pdf) < 2_000


def test_runs_too_short_for_a_file_are_text() -> None:
    runs = Opaque("document", "A" * 4_095 + " " + "B" * 4_095)
    assert Counter("gpt-4o").part(runs) == Counter("gpt-4o").text(runs.body)


def test_C5_tool_schemas_count() -> None:
    schema = json.dumps(
        {"name": "read_file", "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}}
    )
    counter = Counter("gpt-4o")
    assert counter.tools([schema] * 200) == 200 * (count_exact("o200k_base", schema) + TOOL_FRAME)


def test_a_list_that_grew_by_one_costs_one() -> None:
    counter = CountingCounter("gpt-4o")
    history = [user("word " * 500 + str(n)) for n in range(50)]
    first = counter.messages(history)
    scanned, new = counter.scanned, assistant("one more")
    assert counter.messages([*history, new]) == first + counter.message(new)
    assert counter.scanned - scanned == len("one more")


def test_equal_content_is_counted_once_even_in_another_object() -> None:
    counter = CountingCounter("gpt-4o")
    counter.message(user("the same words"))
    scanned = counter.scanned
    counter.message(user("the same " + "words"))
    assert counter.scanned == scanned


@given(st.lists(st.integers(0, 200), max_size=20))
@settings(max_examples=50, deadline=None)
def test_a_tally_is_the_sum(sizes: list[int]) -> None:
    counter = Counter("gpt-4o")
    history = [user("x " * size) for size in sizes]
    tally = Tally(counter)
    running = [tally.add(message) for message in history]
    assert (running or [0])[-1] == tally.total == counter.messages(history)
    assert tally.length == len(history)


def test_a_tally_does_not_look_back() -> None:
    counter = CountingCounter("gpt-4o")
    tally = Tally(counter, [user("word " * 1_000 + str(n)) for n in range(20)])
    scanned = counter.scanned
    tally.add(user("new"))
    assert counter.scanned - scanned == 3


def test_an_own_vocabulary_may_be_given() -> None:
    assert Counter("anything", vocabulary=Vocabulary("cl100k_base", exact=True, spread=0)).text(
        "上下文"
    ) == count_exact("cl100k_base", "上下文")


def test_call_without_arguments_still_counts() -> None:
    call = Message(Role.ASSISTANT, (ToolCall(CallId("1"), "now", ""),))
    assert Counter("gpt-4o").message(call) > MESSAGE_FRAME + CALL_FRAME


def test_the_memory_of_a_counter_is_bounded_and_the_newest_half_stays() -> None:
    counter = CountingCounter("gpt-4o")
    counter.message(user("the oldest"))
    counter.tools(f"schema {number}" for number in range(REMEMBERED))
    assert len(counter._known) == REMEMBERED // 2 + 1
    for number in range(REMEMBERED // 2):
        counter.message(user(f"message {number}"))
    assert len(counter._known) == REMEMBERED // 2 + 1
    scanned = counter.scanned
    counter.tools([f"schema {REMEMBERED - 1}"])
    counter.message(user("message 0"))
    assert counter.scanned == scanned, "the newest are still known"
    counter.tools([f"schema {REMEMBERED - 2}"])
    counter.message(user("the oldest"))
    assert counter.scanned == scanned + len(f"schema {REMEMBERED - 2}the oldest"), "the oldest are forgotten"


def test_the_frames_never_change_since_stores_keep_counts() -> None:
    counter = Counter("gpt-4o")
    call = Message(Role.ASSISTANT, (ToolCall(CallId("1"), "now", ""),))
    assert counter.message(user("hello world")) == 2 + 4
    assert counter.message(result("1", "hello world")) == 2 + 4
    assert counter.message(call) == 1 + 8 + 4
    assert counter.tools(["hello world"]) == 2 + 8
    assert counter.message(Message(Role.USER, (Text("hello world"),), name="ann")) == 2 + 4 + 1 + counter.text("ann")
