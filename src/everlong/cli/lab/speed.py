"""`everlong lab speed`: what everlong costs compared with its peers, as ratios, in one run."""

import os
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import click

from everlong.cli.groups import ExampleCommand
from everlong.cli.terminal.files import write_page
from everlong.cli.terminal.streams import print_json
from everlong.cli.words.language import Language
from everlong.cli.words.wording import language_option
from everlong.extras import expect_posix
from everlong.lab import BENCHMARK_NAMES

if TYPE_CHECKING:
    from everlong.lab import Table

__all__ = ["speed_command"]

HELP = f"""Compare the speed of everlong with that of similar libraries, each in its own environment.

NAME is one of {", ".join(BENCHMARK_NAMES)}; without NAME all of them run. The libraries are installed once from your
package index; those that cannot be installed are left out. The tables go to standard output, the progress to standard
error. On a busy machine you can rely on ratios and CPU times, but not on wall times.
"""


@click.command(
    "speed",
    cls=ExampleCommand,
    help=HELP,
    examples=(
        "everlong lab speed --quick",
        "everlong lab speed counting fitting --no-peers",
        "everlong lab speed gateways --html speed.html",
    ),
)
@click.argument("names", nargs=-1, type=click.Choice(BENCHMARK_NAMES), metavar="[NAME]...")
@click.option("--no-peers", is_flag=True, help="Measure only everlong, and install nothing.")
@click.option("--quick", is_flag=True, help="Use fewer transcripts, smaller sizes and one round, for a first look.")
@click.option(
    "--environments",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Install the other libraries in this folder (default: EVERLONG_LAB, else your cache folder).",
)
@click.option(
    "--postgres",
    default="",
    metavar="URL",
    help="An empty Postgres database for the rows that need one (default: leave them out).",
)
@click.option(
    "--html",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="PATH",
    help="Also write the tables as one HTML page.",
)
@click.option("--json", "json_wanted", is_flag=True, help="Print the tables as JSON.")
@language_option
def speed_command(  # noqa: PLR0913 - one parameter an option
    names: tuple[str, ...],
    no_peers: bool,
    quick: bool,
    environments: Path | None,
    postgres: str,
    html: Path | None,
    json_wanted: bool,
    language: Language,
) -> None:
    """Measure the speed."""
    expect_posix("everlong lab speed")
    from everlong.lab import (  # noqa: PLC0415 - only a run needs all of this
        Bench,
        Environments,
        folder_from,
        machine,
        measure,
        versions,
    )

    where = Environments(environments or folder_from(os.environ), lambda line: click.echo(line, err=True))
    bench = Bench(where, quick=quick, peers=not no_peers, postgres=postgres)
    head = f"{date.today().isoformat()}, {machine()}"
    if not json_wanted:
        click.echo(f"{head}\n")
    tables = []
    for table in measure(names, bench):
        tables.append(table)
        if not json_wanted:
            click.echo(str(table))
    installed = versions(where) if bench.peers else ""
    if json_wanted:
        print_json(_as_json(tables, head, installed))
    elif installed:
        click.echo(f"Installed: {installed}")
    if html is not None:
        _write_page(html, tables, head, language)


def _as_json(tables: "Sequence[Table]", head: str, installed: str) -> dict[str, object]:
    described = [{"title": table.title, "figures": table.data} for table in tables]
    return {"taken": head, "installed": installed, "tables": described}


def _write_page(path: Path, tables: "Sequence[Table]", head: str, language: Language) -> None:
    from everlong.lab import speed_page  # noqa: PLC0415 - only where a page is asked for

    page = speed_page(tables, head, language=language.code)
    write_page(page, str(path))
    click.echo(f"Page written to {path}", err=True)
