"""What `everlong` and `everlong --help` print: where to start, and every command once, within 80 columns."""

import re

import pytest

from everlong.cli.main import program
from everlong.cli.words.wording import LANGUAGES
from tests.cli.running import everlong

#: The doors in the order of the help.
DOORS = ("from everlong import fit", "pip install 'everlong[langchain]'", "everlong wrap claude", "everlong lab replay")
CODES = [language.code for language in LANGUAGES]


def width(line: str) -> int:
    return sum(2 if ord(sign) >= 0x2E80 else 1 for sign in line)


@pytest.mark.parametrize("code", CODES)
def test_the_help_shows_the_doors_in_order_and_every_command_once(code: str) -> None:
    ran = everlong("--lang", code, "--help")
    assert (ran.code, ran.err) == (0, "")
    places = [ran.out.index(door) for door in DOORS]
    assert places == sorted(places)
    commands = re.findall(r"^  (\w+) +\S", ran.out[places[-1] :].partition("--lang")[0], re.MULTILINE)
    assert sorted(commands) == sorted(program.commands)
    assert max(map(width, ran.out.splitlines())) <= 80


@pytest.mark.parametrize("code", CODES)
def test_alone_it_says_what_it_is_and_what_to_try(code: str) -> None:
    ran = everlong("--lang", code)
    assert (ran.code, ran.err) == (0, "")
    lines = [line for line in ran.out.splitlines() if line]
    assert [line.split("  ")[1] for line in lines[1:4]] == [
        "everlong demo",
        "everlong wrap claude",
        "everlong lab replay claude-code",
    ]
    assert len(lines) == 5
    assert "everlong --help" in lines[4]
    assert max(map(width, lines)) <= 80


@pytest.mark.parametrize("arguments", [("--lang", "zh", "--help"), ("--help", "--lang", "zh"), ("-h", "--lang=zh")])
def test_the_language_counts_wherever_it_is_named(arguments: tuple[str, ...]) -> None:
    assert "上下文窗口" in everlong(*arguments).out


def test_the_help_is_in_the_language_of_the_locale(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    assert "上下文窗口" in everlong().out
    assert "context window" in everlong("--lang", "en").out


def test_a_language_before_the_command_is_the_commands() -> None:
    before, after = everlong("--lang", "zh", "count", "--sample"), everlong("count", "--sample", "--lang", "zh")
    assert before == after
    assert "精确" in before.out
    assert "exact" in everlong("--lang", "zh", "count", "--sample", "--lang", "en").out
