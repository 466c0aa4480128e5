"""The help of every command: a sentence, a text for each option, and examples that the command itself accepts."""

import shlex
from collections.abc import Sequence
from pathlib import Path

import click
import pytest

from everlong.cli.main import program
from tests.cli.running import everlong
from tests.cli.tree import EVERY, LEAVES

#: The words after which another command begins.
BEFORE_A_COMMAND = ("|", "&&", "--")
#: The words that end a command.
AFTER_A_COMMAND = ("|", "&&", ">", "2>")


def examples_of(path: Sequence[str]) -> list[str]:
    """The lines under "Examples:" in the help, as they are shown."""
    shown = everlong(*path, "--help").out.partition("\nExamples:\n")[2]
    return [line.removeprefix("  ") for line in shown.splitlines()]


def arguments_in(example: str) -> list[str]:
    """What `everlong` gets in a line for the shell. Example: cat x | everlong count - > y -> ["count", "-"]"""
    words = shlex.split(example, comments=True)
    places = (at for at, word in enumerate(words) if word == "everlong")
    at = max((at for at in places if at == 0 or words[at - 1] in BEFORE_A_COMMAND), default=None)
    assert at is not None, f"no everlong in {example!r}"
    ends = [place for place, word in enumerate(words) if place > at and word in AFTER_A_COMMAND and word != "--"]
    return words[at + 1 : min(ends, default=len(words))]


def parsed(arguments: Sequence[str]) -> tuple[str, ...]:
    """Let click parse arguments as if they were typed, without running the command; return the command's path."""
    command: click.Command = program
    context = click.Context(program, **program.context_settings)
    path: tuple[str, ...] = ()
    rest = list(arguments)
    while isinstance(command, click.Group):
        path = (*path, rest[0])
        found = command.get_command(context, rest.pop(0))
        assert found is not None, f"no command {' '.join(path)}"
        command = found
        if isinstance(command, click.Group):
            context = click.Context(command, parent=context)
    # Without its parents a command would remember that only --help asks for help.
    with command.make_context(path[-1], rest, parent=context) as context:
        others = context.params.get("command") or ("",)  # wrap takes any words as another command
        if others[0].startswith("-"):
            raise click.NoSuchOption(others[0])
        return path


@pytest.mark.parametrize("path", EVERY, ids=" ".join)
def test_every_example_is_accepted_by_its_command(
    path: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    examples = examples_of(path)
    assert examples, "the help has no examples"
    for example in examples:
        assert parsed(arguments_in(example))[: len(path)] == path, example


WRONG = {
    "everlong count chat.json --modle gpt-4o": click.NoSuchOption,
    "everlong fit chat.json --budget many": click.BadParameter,
    "cat chat.json | everlong count - extra > y": click.UsageError,
    "everlong sessions rename harbour": click.MissingParameter,
    "everlong lab speed everything": click.BadParameter,
    "everlong wrap --windwo 3 claude": click.NoSuchOption,
}


@pytest.mark.parametrize(("example", "error"), WRONG.items(), ids=WRONG)
def test_a_wrong_example_would_be_noticed(example: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        parsed(arguments_in(example))


@pytest.mark.parametrize("path", LEAVES, ids=" ".join)
def test_every_option_has_a_sentence(path: tuple[str, ...]) -> None:
    for option in LEAVES[path].params:
        if isinstance(option, click.Option) and not option.hidden:
            assert option.help, option.name
            assert option.help[0].isupper() or option.help.startswith("off "), option.help
            assert option.help.endswith((".", ".)")), option.help


@pytest.mark.parametrize("path", EVERY, ids=" ".join)
def test_every_help_begins_with_a_sentence_that_stands_alone(path: tuple[str, ...]) -> None:
    first = (EVERY[path].help or "").partition("\n\n")[0]
    assert first.endswith("."), first
    assert len(first) <= 160, first
