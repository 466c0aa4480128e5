"""What the commands of `everlong sessions` share: which store, which thread, which language."""

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import click

from everlong.cli.words.language import Language
from everlong.cli.words.wording import Words, language_option
from everlong.core import Row, Thread
from everlong.engine import Threads
from everlong.errors import InputError, NoThread
from everlong.store import STORE_VARIABLE, default_store, open_store

__all__ = [
    "Setting",
    "is_there",
    "row_at",
    "session_command",
    "stored_in",
    "the_thread",
    "thread_json",
]

FEW = 5  # candidates named in an error


@dataclass(frozen=True, slots=True)
class Setting:
    """Where and how a command works."""

    url: str
    json: bool
    say: Words
    #: Whether nobody named a store: it is the user's own.
    own: bool = False


Command = Callable[..., None]


def session_command(command: Command) -> Command:
    """The options that every command of the group has; it is called with a `Setting` in front."""

    def configured(store: str | None, json_wanted: bool, language: Language, **given: Any) -> None:
        url = store or default_store(os.environ, sys.platform)
        say = Words(language, "sessions")
        command(Setting(url, json_wanted, say, own=not (store or os.environ.get(STORE_VARIABLE))), **given)

    configured.__doc__ = command.__doc__
    configured.__click_params__ = getattr(command, "__click_params__", [])  # type: ignore[attr-defined]
    for option in (
        language_option,
        click.option("--json", "json_wanted", is_flag=True, help="Print JSON."),
        click.option(
            "--store",
            metavar="URL",
            help=f"sqlite:///PATH, jsonl:DIR or postgresql://… (default: {STORE_VARIABLE}, else a file of your own).",
        ),
    ):
        configured = option(configured)
    return configured


@contextmanager
def stored_in(setting: Setting, *, new: bool = False) -> Iterator[Threads]:
    """The store, opened. Unless it may be `new`, a store that is not there is refused: a name was mistyped."""
    path = _path_of(setting.url)
    if path is not None and not path.exists():
        if not new:
            raise InputError(f"no sessions are kept at {path}; `everlong sessions import FILE` begins a store")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{path.parent}: {error.strerror or error}") from error
    with open_store(setting.url) as store:
        yield store


def is_there(setting: Setting) -> bool:
    """Whether there is a store at that place already; a database is taken to be there."""
    path = _path_of(setting.url)
    return path is None or path.exists()


def _path_of(url: str) -> Path | None:
    """The file or folder that a store is kept in; None if it is kept elsewhere."""
    for kind in ("sqlite:///", "jsonl:"):
        if url.lower().startswith(kind):
            return Path(unquote(url[len(kind) :])).expanduser()
    return None if ":" in url else Path(url).expanduser()


def the_thread(store: Threads, name: str) -> Thread:
    """The session of that id, or the only one whose id begins so."""
    try:
        return store.thread(name)
    except NoThread:
        found = [one for one in store.threads(archived=None) if name and one.id.startswith(name)]
    if len(found) == 1:
        return found[0]
    if not found:
        raise NoThread(f"no session {name!r}; `everlong sessions list` names them")
    named = ", ".join(one.id for one in found[:FEW]) + (" …" if len(found) > FEW else "")
    raise InputError(f"{name!r} may be any of {len(found)} sessions: {named}")


def row_at(store: Threads, thread: Thread, name: str) -> Row:
    """The row that a person names, by its number or its id."""
    found = store.row(thread.id, name)
    if found is None and name.isdecimal():
        found = next(store.read(thread.id, int(name), int(name) + 1), None)
    if found is None:
        raise InputError(f"session {thread.id!r} has no row {name!r}; its {thread.length} rows are numbered from 0")
    return found


def thread_json(thread: Thread) -> dict[str, object]:
    """A thread as JSON."""
    return asdict(thread) | {
        "created": thread.created.isoformat(),
        "updated": thread.updated.isoformat(),
        "parent": {"id": thread.parent[0], "rows": thread.parent[1]} if thread.parent[1] or thread.parent[0] else None,
        "settings": json.loads(thread.settings),
        "metadata": json.loads(thread.metadata),
    }
