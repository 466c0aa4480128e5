"""`everlong sessions import` and `export`: sessions of other programs in, files for other programs out."""

import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import Protocol

import click

from everlong.cli.groups import ExampleCommand
from everlong.cli.sessions.lists import short_ids
from everlong.cli.sessions.options import SessionOptions, find_thread, session_command, session_store
from everlong.cli.terminal.files import source_bytes, write_output
from everlong.cli.terminal.streams import print_json
from everlong.cli.terminal.tables import amount, console, print_listing
from everlong.cli.terminal.text import one_line
from everlong.cli.words.wording import Words
from everlong.engine import Threads
from everlong.errors import InputError
from everlong.store import FORMATS, Imported, Passed, exported, import_session, sessions_of
from everlong.wire import SESSION_PROGRAMS, SESSION_SUFFIXES

__all__ = ["export_command", "import_command"]

SUFFIXES = (*SESSION_SUFFIXES, *(f"{suffix}.gz" for suffix in SESSION_SUFFIXES), ".zip")
NAMED = 10  # files without a conversation that are listed; a folder may have thousands
LISTED = 30  # sessions
IMPORT_HELP = f"""Import the sessions in each FILE; a folder stands for every file in it, - for standard input.

Reads sessions of {", ".join(SESSION_PROGRAMS[:-1])} and {SESSION_PROGRAMS[-1]}, chat JSON of OpenAI, Anthropic and
Gemini, and zip archives of such files. A compaction by one of these programs becomes a compaction point that you can
undo. Importing a file again adds only what is new.
"""
STYLES = {"is_new": "green", "is_grown": "green", "is_branch": "yellow", "is_known": "dim"}


class Advance(Protocol):
    """Advances the progress by a number of files or rows."""

    def __call__(self, *, files: int = 0, rows: int = 0) -> None: ...


@click.command(
    "import",
    cls=ExampleCommand,
    help=IMPORT_HELP,
    examples=(
        "everlong sessions import ~/.claude/projects",
        "everlong sessions import conversations.json --owner alice",
        "everlong sessions import chats.zip --store sqlite:///chats.db",
    ),
)
@click.argument("files", nargs=-1, required=True, metavar="FILE…")
@click.option("--owner", default="", metavar="NAME", help="The owner to store with the sessions (default: none).")
@session_command
def import_command(options: SessionOptions, files: Sequence[str], owner: str) -> None:
    """Import the sessions of other programs."""
    paths = list(_paths(files))
    imported: list[Imported] = []
    notes: list[str] = []
    passed_over: list[str] = []
    with session_store(options.url, new=True) as store, _progress(len(paths), options.say) as advance:
        for path, named in paths:
            try:
                imported += _import_file(store, path, owner, advance, notes)
            except InputError as error:
                if named:
                    raise
                passed_over.append(str(error))
            advance(files=1)
        ids = short_ids([thread.id for thread in store.threads(archived=None)])
    for note in (*notes, *passed_over[:NAMED]):
        click.echo(f"skipped {note}", err=True)
    if options.json:
        print_json([asdict(session) | {"outcome": _outcome(session).removeprefix("is_")} for session in imported])
    else:
        _print_report(imported, ids, len(passed_over), options.say)


def _paths(files: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """Yield every file to read, and whether the person named it; a file in a folder may be something else."""
    for file in files:
        path = Path(file)
        if file == "-" or not path.is_dir():
            yield file, True
            continue
        inside = [entry for entry in sorted(path.rglob("*")) if entry.name.endswith(SUFFIXES) and entry.is_file()]
        if not inside:
            raise InputError(f"{file}: the folder holds no file that ends in {' or '.join(SESSION_SUFFIXES)}")
        yield from ((str(path), False) for path in inside)


def _import_file(store: Threads, path: str, owner: str, advance: Advance, notes: list[str]) -> list[Imported]:
    """Store the sessions of a file; what could not be read goes into `notes`."""
    name = "standard input" if path == "-" else Path(path).name
    imported: list[Imported] = []
    try:
        for session in sessions_of(BytesIO(source_bytes(path)), name, _modified(path)):
            if isinstance(session, Passed):
                notes.append(f"{name}: {session.name}: {session.reason}")
                continue
            notes += [f"{name}: {warning}" for warning in session.warnings]
            imported.append(import_session(store, session, owner=owner, progress=lambda rows: advance(rows=rows)))
    except InputError as error:
        if str(error).startswith(path):
            raise
        raise InputError(f"{path}: {error}") from error
    return imported


def _modified(path: str) -> datetime | None:
    """When a file was last changed; None for standard input."""
    return None if path == "-" else datetime.fromtimestamp(Path(path).stat().st_mtime, UTC)


@contextmanager
def _progress(files: int, say: Words) -> Iterator[Advance]:
    """Show a bar with the files and the added rows, if a person watches."""
    if not sys.stderr.isatty():
        yield lambda *, files=0, rows=0: None  # noqa: ARG005 - nobody looks
        return
    from rich.progress import MofNCompleteColumn, Progress, TextColumn  # noqa: PLC0415 - only where it is seen

    columns = (
        *Progress.get_default_columns()[:2],
        MofNCompleteColumn(),
        TextColumn("{task.fields[added]}", style="dim"),
    )
    with Progress(*columns, console=console(stderr=True), transient=True) as bar:
        task = bar.add_task(say("importing"), total=files, added="")
        added = 0

        def advance(*, files: int = 0, rows: int = 0) -> None:
            nonlocal added
            added += rows
            bar.update(task, advance=files, added=say.many("messages", added))

        yield advance


def _outcome(session: Imported) -> str:
    if session.branch_of:
        return "is_branch"
    if session.new:
        return "is_new"
    return "is_grown" if session.messages or session.points else "is_known"


def _added(session: Imported, say: Words) -> str:
    counted = (("messages", session.messages), ("points", session.points))
    return say("comma").join(say.many(what, number) for what, number in counted if number)


def _print_report(imported: Sequence[Imported], ids: Mapping[str, str], passed_over: int, say: Words) -> None:
    from rich.text import Text  # noqa: PLC0415 - only where it is seen

    out = console()
    # Changes come first, and no more rows than fit a screen.
    shown = sorted(imported, key=lambda session: _outcome(session) == "is_known")[:LISTED]
    rows = [
        (
            Text(say(_outcome(session)), style=STYLES[_outcome(session)]),
            Text(one_line(session.title) or say("untitled")),
            Text(_added(session, say)),
            Text(one_line(ids[session.thread]), style="cyan"),
        )
        for session in shown
    ]
    if rows:
        print_listing(out, ("", say("title"), "", say("head_id")), rows, title=1, left=1)
    if len(shown) < len(imported):
        out.print(say("more", n=amount(len(imported) - len(shown))), style="dim")
    kinds = Counter(_outcome(session) for session in imported)
    total = say(
        "imported_total",
        sessions=say.many("imported", len(imported)),
        new=amount(kinds["is_new"] + kinds["is_branch"]),
        grown=amount(kinds["is_grown"]),
        known=amount(kinds["is_known"]),
        messages=say.many("messages", sum(session.messages for session in imported)),
    )
    out.print(total, style="dim")
    if passed_over:
        out.print(say.many("passed_over", passed_over), style="dim")


@click.command(
    "export",
    cls=ExampleCommand,
    examples=(
        "everlong sessions export harbour --format markdown -o harbour.md",
        "everlong sessions export harbour --as-sent  # what the next request contains",
    ),
)
@click.argument("session", metavar="ID")
@click.option(
    "--format",
    "fmt",
    type=click.Choice(FORMATS),
    default="openai",
    help="The format: openai, everlong (loses nothing), markdown, nanobot or chatbox (default: openai).",
)
@click.option(
    "--output", "-o", "output", default="-", metavar="FILE", help="Write to this file (default: standard output)."
)
@click.option(
    "--as-sent",
    is_flag=True,
    help="Export only what the next request would contain: the newest summary and what follows it.",
)
@session_command
def export_command(options: SessionOptions, session: str, fmt: str, output: str, as_sent: bool) -> None:
    """Export the session ID to a file: to read it, to import it elsewhere, or to use it in another program."""
    with session_store(options.url) as store:
        thread = find_thread(store, session)
        data = exported(store, thread.id, fmt, as_sent=as_sent)
    write_output(data, output)
    if output == "-":
        return
    if options.json:
        print_json({"session": thread.id, "format": fmt, "file": output, "bytes": len(data)})
    else:
        click.echo(options.say("exported", title=one_line(thread.title) or thread.id, path=output))
