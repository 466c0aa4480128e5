"""What the documents leave out or shorten, by their own presets, as the engine sends it. One test for each line."""

import copy
import json
import re

import pytest
from hypothesis import given, settings, strategies as st

from everlong.core import History, Message, Reasoning, Role, Text, pairs_of
from everlong.engine import Call, Engine, Settings
from everlong.store import MemoryThreads
from everlong.tokens import Counter
from tests.compress.talks import talks
from tests.core.build import assistant, calls, result, system, user

MODEL = "gpt-4o"
COUNTER = Counter(MODEL)
WORDS = "word " * 300


def sent(preset: str, history: list[Message] | History, window: int = 64_000, **options: object) -> History:
    """What the engine sends for a thread with these messages."""
    store = MemoryThreads()
    store.create("t")
    store.append("t", list(history))
    engine = Engine(store, settings=Settings().with_values({"preset": preset, "window": window, **options}))
    return engine.blocking.prepare("t", Call(model=MODEL)).request.messages


def tool_talk(*results: str, name: str = "run", arguments: str = "{}") -> list[Message]:
    """One round with these results, answered, and a new question."""
    steps = [
        message
        for number, text in enumerate(results)
        for message in (calls(str(number), name=name, arguments=arguments), result(str(number), text))
    ]
    return [system("s"), user("go"), *steps, assistant("ok"), user("next")]


def result_texts(messages: History) -> list[str]:
    return [one.text for message in messages for one in message.results]


def lines_of(*kept: int) -> list[str]:
    return [f"{n}: some output of a tool" for n in range(*kept)]


# --- N1: nanobot, nine stages ----------------------------------------------------------------------


@pytest.mark.parametrize("preset", ["nanobot", "nanobot-v3"])
def test_N1_2_1_soft_trim_keeps_head_and_tail(preset: str) -> None:
    shown = result_texts(sent(preset, tool_talk("\n".join(lines_of(10_000)))))[0].split("\n")
    assert (shown[:20], shown[-10:], len(shown)) == (lines_of(20), lines_of(9_990, 10_000), 31)
    assert "9970" in shown[20].replace(",", "")


@pytest.mark.parametrize(("window", "trimmed"), [(60_000, False), (59_000, True)])
def test_N1_2_1_the_limit_is_thirty_percent_of_the_window_in_characters(window: int, *, trimmed: bool) -> None:
    text = "x\n" * 9_000
    assert (result_texts(sent("nanobot", tool_talk(text), window))[0] != text) == trimmed


def test_N1_2_1_the_limit_is_a_setting() -> None:
    text = "x\n" * 9_000
    assert result_texts(sent("nanobot", tool_talk(text), tool_result_soft_limit=0.1))[0] != text
    assert result_texts(sent("nanobot", tool_talk(text), tool_result_soft_limit=0.9))[0] == text


@pytest.mark.parametrize("preset", ["nanobot", "nanobot-v3"])
def test_N1_2_2_N3_7_hard_trim_takes_the_oldest_until_it_is_under_half_the_window(preset: str) -> None:
    size, window = COUNTER.message(result("0", WORDS)), 6_000
    for count in (9, 10, 11, 12, 13):
        texts = result_texts(sent(preset, tool_talk(*[WORDS] * count), window))
        short = [text != WORDS for text in texts]
        assert short == sorted(short, reverse=True), "the oldest first"
        left = (count - sum(short)) * size
        assert left <= window // 2
        if any(short):
            assert left + size + 100 > window // 2 - sum(short) * 60, "no more than it needs"
            assert f"{size}" in texts[0].replace(",", "")
            assert "run" in texts[0]


@pytest.mark.parametrize("name", ["read_file", "write_file", "edit_file"])
def test_N1_2_3_placeholders_of_file_tools_keep_the_path(name: str) -> None:
    arguments = json.dumps({"path": "src/everlong/文件.py", "content": "x" * 100})
    texts = result_texts(sent("nanobot", tool_talk(*[WORDS] * 14, name=name, arguments=arguments), 6_000))
    assert all(fact in texts[0] for fact in (name, "src/everlong/文件.py"))
    assert texts[-1] == WORDS


@pytest.mark.parametrize(
    ("old", "new", "goes"),
    [
        (("run_tests", "{}", "重要：接口不要改 "), ("read_file", "{}", ""), "new"),
        (("run_tests", "{}", "decision: use SQLite. "), ("shell", '{"command": "grep -n foo a.py"}', ""), "new"),
        (("run_tests", "{}", "plain "), ("shell", '{"command": "make"}', "plain "), "old"),
        (("run_tests", "{}", "plain "), ("list_files", "{}", "plain "), "new"),
        (("read_file", "{}", "important: "), ("run_tests", "{}", "plain "), "old"),
    ],
    ids=["Chinese", "English, a query of the shell", "equals: the older", "a listing", "a file can be read again"],
)
def test_N1_6_what_goes_first_is_the_least_important_then_the_oldest(
    old: tuple[str, str, str], new: tuple[str, str, str], goes: str
) -> None:
    history: list[Message] = []
    for number, (tool, arguments, words) in enumerate((old, new)):
        said = result(str(number), words + "word " * 1_000, name=tool)
        history += [user(f"q{number}"), calls(str(number), name=tool, arguments=arguments), said, assistant("ok")]
    texts = result_texts(
        sent("nanobot", [*history, user("next")], 6_000, tool_result_soft_limit=1.0, tool_result_hard_limit=0.3)
    )
    short = [len(text) < 300 for text in texts]
    assert short == ([True, False] if goes == "old" else [False, True])


@pytest.mark.parametrize(("message", "limit"), [(user("u " * 25_000), 30_000), (assistant("a " * 25_000), 20_000)])
def test_N1_7_long_messages_keep_head_and_tail_in_their_limit(message: Message, limit: int) -> None:
    before = [] if message.role is Role.USER else [user("q")]
    after = [assistant("ok")] if message.role is Role.USER else []
    text = sent("nanobot", [*before, message, *after, user("next")], 200_000)[len(before)].text
    head, marker, tail = text.split("\n")
    assert 0.97 * limit <= len(text) <= limit
    assert len(head) / len(tail) == pytest.approx(60 / 20, rel=0.01)
    assert str(50_000 - len(head) - len(tail)) in marker.replace(",", "")


def test_N1_7_the_last_round_is_exempt_and_zero_switches_it_off() -> None:
    long = [user("u " * 25_000), assistant("a " * 25_000)]
    first, second, third, *_ = sent("nanobot", [*long, long[0]], 200_000)
    assert (len(first.text) <= 30_000, len(second.text) <= 20_000, third.text) == (True, True, long[0].text)
    off = sent("nanobot", [*long, user("next")], 200_000, max_user_message_chars=0, max_assistant_message_chars=0)
    assert [message.text for message in off[:2]] == [message.text for message in long]


# --- N3: nanobot V3.1 ------------------------------------------------------------------------------


@pytest.mark.parametrize("preset", ["nanobot", "nanobot-v3"])
@given(talks())
@settings(max_examples=15, deadline=None)
def test_N3_1_the_input_is_never_changed(preset: str, history: History) -> None:
    kept = copy.deepcopy(history)
    sent(preset, (*history, user("next")), 16_000)
    assert history == kept


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("\n".join(["line"] * 10_000), 31),
        ("\n".join(["x " * 450] * 200), None),
        ("x " * 4_500 + "\n" + "y " * 4_500, None),
        ("short", 1),
    ],
    ids=["many lines", "thirty lines are still too long", "few long lines", "short"],
)
def test_N3_4_a_result_ends_within_its_characters(text: str, lines: int | None) -> None:
    shown = result_texts(sent("nanobot-v3", tool_talk(text), 200_000))[0]
    assert len(shown) <= 15_000
    assert lines is not None or len(shown) > 13_000, "not much less than it may have"
    assert lines is None or len(shown.split("\n")) == lines
    assert (shown == text) == (len(text) <= 15_000)


@pytest.mark.parametrize("preset", ["nanobot", "nanobot-v3", "static-buffer", "chatbox", "simple"])
@given(talks(), st.integers(2_000, 40_000))
@settings(max_examples=15, deadline=None)
def test_N3_5_a_cut_never_separates_a_call_from_its_results(preset: str, history: History, window: int) -> None:
    messages = sent(preset, (*history, user("next")), window)
    answered = {pair.result for pair in pairs_of(messages)}
    for at, message in enumerate(messages):
        assert all((at, n) in answered for n, _ in enumerate(message.results))


def test_N3_5_the_last_round_is_everything_from_the_last_user_message_on() -> None:
    loop = [message for n in "123" for message in (calls(n), result(n, "word " * 1_100))]
    past = [user("old"), calls("0"), result("0", WORDS), assistant("ok")]
    texts = result_texts(sent("nanobot-v3", [*past, user("go"), *loop], 6_000))
    assert [text in (WORDS, "word " * 1_100) for text in texts] == [False, True, True, True]


@pytest.mark.parametrize(("length", "gone"), [(2_000, False), (2_001, True)])
def test_N3_6_long_reasoning_goes_outside_the_last_round(length: int, *, gone: bool) -> None:
    thought = Message(Role.ASSISTANT, (Reasoning(("x " * length)[:length]), Text("so")))
    looked = Message(Role.ASSISTANT, (*thought.parts[:1], *calls("1").parts))
    messages = sent("nanobot-v3", [user("a"), thought, user("b"), looked, result("1", "x")])
    thoughts = [any(isinstance(part, Reasoning) for part in message.parts) for message in messages]
    assert thoughts == [False, not gone, False, True, False]


def test_N3_14_a_result_above_its_share_gets_three_characters_a_token() -> None:
    text = "many words in one single line " * 2_000
    assert 8_500 < len(result_texts(sent("nanobot-v3", tool_talk(text), 10_000))[0]) <= 9_000
    fits = "word " * 2_900
    assert result_texts(sent("nanobot-v3", tool_talk(fits), 10_000))[0] == fits


def test_N3_14_long_messages_keep_18_000_and_6_000_characters() -> None:
    history = [user("u " * 20_000), assistant("a " * 15_001), user("b " * 20_000)]
    messages = sent("nanobot-v3", history, 200_000)
    for message in messages[:2]:
        head, _, tail = message.text.split("\n")
        assert (len(head), len(tail)) == (18_000, 6_000)
    assert messages[2] == history[2]


# --- the other documents ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("count", "first"), [(49, 0), (51, 40), (55, 40), (89, 40), (91, 80)], ids=["49", "51", "55", "89", "91"]
)
def test_SB_1_above_fifty_the_cut_goes_at_once_to_at_least_ten_and_the_buffer_grows_again(
    count: int, first: int
) -> None:
    history = [(user if n % 2 == 0 else assistant)(f"message {n}") for n in range(count)]
    messages = sent("static-buffer", history)
    assert [message.text for message in messages] == [f"message {n}" for n in range(first, count)]


def test_CB_2_tool_calls_older_than_two_rounds_are_left_out_and_text_stays() -> None:
    rounds = [
        message for n in "1234" for message in (user(f"ask {n}"), calls(n), result(n, WORDS), assistant(f"answer {n}"))
    ]
    messages = sent("chatbox", [*rounds, user("next")])
    said = [text for n in "1234" for text in (f"ask {n}", f"answer {n}")]
    assert [message.text for message in messages if re.match(r"ask|answer", message.text)] == said
    assert [call.id for message in messages for call in message.calls] == ["3", "4"]
