"""Patterns: what they cover, and what fools none of them."""

from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from everlong.agent.permissions.action import Action, ActionKind
from everlong.agent.permissions.patterns import Pattern, pattern_for, simple_words
from everlong.errors import InputError

SUBJECTS: dict[str, ActionKind] = {"write": "file", "shell": "command", "fetch": "network", "tool": "tool"}


def action(kind: str, subject: str) -> Action:
    path = Path("/work") / subject if kind == "write" else None
    return Action(tool="t", kind=SUBJECTS[kind], subject=subject, details=subject, path=path)


COVERED = [
    ("shell:git status", "git status", True),
    ("shell:git status", " git status\n", True),
    ("shell:git status", "git status -s", False),
    ("shell:pytest *", "pytest", True),
    ("shell:pytest *", "pytest -k 'a b' tests/*.py", True),
    ("shell:pytest *", 'pytest "tests/a b"', True),
    ("shell:pytest *", "pytester", False),
    ("shell:pytest *", "PATH=/tmp/x pytest", False),
    ("shell:git log *", "git log -3", True),
    ("shell:git log *", "git -c core.pager=x log", False),
    ("shell:*", "make all", True),
    ("shell", "a; b | c", True),
    ("shell:git status", "cd other && git status", False),
    ("write:src/**", "src/a/b.py", True),
    ("write:src/**", "srcs/b.py", False),
    ("write:*.md", "a.md", True),
    ("write:*.md", "docs/a.md", False),
    ("write:**/*.md", "docs/a.md", True),
    ("write:**/*.md", "a.md", True),
    ("write:/work/src/*", "src/a.py", True),
    ("write:src/a?.py", "src/ab.py", True),
    ("write:src/[ab].py", "src/a.py", False),
    ("fetch:docs.python.org", "docs.python.org", True),
    ("fetch:docs.python.org", "docs.python.org.evil.test", False),
    ("fetch:*.python.org", "docs.python.org", True),
    ("fetch:*.python.org", "python.org", False),
    ("fetch:*.python.org", "evilpython.org", False),
    ("tool:tickets_*", "tickets_new", True),
    ("tool:add", "adder", False),
    ("write", "anything", True),
]


@pytest.mark.parametrize(("pattern", "subject", "covered"), COVERED)
def test_what_a_pattern_covers(pattern: str, subject: str, covered: bool) -> None:
    assert Pattern.of(pattern).allows(action(pattern.partition(":")[0], subject)) is covered


SECOND = [
    "; rm -rf x",
    " && rm x",
    " | sh",
    "\nrm x",
    " $(rm x)",
    " `rm x`",
    " > x",
    " < x",
    " & rm x",
    " ${x}",
    " <(rm x)",
]


@pytest.mark.parametrize("more", [*SECOND, "\r\nrm x", " \\\n rm x", ' "$(rm x)"', " || rm x", "\x0brm x", " #\nrm x"])
@pytest.mark.parametrize("pattern", ["shell:git status", "shell:git status *", "shell:git *", "shell:*"])
def test_a_second_command_is_never_covered(pattern: str, more: str) -> None:
    assert not Pattern.of(pattern).allows(action("shell", f"git status{more}"))
    assert simple_words(f"git status{more}") is None


@given(st.text(alphabet="git ab'\"\\$`;&|<>(){}\n\t*?#!~=-", max_size=30))
def test_words_of_a_simple_command_hide_no_other(text: str) -> None:
    words = simple_words(text)
    if words is not None:
        assert not set(text.strip(" \t\n")) & set("\\$`\n")
        for quote in ("'", '"'):
            text = "".join(text.split(quote)[::2]) if text.count(quote) % 2 == 0 else text
        assert not set("".join(text.split())) & set(";&|<>(){}") or "'" in text or '"' in text


def test_what_is_denied_is_also_found_inside_a_longer_command() -> None:
    denied = Pattern.of("shell:rm *")
    for command in ("rm x", "ls; rm -rf x", "ls && rm x", "ls | rm x", "ls\nrm x", "echo $(rm x)", "(rm x)", "r\\m x"):
        assert denied.denies(action("shell", command)), command
    assert not denied.denies(action("shell", "ls -la"))
    assert Pattern.of("write:**/*.lock").denies(action("write", "a/b.lock"))


@pytest.mark.parametrize("text", ["", "rm", "exec:ls", "shell:", "write: ", "shell:a; b *", "shell:$(x) *"])
def test_what_is_no_pattern_is_said_in_one_line(text: str) -> None:
    with pytest.raises(InputError) as raised:
        Pattern.of(text)
    assert "\n" not in str(raised.value)


@given(st.sampled_from(sorted(SUBJECTS)), st.text(min_size=1, max_size=40), st.text(min_size=1, max_size=40))
def test_the_pattern_that_is_offered_covers_this_action_and_no_other(kind: str, subject: str, other: str) -> None:
    offered = pattern_for(action(kind, subject))
    if offered:
        pattern = Pattern.of(offered)
        assert pattern.allows(action(kind, subject))
        blank = " \t\n" if kind == "shell" else ""
        same = other.strip(blank) == subject if blank else other == subject
        if kind != "fetch":
            assert pattern.allows(action(kind, other)) is same


def test_nothing_is_offered_that_would_cover_more_than_is_seen() -> None:
    assert pattern_for(action("shell", "echo *")) == ""
    assert pattern_for(action("write", "a*.py")) == ""
    assert pattern_for(action("shell", "ls \u202e")) == ""
    assert pattern_for(action("shell", "ls" + " x" * 500)) == ""
    assert pattern_for(action("shell", "ls *.py")) == "shell:ls *.py"
