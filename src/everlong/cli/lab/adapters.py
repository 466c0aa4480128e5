"""`everlong lab adapters`: real frameworks in a task that outgrows the window, with our adapter and without it."""

import os
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from everlong.cli.terminal.streams import print_json
from everlong.errors import EverlongError
from everlong.lab import ADAPTERS

if TYPE_CHECKING:
    from everlong.lab import AdapterVerdict

__all__ = ["adapters_command"]


@click.command("adapters")
@click.argument("names", nargs=-1, type=click.Choice(tuple(ADAPTERS)))
@click.option(
    "--environments",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Where frameworks are installed (default: EVERLONG_LAB, else the user's cache).",
)
@click.option("--here", is_flag=True, help="Run them with this Python; nothing is installed.")
@click.option(
    "--records",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Write every request there, to look at.",
)
@click.option(
    "--write",
    "pages",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    metavar="DIR",
    help="Write the runs into the tables of the pages there: README.md and one page a framework.",
)
@click.option("--json", "json_wanted", is_flag=True, help="Print JSON.")
def adapters_command(
    names: tuple[str, ...],
    environments: Path | None,
    here: bool,
    records: Path | None,
    pages: Path | None,
    json_wanted: bool,
) -> None:
    """Run real frameworks in a task of three times the window, each in an environment of its own.

    Each is run with our adapter, with our adapter that is not told the window, with its own compaction, and with
    nothing. The provider is scripted: it has a window and refuses what is larger; at the end it looks for facts from
    the beginning. A run with our adapter is ok if it finished, every request was valid and within the window, its
    prefix broke at compactions alone, which were as far apart as they must be, and no fact was lost. Exits with 1 if
    one is not ok; what others do is shown, not judged.
    """
    from everlong.lab import (  # noqa: PLC0415
        AdapterRunner,
        Environments,
        adapter_table,
        folder_from,
        write_adapter_runs,
    )

    where = Environments(environments or folder_from(os.environ), lambda line: click.echo(line, err=True))
    runner = AdapterRunner(where, here=here, records=records)
    verdicts = []
    day = f"{datetime.now(UTC):%Y-%m-%d}"
    if pages is not None:
        write_adapter_runs(pages, (), day)  # a page that is missing is told before anything is run
    for name in names or ADAPTERS:
        for row in runner.all_runs(ADAPTERS[name]):
            verdicts.append(row)
            click.echo(_line(row), err=True)
            if pages is not None:
                write_adapter_runs(pages, (row,), day)
    if json_wanted:
        print_json([asdict(row) | {"ok": row.ok} for row in verdicts])
    else:
        click.echo(adapter_table(verdicts))
    bad = sum(row.ours and not row.ok for row in verdicts)
    if bad:
        raise EverlongError(f"{bad} of {sum(row.ours for row in verdicts)} runs with our adapters are not ok")


def _line(row: "AdapterVerdict") -> str:
    if row.left_out:
        return f"{row.framework}: left out, {row.left_out}"
    return f"{row.framework}, {row.mode}, {row.how}: {'ok' if row.ok else row.faults[0]}"
