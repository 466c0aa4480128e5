"""`everlong lab clients`: real clients in conversations that outgrow the window, and how each run ended."""

import os
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from everlong.cli.terminal.streams import print_json
from everlong.errors import EverlongError
from everlong.lab import CLIENTS

if TYPE_CHECKING:
    from everlong.lab import Verdict

__all__ = ["clients_command"]


@click.command("clients")
@click.argument("names", nargs=-1, type=click.Choice(tuple(CLIENTS)))
@click.option("--direct", is_flag=True, help="Without the gateway: what the clients do on their own.")
@click.option(
    "--environments",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Where clients are installed (default: EVERLONG_LAB, else the user's cache).",
)
@click.option(
    "--records",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Write every request of every client there, to look at.",
)
@click.option(
    "--write",
    "pages",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    metavar="DIR",
    help="Write the runs into the tables of the pages there: README.md and one page a client.",
)
@click.option("--json", "json_wanted", is_flag=True, help="Print JSON.")
def clients_command(
    names: tuple[str, ...],
    direct: bool,
    environments: Path | None,
    records: Path | None,
    pages: Path | None,
    json_wanted: bool,
) -> None:
    """Run real, unmodified clients through the gateway, each in an environment of its own.

    The model behind the gateway is scripted: it has each client read large files with its own tool until the
    conversation is larger than the window. A run is ok if no error reached the client, every task was finished, every
    request that reached the model was valid, within the window and held the task, and its prefix broke at compactions
    alone, which were as far apart as they must be. Clients are installed once, from your package indexes; what cannot
    be installed is left out. Exits with 1 if a run is not ok.
    """
    from everlong.lab import (  # noqa: PLC0415
        Environments,
        Runner,
        folder_from,
        run_table,
        write_runs,
    )

    if direct and pages is not None:
        raise click.UsageError("--write records runs through the gateway; leave out --direct")

    where = Environments(environments or folder_from(os.environ), lambda line: click.echo(line, err=True))
    runner = Runner(where, direct=direct, records=records)
    verdicts = []
    day = f"{datetime.now(UTC):%Y-%m-%d}"
    if pages is not None:
        write_runs(pages, (), day)  # a page that is missing is told before anything is run
    for name in names or CLIENTS:
        for row in runner.all_modes(CLIENTS[name]):
            verdicts.append(row)
            click.echo(_line(row), err=True)
            if pages is not None:
                write_runs(pages, (row,), day)
    if json_wanted:
        print_json([asdict(row) | {"ok": row.ok} for row in verdicts])
    else:
        click.echo(run_table("Clients without the gateway" if direct else "Clients through the gateway", verdicts))
    bad = sum(bool(row.faults) for row in verdicts)
    if bad:
        raise EverlongError(f"{bad} of {len(verdicts)} runs are not ok")


def _line(row: "Verdict") -> str:
    return f"{row.client}, {row.mode}: {_verdict(row)}" if row.mode else f"{row.client}: left out, {row.left_out}"


def _verdict(row: "Verdict") -> str:
    return "ok" if row.ok else "left out" if row.left_out else row.faults[0]
