"""Every command of the program, by the words that name it."""

from collections.abc import Iterator

import click

from everlong.cli.main import program

Path = tuple[str, ...]


def commands(group: click.Group = program, path: Path = ()) -> Iterator[tuple[Path, click.Command]]:
    """Every command below a group; groups come before the commands in them."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield (*path, name), command
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))


EVERY = dict(commands())
#: The commands that do something, without the groups that only list others.
LEAVES = {path: command for path, command in EVERY.items() if not isinstance(command, click.Group)}
