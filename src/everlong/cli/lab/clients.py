"""`everlong lab clients`: real clients in conversations that outgrow the window, and how each run ended."""

import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from everlong.cli.terminal.streams import print_json
from everlong.cli.terminal.tables import amount
from everlong.errors import EverlongError
from everlong.lab import CLIENTS

if TYPE_CHECKING:
    from everlong.lab import Verdict

__all__ = ["clients_command"]

SIZES = ("turns", "requests", "asked", "sent", "window", "errors")
HEAD = ("client", "version", "mode", *SIZES, "compactions", "breaks", "summaries", "task", "ok")


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
@click.option("--json", "json_wanted", is_flag=True, help="Print JSON.")
def clients_command(
    names: tuple[str, ...], direct: bool, environments: Path | None, records: Path | None, json_wanted: bool
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
    )

    where = Environments(environments or folder_from(os.environ), lambda line: click.echo(line, err=True))
    runner = Runner(where, direct=direct, records=records)
    verdicts = []
    for name in names or CLIENTS:
        for row in runner.all_modes(CLIENTS[name]):
            verdicts.append(row)
            click.echo(_line(row), err=True)
    if json_wanted:
        print_json([asdict(row) | {"ok": row.ok} for row in verdicts])
    else:
        click.echo(_table(verdicts, direct))
    bad = sum(bool(row.faults) for row in verdicts)
    if bad:
        raise EverlongError(f"{bad} of {len(verdicts)} runs are not ok")


def _line(row: "Verdict") -> str:
    return f"{row.client}, {row.mode}: {_verdict(row)}" if row.mode else f"{row.client}: left out, {row.left_out}"


def _verdict(row: "Verdict") -> str:
    return "ok" if row.ok else "left out" if row.left_out else row.faults[0]


def _table(verdicts: "Sequence[Verdict]", direct: bool) -> str:
    from everlong.lab import Table  # noqa: PLC0415

    title = "Clients without the gateway" if direct else "Clients through the gateway"
    faults = [(row, fault) for row in verdicts for fault in (*row.faults, *filter(None, (row.left_out,)))]
    notes = tuple(f"- {row.client} {row.mode}: {fault}" for row, fault in faults)
    return str(Table(title, HEAD, tuple(map(_cells, verdicts)), notes))


def _cells(row: "Verdict") -> tuple[str, ...]:
    if row.left_out:
        return (row.client, *("–" for _ in HEAD[2:]), "left out")
    sizes = (amount(size) for size in (row.wanted, row.largest, row.window))
    figures = (str(row.turns), str(row.requests), *sizes, str(row.errors))
    kept = (str(row.compactions), str(row.breaks), str(row.summaries), f"{row.task}/{row.tasked}")
    return (row.client, row.version, row.mode, *figures, *kept, "yes" if row.ok else "no")
