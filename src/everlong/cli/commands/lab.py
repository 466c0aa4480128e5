"""`everlong lab`: what survives of real conversations, what they cost, and how fast everlong is."""

import click

from everlong.cli.groups import CommandGroup, CommandRow

__all__ = ["lab_command"]

#: In this order: data, what is kept, what it costs, real programs.
COMMANDS = (
    CommandRow(
        "fetch-data",
        "everlong.cli.lab.datasets:fetch_data_command",
        "List public conversations and convert them.",
    ),
    CommandRow(
        "probes", "everlong.cli.lab.survival:probes_command", "Measure which strings that the agent used later survive."
    ),
    CommandRow(
        "edits", "everlong.cli.lab.survival:edits_command", "Measure which texts that the agent edits next survive."
    ),
    CommandRow(
        "dialogs",
        "everlong.cli.lab.survival:dialogs_command",
        "Measure which answers to later questions survive.",
    ),
    CommandRow(
        "resume",
        "everlong.cli.lab.resume:resume_command",
        "Measure whether work can resume after a compaction.",
    ),
    CommandRow(
        "continuity",
        "everlong.cli.lab.continuity:continuity_command",
        "Measure whether task and last steps stay messages.",
    ),
    CommandRow(
        "replay", "everlong.cli.lab.replay:replay_command", "Show what sessions cost, and would cost with everlong."
    ),
    CommandRow(
        "speed", "everlong.cli.lab.speed:speed_command", "Measure the speed of everlong and of similar libraries."
    ),
    CommandRow(
        "capacity",
        "everlong.cli.lab.capacity:capacity_command",
        "Plan replicas, memory and database for a request rate.",
    ),
    CommandRow(
        "secrets", "everlong.cli.lab.secrets:secrets_command", "Test whether secrets are removed before summaries."
    ),
    CommandRow("clients", "everlong.cli.lab.clients:clients_command", "Run real clients behind the gateway."),
    CommandRow(
        "claude-sessions",
        "everlong.cli.lab.claude_sessions:claude_sessions_command",
        "Run Claude Code in long and unusual sessions.",
    ),
    CommandRow("adapters", "everlong.cli.lab.adapters:adapters_command", "Run the adapters inside real frameworks."),
)


@click.group(
    "lab",
    cls=CommandGroup,
    rows=COMMANDS,
    examples=(
        "everlong lab replay claude-code",
        "everlong lab probes session.jsonl --budgets 16000,32000",
        "everlong lab fetch-data",
    ),
)
def lab_command() -> None:
    """Measure what compaction keeps and what it costs, on your own conversations or on public ones."""
