from dataclasses import dataclass

import pytest
from hypothesis import example, given, settings, strategies as st

from everlong.compress.steps.lossless.terminal import as_shown, terminal
from everlong.core import History, Message, Role, Text
from tests.compress.lossless import (
    COLOURED,
    ENDING,
    PICTURE,
    draft,
    histories,
    keeps_its_promises,
    said,
    task,
    tool_round,
)


@dataclass(frozen=True)
class Case:
    id: str
    text: str
    shown: str


CASES = [
    Case("plain text stays", "a\tb\nc\n", "a\tb\nc\n"),
    Case("colours", "\x1b[1;31mred\x1b[0m and \x1b[38;5;12mblue\x1b[m", "red and blue"),
    Case("a progress line in its last state", "10%\r50%\rdone", "done"),
    Case("the longer state before shows behind the shorter one", "downloading\rdone", "doneloading"),
    Case("a state wiped with blanks", "Loading...\r          \rdone", "done"),
    Case("erase to the end of the line", "downloading\rdone\x1b[K", "done"),
    Case("erase the whole line", "working\x1b[2K\rready", "ready"),
    Case("erase up to the cursor", "abc\x1b[1Kd", "   d"),
    Case("go to a column", "0%\x1b[1G100%", "100%"),
    Case("back and forth", "abc\x1b[2DX\x1b[CY", "aXcY"),
    Case("far to the right is one blank", "service\x1b[60G[ OK ]", "service [ OK ]"),
    Case("each line for itself", "1\r2\n3\r4\n", "2\n4\n"),
    Case("a return at the very end", "50%\r", "50%"),
    Case("Windows line ends", "a\r\nb\r\n", "a\r\nb\r\n"),
    Case("Windows line ends after progress", "1%\r2%\r\nb\r\r\n", "2%\r\nb\r\n"),
    Case("a spinner of backspaces", "|\b/\b-\b\\\bdone", "done"),
    Case("overstruck bold", "N\bNA\bAM\bME\bE", "NAME"),
    Case("a backspace alone deletes nothing", "abc\b\b", "abc"),
    Case("more backspaces than text", "a\b\b\bxy", "xy"),
    Case("a link shows its words", "\x1b]8;;https://example.org\x1b\\here\x1b]8;;\x1b\\", "here"),
    Case("a window title", "\x1b]0;my shell\x07$ ls", "$ ls"),
    Case("a title that never ends takes no text with it", "\x1b]0;title\nreal output", "0;title\nreal output"),
    Case("a device string", "a\x1bPq#0;2;0\nmore\x1b\\b", "ab"),
    Case("character sets and keypad modes", "\x1b(Bx\x1b=y\x1b>z\x1b#8", "xyz"),
    Case("a code that was cut off", "text\x1b[38;5", "text"),
    Case("moves between lines take no line away", "one\n\x1b[1A\x1b[2Ktwo\n", "one\ntwo\n"),
    Case("bell and zero bytes", "a\x07b\x00c\x7f", "abc"),
    Case("a wide character covers two columns", "下载中\r完成", "完成中"),
    Case("half of a wide character is none", "下载\rx", "x 载"),
    Case("marks stay with their letter", "xe\u0301\rye\u0301\r", "ye\u0301"),
    Case("a letter with its mark is one column", "e\u0301x\ry", "yx"),
    Case("joined emoji survive", "\x1b[1m👩‍💻\x1b[0m ok", "👩‍💻 ok"),
    Case("a tab passes over", "abcdefgh\r\tZ", "abcdefghZ"),
    Case("a tab wipes nothing on its way beyond", "abc\r\tZ", "abc     Z"),
    Case("nothing to see", "\x1b[0m\r\b", ""),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_what_a_terminal_shows(case: Case) -> None:
    assert as_shown(case.text) == case.shown


PIECES = ["a", "bcd", "中", "e\u0301", "\t", " ", "\r", "\n", "\r\n", "\b", "\x1b", "[", "\x1b[K", "\x1b[1K", "\x1b[2K"]
PIECES += [
    "\x1b[3G",
    "\x1b[C",
    "\x1b[2D",
    "\x1b[31m",
    "\x1b]0;x\x07",
    "\x1bP",
    "\x1b\\",
    "12;",
    "\x00",
    "\ud83d",
    "👩‍💻",
]


@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join))
@settings(max_examples=300, deadline=None)
@example("\x1b[\x1b[31m31m")
def test_what_is_shown_holds_nothing_invisible_and_stays(text: str) -> None:
    shown = as_shown(text)
    assert as_shown(shown) == shown
    assert not set(shown.replace("\r\n", "\n")) & set("\x00\x07\b\r\x1b")
    assert shown.count("\n") == text.count("\n") or "\x1bP" in text


@given(st.lists(st.text("abc ", max_size=8), min_size=1, max_size=12))
@settings(max_examples=200, deadline=None)
def test_the_fast_way_shows_what_the_careful_way_shows(states: list[str]) -> None:
    """A step back in the first column goes nowhere, but only the careful way knows it."""
    line = "\r".join(states)
    assert as_shown(line).rstrip(" ") == as_shown(f"\x1b[D{line}")


@pytest.mark.parametrize(
    "hostile", ["\x1b", "\r", "\b", "x\b", "\x1b[", "\x1b]", "\x1bP", "\rx", "\x1b[2Ky", "\x1b[999Gx"]
)
def test_a_flood_of_control_codes_is_settled(hostile: str) -> None:
    shown = as_shown(hostile * (400_000 // len(hostile)))
    assert "\x1b" not in shown
    assert "\r" not in shown


def test_a_long_line_loses_nothing_to_the_width_of_a_terminal() -> None:
    assert as_shown("x" * 5_000 + "\x1b[K") == "x" * 5_000


def history(*content: object, ending: History = ENDING) -> History:
    return (Message(Role.USER, (Text("go"),)), *tool_round(1, "bash", "{}", *content), *ending)


def test_results_are_cleaned_block_by_block_and_pictures_stay() -> None:
    after = terminal(draft(history(COLOURED, PICTURE, "plain")), task())
    words, picture, plain = after.slots[2].message.parts[0].content
    assert words.text.startswith("passed test_0\r\npassed test_1")
    assert words.text.endswith("\n100%")
    assert (picture, plain) == (PICTURE, Text("plain"))
    (edit,) = after.edits
    assert "characters were visible" in edit.reason


@pytest.mark.parametrize("blank", ["", " \n\n"], ids=repr)
def test_what_shows_nothing_says_so_in_the_language_asked_for(blank: str) -> None:
    invisible = history("\x1b[0m" * 50 + blank)
    assert said(terminal(draft(invisible), task()), 2) == "(no visible output)"
    assert said(terminal(draft(invisible), task(language="zh")), 2) == "(无可见输出)"


def test_people_and_unread_results_are_left_alone() -> None:
    talk = (Message(Role.USER, (Text(COLOURED),)), Message(Role.ASSISTANT, (Text(COLOURED),)))
    unread = tool_round(1, "bash", "{}", COLOURED)
    start = draft(talk + unread)
    assert terminal(start, task()) is start


def test_on_arrival_it_works_below_the_target_too() -> None:
    wanted = task(target=10_000)
    start = draft(history(COLOURED))
    assert terminal(start, wanted) is start
    assert terminal(start, wanted, always=True).total < start.total


@given(histories())
@settings(max_examples=40, deadline=None)
def test_it_keeps_the_promises_of_a_lossless_step(generated: History) -> None:
    keeps_its_promises(terminal, generated, task())
