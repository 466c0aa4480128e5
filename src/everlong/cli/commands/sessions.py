"""`everlong sessions`: the conversations that are kept, whatever program they came from."""

import click

from everlong.cli.sessions.changes import (
    archive_command,
    branch_command,
    pin_command,
    remove_command,
    rename_command,
    unarchive_command,
    undo_command,
    unpin_command,
)
from everlong.cli.sessions.events import cost_command, events_command
from everlong.cli.sessions.files import export_command, import_command
from everlong.cli.sessions.lists import list_command, search_command
from everlong.cli.sessions.transcript import show_command

__all__ = ["sessions_command"]

COMMANDS = (
    list_command,
    show_command,
    search_command,
    events_command,
    cost_command,
    import_command,
    export_command,
    archive_command,
    unarchive_command,
    rename_command,
    branch_command,
    undo_command,
    pin_command,
    unpin_command,
    remove_command,
)


class _InOrder(click.Group):
    """A group whose help names its commands in the order a person needs them."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(self.commands)


@click.group("sessions", cls=_InOrder, short_help="Keep, find and mend conversations.")
def sessions_command() -> None:
    """Keep, find and mend conversations: list, show, search, import, export, archive, branch, undo, pin, remove."""


for command in COMMANDS:
    sessions_command.add_command(command)
