"""`everlong lab speed`: what everlong costs beside its peers, as ratios, in one run."""

import os
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import click

from everlong.cli.terminal.files import write_page
from everlong.cli.terminal.streams import print_json
from everlong.cli.words.language import Language
from everlong.cli.words.wording import language_option
from everlong.extras import expect_posix
from everlong.lab import BENCHMARK_NAMES

if TYPE_CHECKING:
    from everlong.lab import Table

__all__ = ["speed_command"]


@click.command("speed")
@click.argument("names", nargs=-1, type=click.Choice(BENCHMARK_NAMES))
@click.option("--no-peers", is_flag=True, help="Measure everlong alone, where it is; install nothing.")
@click.option("--quick", is_flag=True, help="Fewer transcripts, smaller sizes, one round: a first look.")
@click.option(
    "--environments",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Where peers are installed (default: EVERLONG_LAB, else the user's cache).",
)
@click.option("--html", type=click.Path(path_type=Path, dir_okay=False), metavar="PATH", help="Write one HTML page.")
@click.option("--json", "json_wanted", is_flag=True, help="Print JSON.")
@language_option
def speed_command(  # noqa: PLR0913 - one parameter an option
    names: tuple[str, ...],
    no_peers: bool,
    quick: bool,
    environments: Path | None,
    html: Path | None,
    json_wanted: bool,
    language: Language,
) -> None:
    """Time everlong beside its peers, each in an environment of its own.

    Peers are installed once, from your package index; what cannot be installed is left out. Tables go to standard
    output, progress to standard error. Ratios and CPU time hold on a busy machine, wall times do not.
    """
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
    bench = Bench(where, quick=quick, peers=not no_peers)
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
