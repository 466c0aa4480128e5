"""`everlong sessions`: the conversations that are kept, whatever program they came from."""

import click

from everlong.cli.groups import CommandGroup, CommandRow

__all__ = ["sessions_command"]

#: In the order in which a person needs them.
COMMANDS = (
    CommandRow("list", "everlong.cli.sessions.lists:list_command", "List the sessions, the latest changed first."),
    CommandRow("show", "everlong.cli.sessions.transcript:show_command", "Show a session, whatever was compacted."),
    CommandRow("search", "everlong.cli.sessions.lists:search_command", "Find where something was said."),
    CommandRow(
        "events", "everlong.cli.sessions.events:events_command", "Show what happened to a session, oldest first."
    ),
    CommandRow("cost", "everlong.cli.sessions.events:cost_command", "Show what the calls of sessions cost."),
    CommandRow("import", "everlong.cli.sessions.files:import_command", "Keep the sessions of files or folders."),
    CommandRow("export", "everlong.cli.sessions.files:export_command", "Write a session as a file."),
    CommandRow(
        "archive",
        "everlong.cli.sessions.changes:archive_command",
        "Take a session off the list; it stays, and is still found.",
    ),
    CommandRow(
        "unarchive", "everlong.cli.sessions.changes:unarchive_command", "Put an archived session back on the list."
    ),
    CommandRow("rename", "everlong.cli.sessions.changes:rename_command", "Give a session another title; its id stays."),
    CommandRow(
        "branch",
        "everlong.cli.sessions.changes:branch_command",
        "Begin a new session that goes on after a message.",
    ),
    CommandRow("undo", "everlong.cli.sessions.changes:undo_command", "Take back the newest compaction."),
    CommandRow(
        "pin", "everlong.cli.sessions.changes:pin_command", "Keep a message or a text in everything that is sent."
    ),
    CommandRow("unpin", "everlong.cli.sessions.changes:unpin_command", "Let a pin go."),
    CommandRow(
        "remove", "everlong.cli.sessions.changes:remove_command", "Remove sessions with everything said in them."
    ),
)


@click.group("sessions", cls=CommandGroup, rows=COMMANDS)
def sessions_command() -> None:
    """Keep, find and mend conversations: list, show, search, import, export, archive, branch, undo, pin, remove."""
