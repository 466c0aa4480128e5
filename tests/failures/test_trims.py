"""What goes wrong in the field when something is left out, and does not go wrong here. Named after its id."""

import base64
import json
import struct
from functools import partial

import pytest

from everlong.compress import (
    Draft,
    Task,
    call_arguments,
    draft_of,
    emergency,
    hard_trim,
    images,
    long_messages,
    newest,
    reasoning,
    soft_trim,
    tool_rounds,
)
from everlong.compress.draft import Step
from everlong.compress.steps.emergency import floor
from everlong.core import CallId, History, Image, Message, Reasoning, Role, Text, ToolCall, ToolResult, pairs_of, ref_of
from everlong.tokens import Counter
from tests.compress.talks import COUNTER, assert_accounted, assert_lawful, assert_pairs, task
from tests.core.build import assistant, calls, result, system, user


def run(step: Step, history: list[Message] | History, what: Task) -> Draft:
    before = draft_of(history, what)
    after = step(before, what)
    assert_lawful(before, after, what)
    return after


def loop(steps: int) -> list[Message]:
    return [message for n in range(steps) for message in (calls(str(n)), result(str(n)))]


def signed(call: str, text: str = "hm") -> Message:
    return Message(Role.ASSISTANT, (Reasoning(text, signature="c2ln"), ToolCall(CallId(call), "ls", "{}")))


# --- wrong cuts ------------------------------------------------------------------------------------


def test_A3_one_question_and_25_tool_rounds_survive_a_limit_of_50_messages() -> None:
    after = run(partial(newest, most_messages=50), [user("go"), *loop(25)], task(10**6))
    assert after.messages[0] == user("go")
    assert len(after.messages) == 49
    assert len(pairs_of(after.messages)) == 24


def test_A4_results_that_nobody_has_read_are_not_touched() -> None:
    unread = [calls("a", "b", "c"), *(result(n, "line\n" * 3_000) for n in "abc")]
    history = [user("go"), *loop(3), user("and now"), *unread]
    steps: list[Step] = [soft_trim, hard_trim, partial(tool_rounds, rounds=0), partial(newest, most_messages=2)]
    for step in steps:
        after = run(step, history, task())
        assert after.messages[-4:] == tuple(unread)


def test_A7_a_trimmed_result_says_what_is_missing_and_how_to_go_on() -> None:
    text = "\n".join(f"{n:06d} " + "data " * 10 for n in range(8_800))
    assert len(text) > 500_000
    what = task(8_000, window=26_000, recall="recall")
    history = [user("go"), calls("1"), result("1", text), assistant("ok"), user("next")]
    after = run(partial(soft_trim, lines=(60, 30)), history, what)
    shown = after.messages[2].results[0].text.split("\n")
    assert COUNTER.text("\n".join(shown)) <= 8_000
    assert set(shown[:60]) | set(shown[61:]) <= set(text.split("\n"))
    markers = [line for line in shown if line.startswith("[")]
    assert len(markers) == 1
    for fact in ("90 of 8800 lines shown", "continue at line 61", f"ref {ref_of(text)}", f'recall("{ref_of(text)}")'):
        assert fact in markers[0]
    assert after.messages[1] == history[1]


def test_A7_what_stands_in_arguments_cannot_be_pasted_into_a_file() -> None:
    arguments = json.dumps({"path": "a.py", "content": "x = 1\n" * 5_000})
    history = [user("go"), calls("1", arguments=arguments), result("1"), assistant("ok"), user("next")]
    after = run(call_arguments, history, task())
    content = json.loads(after.messages[1].calls[0].arguments)["content"]
    assert content == {"omitted": {"characters": 30_000, "ref": ref_of(arguments)}}


# --- what providers reject -------------------------------------------------------------------------


def test_B2_signed_thinking_is_whole_or_absent_and_the_open_loop_keeps_its_own() -> None:
    turns = [message for n in range(5) for message in (user(f"q{n}"), signed(str(n)), result(str(n)), assistant("ok"))]
    history = [*turns, user("go"), signed("open", "x" * 5_000), result("open")]
    what = task(300, fmt="anthropic", model="claude-opus-4-5")
    steps: list[Step] = [
        reasoning,
        partial(reasoning, keep_last_round=False),
        partial(newest, most_messages=8),
        tool_rounds,
        partial(long_messages, assistant=500),
    ]
    given = {part for message in history for part in message.parts if isinstance(part, Reasoning)}
    for step in steps:
        after = run(step, history, what)
        left = [part for message in after.messages for part in message.parts if isinstance(part, Reasoning)]
        assert set(left) <= given
        assert after.messages[-2] == history[-2]
        assert all(message.parts for message in after.messages)


@pytest.mark.parametrize(
    ("model", "kept"), [("deepseek-chat", ["hm", ""]), ("gpt-4o", [])], ids=["deepseek", "anyone else"]
)
def test_B3_deepseek_gets_its_reasoning_back_in_tool_turns_whatever_the_settings(model: str, kept: list[str]) -> None:
    def turn(thought: str, call: str) -> Message:
        return Message(Role.ASSISTANT, (Reasoning(thought), ToolCall(CallId(call), "ls", "{}")))

    talked = Message(Role.ASSISTANT, (Reasoning("only talk"), Text("hello")))
    history = [
        user("a"),
        turn("hm", "1"),
        result("1"),
        talked,
        user("b"),
        turn("", "2"),
        result("2"),
        talked,
        user("c"),
    ]
    after = run(partial(reasoning, keep_last_round=False), history, task(model=model))
    assert [p.text for m in after.messages for p in m.parts if isinstance(p, Reasoning)] == kept


def test_B4_a_call_that_goes_takes_its_thought_along() -> None:
    history = [user("a"), signed("1"), result("1"), assistant("ok")]
    history += [user("b"), assistant("ok"), user("c"), assistant("ok"), user("d")]
    after = run(tool_rounds, history, task(fmt="openai-responses"))
    assert [slot.at for slot in after.slots] == [0, 3, 4, 5, 6, 7, 8]


def picture(width: int) -> Image:
    head = b"\x89PNG\r\n\x1a\n" + b"\0" * 8 + struct.pack(">II", width, 600)
    return Image(data=base64.b64encode(head.ljust(60_000, b"\0")).decode(), media_type="image/png")


@pytest.mark.parametrize("keep", [5, 30])
def test_B6_pictures_are_limited_by_count_dimension_and_bytes(keep: int) -> None:
    seen = [picture(3_000 if n in (20, 39) else 800) for n in range(41)]
    history = [message for one in seen for message in (Message(Role.USER, (one,)), assistant("I see"))]
    what = task(10**6)
    after = run(partial(images, keep=keep, most_bytes=2_000_000), [*history, user("compare them")], what)
    left = [part for message in after.messages for part in message.parts if isinstance(part, Image)]
    assert len(left) <= keep
    assert keep <= 20 or picture(3_000) not in left
    assert sum(len(one.data) for one in left) < 2_000_000
    originals = {ref_of(one.data) for one in seen}
    assert all(edit.ref in originals for edit in after.edits)
    assert len(left) + len(after.edits) == 41


def test_B7_no_empty_blocks_are_left_behind() -> None:
    only_calls = Message(Role.ASSISTANT, (Text(""), Reasoning("hm"), ToolCall(CallId("1"), "ls", "{}")))
    history = [user("a"), only_calls, result("1", "x\n" * 2_000), user("b"), assistant("ok"), user("c")]
    for step in (partial(tool_rounds, rounds=1), reasoning, soft_trim, partial(hard_trim, share=0.0)):
        after = run(step, history, task())
        for message in after.messages:
            assert message.calls or message.results or message.text.strip()
            assert all(one.text.strip() for one in message.results)


def test_B8_shortened_arguments_are_still_json() -> None:
    fields = {
        "path": "src/很长.py",
        "mode": 0o644,
        "ratio": 1.10,
        "content": 'say "hi"\\n\u2028' * 5_000,
        "tags": ["a"],
    }
    arguments = json.dumps(fields)
    assert len(arguments) > 50_000
    history = [user("go"), calls("1", name="write_file", arguments=arguments), result("1"), assistant("ok"), user("x")]
    after = run(call_arguments, history, task())
    shorter = json.loads(after.messages[1].calls[0].arguments)
    assert list(shorter) == list(fields)
    assert {key: shorter[key] for key in fields if key != "content"} == {
        key: value for key, value in fields.items() if key != "content"
    }
    assert len(after.messages[1].calls[0].arguments) < 300


def test_B8_broken_arguments_are_not_made_worse() -> None:
    history = [user("go"), calls("1", arguments='{"content": "' + "x" * 5_000), result("1"), assistant("ok"), user("x")]
    assert not run(call_arguments, history, task()).edits


@pytest.mark.parametrize("cluster", ["😀", "👩‍👩‍👧‍👦", "e\u0301\u0323", "🇨🇳", "각", "\ud83d\ude00"], ids=ascii)
def test_B9_no_cut_splits_a_character(cluster: str) -> None:
    """Every offset of the cluster against the place where the cut falls."""
    whole = cluster * (4_000 // len(cluster))
    for shift in range(len(cluster) + 1):
        text = "a" * shift + whole
        history = [user(text), calls("1"), result("1", text), assistant("ok"), user("next")]
        steps: list[Step] = [partial(long_messages, user=1_000), partial(soft_trim, most_characters=1_000)]
        for step in steps:
            after = run(step, history, task(window=10**6))
            said = after.messages[0].text if step is steps[0] else after.messages[2].results[0].text
            head, _, tail = said.split("\n")
            assert head.removeprefix("a" * shift).replace(cluster, "") == ""
            assert tail.replace(cluster, "") == ""


# --- one thing too large ---------------------------------------------------------------------------


def test_F3_one_huge_result_in_a_healthy_session() -> None:
    counter = Counter("gpt-4o")
    what = Task(target=120_000, counter=counter, window=131_000)
    healthy = [system("s"), *(message for n in range(30) for message in (user("q"), assistant("word " * 1_000)))]
    huge = "\n".join(f"{n} some line of a log with several words in it" for n in range(36_000))
    assert len(huge) > 1_700_000
    history = [*healthy, user("go"), calls("x"), result("x", huge)]
    after = floor(draft_of(history, what), what)
    assert after.total <= 120_000
    assert after.messages[:-1] == tuple(history[:-1])
    shown = after.messages[-1].results[0].text
    assert huge.startswith(shown[:1_000])
    assert huge.endswith(shown[-1_000:])
    assert f"ref {ref_of(huge)}" in shown
    assert_accounted(after, what)


def test_F3_forty_large_results_at_once() -> None:
    what = task(100_000, window=131_000)
    ids = [str(n) for n in range(40)]
    history = [user("go"), calls(*ids), *(result(one, f"{one} some words of a page " * 2_000) for one in ids)]
    for step, most in ((floor, 100_000), (emergency, 78_600)):
        after = step(draft_of(history, what), what)
        assert most * 0.95 < after.total <= most
        assert len(after.messages) == 42
        assert_pairs(after)


def test_F3_results_in_one_message_with_words_of_the_user() -> None:
    both = Message(Role.TOOL, (ToolResult(CallId("1"), (Text("data " * 50_000),)), Text("please hurry")))
    what = task(5_000)
    after = floor(draft_of([user("go"), calls("1"), both], what), what)
    assert after.messages[2].text == "please hurry"
    assert after.total <= 5_000
