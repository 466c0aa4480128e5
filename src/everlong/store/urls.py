"""Stores by URL: `sqlite:///PATH` or a path, `jsonl:DIR`, `postgresql://…`, `memory:`.

An engine is a package and a row of `ENGINES`. It is imported only when a URL names it; what it needs beyond the
standard library is an extra.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from everlong.core import expect_text
from everlong.engine import Threads
from everlong.errors import InputError

__all__ = ["STORE_VARIABLE", "default_store", "is_remote", "open_store"]

#: Names the store where no option does.
STORE_VARIABLE = "EVERLONG_STORE"
KINDS = "sqlite:///PATH or a path, jsonl:DIR, postgresql://…, memory:"


@dataclass(frozen=True, slots=True)
class StoreEngine:
    """A kind of store: `open` takes the URL and the part after its colon; `remote` if it is reached over a network."""

    open: Callable[[str, str], Threads]
    remote: bool = False


def default_store(environment: Mapping[str, str], platform: str) -> str:
    """Return the store to use where none is named: EVERLONG_STORE, else a SQLite file in the system's data folder.

    Example: {"XDG_DATA_HOME": "/data"} on Linux -> "/data/everlong/threads.db"
    """
    home = Path.home()
    match platform:
        case _ if environment.get(STORE_VARIABLE):
            return environment[STORE_VARIABLE]
        case "darwin":
            folder = home / "Library" / "Application Support"
        case "win32":
            folder = Path(environment.get("LOCALAPPDATA") or home / "AppData" / "Local")
        case _:
            folder = Path(environment.get("XDG_DATA_HOME") or home / ".local" / "share")
    return str(folder / "everlong" / "threads.db")


def open_store(url: str) -> Threads:
    """Open the store at a URL. Raises InputError if there is no such kind of store, StoreError if it cannot be opened.

    Example: "sqlite:///threads.db" and "threads.db" are the same file in this folder; "sqlite:////var/threads.db"
    starts at the root.
    """
    expect_text("url", url, f"the address of a store: {KINDS}")
    if not url.strip() or "\0" in url:
        raise InputError(f"a store needs a name: {KINDS}")
    engine, rest = _engine(url), url.partition(":")[2]
    if engine is not None:
        return engine.open(url, rest)
    if rest.startswith("//"):
        raise _unknown(url)
    return _sqlite_file(url)


def is_remote(url: str) -> bool:
    """Return whether the store at a URL is reached over a network, so that reading it may take long."""
    engine = _engine(url)
    return engine is not None and engine.remote


def _engine(url: str) -> StoreEngine | None:
    """Return the engine that a URL names; None for a plain path."""
    kind, colon, _ = url.partition(":")
    return ENGINES.get(kind.lower()) if colon else None


def _memory(url: str, rest: str) -> Threads:
    if rest:
        raise _unknown(url)
    from everlong.store.memory import MemoryThreads  # noqa: PLC0415 - only those who keep nothing need it

    return MemoryThreads()


def _sqlite(url: str, rest: str) -> Threads:
    path = unquote(rest.removeprefix("///"))
    if not path or (rest.startswith("//") and not rest.startswith("///")):
        raise InputError(f"{url!r} names no file: write sqlite:///PATH")
    return _sqlite_file(path)


def _sqlite_file(path: str) -> Threads:
    from everlong.store.sqlite import SqliteThreads  # noqa: PLC0415 - loads sqlite3

    return SqliteThreads(Path(path).expanduser())


def _jsonl(url: str, rest: str) -> Threads:
    if not rest:
        raise _unknown(url)
    from everlong.store.jsonl import JsonlThreads  # noqa: PLC0415 - one engine at a time

    return JsonlThreads(Path(unquote(rest)).expanduser())


def _postgres(url: str, rest: str) -> Threads:
    if not rest.startswith("//"):
        raise _unknown(url)
    try:
        from everlong.store.postgres import PostgresThreads  # noqa: PLC0415 - needs the extra
    except ImportError as error:
        raise InputError("Postgres needs its driver: pip install 'everlong[postgres]'") from error
    return PostgresThreads(url)


def _unknown(url: str) -> InputError:
    return InputError(f"{url!r} is not a store: {KINDS}")


#: The engines by what a URL begins with.
ENGINES: Mapping[str, StoreEngine] = {
    "memory": StoreEngine(_memory),
    "sqlite": StoreEngine(_sqlite),
    "jsonl": StoreEngine(_jsonl),
    "postgres": StoreEngine(_postgres, remote=True),
    "postgresql": StoreEngine(_postgres, remote=True),
}
