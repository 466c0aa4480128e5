"""`everlong lab secrets`: how many made-up secrets are hidden from other models, and how many ordinary lines."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

import click

from everlong.cli.groups import ExampleCommand
from everlong.cli.lab.options import DATA, JSON, WORK_FILES, names_listed
from everlong.cli.terminal.streams import print_json
from everlong.cli.terminal.tables import amount, console, percent, progress, table
from everlong.cli.words.language import Language
from everlong.cli.words.wording import Words, language_option
from everlong.lab import (
    KIND_SETS,
    SECRETS_SEED,
    Alarms,
    Found,
    agents,
    alarms_in,
    data_folder,
    dialogue_names,
    dialogues,
    find_secrets,
    lines_written,
    texts_in,
    texts_of,
)

__all__ = ["secrets_command"]

SHOWN = 3  # contexts named in a row


@click.command(
    "secrets",
    cls=ExampleCommand,
    examples=(
        "everlong lab secrets",
        "everlong lab secrets --kinds held-out --each 500",
        "everlong lab secrets --data lab-data --files misc",
    ),
)
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path, exists=True), metavar="[PATH]...")
@DATA
@click.option(
    "--files",
    default=WORK_FILES,
    metavar="NAME,NAME",
    help=f"The files to read from agents/ in the data folder (default: {WORK_FILES}).",
)
@click.option(
    "--kinds", type=click.Choice(KIND_SETS), default="all", help="The kinds of secrets to test (default: all)."
)
@click.option(
    "--each",
    type=click.IntRange(min=1),
    default=100,
    metavar="N",
    help="Number of secrets of each kind (default: 100).",
)
@click.option(
    "--seed",
    type=int,
    default=SECRETS_SEED,
    metavar="N",
    help=f"The seed for the made-up secrets (default: {SECRETS_SEED}).",
)
@JSON
@language_option
def secrets_command(  # noqa: PLR0913 - one parameter an option
    paths: tuple[Path, ...],
    data: str | None,
    files: str,
    kinds: str,
    each: int,
    seed: int,
    as_json: bool,
    language: Language,
) -> None:
    """Test whether made-up secrets are removed from texts before another model reads them.

    With --data, and for every PATH, the command also counts the lines in these texts that are changed: most of them
    contain no secret, so this is an upper bound for false alarms.
    """
    with progress("secrets", None) as advance:
        found = []
        for row in find_secrets(kinds, each, seed):
            found.append(row)
            advance(row.total)
        alarms = [alarms_in("ordinary lines", lines_written(each, seed)), *_alarms(data, files, paths)]
    if as_json:
        print_json({"found": [asdict(row) for row in found], "alarms": [asdict(row) for row in alarms]})
    else:
        _print_found(found, Words(language, "secrets"))
        _print_alarms(alarms, Words(language, "secrets"))


def _alarms(data: str | None, files: str, paths: Sequence[Path]) -> Iterator[Alarms]:
    if data is not None:
        folder = data_folder(data)
        for name in names_listed(files):
            yield alarms_in(name, texts_of(agents(folder, name)))
        for name in dialogue_names(folder):
            yield alarms_in(name, texts_of(dialogues(folder, name)))
    for path in paths:
        yield alarms_in(path.name, texts_in(path))


def _print_found(found: Sequence[Found], say: Words) -> None:
    out = console()
    out.print(say("found"), style="bold")
    columns = (say("kind"), say("hidden"), say("of"), say("missed"))
    out.print(table(columns, (_line(row, say) for row in found)))
    for held_out, key in ((False, "development"), (True, "held_out")):
        group = [row for row in found if row.held_out is held_out]
        if group:
            share = percent(sum(row.found for row in group), sum(row.total for row in group))
            out.print(say(key, share=share, kinds=str(len(group))))


def _line(row: Found, say: Words) -> tuple[str, ...]:
    mark = f" ({say('apart')})" if row.held_out else ""
    missed = ", ".join(row.missed[:SHOWN]) + (" …" if len(row.missed) > SHOWN else "")
    return (f"{row.kind}{mark}", percent(row.found, row.total), amount(row.total), missed)


def _print_alarms(alarms: Sequence[Alarms], say: Words) -> None:
    out = console()
    out.print()
    out.print(say("alarms"), style="bold")
    columns = (say("data"), say("changed"), say("lines"), say("speed"))
    rows = (
        (row.data, f"{100 * row.changed / (row.lines or 1):.3f} %", amount(row.lines), f"{row.milliseconds:.0f}")
        for row in alarms
    )
    out.print(table(columns, rows))
