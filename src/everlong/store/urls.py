"""Stores by URL: `sqlite:///PATH` or a path, `jsonl:DIR`, `postgresql://…`, `memory:`.

An engine is a package and a row of `ENGINES`. It is imported only when a URL names it; what it needs beyond the
standard library is an extra. `?timeout=SECONDS` after a URL says how long to wait for another writer.
"""

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias
from urllib.parse import unquote

from everlong.core import expect_text
from everlong.engine import Threads
from everlong.errors import InputError
from everlong.extras import expect_extras
from everlong.folders import place
from everlong.store.private import OWN_FOLDER, make_folder
from everlong.store.rules import WAIT

__all__ = ["STORE_VARIABLE", "database_url", "default_store", "is_remote", "open_store", "store_path"]

#: The environment variable with the store's URL, if no option names one.
STORE_VARIABLE = "EVERLONG_STORE"
LONGEST_TIMEOUT = 86_400.0  # seconds
_TIMEOUT = re.compile(r"([?&])timeout=([^&]*)(&|$)")
KINDS = "sqlite:///PATH or a path, jsonl:DIR, postgresql://…, memory:"


#: Seconds to wait for another writer; None for the default.
Wait: TypeAlias = float | None


@dataclass(frozen=True, slots=True)
class StoreEngine:
    """A kind of store: a function that opens it, and whether it is on a network or in a file.

    `open` takes the URL, the part after its colon, and the seconds to wait for other writers. `path` returns the file
    or folder of the store, or None if it has none.
    """

    open: Callable[[str, str, Wait], Threads]
    remote: bool = False
    path: Callable[[str], Path] | None = None


def default_store(environment: Mapping[str, str], platform: str) -> str:
    """Return the store to use when none is named: EVERLONG_STORE, or a SQLite file in the system's data folder.

    Example: {"XDG_DATA_HOME": "/data"} on Linux -> "/data/everlong/threads.db"
    """
    named = environment.get(STORE_VARIABLE)
    return named or str(place("data", "threads.db", environment=environment, platform=platform))


def open_store(url: str) -> Threads:
    """Open the store at a URL and return it: `sqlite:///PATH`, `jsonl:FOLDER`, `postgresql://…` or `memory:`.

    "sqlite:///threads.db" and "threads.db" are the same file in the current folder; "sqlite:////var/threads.db" is an
    absolute path. Raises InputError if the kind of store does not exist, and StoreError if the store cannot be opened.
    """
    expect_text("url", url, f"the address of a store: {KINDS}")
    if not url.strip() or "\0" in url:
        raise InputError(f"the store has no name: use {KINDS}")
    place, wait = _timed(url)
    engine, rest = _engine(place), place.partition(":")[2]
    if engine is not None:
        return engine.open(place, rest, wait)
    if rest.startswith("//"):
        raise _unknown(place)
    return _sqlite_file(_path(place), wait)


def store_path(url: str) -> Path | None:
    """Return the file or folder of a store; None if it is on a server or in memory."""
    place, _ = _timed(url)
    engine, rest = _engine(place), place.partition(":")[2]
    if engine is None:
        return None if rest.startswith("//") else _path(place)
    return engine.path(rest) if engine.path else None


def database_url(url: str) -> str | None:
    """Return the URL of a store's Postgres database without our own options; None if the store is not in Postgres."""
    return _timed(url)[0] if is_remote(url) else None


def is_remote(url: str) -> bool:
    """Return whether the store at a URL is reached over a network, so that reading it may be slow."""
    engine = _engine(url)
    return engine is not None and engine.remote


def _engine(url: str) -> StoreEngine | None:
    """Return the engine that a URL names; None for a plain path."""
    kind, colon, _ = url.partition(":")
    return ENGINES.get(kind.lower()) if colon else None


def _timed(url: str) -> tuple[str, Wait]:
    """The URL without its timeout, and the timeout. Example: "jsonl:a?timeout=2" -> "jsonl:a", 2.0"""
    found = _TIMEOUT.search(url)
    if found is None:
        return url, None
    try:
        seconds = float(found[2])
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < LONGEST_TIMEOUT:
        raise InputError(f"the timeout of a store must be a number of seconds, not {found[2]!r}")
    rest = url[found.end() :]
    return url[: found.start()] + (found[1] if rest else "") + rest, seconds


def _path(text: str) -> Path:
    return Path(text).expanduser()


def _sqlite_path(rest: str) -> Path:
    return _path(unquote(rest.removeprefix("///")))


def _jsonl_path(rest: str) -> Path:
    return _path(unquote(rest))


def _memory(url: str, rest: str, _wait: Wait) -> Threads:
    if rest:
        raise _unknown(url)
    from everlong.store.memory import MemoryThreads  # noqa: PLC0415 - only those who keep nothing need it

    return MemoryThreads()


def _sqlite(url: str, rest: str, wait: Wait) -> Threads:
    if not rest.removeprefix("///") or (rest.startswith("//") and not rest.startswith("///")):
        raise InputError(f"{url!r} does not name a file: write sqlite:///PATH")
    return _sqlite_file(_sqlite_path(rest), wait)


def _sqlite_file(path: Path, wait: Wait) -> Threads:
    from everlong.store.sqlite import SqliteThreads  # noqa: PLC0415 - loads sqlite3

    if path.parent.name == OWN_FOLDER:
        with suppress(OSError):  # SQLite itself reports what is wrong with the path
            make_folder(path.parent)
    return SqliteThreads(path, wait=WAIT if wait is None else wait)


def _jsonl(url: str, rest: str, wait: Wait) -> Threads:
    if not rest:
        raise _unknown(url)
    from everlong.store.jsonl import JsonlThreads  # noqa: PLC0415 - one engine at a time

    return JsonlThreads(_jsonl_path(rest), wait=WAIT if wait is None else wait)


def _postgres(url: str, rest: str, wait: Wait) -> Threads:
    if not rest.startswith("//"):
        raise _unknown(url)
    expect_extras("Postgres", "postgres")
    from everlong.store.postgres import PostgresThreads  # noqa: PLC0415 - needs the extra

    return PostgresThreads(url) if wait is None else PostgresThreads(url, wait=wait, patience=wait)


def _unknown(url: str) -> InputError:
    return InputError(f"{url!r} is not a store: use {KINDS}")


#: The engines, by the beginning of the URL.
ENGINES: Mapping[str, StoreEngine] = {
    "memory": StoreEngine(_memory),
    "sqlite": StoreEngine(_sqlite, path=_sqlite_path),
    "jsonl": StoreEngine(_jsonl, path=_jsonl_path),
    "postgres": StoreEngine(_postgres, remote=True),
    "postgresql": StoreEngine(_postgres, remote=True),
}
