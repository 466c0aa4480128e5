"""`everlong lab adapters`: real frameworks in a task that outgrows the window, with our adapter and without it."""

import os
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from everlong.cli.groups import ExampleCommand
from everlong.cli.terminal.streams import print_json
from everlong.errors import EverlongError
from everlong.lab import ADAPTERS

if TYPE_CHECKING:
    from everlong.lab import AdapterVerdict

__all__ = ["adapters_command"]

HELP = f"""Run real frameworks in a task three times as long as the window, each in its own environment.

FRAMEWORK is one of {", ".join(ADAPTERS)}; without FRAMEWORK all of them run.

Each framework runs with our adapter, with our adapter but without a known window, with its own compaction, and without
any. The provider is scripted: it refuses requests that exceed its window, and at the end it looks for facts from the
beginning. A run with our adapter is ok if it finished, every request was valid and fitted the window, no fact was lost,
and the prefix changed only at compactions that were far enough apart. The exit code is 1 if such a run is not ok. Other
runs are reported, but not judged.
"""


@click.command(
    "adapters",
    cls=ExampleCommand,
    help=HELP,
    examples=(
        "everlong lab adapters langchain pydantic-ai",
        "everlong lab adapters langchain --here --records requests",
    ),
)
@click.argument("names", nargs=-1, type=click.Choice(tuple(ADAPTERS)), metavar="[FRAMEWORK]...")
@click.option(
    "--environments",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Install the frameworks in this folder (default: EVERLONG_LAB, else your cache folder).",
)
@click.option("--here", is_flag=True, help="Use the frameworks of this Python, and install nothing.")
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
    help="Write the results into the tables of the pages in this folder: README.md and one page per framework.",
)
@click.option("--json", "json_wanted", is_flag=True, help="Print the results as JSON.")
def adapters_command(
    names: tuple[str, ...],
    environments: Path | None,
    here: bool,
    records: Path | None,
    pages: Path | None,
    json_wanted: bool,
) -> None:
    """Run frameworks."""
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
        write_adapter_runs(pages, (), day)  # a missing page is reported before anything is run
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
        raise EverlongError(f"{bad} of {sum(row.ours for row in verdicts)} runs with our adapters failed")


def _line(row: "AdapterVerdict") -> str:
    if row.left_out:
        return f"{row.framework}: left out, {row.left_out}"
    return f"{row.framework}, {row.mode}, {row.how}: {'ok' if row.ok else row.faults[0]}"
