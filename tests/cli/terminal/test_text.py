"""Text made fit to be shown: nothing of a stranger acts on a terminal or in a page."""

import pytest

from everlong.cli.maps.markup import escaped, preview
from everlong.cli.terminal.text import clean, one_line


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


def test_one_line_keeps_narrow_spaces() -> None:
    assert one_line("  a\n\t b 12\u202f345 ") == "a b 12\u202f345"


def test_markup_is_escaped() -> None:
    assert escaped('<a href="x">\'&\n b') == "&lt;a href=&quot;x&quot;&gt;&#x27;&amp; b"


@pytest.mark.parametrize(
    ("text", "room", "shown", "left"),
    [("abc", 10, "abc", 0), ("abcdef", 4, "abcd", 2), ("a<b", 5, "a&lt;", 1), ("中文字", 7, "中文", 1), ("", 5, "", 0)],
    ids=["whole", "cut", "escapes count", "bytes count", "empty"],
)
def test_a_preview_fits_its_room(text: str, room: int, shown: str, left: int) -> None:
    assert preview(text, room) == (shown, left)
