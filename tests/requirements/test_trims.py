"""The steps that leave something out do what the design documents ask. One test for each line, named after it."""

import copy
import json
from functools import partial

import pytest
from hypothesis import given, settings, strategies as st

from everlong.compress import (
    Draft,
    Task,
    draft_of,
    emergency,
    hard_trim,
    long_messages,
    newest,
    priority,
    reasoning,
    soft_trim,
    tool_rounds,
)
from everlong.compress.draft import Step
from everlong.compress.steps.priority import Priority, priority_of
from everlong.core import History, Message, Reasoning, Role, Text, pairs_of
from tests.compress.talks import COUNTER, assert_lawful, assert_pairs, talks, task
from tests.core.build import assistant, calls, result, system, user

WORDS = "word " * 300


def run(step: Step, history: list[Message] | History, what: Task) -> Draft:
    before = draft_of(history, what)
    after = step(before, what)
    assert_lawful(before, after, what)
    return after


def tool_talk(*results: str, name: str = "run", arguments: str = "{}") -> list[Message]:
    """One round with these results, answered, and a new question."""
    steps = [
        message
        for number, text in enumerate(results)
        for message in (calls(str(number), name=name, arguments=arguments), result(str(number), text))
    ]
    return [system("s"), user("go"), *steps, assistant("ok"), user("next")]


def result_texts(after: Draft) -> list[str]:
    return [one.text for message in after.messages for one in message.results]


# --- N1: nanobot, nine stages ----------------------------------------------------------------------


@pytest.mark.parametrize("unit", ["characters", "tokens"])
def test_N1_2_1_soft_trim_keeps_head_and_tail(unit: str) -> None:
    lines = [f"{n}: some output of a tool" for n in range(10_000)]
    what = task(window=64_000, language="zh")
    after = run(partial(soft_trim, unit=unit), tool_talk("\n".join(lines)), what)
    shown = result_texts(after)[0].split("\n")
    assert (shown[:20], shown[-10:], len(shown)) == (lines[:20], lines[-10:], 31)
    assert shown[20].startswith("[已省略 9970 行，约 ")


def test_N1_2_1_below_thirty_percent_of_the_window_nothing_is_trimmed() -> None:
    text = "x\n" * 9_000
    assert not run(partial(soft_trim, unit="characters"), tool_talk(text), task(window=60_000)).edits
    assert run(partial(soft_trim, unit="characters"), tool_talk(text), task(window=59_000)).edits


def test_N1_2_2_hard_trim_takes_the_oldest_results_and_names_tool_and_size() -> None:
    what = task(window=2_000, language="zh")
    after = run(hard_trim, tool_talk(*[WORDS] * 5), what)
    size = COUNTER.message(result("0", WORDS))
    assert [len(text) < 200 for text in result_texts(after)] == [True, True, False, False, False]
    assert result_texts(after)[0].startswith(f"[工具 run 的结果已省略：原始长度约 {size} tokens；引用 ")


@pytest.mark.parametrize("name", ["read_file", "write_file", "edit_file"])
def test_N1_2_3_placeholders_of_file_tools_keep_the_path(name: str) -> None:
    arguments = json.dumps({"path": "src/everlong/文件.py", "content": "x" * 1_000})
    after = run(hard_trim, tool_talk(*[WORDS] * 5, name=name, arguments=arguments), task())
    assert all(fact in result_texts(after)[0] for fact in (name, "src/everlong/文件.py"))


@pytest.mark.parametrize("last", ["and now?", "word " * 100])
def test_N1_3_3_emergency_ends_under_sixty_percent_with_system_and_question_whole(last: str) -> None:
    what = task(1_500, window=2_000)
    rounds = [message for n in range(10) for message in tool_talk(WORDS, WORDS)[1:-1]]
    history = [system("be brief"), *rounds, user(last)]
    after = emergency(draft_of(history, what), what)
    assert after.total <= 1_200
    assert (after.messages[0], after.messages[-1]) == (history[0], history[-1])
    assert sum(message.role is Role.USER for message in after.messages) in (2, 5)
    assert all("\n" not in text for text in result_texts(after))
    assert_pairs(after)


def test_N1_6_an_old_HIGH_outlives_a_new_LOW() -> None:
    old = [user("go"), calls("1", name="run_tests"), result("1", "重要：接口不要改 " + WORDS), assistant("ok")]
    new = [user("look"), calls("2", name="read_file"), result("2", WORDS), assistant("ok"), user("next")]
    what = task(500)
    after = run(priority, [*old, *new], what)
    assert [edit.at for edit in after.edits] == [6]


def test_N1_6_classification_by_keywords_and_tool_names() -> None:
    assert priority_of(result("1", "x", name="read_file")) is Priority.LOW
    assert priority_of(user("请记住以后都用 TypeScript")) is Priority.HIGH
    assert priority_of(user("please remember: tabs, not spaces")) is Priority.HIGH
    assert priority_of(result("1", "x"), "shell", '{"command": "grep -n foo a.py"}') is Priority.LOW
    assert priority_of(result("1", "x"), "shell", '{"command": "make"}') is Priority.NORMAL


@pytest.mark.parametrize(("message", "limit"), [(user("u" * 50_000), 30_000), (assistant("a" * 50_000), 20_000)])
def test_N1_7_long_messages_keep_head_and_tail_in_their_limit(message: Message, limit: int) -> None:
    after = run(long_messages, [message, user("next"), message], task(language="zh"))
    text = next(slot.message.text for slot in after.slots if slot.at == 0)
    head, marker, tail = text.split("\n")
    assert len(text) == pytest.approx(limit, rel=0.02)
    assert len(text) <= limit
    assert len(head) / len(tail) == pytest.approx(60 / 20, rel=0.01)
    assert marker.startswith(f"[已省略 {50_000 - len(head) - len(tail)} 字符")


def test_N1_7_the_last_round_is_exempt_and_zero_switches_it_off() -> None:
    history = [user("u" * 50_000), assistant("a" * 50_000), user("u" * 50_000), assistant("a" * 50_000)]
    assert {edit.at for edit in run(long_messages, history, task()).edits} == {0, 1}
    assert not run(partial(long_messages, user=0, assistant=0), history, task()).edits


# --- N3: nanobot V3.1 ------------------------------------------------------------------------------

V3_STEPS: tuple[Step, ...] = (
    partial(reasoning, longest=2_000),
    partial(soft_trim, most_characters=15_000),
    hard_trim,
    partial(long_messages, assistant=30_000, shares=(0.6, 0.2)),
)


@given(talks())
@settings(max_examples=20, deadline=None)
def test_N3_1_the_input_is_never_changed(history: History) -> None:
    before, kept = draft_of(history, task()), copy.deepcopy(history)
    for step in V3_STEPS:
        step(before, task())
    assert before.messages == history == kept


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("\n".join(["line"] * 10_000), 31),
        ("\n".join(["x" * 900] * 200), None),
        ("x" * 9_000 + "\n" + "y" * 9_000, None),
        ("short", 1),
    ],
    ids=["many lines", "thirty lines are still too long", "few long lines", "short"],
)
def test_N3_4_a_result_ends_within_its_characters(text: str, lines: int | None) -> None:
    what = task(window=10**6)
    shown = result_texts(run(partial(soft_trim, most_characters=15_000), tool_talk(text), what))[0]
    assert len(shown) <= 15_000
    assert lines is None or len(shown.split("\n")) == lines
    assert (shown == text) == (len(text) <= 15_000)


@given(talks(), st.integers(1, 12))
@settings(max_examples=40, deadline=None)
def test_N3_5_a_cut_never_separates_a_call_from_its_results(history: History, limit: int) -> None:
    what = task(10**9)
    after = newest(draft_of(history, what), what, most_messages=limit, whole_rounds=False)
    answered = {pair.result for pair in pairs_of(after.messages)}
    for at, message in enumerate(after.messages):
        assert all((at, n) in answered for n, _ in enumerate(message.results))


def test_N3_5_the_last_round_is_everything_from_the_last_user_message_on() -> None:
    loop = [message for n in "123" for message in (calls(n), result(n, WORDS))]
    history = [user("old"), calls("0"), result("0", WORDS), assistant("ok"), user("go"), *loop, assistant("hm")]
    after = run(partial(hard_trim, share=0.0), history, task())
    assert [edit.at for edit in after.edits] == [2]


@pytest.mark.parametrize(("length", "gone"), [(2_000, False), (2_001, True)])
def test_N3_6_long_reasoning_goes_outside_the_last_round(length: int, *, gone: bool) -> None:
    thought = Message(Role.ASSISTANT, (Reasoning("x" * length), Text("so")))
    after = run(partial(reasoning, longest=2_000), [user("a"), thought, user("b"), thought], task())
    assert [any(isinstance(part, Reasoning) for part in message.parts) for message in after.messages] == [
        False,
        not gone,
        False,
        True,
    ]


def test_N3_7_hard_trimming_stops_as_soon_as_it_is_under_the_limit() -> None:
    for count in range(4, 8):
        after = run(hard_trim, tool_talk(*[WORDS] * count), task(window=2_000))
        left = sum(slot.tokens for slot in after.slots if slot.message.results)
        assert left <= 1_000 < left + after.edits[-1].saved
        assert [edit.at for edit in after.edits] == list(range(3, 3 + 2 * len(after.edits), 2))


def test_N3_8_emergency_cuts_to_about_ten_messages_then_about_four() -> None:
    what = task(2_000, window=3_000)
    step = partial(emergency, keep=(10, 4), unit="messages")
    for words, most in ((80, 12), (600, 5)):
        said = [message for n in range(30) for message in (user("q"), assistant("word " * words))]
        after = step(draft_of([system("s"), *said, user("next")], what), what)
        assert most - 2 <= len(after.messages) <= most
        assert after.total <= 1_800


def test_N3_14_a_result_above_its_share_gets_three_characters_a_token() -> None:
    what = task(window=10_000)
    text = "many words in one single line " * 2_000
    shown = result_texts(run(soft_trim, tool_talk(text), what))[0]
    assert 8_500 < len(shown) <= 9_000
    assert not run(soft_trim, tool_talk("word " * 2_900), what).edits


def test_N3_14_long_messages_keep_18_000_and_6_000_characters() -> None:
    step = partial(long_messages, assistant=30_000, shares=(0.6, 0.2))
    history = [user("u" * 40_000), assistant("a" * 30_001), user("next"), assistant("b" * 40_000)]
    after = run(step, history, task())
    for message in after.messages[:2]:
        head, _, tail = message.text.split("\n")
        assert (len(head), len(tail)) == (18_000, 6_000)
    assert after.messages[3] == history[3]


# --- the other documents ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("count", "kept"), [(50, 50), (51, 11), (52, 10), (55, 11)], ids=["50", "51", "52", "the document's 55"]
)
def test_SB_1_above_fifty_the_cut_goes_at_once_to_at_least_ten(count: int, kept: int) -> None:
    history = [(user if n % 2 == 0 else assistant)(f"message {n}") for n in range(count)]
    step = partial(newest, most_messages=50, least_messages=10)
    after = run(step, history, task(10**6))
    assert [message.text for message in after.messages] == [f"message {n}" for n in range(count - kept, count)]
    assert after.messages[0].role is Role.USER


def test_CB_2_tool_calls_older_than_two_rounds_are_left_out_and_text_stays() -> None:
    rounds = [
        message for n in "1234" for message in (user(f"ask {n}"), calls(n), result(n, WORDS), assistant(f"answer {n}"))
    ]
    after = run(tool_rounds, rounds, task())
    assert [message.text for message in after.messages if message.text] == [
        text for n in "1234" for text in (f"ask {n}", f"answer {n}")
    ]
    assert [call.id for message in after.messages for call in message.calls] == ["3", "4"]
    assert after.history == tuple(rounds)


SIMPLE: tuple[Step, ...] = (
    partial(newest, most_messages=12, whole_rounds=False),
    partial(long_messages, user=4_000, assistant=4_000),
)


@pytest.mark.parametrize(
    ("history", "expected"),
    [
        ([], 0),
        ([user("hi"), assistant("hello"), user("next")], 3),
        ([*[user("u" * 9_000), assistant("a" * 9_000)] * 10, user("next")], 12),
    ],
    ids=["empty", "nothing to do", "too many, too long"],
)
def test_CS_4_last_twelve_messages_of_at_most_4_000_characters(history: list[Message], expected: int) -> None:
    what = task(10**6)
    after = draft_of(history, what)
    for step in SIMPLE:
        after = step(after, what)
    assert len(after.messages) == expected
    assert all(len(message.text) <= 4_000 for message in after.messages)
    assert expected == 12 or after.messages == tuple(history)
