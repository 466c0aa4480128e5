"""`everlong lab`: what survives of real conversations, what they cost, and how fast everlong is."""

import click

from everlong.cli.groups import CommandGroup, CommandRow

__all__ = ["lab_command"]

COMMANDS = (
    CommandRow("adapters", "everlong.cli.lab.adapters:adapters_command", "Run our adapters inside real frameworks."),
    CommandRow(
        "claude-sessions",
        "everlong.cli.lab.claude_sessions:claude_sessions_command",
        "Run Claude Code in long sessions and unusual ones.",
    ),
    CommandRow("clients", "everlong.cli.lab.clients:clients_command", "Run real clients through the gateway."),
    CommandRow(
        "continuity",
        "everlong.cli.lab.continuity:continuity_command",
        "After a compaction: task and last steps still messages?",
    ),
    CommandRow(
        "dialogs", "everlong.cli.lab.survival:dialogs_command", "Turns that answer a later question: still there?"
    ),
    CommandRow("edits", "everlong.cli.lab.survival:edits_command", "Texts that the agent replaces next: still there?"),
    CommandRow("probes", "everlong.cli.lab.survival:probes_command", "Strings that the agent used later: still there?"),
    CommandRow("replay", "everlong.cli.lab.replay:replay_command", "What sessions cost, and would have cost."),
    CommandRow("secrets", "everlong.cli.lab.secrets:secrets_command", "Made-up secrets: hidden from other models?"),
    CommandRow("speed", "everlong.cli.lab.speed:speed_command", "Time everlong beside its peers."),
)


@click.group("lab", cls=CommandGroup, rows=COMMANDS)
def lab_command() -> None:
    """Measure what survives a cut: on your own conversations, or on public ones."""
