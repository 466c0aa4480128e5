"""What the commands of `everlong sessions` share: their options, and how a store, a session and a row are found."""

import json
import logging
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import click

from everlong.cli.terminal.text import one_line
from everlong.cli.words.language import Language
from everlong.cli.words.wording import Words, language_option
from everlong.core import Row, Thread
from everlong.engine import Threads
from everlong.errors import InputError, NoThread
from everlong.store import STORE_VARIABLE, default_store, make_folder, open_store, store_path

__all__ = [
    "SessionOptions",
    "find_row",
    "find_thread",
    "is_old_branch",
    "session_command",
    "session_store",
    "store_exists",
    "thread_json",
]

FEW = 5  # candidates named in an error
LONGEST_TITLE = 40  # characters of each
LONGEST_NUMBER = 18  # digits of a row's number


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """The options that every command of the group takes."""

    url: str
    json: bool
    say: Words
    #: Whether the store is the user's own, because none was named.
    own: bool = False


Command = Callable[..., None]


def session_command(command: Command) -> Command:
    """Add the options of the group to a command, which gets them as its first argument."""

    def configured(store: str | None, json_wanted: bool, language: Language, **given: Any) -> None:
        url = store or default_store(os.environ, sys.platform)
        say = Words(language, "sessions")
        command(SessionOptions(url, json_wanted, say, own=not (store or os.environ.get(STORE_VARIABLE))), **given)

    configured.__doc__ = command.__doc__
    configured.__click_params__ = getattr(command, "__click_params__", [])  # type: ignore[attr-defined]
    for option in (
        language_option,
        click.option("--json", "json_wanted", is_flag=True, help="Print the result as JSON."),
        click.option(
            "--store",
            metavar="URL",
            help=f"The store: sqlite:///PATH, jsonl:DIR or postgresql://… (default: {STORE_VARIABLE}, else your own "
            "file).",
        ),
    ):
        configured = option(configured)
    return configured


@contextmanager
def session_store(url: str, *, new: bool = False) -> Iterator[Threads]:
    """Open a store. A missing store is refused unless it may be `new`: its name was probably mistyped."""
    path = store_path(url)
    if path is not None and not path.exists():
        if not new:
            raise InputError(f"there is no store at {path}: `everlong sessions import FILE` creates one")
        try:
            make_folder(path.parent)
        except OSError as error:
            raise InputError(f"{path.parent}: {error.strerror or error}") from error
    with _show_warnings(), open_store(url) as store:
        yield store


class _ToPerson(logging.Handler):
    """Prints the store's warnings and waiting messages on standard error as they occur."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print one line."""
        click.echo(f"everlong: {one_line(record.getMessage())}", err=True)


@contextmanager
def _show_warnings() -> Iterator[None]:
    """Show the warnings of the store while this is entered."""
    log, handler = logging.getLogger("everlong.store"), _ToPerson()
    level = log.level
    log.setLevel(logging.INFO)  # for people, also what it waits for
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(level)


def store_exists(url: str) -> bool:
    """Return whether a store exists; a database server is assumed to have one."""
    path = store_path(url)
    return path is None or path.exists()


def find_thread(store: Threads, name: str) -> Thread:
    """Return the session with this id, or the only one whose id begins with it, not counting its branches."""
    try:
        return store.thread(name)
    except NoThread:
        threads = [thread for thread in store.threads(archived=None) if name and thread.id.startswith(name)]
    ids = {thread.id for thread in threads}
    chosen = [thread for thread in threads if not any(start in ids for start in _before_tildes(thread.id))]
    if len(chosen) == 1:
        return chosen[0]
    if not chosen:
        raise NoThread(f"there is no session {name!r}: `everlong sessions list` shows all")
    few = ", ".join(map(_described, chosen[:FEW])) + (" …" if len(chosen) > FEW else "")
    raise InputError(f"{name!r} matches {len(chosen)} sessions: {few}; give more of the id")


def is_old_branch(name: str, parent: str) -> bool:
    """Whether an id is that of a branch in the old form. Example: boats~2 of boats"""
    return name.startswith(f"{parent}~")


def _before_tildes(name: str) -> Iterator[str]:
    """Yield the beginnings of an id that could be its parent's. Example: a~b~2 -> a, a~b"""
    return (name[:at] for at, character in enumerate(name) if character == "~")


def _described(thread: Thread) -> str:
    title = one_line(thread.title)
    shown = title if len(title) <= LONGEST_TITLE else f"{title[:LONGEST_TITLE].rstrip()}…"
    day = thread.updated.astimezone().strftime("%Y-%m-%d")
    return f"{one_line(thread.id)} ({', '.join(filter(None, (shown, day)))})"


def find_row(store: Threads, thread: Thread, name: str) -> Row:
    """Return the row with this number or id, or the only one whose id begins with it."""
    row = store.row(thread.id, name)
    if row is None and name.isdecimal() and int(name[:LONGEST_NUMBER]) < thread.length:
        row = next(store.read(thread.id, int(name), int(name) + 1), None)
    if row is not None:
        return row
    found = [row for row in store.read(thread.id) if name and row.id.startswith(name)]
    if len(found) > 1:
        few = ", ".join(f"{row.order} ({row.id})" for row in found[:FEW]) + (" …" if len(found) > FEW else "")
        raise InputError(f"{name!r} matches {len(found)} rows of session {thread.id!r}: {few}; give more of the id")
    if not found:
        raise InputError(f"session {thread.id!r} has no row {name!r}: its {thread.length} rows are numbered from 0")
    return found[0]


def thread_json(thread: Thread) -> dict[str, object]:
    """Return a thread as JSON; its points are the compactions in force."""
    fields = asdict(thread)
    return fields | {
        "points": fields.pop("standing"),
        "created": thread.created.isoformat(),
        "updated": thread.updated.isoformat(),
        "parent": {"id": thread.parent[0], "rows": thread.parent[1]} if thread.parent[1] or thread.parent[0] else None,
        "settings": json.loads(thread.settings),
        "metadata": json.loads(thread.metadata),
    }
