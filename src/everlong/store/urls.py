"""Stores by name: `sqlite:///PATH` or a path, `jsonl:DIR`, `postgresql://…`, `memory:`.

Each engine is imported only when it is asked for; what it needs beyond the standard library is an extra.
"""

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote

from everlong.engine import Threads
from everlong.errors import InputError

__all__ = ["STORE_VARIABLE", "default_store", "open_store"]

#: Names the store where no option does.
STORE_VARIABLE = "EVERLONG_STORE"
KINDS = "sqlite:///PATH or a path, jsonl:DIR, postgresql://…, memory:"


def default_store(environment: Mapping[str, str], platform: str) -> str:
    """The store where none is named: EVERLONG_STORE, else a SQLite file in the folder where a system keeps such things.

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
    """The store of that name. Raises InputError if there is no such kind, StoreError if it cannot be opened.

    Example: "sqlite:///threads.db" and "threads.db" are the same file in this folder; "sqlite:////var/threads.db"
    starts at the root.
    """
    kind, colon, rest = url.partition(":")
    match kind.lower():
        case _ if not url.strip() or "\0" in url:
            raise InputError(f"a store needs a name: {KINDS}")
        case "memory" if colon and not rest:
            return _memory()
        case "sqlite" if colon:
            return _sqlite(_path_in(url, rest))
        case "jsonl" if colon and rest:
            return _jsonl(unquote(rest))
        case "postgresql" | "postgres" if rest.startswith("//"):
            return _postgres(url)
        case _ if rest.startswith("//") or (kind.lower() in ("memory", "jsonl", "postgres", "postgresql") and colon):
            raise InputError(f"{url!r} is no store: {KINDS}")
        case _:
            return _sqlite(url)


def _path_in(url: str, rest: str) -> str:
    path = unquote(rest.removeprefix("///"))
    if not path or (rest.startswith("//") and not rest.startswith("///")):
        raise InputError(f"{url!r} names no file: write sqlite:///PATH")
    return path


def _memory() -> Threads:
    from everlong.store.memory import MemoryThreads  # noqa: PLC0415 - only who keeps nothing needs it

    return MemoryThreads()


def _sqlite(path: str) -> Threads:
    from everlong.store.sqlite import SqliteThreads  # noqa: PLC0415 - loads sqlite3

    return SqliteThreads(Path(path).expanduser())


def _jsonl(folder: str) -> Threads:
    from everlong.store.jsonl import JsonlThreads  # noqa: PLC0415 - one engine at a time

    return JsonlThreads(Path(folder).expanduser())


def _postgres(url: str) -> Threads:
    try:
        from everlong.store.postgres import PostgresThreads  # noqa: PLC0415 - needs the extra
    except ImportError as error:
        raise InputError("Postgres needs its driver: pip install 'everlong[postgres]'") from error
    return PostgresThreads(url)
