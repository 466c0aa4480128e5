"""The snapshot of public tables that comes with the package: the format of its file, and reading it once.

    {"tables": [{"name", "date", …}], "models": {provider: [[table, id, context, input, output, prices…], …]}}

Trailing nulls are left out. `scripts/update_models.py` writes it; nobody edits it.
"""

import gzip
import json
from functools import cache
from pkgutil import get_data

from everlong.core import JsonObject
from everlong.windows.entries import Entry
from everlong.windows.registry import Registry

__all__ = ["FILE", "bundled", "pack", "unpack"]

FILE = "models.json.gz"


@cache
def bundled() -> Registry:
    """Return the registry of the snapshot, read at the first call."""
    packed = get_data(__package__, FILE)
    if packed is None:
        raise FileNotFoundError(FILE)
    return unpack(packed)


def pack(registry: Registry, tables: list[JsonObject]) -> bytes:
    """Return the file for a registry; equal registries give equal bytes. `tables` has each "name" and "date"."""
    number = {(table["name"], table["date"]): at for at, table in enumerate(tables)}
    models: dict[str, list[list[object]]] = {}
    for entry in sorted(registry, key=lambda entry: (entry.provider, entry.id, entry.table)):
        row: list[object] = [number[entry.table, entry.date], entry.id, *entry[4:]]
        while row[-1] is None or row[-1] is False:
            row.pop()
        models.setdefault(entry.provider, []).append([_short(figure) for figure in row])
    text = json.dumps({"tables": tables, "models": models}, ensure_ascii=False, separators=(",", ":"))
    return gzip.compress(text.encode(), mtime=0)


def unpack(packed: bytes) -> Registry:
    """Read what `pack` wrote."""
    body = json.loads(gzip.decompress(packed))
    dated = [(table["name"], table["date"]) for table in body["tables"]]
    return Registry(
        tuple(
            Entry(provider, row[1], *dated[row[0]], *row[2:])
            for provider, rows in body["models"].items()
            for row in rows
        )
    )


def _short(figure: object) -> object:
    """Whole prices without their ".0"."""
    return int(figure) if isinstance(figure, float) and figure.is_integer() else figure
