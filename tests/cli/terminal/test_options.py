"""The options of all commands: a letter means one thing, an old spelling still works, tokens are counted in k and M."""

import json
from collections import defaultdict
from pathlib import Path

import click
import pytest

from everlong.cli.terminal.options import WithOldSpelling
from tests.cli.running import everlong
from tests.cli.tree import LEAVES


def test_a_letter_means_one_thing() -> None:
    meanings: dict[str, set[str]] = defaultdict(set)
    for command in LEAVES.values():
        for option in command.params:
            if isinstance(option, click.Option):
                old = option.old if isinstance(option, WithOldSpelling) else ()
                long = next(name for name in option.opts if name.startswith("--"))
                for letter in set(option.opts) - set(old):
                    if not letter.startswith("--"):
                        meanings[letter].add(long)
    assert meanings["-m"] == {"--message"}
    assert {letter: names for letter, names in meanings.items() if len(names) > 1} == {}


@pytest.mark.parametrize("path", [("count",), ("fit",), ("inspect",)], ids="".join)
def test_the_old_letter_for_the_model_works_and_is_not_shown(path: tuple[str, ...]) -> None:
    assert everlong(*path, "--sample", "-m", "gpt-4").out == everlong(*path, "--sample", "--model", "gpt-4").out
    shown = everlong(*path, "--help").out
    assert "--model NAME" in shown
    assert "-m" not in shown.split()


@pytest.mark.parametrize("path", LEAVES, ids=" ".join)
def test_the_help_of_every_command_fits_any_terminal(path: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    for columns in ("40", "80"):
        monkeypatch.setenv("COLUMNS", columns)
        ran = everlong(*path, "--help")
        assert (ran.code, ran.err) == (0, "")
        assert max(map(len, ran.out.splitlines())) <= 80


COUNTS = {
    "digits": ("16000", 16_000),
    "a small k": ("16k", 16_000),
    "a large K": ("16K", 16_000),
    "a fraction of a million": ("0.016M", 16_000),
    "underscores": ("16_000", 16_000),
    "commas": ("16,000", 16_000),
    "a space": ("16 000", 16_000),
    "a million": ("1m", 1_000_000),
    "more than a million": ("1.5M", 1_500_000),
    "millions with commas": ("1,500,000", 1_500_000),
}


@pytest.mark.parametrize(("written", "tokens"), COUNTS.values(), ids=COUNTS)
def test_a_number_of_tokens_may_be_written_as_people_write_it(written: str, tokens: int) -> None:
    assert json.loads(everlong("fit", "--sample", "--budget", written, "--json").out)["budget"] == tokens


@pytest.mark.parametrize("written", ["12x", "many", "k", "1.5", "1.2345k", "1,50", "1,5k", "1e6", "12 kB", ""])
def test_what_is_not_a_number_of_tokens_is_one_clear_line(written: str) -> None:
    ran = everlong("demo", "--window", written)
    assert (ran.code, ran.out) == (2, "")
    assert f"'--window' / '-w': {written!r} is not a number of tokens; write it as 200000, 200k or 1.5M" in ran.err
    assert ran.err.count("\n") == 1


def test_too_few_tokens_are_one_clear_line() -> None:
    assert "500 is less than 4000" in everlong("demo", "--window", "0.5k").err


TAKING = {
    "wrap": ("wrap", "--window", "12x", "claude"),
    "doctor": ("doctor", "--window", "12x"),
    "inspect": ("inspect", "--sample", "--budget", "12x"),
    "a list of windows": ("lab", "replay", "nowhere", "--window", "64k,12x"),
    "a list of budgets": ("lab", "probes", "--budgets", "12x"),
    "a list of overheads": ("lab", "continuity", "--overhead", "12x"),
    "the answer": ("lab", "replay", "nowhere", "--reply", "12x"),
    "a plan": ("lab", "capacity", "--window", "12x"),
}


@pytest.mark.parametrize("arguments", TAKING.values(), ids=TAKING)
def test_every_command_that_takes_tokens_reads_them_in_the_same_way(arguments: tuple[str, ...]) -> None:
    ran = everlong(*arguments)
    assert ran.code == 2
    assert "'12x' is not a number of tokens" in ran.err


LISTS = {
    "k": ("8k,4k", [4_000, 8_000]),
    "groups of zeros": ("8,000,4,000", [4_000, 8_000]),
    "numbers of three digits": ("9000,900k", [9_000, 900_000]),
    "mixed, one twice": ("1M, 4_000,4k", [4_000, 1_000_000]),
}


@pytest.mark.parametrize(("written", "windows"), LISTS.values(), ids=LISTS)
def test_lists_of_tokens_are_read_in_the_same_way(written: str, windows: list[int], tmp_path: Path) -> None:
    said = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
    (tmp_path / "chat.json").write_text(json.dumps(said))
    options = ("--overhead", "0.5k", "--reply", "0.5k", "--policy", "whole", "--json")
    ran = everlong("lab", "replay", "chat.json", "--window", written, *options, folder=tmp_path)
    assert json.loads(ran.out)["windows"] == windows


def test_the_limits_of_a_key_are_read_in_the_same_way(tmp_path: Path) -> None:
    limits = ("--tokens-per-minute", "200k", "--tokens-per-day", "1.5M", "--requests-per-day", "2000")
    created = json.loads(everlong("keys", "create", "a", *limits, "--store", str(tmp_path / "t.db"), "--json").out)
    assert created["limits"] == {"tokens_per_minute": 200_000, "tokens_per_day": 1_500_000, "requests_per_day": 2_000}
