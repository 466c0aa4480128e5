"""`everlong lab clients`: real clients in conversations that outgrow the window, and how each run ended."""

import os
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from everlong.cli.groups import ExampleCommand
from everlong.cli.terminal.streams import print_json
from everlong.errors import EverlongError
from everlong.lab import CLIENTS

if TYPE_CHECKING:
    from everlong.lab import Verdict

__all__ = ["clients_command"]

HELP = f"""Run real, unmodified clients behind the gateway, each in its own environment.

CLIENT is one of {", ".join(CLIENTS)}; without CLIENT all of them run.

The model behind the gateway is scripted: it makes each client read large files with its own tool until the conversation
exceeds the window. A run is ok if no error reached the client, it finished every task, and every request that reached
the model was valid, fitted the window and contained the task. The prefix may change only at compactions, and these must
be far enough apart. Clients are installed once from your package indexes; those that cannot be installed are left out.
The exit code is 1 if a run is not ok.
"""


@click.command(
    "clients",
    cls=ExampleCommand,
    help=HELP,
    examples=(
        "everlong lab clients openai codex",
        "everlong lab clients claude-code --records requests",
        "everlong lab clients aider --direct",
    ),
)
@click.argument("names", nargs=-1, type=click.Choice(tuple(CLIENTS)), metavar="[CLIENT]...")
@click.option("--direct", is_flag=True, help="Run the clients without the gateway, to see what they do on their own.")
@click.option(
    "--environments",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Install the clients in this folder (default: EVERLONG_LAB, else your cache folder).",
)
@click.option(
    "--records",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Write every request to this folder.",
)
@click.option(
    "--write",
    "pages",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    metavar="DIR",
    help="Write the results into the tables of the pages in this folder: README.md and one page per client.",
)
@click.option("--json", "json_wanted", is_flag=True, help="Print the results as JSON.")
def clients_command(
    names: tuple[str, ...],
    direct: bool,
    environments: Path | None,
    records: Path | None,
    pages: Path | None,
    json_wanted: bool,
) -> None:
    """Run clients."""
    from everlong.lab import (  # noqa: PLC0415
        Environments,
        Runner,
        folder_from,
        run_table,
        write_runs,
    )

    if direct and pages is not None:
        raise click.UsageError("--write takes only runs behind the gateway: leave out --direct")

    where = Environments(environments or folder_from(os.environ), lambda line: click.echo(line, err=True))
    runner = Runner(where, direct=direct, records=records)
    verdicts = []
    day = f"{datetime.now(UTC):%Y-%m-%d}"
    if pages is not None:
        write_runs(pages, (), day)  # a missing page is reported before anything is run
    for name in names or CLIENTS:
        for row in runner.all_modes(CLIENTS[name]):
            verdicts.append(row)
            click.echo(_line(row), err=True)
            if pages is not None:
                write_runs(pages, (row,), day)
    if json_wanted:
        print_json([asdict(row) | {"ok": row.ok} for row in verdicts])
    else:
        click.echo(run_table("Clients without the gateway" if direct else "Clients behind the gateway", verdicts))
    bad = sum(bool(row.faults) for row in verdicts)
    if bad:
        raise EverlongError(f"{bad} of {len(verdicts)} runs failed")


def _line(row: "Verdict") -> str:
    return f"{row.client}, {row.mode}: {_verdict(row)}" if row.mode else f"{row.client}: left out, {row.left_out}"


def _verdict(row: "Verdict") -> str:
    return "ok" if row.ok else "left out" if row.left_out else row.faults[0]
