"""`everlong lab fetch-data`: which public data sets the lab reads, how to get each, and their conversion."""

import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from everlong.cli.groups import ExampleCommand
from everlong.cli.lab.options import DATA, JSON
from everlong.cli.terminal.streams import print_json
from everlong.cli.terminal.tables import amount, console
from everlong.cli.words.language import Language
from everlong.cli.words.wording import Words, language_option
from everlong.errors import InputError
from everlong.lab import DATA_VARIABLE, DATASETS, PROJECTS, DatasetRow, ProjectRow, convert_dataset, write_dataset

__all__ = ["fetch_data_command"]

PLACE = "DIR"


@click.command(
    "fetch-data",
    cls=ExampleCommand,
    examples=(
        "everlong lab fetch-data",
        "everlong lab fetch-data locomo",
        "everlong lab fetch-data locomo --from locomo --data lab-data",
    ),
)
@click.argument("name", required=False, metavar="[NAME]")
@click.option(
    "--from",
    "source",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Convert the data in this folder, which you have cloned, and write it to the data folder.",
)
@DATA
@JSON
@language_option
def fetch_data_command(
    name: str | None, source: Path | None, data: str | None, as_json: bool, language: Language
) -> None:
    """List public conversations to measure on, and convert them for the lab.

    Without NAME the command lists all data sets and the projects that publish the sessions of their agents, each with
    the commands that get it. With NAME it shows one of them. With --from it converts a folder that you have cloned. A
    data set of your own in the lab's format can have any NAME. Nothing is downloaded.
    """
    say = Words(language, "datasets")
    name = name.replace("-", "_") if name and name not in PROJECTS else name
    if source is not None:
        if name is None:
            raise click.UsageError("--from needs a NAME: which data set does the folder hold?")
        _convert(name, source, data, say, as_json=as_json)
        return
    if name is not None and name not in DATASETS and name not in PROJECTS:
        known = ", ".join((*DATASETS, *PROJECTS))
        raise InputError(
            f"there is no public data set {name!r}; known: {known}. For a data set of your own add --from FOLDER"
        )
    sets = [row for row in DATASETS.values() if name in (None, row.name)]
    projects = [row for row in PROJECTS.values() if name in (None, row.name)]
    place = data or os.environ.get(DATA_VARIABLE) or PLACE
    if as_json:
        print_json([*(_facts(row, place) for row in sets), *(_project_facts(row, place) for row in projects)])
        return
    if sets:
        _print_entries("title", [_set_entry(row, place, say) for row in sets], say)
    if projects:
        _print_entries("projects", [_project_entry(row, place, say) for row in projects], say)


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of the list: the name of a data set, what it is, its figures, and the commands that get it."""

    name: str
    what: str
    facts: tuple[str, ...]
    commands: list[str]


def _print_entries(title: str, entries: Sequence[Entry], say: Words) -> None:
    out = console()
    out.print(say(title), style="bold", soft_wrap=True)
    for entry in entries:
        out.print()
        out.print(entry.name, style="bold", end="  ", soft_wrap=True)
        out.print(entry.what, soft_wrap=True)
        out.print(f"  {' · '.join(entry.facts)}", style="dim", soft_wrap=True)
        for command in entry.commands:
            out.print(f"  {command}", soft_wrap=True)
    out.print()


def _set_entry(row: DatasetRow, place: str, say: Words) -> Entry:
    return Entry(row.name, say(f"what_{row.name}"), _size(row, say), _commands(row, place))


def _project_entry(row: ProjectRow, place: str, say: Words) -> Entry:
    facts = (
        say.many("dialogues", row.conversations),
        say.many("probes", row.probes),
        say(f"half_{row.half}"),
        row.licence,
        row.commit,
    )
    return Entry(row.name, say("what_project", code=row.code, agents=row.agents), facts, _project_commands(row, place))


def _project_commands(row: ProjectRow, place: str) -> list[str]:
    """Return the two commands that make a data set from a project's sessions."""
    target = place if place == PLACE else shlex.quote(place)
    branch = f" --branch {row.branch}" if row.branch else ""
    files = " ".join(f"{row.folder}/{name}" for name in row.files) or row.folder
    made = f"everlong lab probes {files} --source {row.source} --as-half {row.half} --save {target}"
    return [f"git clone --depth 1{branch} {row.address}", made]


def _project_facts(row: ProjectRow, place: str) -> dict[str, object]:
    return {
        "name": row.name,
        "repository": row.repository,
        "commit": row.commit,
        "branch": row.branch,
        "code": row.code,
        "agents": row.agents,
        "half": row.half,
        "licence": row.licence,
        "conversations": row.conversations,
        "probes": row.probes,
        "commands": _project_commands(row, place),
    }


def _commands(row: DatasetRow, place: str) -> list[str]:
    """Return the two commands that bring a data set into the data folder."""
    target = place if place == PLACE else shlex.quote(place)
    own = f"everlong lab fetch-data {row.name} --from {{}} --data {target}"
    if row.made_from:
        return [f"everlong lab fetch-data {row.made_from}", own.format(f"{target}/{row.made_from}")]
    return [f"git clone --depth 1 {row.address}", own.format(row.folder)]


def _size(row: DatasetRow, say: Words) -> tuple[str, ...]:
    return (
        say(f"language_{row.language}"),
        say.many("dialogues", row.dialogues),
        say.many("questions", row.questions),
        f"{row.megabytes} MB",
        row.licence,
    )


def _facts(row: DatasetRow, place: str) -> dict[str, object]:
    return {
        "name": row.name,
        "language": row.language,
        "licence": row.licence,
        "conversations": row.dialogues,
        "questions": row.questions,
        "megabytes": row.megabytes,
        "commands": _commands(row, place),
    }


def _convert(name: str, source: Path, data: str | None, say: Words, *, as_json: bool) -> None:
    named = data or os.environ.get(DATA_VARIABLE)
    if not named:
        raise InputError(f"no data folder: name one with --data or {DATA_VARIABLE}; it is created if it does not exist")
    dataset = convert_dataset(name, source)
    folder = Path(named) / name
    try:
        write_dataset(dataset, folder)
    except OSError as error:
        raise InputError(f"{folder}: cannot write: {error.strerror or error}") from error
    turns = sum(len(dialogue.turns) for dialogue in dataset.dialogues)
    tuning, confirming = dataset.questions_in("tuning"), dataset.questions_in("confirming")
    if as_json:
        facts = {"name": name, "folder": str(folder), "conversations": len(dataset.dialogues), "turns": turns}
        print_json(facts | {"questions": len(dataset.questions), "tuning": tuning, "confirming": confirming})
        return
    parts = (
        say.many("dialogues", len(dataset.dialogues)),
        say.many("turns", turns),
        say.many("questions", len(dataset.questions)),
        say("halves", tuning=amount(tuning), confirming=amount(confirming)),
    )
    out = console()
    out.print(say("written", folder=str(folder)), soft_wrap=True)
    out.print("  " + " · ".join(parts), soft_wrap=True)
    out.print(say("next", command=f"everlong lab dialogs --data {shlex.quote(named)} --files {name}"), soft_wrap=True)
