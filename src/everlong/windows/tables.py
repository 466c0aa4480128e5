"""Public tables of models: the description of a source, and several tables assembled into one registry. Pure.

The snapshot in the package and tables fetched later are assembled in the same way, and packed into one small file.
"""

import gzip
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from pkgutil import get_data

from everlong.core import Json, JsonObject
from everlong.windows.entries import Entry, consistent
from everlong.windows.names import key_of
from everlong.windows.providers import REGIONAL, makers_of
from everlong.windows.registry import Registry

__all__ = ["FILE", "LEAST_WINDOW", "Source", "assembled", "bundled", "pack", "unpack"]

LEAST_WINDOW = 1_024  # tokens; models listed with less are not chat models
LARGEST_REGISTRY = 64_000_000  # bytes of a registry after unpacking


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A public table of models."""

    #: The name in the registry, and the option of the command.
    table: str
    option: str
    #: The address to fetch it from, and its home page.
    url: str
    home: str
    licence: str = "MIT"
    #: Parses the table; the second argument is its date ("2026-11-09").
    parse: Callable[[Json, str], Registry]
    #: Turns the rows of a flat extract ({"provider", "id", "context", …}) into the table's own shape.
    unflatten: Callable[[Sequence[JsonObject]], Json]


def assembled(tables: Sequence[Registry]) -> Registry:
    """Return the tables as one, without duplicates and without rows that have no window or a tiny one.

    Limits that the first table leaves to a base model are filled in from the others.
    """
    first, *others = tables
    rest = Registry(()) if not others else others[0]
    for other in others[1:]:
        rest = rest.merged(other)
    filled = Registry(()).merged(Registry(tuple(_with_limits(first, rest)))).merged(rest)
    large = [entry for entry in filled if entry.window >= LEAST_WINDOW]
    return Registry(tuple(_without_regions(large)))


def _with_limits(first: Registry, rest: Registry) -> Iterator[Entry]:
    """Yield the rows of the first table, with missing limits from the same model elsewhere; such windows are marked."""
    windows, prompts = _by_key(first), _by_key(rest)
    for entry in first:
        key = key_of(entry.id)
        like = None if entry.window and entry.output else _same_model(key, windows.get(key, []), prompts.get(key, []))
        if like is None:
            yield entry
        elif entry.window:
            yield consistent(entry._replace(output=like.output))
        else:
            limits = entry._replace(context=like.window, input=like.input, output=entry.output or like.output)
            yield consistent(limits._replace(inferred=True))


def _same_model(key: str, windows: list[Entry], prompts: list[Entry]) -> Entry | None:
    """Return the entry whose limits to use: the maker's, otherwise one with the commonest window.

    Some tables have only the maker's prompt limit. If an entry of the first table has the same prompt limit and the
    whole window, that entry is used.
    """
    makers = makers_of(key)
    for maker in makers:
        for entry in windows:
            if entry.provider == maker:
                return entry
    for maker in makers:
        for prompt in prompts:
            if prompt.provider == maker:
                return next((entry for entry in windows if entry.input == prompt.input), prompt)
    return _most_common(windows) or _most_common(prompts)


def _most_common(entries: list[Entry]) -> Entry | None:
    votes = Counter(entry.window for entry in entries)
    size = min(votes, key=lambda window: (-votes[window], window), default=None)
    return next((entry for entry in entries if entry.window == size), None)


def _by_key(registry: Registry) -> dict[str, list[Entry]]:
    keyed: dict[str, list[Entry]] = {}
    for entry in registry:
        if entry.window:
            keyed.setdefault(key_of(entry.id), []).append(entry)
    return keyed


def _without_regions(entries: Iterable[Entry]) -> Iterator[Entry]:
    """Yield the entries. Of a model that a provider lists once per region with equal limits, the shortest id stays."""
    seen = set()
    for entry in sorted(entries, key=lambda entry: (len(entry.id), entry.id)):
        same = (entry.table, entry.provider, key_of(entry.id), entry.window, entry.output)
        if entry.provider not in REGIONAL or same not in seen:
            seen.add(same)
            yield entry


FILE = "models.json.gz"


@cache
def bundled() -> Registry:
    """Return the registry of the snapshot. It is read at the first call."""
    packed = get_data(__package__, FILE)
    if packed is None:
        raise FileNotFoundError(FILE)
    return unpack(packed)


def pack(registry: Registry, tables: list[JsonObject]) -> bytes:
    """Return a registry as a file; equal registries give equal bytes. `tables` has each table's "name" and "date"."""
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
    with gzip.open(BytesIO(packed)) as file:
        text = file.read(LARGEST_REGISTRY + 1)
    if len(text) > LARGEST_REGISTRY:
        raise ValueError("the registry is too large")
    body = json.loads(text)
    dated = [(table["name"], table["date"]) for table in body["tables"]]
    return Registry(
        tuple(
            Entry(provider, row[1], *dated[row[0]], *row[2:])
            for provider, rows in body["models"].items()
            for row in rows
        )
    )


def _short(figure: object) -> object:
    """Return a whole price without its ".0"."""
    return int(figure) if isinstance(figure, float) and figure.is_integer() else figure
