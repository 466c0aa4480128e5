"""What the commands of `everlong sessions` share: their options, and how a store, a session and a row are found."""

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
    "SessionOptions",
    "find_row",
    "find_thread",
    "session_command",
    "session_store",
    "store_exists",
    "thread_json",
]

FEW = 5  # candidates named in an error


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """The options that every command of the group takes."""

    url: str
    json: bool
    say: Words
    #: Whether the store is the user's own, because nobody named one.
    own: bool = False


Command = Callable[..., None]


def session_command(command: Command) -> Command:
    """Add the options of the group to a command; it gets them as its first argument."""

    def configured(store: str | None, json_wanted: bool, language: Language, **given: Any) -> None:
        url = store or default_store(os.environ, sys.platform)
        say = Words(language, "sessions")
        command(SessionOptions(url, json_wanted, say, own=not (store or os.environ.get(STORE_VARIABLE))), **given)

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
def session_store(url: str, *, new: bool = False) -> Iterator[Threads]:
    """Open a store. One that does not exist is refused unless it may be `new`: its name was probably mistyped."""
    path = _path_of(url)
    if path is not None and not path.exists():
        if not new:
            raise InputError(f"no sessions are kept at {path}; `everlong sessions import FILE` begins a store")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{path.parent}: {error.strerror or error}") from error
    with open_store(url) as store:
        yield store


def store_exists(url: str) -> bool:
    """Return whether a store exists; a database server is assumed to have one."""
    path = _path_of(url)
    return path is None or path.exists()


def _path_of(url: str) -> Path | None:
    """Return the file or folder of a store; None if it is on a server or in memory."""
    for kind in ("sqlite:///", "jsonl:"):
        if url.lower().startswith(kind):
            return Path(unquote(url[len(kind) :])).expanduser()
    return None if ":" in url else Path(url).expanduser()


def find_thread(store: Threads, name: str) -> Thread:
    """Return the session with this id, or the only one whose id begins with it."""
    try:
        return store.thread(name)
    except NoThread:
        threads = [thread for thread in store.threads(archived=None) if name and thread.id.startswith(name)]
    if len(threads) == 1:
        return threads[0]
    if not threads:
        raise NoThread(f"no session {name!r}; `everlong sessions list` names them")
    ids = ", ".join(thread.id for thread in threads[:FEW]) + (" …" if len(threads) > FEW else "")
    raise InputError(f"{name!r} may be any of {len(threads)} sessions: {ids}")


def find_row(store: Threads, thread: Thread, name: str) -> Row:
    """Return the row with this number or id."""
    row = store.row(thread.id, name)
    if row is None and name.isdecimal():
        row = next(store.read(thread.id, int(name), int(name) + 1), None)
    if row is None:
        raise InputError(f"session {thread.id!r} has no row {name!r}; its {thread.length} rows are numbered from 0")
    return row


def thread_json(thread: Thread) -> dict[str, object]:
    """Return a thread as JSON."""
    return asdict(thread) | {
        "created": thread.created.isoformat(),
        "updated": thread.updated.isoformat(),
        "parent": {"id": thread.parent[0], "rows": thread.parent[1]} if thread.parent[1] or thread.parent[0] else None,
        "settings": json.loads(thread.settings),
        "metadata": json.loads(thread.metadata),
    }
