"""Commands and groups with examples in their help, and groups that import a command only when it runs."""

import os
import re
from collections.abc import Iterator, MutableMapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import click

__all__ = ["COMPLETING", "RANGE", "CommandGroup", "CommandRow", "ExampleCommand", "ExampleGroup"]

#: The variable with which a shell asks for completions.
COMPLETING = "_EVERLONG_COMPLETE"
#: How click describes the range of a number, after the text of an option.
RANGE = re.compile(r"  \[[\d.<=]*x[<>=\d.]*\]$")


@dataclass(frozen=True, slots=True)
class CommandRow:
    """A command of a group: its name, where it is defined ("module:name"), and its line in the group's help.

    `reads` says whether it reads environment variables: if so, misspelt ones are reported. `purpose` is the section of
    the help that lists it, if the help has several.
    """

    name: str
    place: str
    line: str
    reads: bool = False
    purpose: str = ""


def _write_examples(examples: Sequence[str], formatter: click.HelpFormatter) -> None:
    """Write command lines unchanged: click would join them into a paragraph."""
    if examples:
        with formatter.section("Examples"):
            for line in examples:
                formatter.write(f"{'':{formatter.current_indent}}{line}\n")


class ExampleCommand(click.Command):
    """A command whose help ends with examples: lines that can be typed, with a comment after "#" where it helps."""

    def __init__(self, *args: Any, examples: Sequence[str], **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.examples = tuple(examples)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options without click's ranges, such as [x>=1]: the texts say what matters."""
        records = [record for param in self.get_params(ctx) if (record := param.get_help_record(ctx)) is not None]
        with formatter.section("Options"):
            formatter.write_dl([(spelling, RANGE.sub("", text)) for spelling, text in records])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples."""
        super().format_epilog(ctx, formatter)
        _write_examples(self.examples, formatter)


class ExampleGroup(click.Group):
    """A group whose help ends with examples, and lists its commands in the order in which they are defined."""

    def __init__(self, *args: Any, examples: Sequence[str] = (), **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.examples = tuple(examples)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the names in the order of their definition."""
        return list(self.commands)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples."""
        super().format_epilog(ctx, formatter)
        _write_examples(self.examples, formatter)


class _Commands(MutableMapping[str, click.Command]):
    """The commands of a group by name. A command is imported when it is first used."""

    def __init__(self, rows: Sequence[CommandRow]) -> None:
        self.rows = {row.name: row for row in rows}
        self._loaded: dict[str, click.Command] = {}

    def __getitem__(self, name: str) -> click.Command:
        if name not in self._loaded:
            row = self.rows[name]
            module, _, attribute = row.place.partition(":")
            command: click.Command = getattr(import_module(module), attribute)
            command.short_help = row.line
            if COMPLETING in os.environ:
                from everlong.cli.completion import teach  # noqa: PLC0415 - only when Tab was pressed

                teach(command, name)
            self._loaded[name] = command
        return self._loaded[name]

    def __setitem__(self, name: str, command: click.Command) -> None:
        raise TypeError("a command is added as a row of its group's table")

    def __delitem__(self, name: str) -> None:
        raise TypeError("a command is removed from its group's table")

    def __iter__(self) -> Iterator[str]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)


class CommandGroup(ExampleGroup):
    """A group whose help lists its commands in the order of its table."""

    def __init__(self, name: str | None = None, *, rows: Sequence[CommandRow], **settings: Any) -> None:
        super().__init__(name, commands=_Commands(rows), **settings)
        self.rows = rows

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, and report misspelt environment variables that it would read."""
        found = super().resolve_command(ctx, args)
        asks_help = any(name in found[2] for name in ctx.help_option_names)
        if not ctx.resilient_parsing and not asks_help and any(row.reads for row in self.rows if row.name == found[0]):
            from everlong.cli.variables import report_ignored, report_misspelt  # noqa: PLC0415 - not for commands that read none

            report_misspelt()
            report_ignored(found[0] or "")
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the lines of the table, without importing the commands."""
        with formatter.section("Commands"):
            formatter.write_dl([(row.name, row.line) for row in self.rows])
