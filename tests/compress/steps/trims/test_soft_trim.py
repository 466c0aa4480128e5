"""One large result keeps its first and last lines."""

import re

import pytest

from everlong.compress.draft import draft_of
from everlong.compress.steps.trims.soft_trim import soft_trim
from everlong.core import CallId, Image, Message, Role, Text, ToolResult, ref_of
from tests.compress.talks import COUNTER, assert_lawful, draft, task
from tests.core.build import assistant, calls, result, system, user

PICTURE = Image(url="https://example.org/a.png")


def talk(text: str) -> tuple[Message, ...]:
    return system("s"), user("go"), calls("1"), result("1", text), assistant("read it"), user("and now?")


def numbered(count: int, last: str = "") -> str:
    return "\n".join([*(f"line {n}" for n in range(1, count + 1)), *([last] if last else [])])


def test_head_marker_tail() -> None:
    text = numbered(10_000)
    before = draft(*talk(text))
    after = soft_trim(before, task())
    lines = after.messages[3].results[0].text.split("\n")
    assert lines[:20] == text.split("\n")[:20]
    assert lines[-10:] == text.split("\n")[-10:]
    left_out = COUNTER.text(text) - COUNTER.text("\n".join(lines[:20])) - COUNTER.text("\n".join(lines[21:]))
    assert len(lines) == 31
    found = re.fullmatch(r"\[9970 lines left out here, about (\d+) tokens; (.*)\]", lines[20])
    assert found
    assert int(found[1]) == pytest.approx(left_out, abs=1)
    assert found[2] == f"30 of 10000 lines shown; continue at line 21; ref {ref_of(text)}"
    assert_lawful(before, after, task())


def test_a_result_within_its_share_is_left_alone() -> None:
    before = draft(*talk(numbered(100)))
    assert soft_trim(before, task(window=10_000)) == before


def test_an_unread_result_is_left_alone() -> None:
    before = draft(user("go"), calls("1"), result("1", numbered(10_000)))
    assert soft_trim(before, task()) == before


@pytest.mark.parametrize(
    ("last", "kept"),
    [
        ("Traceback (most recent call last):", 41),
        ("合计：3 项失败", 41),
        ("exit code 2", 41),
        ("nothing of note", 31),
    ],
)
def test_an_ending_that_tells_how_it_ended_is_kept_longer(last: str, kept: int) -> None:
    text = "\n".join([numbered(5_000), last, *(f"after {n}" for n in range(19))])
    after = soft_trim(draft(*talk(text)), task())
    shown = after.messages[3].results[0].text
    assert len(shown.split("\n")) == kept
    assert (last in shown) == (kept == 41)


def test_only_the_end_is_looked_at() -> None:
    text = "\n".join([numbered(2_000), "fatal error", numbered(2_000)])
    assert len(soft_trim(draft(*talk(text)), task()).messages[3].results[0].text.split("\n")) == 31


@pytest.mark.parametrize(("end", "tail"), [("y", 1 / 3), ('"}]}', 1 / 2)], ids=["plain", "the end of JSON"])
def test_few_long_lines_are_cut_inside(end: str, tail: float) -> None:
    text = "x" * 40_000 + "y" * 20_000 + end
    before = draft(*talk(text))
    after = soft_trim(before, task())
    shown = after.messages[3].results[0].text
    assert COUNTER.text(shown) <= 600
    head, marker, rest = shown.split("\n")
    assert "the cut is in line 1 of 1" in marker
    assert len(rest) / (len(head) + len(rest)) == pytest.approx(tail, abs=0.02)
    assert rest.endswith(end)
    assert_lawful(before, after, task())


def test_characters_may_be_the_unit() -> None:
    text = numbered(200)  # 1 491 characters, 800 tokens
    assert soft_trim(draft(*talk(text)), task(window=6_000), unit="characters") == draft(*talk(text))
    after = soft_trim(draft(*talk(text)), task(window=4_000), unit="characters")
    assert len(after.messages[3].results[0].text.split("\n")) == 31


def test_a_result_of_dense_text_ends_within_its_share_of_tokens() -> None:
    after = soft_trim(draft(*talk("量子纠缠与薛定谔方程。" * 3_000)), task())
    assert COUNTER.text(after.messages[3].results[0].text) <= 600


def test_pictures_stay_where_they_are() -> None:
    blocks = (Text(numbered(1_000)), PICTURE, Text(numbered(1_000)))
    message = Message(Role.TOOL, (ToolResult(CallId("1"), blocks),))
    before = draft(user("go"), calls("1"), message, assistant("ok"), user("next"))
    after = soft_trim(before, task())
    words, picture = after.messages[2].results[0].content
    assert picture == PICTURE
    assert isinstance(words, Text)
    assert after.edits[0].ref == ref_of(message.results[0].text)
    assert_lawful(before, after, task())


def test_its_own_output_is_not_trimmed_again_by_anyone() -> None:
    once = soft_trim(draft(*talk("z" * 50_000)), task()).messages
    assert soft_trim(draft_of(once, task()), task()).messages == once


@pytest.mark.parametrize("window", [0, 1, 100])
def test_a_tiny_window_still_ends_in_something_readable(window: int) -> None:
    after = soft_trim(draft(*talk(numbered(10_000))), task(window=window))
    shown = after.messages[3].results[0].text
    assert "line 1\n" in shown
    assert COUNTER.text(shown) <= 200
