"""Groups of commands that are imported only when they run: `--help` reads one table and loads nothing else."""

from collections.abc import Iterator, MutableMapping, Sequence
from dataclasses import dataclass
from importlib import import_module

import click

__all__ = ["CommandGroup", "CommandRow"]


@dataclass(frozen=True, slots=True)
class CommandRow:
    """A command of a group: its name, where it is defined ("module:name"), and its line in the group's help."""

    name: str
    place: str
    line: str


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

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the lines of the table, without importing the commands."""
        with formatter.section("Commands"):
            formatter.write_dl([(row.name, row.line) for row in self.rows])
