"""The conversation as data: whole where it fits, clamped where not, framed whatever is in it."""

import itertools
import re

import pytest
from hypothesis import given, settings, strategies as st

from everlong.compress import Task, background
from everlong.core import CallId, Image, Message, Opaque, Role, Text, ToolCall, ToolResult, pairs_of, steps_of
from everlong.summarize.summary import as_message
from everlong.summarize.transcripts import FRAME, LINE_END, chunks, clamped, transcript
from everlong.tokens import Counter
from tests.core.build import assistant, calls, result, user
from tests.properties.histories import histories
from tests.summarize.injections import INJECTIONS, MARKS

COUNTER = Counter("gpt-4o")
SPEAKER = re.compile(r"^\[(?:user|assistant|system|tool|用户|助手|系统|工具)|^\[[^\]\n]*→", re.MULTILINE)
ANY_TEXT = st.one_of(
    st.text(max_size=60),
    st.lists(st.sampled_from(MARKS), max_size=12).map("".join),
    st.sampled_from(list(INJECTIONS.values())),
)


def read(*messages: Message, limit: int = 100_000, language: str = "en") -> str:
    return transcript(messages, counter=COUNTER, limit=limit, language=language)


def closing_of(framed: str) -> str:
    """The tag that closes the frame, by the one that opens it."""
    opening = framed.partition("\n")[0]
    assert re.fullmatch(r"<[a-z]+-[0-9a-f]{8}>", opening)
    return f"</{opening[1:]}"


def assert_closed_once_at_the_end(framed: str) -> None:
    assert framed.count(closing_of(framed)) == 1
    assert framed.endswith(closing_of(framed))


def test_who_said_what_in_order() -> None:
    said = read(user("fix a.py"), calls("1", name="bash", arguments='{"command": "make"}'), result("1", "ok"))
    assert said.split("\n")[1:-1] == ["[user] fix a.py", '[assistant → bash] {"command": "make"}', "[bash →] ok"]
    assert "[用户] 你好" in read(user("你好"), language="zh")


def test_reasoning_stays_out_and_pictures_are_named() -> None:
    picture = Image(data="aGk=" * 100, media_type="image/png")
    shot = ToolResult(CallId("1"), (Text("a page"), picture, Opaque("audio", '{"data":"aGk="}')))
    said = read(
        assistant("hello", reasoning="a private thought"),
        Message(Role.USER, (Text("look"), picture)),
        Message(Role.ASSISTANT, (ToolCall(CallId("1"), "screenshot", "{}"),)),
        Message(Role.TOOL, (shot,)),
    )
    assert "private" not in said
    assert "aGk=" not in said
    assert "[screenshot →] a page\n[image]\n[audio]" in said
    assert "[user] [image]" in said


def test_results_are_clamped_before_what_people_said() -> None:
    asked = "Please keep this sentence. " * 100
    said = read(user(asked), calls("1"), result("1", "first " + "noise " * 30_000 + "last"), limit=3_000)
    assert asked.strip() in said
    assert "[read_file →] first noise" in said
    assert "noise last" in said
    assert COUNTER.text(said) <= 3_000


def test_a_clamped_text_says_what_is_missing() -> None:
    assert clamped("a" * 90 + "z" * 10, 30) == "a" * 20 + " […70…] " + "z" * 10
    assert clamped("short", 30) == "short"


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("name", INJECTIONS)
def test_no_text_closes_a_frame_or_speaks_as_another(name: str, language: str) -> None:
    text = INJECTIONS[name]
    said = read(
        user(text),
        calls("1", name=text or "bash", arguments=text),
        result("1", text),
        assistant(text),
        language=language,
    )
    assert_closed_once_at_the_end(said)
    assert len(SPEAKER.findall(said)) == (4 if text else 2)
    assert not re.search("[\x1b\u200b\u202e\u2066\U000e0069]", said)


@settings(max_examples=150, deadline=None)
@given(ANY_TEXT, ANY_TEXT)
def test_every_frame_is_closed_once_at_its_end(text: str, other: str) -> None:
    assert_closed_once_at_the_end(read(user(text), result("1", other)))
    assert_closed_once_at_the_end(as_message(text, "en").text)
    task = Task(target=0, counter=COUNTER, language="zh")
    assert_closed_once_at_the_end(background(text, other, task))


@settings(max_examples=100, deadline=None)
@given(histories(), st.integers(60, 400))
def test_a_transcript_fits_its_limit_and_is_the_same_again(messages: tuple[Message, ...], limit: int) -> None:
    said = read(*messages, limit=limit)
    assert COUNTER.text(said) <= limit
    assert said == read(*messages, limit=limit)
    assert_closed_once_at_the_end(said)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 12_000))
def test_a_secret_that_a_clamp_would_cut_in_two_is_gone(at: int) -> None:
    key = "sk-" + "a1B2c3D4" * 6
    text = "word " * (at // 5) + key + " word" * ((12_000 - at) // 5)
    said = read(calls("1"), result("1", text), limit=400)
    assert "sk-a1" not in said
    assert "a1B2c3D4" not in said


def joined(parts: list[tuple[Message, ...]]) -> tuple[Message, ...]:
    return tuple(message for part in parts for message in part)


@settings(max_examples=100, deadline=None)
@given(histories(), st.integers(80, 600))
def test_parts_are_whole_steps_in_order_and_each_fits(messages: tuple[Message, ...], room: int) -> None:
    parts = chunks(messages, counter=COUNTER, room=room)
    assert joined(parts) == messages
    assert all(parts)
    assert sum(len(steps_of(part)) for part in parts) >= len(parts)
    assert sum(len(pairs_of(part)) for part in parts) == len(pairs_of(messages))
    for part in parts:
        assert COUNTER.text(transcript(part, counter=COUNTER, limit=room, language="zh")) <= room


def test_nothing_to_read_is_no_part() -> None:
    assert chunks((), counter=COUNTER, room=100) == []


def test_what_fits_is_one_part() -> None:
    said = (user("fix it"), calls("1"), result("1"), assistant("done"))
    assert chunks(said, counter=COUNTER, room=1_000) == [said]


def test_a_call_stays_with_its_results() -> None:
    said = (user("a " * 80), calls("1", "2"), result("1", "b " * 80), result("2", "c " * 80), assistant("d " * 80))
    assert [len(part) for part in chunks(said, counter=COUNTER, room=150)] == [1, 3, 1]


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(1, 300), min_size=1, max_size=40), st.integers(400, 1_500))
def test_there_are_no_more_parts_than_needed(lengths: list[int], room: int) -> None:
    said = tuple(user("word " * length) for length in lengths)
    parts = chunks(said, counter=COUNTER, room=room)
    for part, after in itertools.pairwise(parts):
        whole = transcript((*part, after[0]), counter=COUNTER, limit=100_000, language="en")
        assert COUNTER.text(whole) > room - 2 * FRAME - len(part)


def test_a_huge_message_is_a_part_of_its_own_and_keeps_its_ends() -> None:
    said = (user("before"), user("START " + "word " * 60_000 + "END"), user("after"))
    parts = chunks(said, counter=COUNTER, room=2_000)
    assert joined(parts) == said
    text = "".join(transcript(part, counter=COUNTER, limit=2_000, language="en") for part in parts)
    assert all(word in text for word in ("before", "START", "END", "after"))


def test_a_chunk_may_be_exactly_full() -> None:
    steps = (user("one two three"), user("four five six"))
    lines = ["[user] one two three", "[user] four five six"]
    full = FRAME + sum(LINE_END + COUNTER.text(line) for line in lines)
    assert [len(chunks(steps, counter=COUNTER, room=room)) for room in (full - 1, full)] == [2, 1]


@pytest.mark.parametrize(("length", "text"), [(30, "a" * 30), (31, "a" * 20 + " […1…] " + "a" * 10)])
def test_a_text_of_exactly_the_limit_is_not_clamped(length: int, text: str) -> None:
    assert clamped("a" * length, 30) == text
