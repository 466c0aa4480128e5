"""What tools give back, made harmless and bounded."""

import unicodedata

import pytest
from hypothesis import given, settings, strategies as st

from everlong.agent.definitions import Outcome
from everlong.agent.output import MOST_KEPT, plain, storable
from everlong.core import Image


@pytest.mark.parametrize(
    ("output", "text"),
    [
        ("plain 你好\n\ttab", "plain 你好\n\ttab"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("10%\r50%\r100%\ndone", "100%\ndone"),
        ("a\r\nb\r\n", "a\nb\n"),
        ("ab\b\bcd", "cd"),
        ("\x9b31mred\x85next", "31mred\nnext"),
        ("bell\x07 nul\0 del\x7f", "bell nul del"),
        ("abc\u202edef\u2066", "abcdef"),
        ("tag\U000e0041\U000e0042s", "tags"),
        ("half \ud800 pair", "half \ufffd pair"),
        ("page\x0cbreak\u2028line", "page\nbreak\nline"),
        ("👩‍👩‍👧 é नि 🇨🇳", "👩‍👩‍👧 é नि 🇨🇳"),
        (b"bytes \xff\xfe \xe4\xbd\xa0", "bytes \ufffd\ufffd 你"),
        (b"\x1b[2J\x1b[H", ""),
        ("\x1b", ""),
        ("\x1b[", ""),
        ("", ""),
    ],
    ids=lambda value: ascii(value)[:30],
)
def test_output_is_made_plain(output: str | bytes, text: str) -> None:
    assert plain(output) == text


HOSTILE = st.text(
    st.sampled_from("ab你 \n\t\r\b\x1b[];?0123mKGCDHJ\x07\x00\x9b\x9c\x85\u202e\ud83d\ude00\udc00é\u0301"), max_size=60
)


@settings(max_examples=300, deadline=None)
@given(HOSTILE)
def test_nothing_that_a_terminal_acts_on_is_left(output: str) -> None:
    text = plain(output)
    assert not [c for c in text if unicodedata.category(c) in ("Cc", "Cs") and c not in "\n\t"]
    assert plain(text) == text


def test_100_megabytes_are_not_kept_whole() -> None:
    images = (Image("abcd", "image/png"),)
    outcome = storable(Outcome("begin\n" + "\x1b[31mx\x1b[0m\n" * 10_000_000 + "end", failed=True, images=images))
    assert len(outcome.text) < MOST_KEPT + 200
    assert outcome.text.startswith("begin\nx\n")
    assert outcome.text.endswith("x\nend")
    assert "characters left out here; they were not stored]" in outcome.text
    assert (outcome.failed, outcome.images) == (True, images)


@pytest.mark.parametrize(
    "piece", ["\r", "\b", "a\r", "\x1b[", "\x1b[9999C", "\x1b]", "\x1bP", "\x1b[K", "你\r", "\t\b"], ids=ascii
)
def test_output_that_repeats_what_is_costly_ends(piece: str) -> None:
    assert len(storable(Outcome(piece * 100_000)).text) <= 1_000_000
