"""Groups of commands that are imported only when they run: `--help` reads one table and loads nothing else."""

import os
from collections.abc import Iterator, MutableMapping, Sequence
from dataclasses import dataclass
from importlib import import_module

import click

__all__ = ["COMPLETING", "CommandGroup", "CommandRow"]

#: The variable by which a shell asks what a word may become.
COMPLETING = "_EVERLONG_COMPLETE"


@dataclass(frozen=True, slots=True)
class CommandRow:
    """A command of a group: its name, where it is defined ("module:name"), and its line in the group's help.

    `reads` is whether it reads variables of the environment: one that is misspelt is named then.
    """

    name: str
    place: str
    line: str
    reads: bool = False


class _Commands(MutableMapping[str, click.Command]):
    """The commands of a group by name. A command is imported when someone asks for it."""

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


class CommandGroup(click.Group):
    """A group whose help lists its commands in the order of its table."""

    def __init__(self, name: str | None = None, *, rows: Sequence[CommandRow], **settings: object) -> None:
        super().__init__(name, commands=_Commands(rows), **settings)  # type: ignore[arg-type]
        self.rows = rows

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the names in the order of the table."""
        return [row.name for row in self.rows]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; name variables that it would read if they were spelt right."""
        found = super().resolve_command(ctx, args)
        asks_help = any(name in found[2] for name in ctx.help_option_names)
        if not ctx.resilient_parsing and not asks_help and any(row.reads for row in self.rows if row.name == found[0]):
            from everlong.cli.variables import tell_misspelt  # noqa: PLC0415 - not for commands that read none

            tell_misspelt()
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the lines of the table, without importing the commands."""
        with formatter.section("Commands"):
            formatter.write_dl([(row.name, row.line) for row in self.rows])
