"""The options of all commands: a letter means one thing, and an old spelling goes on working unseen."""

from collections import defaultdict
from collections.abc import Iterator

import click
import pytest

from everlong.cli.main import program
from everlong.cli.terminal.options import WithOldSpelling
from tests.cli.running import everlong


def commands(
    group: click.Group = program, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name), command


EVERY = dict(commands())


def test_a_letter_means_one_thing() -> None:
    meanings: dict[str, set[str]] = defaultdict(set)
    for command in EVERY.values():
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


@pytest.mark.parametrize("path", EVERY, ids=" ".join)
def test_the_help_of_every_command_fits_any_terminal(path: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    for columns in ("40", "80"):
        monkeypatch.setenv("COLUMNS", columns)
        ran = everlong(*path, "--help")
        assert (ran.code, ran.err) == (0, "")
        assert max(map(len, ran.out.splitlines())) <= 80
