"""Read and write fetched tables of models, as files in a folder. Never fetches.

A missing or damaged file counts as no table; then the bundled table is used. This module is separate from the refresh,
because reading needs no HTTP client.
"""

import json
import tempfile
import zlib
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from everlong.core import JsonObject
from everlong.windows import FILE, LEAST_WINDOW, Registry, bundled, pack, unpack

__all__ = ["NEVER_TRIED", "LastTry", "fetched_registry", "last_try", "registry_now", "write_registry", "write_try"]

STATE = "refresh.json"


@dataclass(frozen=True, slots=True)
class LastTry:
    """The last attempt to fetch tables; `failure` is why it failed, in one line."""

    at: datetime | None
    failure: str = ""


NEVER_TRIED = LastTry(None)


def registry_now(folder: Path) -> Registry:
    """Return the bundled registry with downloaded updates. Never raises and never uses the network."""
    fetched = fetched_registry(folder)
    if not len(fetched):
        return bundled()
    return Registry(tuple(entry for entry in bundled().merged(fetched) if entry.window >= LEAST_WINDOW))


def fetched_registry(folder: Path) -> Registry:
    """Return the fetched registry; an empty one if there is none, or if it cannot be read."""
    try:
        return unpack((folder / FILE).read_bytes())
    except (OSError, EOFError, ValueError, LookupError, TypeError, AttributeError, zlib.error):
        return Registry(())


def write_registry(folder: Path, registry: Registry) -> None:
    """Replace the fetched registry. Raises OSError."""
    tables: list[JsonObject] = [{"name": name, "date": date} for name, date in registry.snapshots]
    _write_file(folder / FILE, pack(registry, tables))


def last_try(folder: Path) -> LastTry:
    """Return the last attempt to download tables into the folder; NEVER_TRIED if there is no readable record."""
    try:
        state = json.loads((folder / STATE).read_bytes())
        at = datetime.fromisoformat(state["tried"])
        return NEVER_TRIED if at.tzinfo is None else LastTry(at, str(state["failure"]))
    except (OSError, ValueError, LookupError, TypeError):
        return NEVER_TRIED


def write_try(folder: Path, tried: LastTry) -> None:
    """Record an attempt and its outcome. Raises OSError."""
    state = {"tried": None if tried.at is None else tried.at.isoformat(), "failure": tried.failure}
    _write_file(folder / STATE, json.dumps(state, ensure_ascii=False).encode("utf-8", "backslashreplace"))


def _write_file(path: Path, content: bytes) -> None:
    """Write the file in one step: until it is complete, readers see the old one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
        whole = Path(scratch) / path.name
        whole.write_bytes(content)
        whole.replace(path)
