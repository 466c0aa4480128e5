"""The sources of models: those of the server, those with a key in the environment, and those a person added.

Added sources are in a file that only its owner can read. Keys go into requests and nowhere else: never into an answer,
a log or a `repr`.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from everlong.core import JsonObject
from everlong.errors import InputError, Refused
from everlong.folders import place
from everlong.llm import KNOWN, Endpoint, endpoint_at
from everlong.store import close_to_others, make_folder, read_input, write_private
from everlong.web.fields import invalid
from everlong.web.state.reach import NEAR_BY, Reach
from everlong.wire import FORMATS, format_named

__all__ = ["Source", "Sources", "Vault", "environment_sources", "sources_file", "with_version"]

FILE = "sources.json"
MOST_SOURCES = 50
LONGEST_NAME = 60
USUAL_VERSION = "v1"
LISTED_BELOW = "/models"  # where the formats with a version in their addresses list models
VERSION = re.compile(r"v\d+(?:(?:alpha|beta)\d*)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A place with models. `models` are their names if they are known without a request.

    `fast_model` is its model for the summaries and titles of its conversations, if one is set.
    A `local` source is a slow model on this machine: it answers, but writes no summaries or titles.
    The `witness` is not a language model: it quotes what it is sent, and its only tool is recall.
    """

    name: str
    endpoint: Endpoint
    models: tuple[str, ...] = ()
    local: bool = False
    witness: bool = False
    fast_model: str = ""

    def shown(self, models: int, *, added: bool) -> JsonObject:
        """Return the source as the page reads it; of the key only whether there is one."""
        endpoint = self.endpoint
        return {
            "name": self.name,
            "url": endpoint.url,
            "format": endpoint.fmt,
            "has_key": bool(endpoint.key),
            "models": models,
            "fast_model": self.fast_model,
            "added": added,
        }


def with_version(endpoint: Endpoint) -> str | None:
    """Return the address with the version that the format's addresses end with; None if it has one, or needs none.

    Example: http://127.0.0.1:11434 -> http://127.0.0.1:11434/v1
    """
    if any(map(VERSION.fullmatch, urlsplit(endpoint.url).path.split("/"))):
        return None
    if not format_named(endpoint.fmt).api.models.startswith(LISTED_BELOW):
        return None
    known = (url.rpartition("/")[2] for url, fmt, _ in KNOWN.values() if fmt == endpoint.fmt)
    return f"{endpoint.name}/{next(known, USUAL_VERSION)}"


def sources_file(environment: Mapping[str, str]) -> Path:
    """Return the file of added sources, in the user's configuration folder."""
    return place("config", FILE, environment=environment)


def environment_sources(environment: Mapping[str, str]) -> tuple[Source, ...]:
    """Return a source for EVERLONG_UPSTREAM and for every known provider whose key is set."""
    sources: list[Source] = []
    upstream = environment.get("EVERLONG_UPSTREAM", "").strip()
    if upstream:
        key, fmt = environment.get("EVERLONG_KEY", ""), environment.get("EVERLONG_FORMAT", "")
        endpoint = endpoint_at(upstream, key=key, fmt=fmt, environment=environment)
        sources.append(Source(name=_name(endpoint), endpoint=endpoint))
    for name, (_, _, variable) in KNOWN.items():
        if variable and environment.get(variable) and all(source.name != name for source in sources):
            sources.append(Source(name=name, endpoint=endpoint_at(name, environment=environment)))
    return tuple(sources)


class Vault(Protocol):
    """Keeps a text that no one else can read. Reading and writing may wait."""

    def read(self) -> str:
        """Return what is kept; "" if there is nothing."""

    def write(self, text: str) -> None:
        """Keep a text."""


class Sources:
    """All sources, the server's own first. Added ones are kept in a `vault`, else in a `file`, else for this run.

    `reach` says which servers an added source may use; the server's own sources may use any.
    """

    def __init__(
        self, given: Sequence[Source], file: Path | None, reach: Reach = NEAR_BY, vault: Vault | None = None
    ) -> None:
        self.given = tuple(given)
        self.reach = reach
        self._file = file
        self._vault = vault
        self.added: tuple[Source, ...] = () if file is None or vault is not None else _read(file)

    def load(self) -> None:
        """Read the added sources again: another process may have changed them."""
        if self._vault is not None:
            self.added = _parsed(self._vault.read())
        elif self._file is not None:
            self.added = _read(self._file)

    @property
    def all(self) -> tuple[Source, ...]:
        """Every source once; the server's own wins over an added one of the same name."""
        names = {source.name for source in self.given}
        return (*self.given, *(source for source in self.added if source.name not in names))

    def named(self, name: str) -> Source | None:
        """Return the source of that name."""
        return next((source for source in self.all if source.name == name), None)

    def reach_of(self, source: Source) -> Reach | None:
        """Return the limits of a source, None for one of the server's own."""
        return None if source in self.given else self.reach

    def planned(self, url: str, *, name: str = "", key: str = "", fmt: str = "", fast_model: str = "") -> Source:
        """Return the source that would be added, without adding it. Raises Refused if it cannot be."""
        if fmt and fmt not in FORMATS:
            raise invalid(f"format must be one of {', '.join(FORMATS)}")
        try:
            endpoint = endpoint_at(url.strip(), key=key, fmt=fmt)
        except (InputError, ValueError) as error:
            raise invalid(str(error)) from None
        own_name = name.strip() or _name(endpoint)
        if not own_name.isprintable() or "/" in own_name or len(own_name) > LONGEST_NAME:
            raise invalid(f"the name of a provider can have at most {LONGEST_NAME} characters and no slash")
        if any(source.name == own_name for source in self.given):
            raise Refused(
                f"the server already has a provider {own_name!r}; choose another name", status=409, kind="taken"
            )
        if len(self.added) >= MOST_SOURCES:
            raise invalid(f"there can be at most {MOST_SOURCES} providers")
        return Source(name=own_name, endpoint=endpoint, fast_model=fast_model.strip())

    def changed(
        self, name: str, *, url: str | None = None, key: str | None = None, fmt: str = "", fast_model: str | None = None
    ) -> Source:
        """Return an added source as it would be with other values, without storing it. Raises Refused.

        Its key belongs to its server: another server gets it only if it is given again.
        """
        source = self._own(name)
        endpoint = source.endpoint
        address = endpoint.url if url is None else url.strip()
        kept = key if key is not None else endpoint.key if _same_server(endpoint.url, address) else ""
        try:
            planned = endpoint_at(address, key=kept, fmt=fmt or endpoint.fmt)
        except (InputError, ValueError) as error:
            raise invalid(str(error)) from None
        if planned.fmt not in FORMATS:
            raise invalid(f"format must be one of {', '.join(FORMATS)}")
        fast = source.fast_model if fast_model is None else fast_model.strip()
        return replace(source, endpoint=planned, fast_model=fast)

    def _own(self, name: str) -> Source:
        """Return an added source. Raises Refused if there is none of that name."""
        found = next((source for source in self.added if source.name == name), None)
        if found is not None:
            return found
        if self.named(name) is not None:
            raise Refused(f"{name!r} was set when the server was started; change it there", status=409, kind="given")
        raise Refused(f"there is no provider {name[:LONGEST_NAME]!r}", status=404, kind="no_source")

    def give(self, source: Source) -> None:
        """Add a source of the server's own, for this run."""
        self.given = (*(other for other in self.given if other.name != source.name), source)

    def add(self, source: Source) -> None:
        """Store a source; it replaces one of the same name. Raises Refused if the file cannot be written."""
        places = [source if other.name == source.name else other for other in self.added]
        self._store(tuple(places) if source in places else (*places, source))

    def remove(self, name: str) -> None:
        """Remove an added source and its key."""
        own = self._own(name)
        self._store(tuple(source for source in self.added if source is not own))

    def _store(self, added: tuple[Source, ...]) -> None:
        if self._file is not None or self._vault is not None:
            rows = [
                {
                    "name": source.name,
                    "url": source.endpoint.url,
                    "format": source.endpoint.fmt,
                    "key": source.endpoint.key,
                    "fast_model": source.fast_model,
                }
                for source in added
            ]
            text = json.dumps({"sources": rows}, indent=2)
            try:
                if self._vault is not None:
                    self._vault.write(text)
                elif self._file is not None:
                    _write(self._file, text)
            except OSError as error:
                reason = f"the providers file cannot be written: {error.strerror}"
                raise Refused(reason, status=500, kind="not_kept") from None
        self.added = added


def _same_server(one: str, other: str) -> bool:
    """Return whether two addresses belong to the same server, so that a key for one may go to the other."""
    return urlsplit(one)[:2] == urlsplit(other)[:2]


def _name(endpoint: Endpoint) -> str:
    return endpoint.provider or (urlsplit(endpoint.url).netloc or "server").replace("/", "")


def _write(path: Path, text: str) -> None:
    """Write the whole file or nothing. Only its owner can read it, from the first byte on."""
    make_folder(path.parent)
    write_private(path, [text.encode()])


def _read(path: Path) -> tuple[Source, ...]:
    """Return the stored sources. Rows that cannot be read are skipped; the file is not changed."""
    close_to_others(path)  # it holds keys
    try:
        return _parsed(read_input(path).decode("utf-8"))
    except (InputError, ValueError):
        return ()


def _parsed(text: str) -> tuple[Source, ...]:
    try:
        rows = json.loads(text)["sources"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return ()
    sources: list[Source] = []
    for row in rows if isinstance(rows, list) else []:
        try:
            endpoint = endpoint_at(row["url"], key=row.get("key", ""), fmt=row.get("format", ""))
            fast_model = str(row.get("fast_model") or "")
            sources.append(Source(name=str(row["name"]), endpoint=endpoint, fast_model=fast_model))
        except (InputError, LookupError, TypeError, AttributeError, ValueError):
            continue
    return tuple(sources)
