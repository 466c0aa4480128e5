"""Tables of models that were fetched, as they lie in a folder: read, written in one step, never fetched here.

A file that is missing, half a file or somebody else's is no table: the one that comes with the package answers then.
"""

import json
import tempfile
import zlib
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from everlong.core import JsonObject
from everlong.windows import FILE, LEAST_WINDOW, Registry, bundled, pack, unpack

__all__ = ["NEVER_TRIED", "Tried", "keep_registry", "keep_try", "kept_registry", "last_try", "registry_now"]

STATE = "refresh.json"


@dataclass(frozen=True, slots=True)
class Tried:
    """The last time that tables were fetched, or were to be; `failure` is why they were not, in one line."""

    at: datetime | None
    failure: str = ""


NEVER_TRIED = Tried(None)


def registry_now(folder: Path) -> Registry:
    """What the package brought, with what was fetched since. Never raises, never waits for a network."""
    fetched = kept_registry(folder)
    if not len(fetched):
        return bundled()
    return Registry(tuple(entry for entry in bundled().merged(fetched) if entry.window >= LEAST_WINDOW))


def kept_registry(folder: Path) -> Registry:
    """What was fetched; an empty registry if nothing was, or it cannot be read."""
    try:
        return unpack((folder / FILE).read_bytes())
    except (OSError, EOFError, ValueError, LookupError, TypeError, AttributeError, zlib.error):
        return Registry(())


def keep_registry(folder: Path, registry: Registry) -> None:
    """Keep what was fetched in place of what was kept before. Raises OSError."""
    tables: list[JsonObject] = [{"name": name, "date": date} for name, date in registry.snapshots]
    _write(folder / FILE, pack(registry, tables))


def last_try(folder: Path) -> Tried:
    """When tables were last fetched into the folder; NEVER_TRIED if nothing readable says so."""
    try:
        state = json.loads((folder / STATE).read_bytes())
        at = datetime.fromisoformat(state["tried"])
        return NEVER_TRIED if at.tzinfo is None else Tried(at, str(state["failure"]))
    except (OSError, ValueError, LookupError, TypeError):
        return NEVER_TRIED


def keep_try(folder: Path, tried: Tried) -> None:
    """Keep when it was tried and what came of it. Raises OSError."""
    state = {"tried": None if tried.at is None else tried.at.isoformat(), "failure": tried.failure}
    _write(folder / STATE, json.dumps(state, ensure_ascii=False).encode("utf-8", "backslashreplace"))


def _write(path: Path, content: bytes) -> None:
    """The whole file or nothing: who reads meanwhile sees the old one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
        whole = Path(scratch) / path.name
        whole.write_bytes(content)
        whole.replace(path)
