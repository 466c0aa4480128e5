"""What a person is shown of an action: all of it, nothing that acts, and no two texts alike."""

import re
import unicodedata

from hypothesis import example, given, strategies as st

from everlong.agent.permissions.visible import LONGEST_DIFF_LINE, MOST_DIFF_LINES, cut, is_plain, visible

HIDDEN = st.sampled_from(
    " \t\n\r\x00\x1b\x7f\x9b\u00a0\u200b\u200d\u202e\u2066\u2028\ufeff\ufe0f\u3164\u2800⟨⟩⇥·\u0301"
)
TEXTS = st.one_of(
    st.text(max_size=200),
    st.text(alphabet=st.one_of(HIDDEN, st.sampled_from("lsrm;-"), st.characters()), max_size=60),
    st.lists(st.tuples(HIDDEN, st.integers(0, 40)), max_size=8).map(lambda runs: "".join(c * n for c, n in runs)),
)
ESCAPE = re.compile(r"⟨U\+([0-9A-F]{4,6})⟩|⟨(\d+) spaces?⟩|⟨(\d+) line ends⟩\n|⇥   ")


def original(shown: str) -> str:
    """The only text that is shown so."""

    def back(found: re.Match[str]) -> str:
        code, spaces, ends = found.groups()
        return chr(int(code, 16)) if code else " " * int(spaces) if spaces else "\n" * int(ends) if ends else "\t"

    return ESCAPE.sub(back, shown)


@given(TEXTS)
@example("ls" + " " * 21_000 + "; rm -rf x")
@example("⟨5 spaces⟩")
@example("a\n\n\n\n\nb")
def test_nothing_is_hidden_nothing_acts_and_no_two_texts_look_the_same(text: str) -> None:
    shown = visible(text)
    assert original(shown) == text  # so different texts are shown differently
    for character in shown:
        assert character == "\n" or character.isprintable()
        assert unicodedata.category(character) not in ("Cc", "Cf", "Cs") or character == "\n"
    seen = re.sub(r"⟨U\+[0-9A-F]+⟩|⟨\d+ (?:spaces?|line ends)⟩|⇥ ", "", shown)
    for character in set(text):
        if character.isascii() and character.isprintable() and character != " ":
            assert seen.count(character) == text.count(character)


def test_the_classics() -> None:
    assert visible("ls" + " " * 21_000 + "; rm -rf x") == "ls⟨21000 spaces⟩; rm -rf x"
    assert visible("echo a \x1b[2K\r ls") == "echo a ⟨U+001B⟩[2K⟨U+000D⟩ ls"
    assert visible("echo \u202efdp.sh\u200b ") == "echo ⟨U+202E⟩fdp.sh⟨U+200B⟩⟨1 space⟩"
    assert visible("ls\n\n\n\n\n\nrm x") == "ls⟨6 line ends⟩\nrm x"
    assert visible("\tif x:\n        y = '你好 é'") == "⇥   if x:\n        y = '你好 é'"
    assert is_plain("git status")
    assert not is_plain("git status ")
    assert not is_plain("a\nb")


def test_a_long_diff_shows_its_ends_and_counts_the_rest() -> None:
    short = cut("@@ -1 +1 @@\n-a\n+b ")
    assert (short.text, short.hidden) == ("@@ -1 +1 @@\n-a\n+b⟨1 space⟩", 0)
    lines = [f"+line {n}" for n in range(3 * MOST_DIFF_LINES)]
    long = cut("\n".join(lines))
    assert long.hidden == 2 * MOST_DIFF_LINES
    assert long.text.splitlines()[MOST_DIFF_LINES // 2] == f"⟨{long.hidden:,} lines not shown⟩"
    assert long.text.startswith("+line 0\n")
    assert long.text.endswith(lines[-1])
    wide = cut("+" + "a" * 3 * LONGEST_DIFF_LINE + "end")
    assert wide.hidden == 1
    assert "characters not shown⟩" in wide.text
    assert wide.text.endswith("end")
