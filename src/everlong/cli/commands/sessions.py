"""`everlong sessions`: the stored conversations, whatever program they came from."""

import click

from everlong.cli.groups import CommandGroup, CommandRow

__all__ = ["sessions_command"]

#: In the order in which a person needs them.
COMMANDS = (
    CommandRow("list", "everlong.cli.sessions.lists:list_command", "List sessions, most recently changed first."),
    CommandRow(
        "show", "everlong.cli.sessions.transcript:show_command", "Show every message of a session, compacted ones too."
    ),
    CommandRow("search", "everlong.cli.sessions.lists:search_command", "Search the messages of all sessions."),
    CommandRow(
        "events", "everlong.cli.sessions.events:events_command", "Show the turns, compactions and calls of a session."
    ),
    CommandRow("cost", "everlong.cli.sessions.events:cost_command", "Show what the model calls of sessions cost."),
    CommandRow("import", "everlong.cli.sessions.files:import_command", "Import sessions of other programs from files."),
    CommandRow("export", "everlong.cli.sessions.files:export_command", "Export a session to a file."),
    CommandRow(
        "archive",
        "everlong.cli.sessions.changes:archive_command",
        "Hide a session from the list; search still finds it.",
    ),
    CommandRow(
        "unarchive", "everlong.cli.sessions.changes:unarchive_command", "Put an archived session back on the list."
    ),
    CommandRow("rename", "everlong.cli.sessions.changes:rename_command", "Change the title of a session."),
    CommandRow(
        "branch",
        "everlong.cli.sessions.changes:branch_command",
        "Start a new session from a message of another one.",
    ),
    CommandRow("undo", "everlong.cli.sessions.changes:undo_command", "Undo the newest compaction of a session."),
    CommandRow("pin", "everlong.cli.sessions.changes:pin_command", "Keep a message or a text in every request."),
    CommandRow("unpin", "everlong.cli.sessions.changes:unpin_command", "Remove a pin."),
    CommandRow("remove", "everlong.cli.sessions.changes:remove_command", "Delete sessions permanently."),
)


@click.group(
    "sessions",
    cls=CommandGroup,
    rows=COMMANDS,
    examples=(
        "everlong sessions list",
        "everlong sessions import ~/.claude/projects",
        'everlong sessions search "delivery date"',
    ),
)
def sessions_command() -> None:
    """List, search, import, export and change the conversations that everlong stores."""
