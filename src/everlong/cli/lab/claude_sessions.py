"""`everlong lab claude-sessions`: the real Claude Code in long sessions and unusual ones, and how each run ended."""

import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from everlong.cli.groups import ExampleCommand
from everlong.cli.terminal.streams import print_json
from everlong.cli.terminal.tables import amount
from everlong.errors import EverlongError
from everlong.lab import LONG_SESSIONS, SESSIONS

if TYPE_CHECKING:
    from everlong.lab import Verdict

__all__ = ["claude_sessions_command"]

HELP = f"""Run the real Claude Code behind the gateway in long and unusual sessions, with a scripted model.

NAME is one of {", ".join((*SESSIONS, *LONG_SESSIONS))}. Without NAME all run, the last three only with --long.

One session has 40 turns of the same word and hooks with constant text. Others use sub-agents, parallel calls, pictures,
plan mode, --resume, --fork-session and /compact. All exceed the window. A run is ok by the rules of everlong lab
clients. The column marks shows the most cache marks in one request; Anthropic accepts four. The exit code is 1 if a run
is not ok.
"""

HEAD = (
    "session",
    "version",
    "turns",
    "requests",
    "asked",
    "sent",
    "window",
    "errors",
    "marks",
    "compactions",
    "breaks",
)

PATIENCE = 3_600.0  # seconds for one session


@click.command(
    "claude-sessions",
    cls=ExampleCommand,
    help=HELP,
    examples=(
        "everlong lab claude-sessions resume compact",
        "everlong lab claude-sessions --long --records requests",
    ),
)
@click.argument("names", nargs=-1, type=click.Choice((*SESSIONS, *LONG_SESSIONS)), metavar="[NAME]...")
@click.option(
    "--long", "long_wanted", is_flag=True, help="Also run sessions in windows of 100,000, 200,000 and a million tokens."
)
@click.option(
    "--environments",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Install Claude Code in this folder (default: EVERLONG_LAB, else your cache folder).",
)
@click.option(
    "--records",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Write every request to this folder.",
)
@click.option("--json", "json_wanted", is_flag=True, help="Print the results as JSON.")
def claude_sessions_command(
    names: tuple[str, ...], long_wanted: bool, environments: Path | None, records: Path | None, json_wanted: bool
) -> None:
    """Run Claude Code."""
    from everlong.lab import Environments, Runner, Table, folder_from  # noqa: PLC0415

    where = Environments(environments or folder_from(os.environ), lambda line: click.echo(line, err=True))
    runner = Runner(where, records=records, patience=PATIENCE)
    known = SESSIONS | LONG_SESSIONS
    runs: list[tuple[str, Verdict]] = []
    for name in names or (*SESSIONS, *(LONG_SESSIONS if long_wanted else ())):
        for verdict in runner.all_modes(known[name]):
            runs.append((name, verdict))
            click.echo(f"{name}: {_result_text(verdict)}", err=True)
    if json_wanted:
        print_json([asdict(verdict) | {"session": name, "ok": verdict.ok} for name, verdict in runs])
    else:
        rows = tuple(_cells(name, verdict) for name, verdict in runs)
        click.echo(str(Table("Claude Code behind the gateway", (*HEAD, "summaries", "ok"), rows)))
    bad = sum(not verdict.ok for _, verdict in runs)
    if bad:
        raise EverlongError(f"{bad} of {len(runs)} sessions failed")


def _result_text(verdict: "Verdict") -> str:
    return "ok" if verdict.ok else verdict.left_out or "; ".join(verdict.faults)


def _cells(name: str, verdict: "Verdict") -> tuple[str, ...]:
    sizes = (amount(size) for size in (verdict.wanted, verdict.largest, verdict.window))
    figures = (verdict.errors, verdict.marks, verdict.compactions, verdict.breaks, verdict.summaries)
    counted = (str(verdict.turns), str(verdict.requests), *sizes, *map(str, figures))
    return (name, verdict.version, *counted, "yes" if verdict.ok else "no")
