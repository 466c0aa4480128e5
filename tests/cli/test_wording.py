"""The words: both languages say the same, and nothing of a stranger acts."""

import re
from string import Formatter

import pytest

from everlong.cli.maps.markup import figure, preview, said
from everlong.cli.maps.wording import TEXTS, Wording, language_from
from everlong.cli.maps.wording_chinese import OBJECTIONS, REASONS, in_chinese
from everlong.cli.terminal.text import clean, one_line
from everlong.core import Protection
from everlong.wire import problems


def names(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name}


@pytest.mark.parametrize("key", TEXTS)
def test_both_languages_say_the_same(key: str) -> None:
    english, chinese = TEXTS[key]
    assert english
    assert chinese
    assert names(english.rpartition("|")[2]) == names(chinese)


@pytest.mark.parametrize("row", [*OBJECTIONS, *REASONS], ids=lambda row: row[0][:40])
def test_every_reason_has_its_chinese(row: tuple[str, str]) -> None:
    english, chinese = row
    values = {name: f"«{name}»" for name in names(english)}
    assert names(chinese) == names(english)
    assert in_chinese(english.format(**values)) == chinese.format(**values)


def test_a_reason_that_nobody_translated_stays() -> None:
    assert in_chinese("because of the weather") == "because of the weather"
    assert Wording("zh").reason("because of the weather") == "because of the weather"


@pytest.mark.parametrize("reason", list(Protection), ids=str)
def test_every_protection_has_its_words(reason: Protection) -> None:
    assert Wording("en").known(reason) == reason.value
    assert re.search(r"[\u4e00-\u9fff]", Wording("zh").known(reason))


@pytest.mark.parametrize(
    ("fmt", "payload"),
    [
        ("openai-chat", {"messages": [{"role": "assistant", "content": "", "tool_calls": [{"id": "a"}]}]}),
        ("openai-chat", {"messages": [{"role": "tool", "content": "x", "tool_call_id": "b"}]}),
        ("anthropic", {"messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c"}]}]}),
        ("openai-responses", {"input": [{"type": "function_call", "call_id": "d", "name": "n", "arguments": "{"}]}),
        ("gemini", {"contents": [{"role": "model", "parts": [{"text": ""}]}]}),
    ],
    ids=["calls", "results", "anthropic", "responses", "gemini"],
)
def test_what_providers_object_to_is_said_in_chinese(fmt: str, payload: dict) -> None:
    found = problems(fmt, payload)
    assert found
    for problem in found:
        assert re.search(r"[\u4e00-\u9fff]", in_chinese(problem.text)), problem.text


def test_one_and_many() -> None:
    say = Wording("en")
    assert [say.many("rounds", n) for n in (0, 1, 2, 1_200)] == ["0 rounds", "1 round", "2 rounds", "1 200 rounds"]
    assert Wording("zh").many("rounds", 1) == "1 轮"


@pytest.mark.parametrize(
    ("environment", "language"),
    [
        ({"LANG": "zh_CN.UTF-8"}, "zh"),
        ({"LANG": "zh"}, "zh"),
        ({"LANG": "en_GB.UTF-8"}, "en"),
        ({"LC_ALL": "C", "LANG": "zh_CN.UTF-8"}, "en"),
        ({"LC_ALL": "", "LC_MESSAGES": "zh_TW", "LANG": "de_DE"}, "zh"),
        ({"LANG": "zha_CN"}, "en"),
        ({}, "en"),
    ],
    ids=["Chinese", "bare", "English", "LC_ALL first", "LC_MESSAGES next", "another language", "nothing"],
)
def test_the_language_comes_from_the_locale(environment: dict[str, str], language: str) -> None:
    assert language_from(environment) == language


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07x", "x"),
        ("a\r\nb\rc", "a\nb\nc"),
        ("a\x00\x07\x7f\x9bb", "ab"),
        ("\u202eabc\u202c\u2066d\u2069\u200f", "abcd"),
        ("half \ud83d pair", "half \ufffd pair"),
        ("tab\there 中文 🙂 e\u0301", "tab\there 中文 🙂 e\u0301"),
        ("\x1b", ""),
    ],
    ids=["colour", "title", "line ends", "controls", "direction", "surrogate", "words stay", "lone escape"],
)
def test_a_text_is_shown_without_what_acts(text: str, shown: str) -> None:
    assert clean(text) == shown


def test_one_line_keeps_the_narrow_space_of_figures() -> None:
    assert one_line(f"  a\n\t b {figure(12_345)} ") == "a b 12\u202f345"


def test_markup_is_escaped() -> None:
    assert said('<a href="x">\'&\n b') == "&lt;a href=&quot;x&quot;&gt;&#x27;&amp; b"


@pytest.mark.parametrize(
    ("text", "room", "shown", "left"),
    [("abc", 10, "abc", 0), ("abcdef", 4, "abcd", 2), ("a<b", 5, "a&lt;", 1), ("中文字", 7, "中文", 1), ("", 5, "", 0)],
    ids=["whole", "cut", "escapes count", "bytes count", "empty"],
)
def test_a_preview_fits_its_room(text: str, room: int, shown: str, left: int) -> None:
    assert preview(text, room) == (shown, left)
