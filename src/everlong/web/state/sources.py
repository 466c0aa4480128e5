"""The sources of models: those of the server, those with a key in the environment, and those a person added.

Added sources are in a file that only its owner can read. Keys go into requests and nowhere else: never into an answer,
a log or a `repr`.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from everlong.core import JsonObject
from everlong.errors import InputError, Refused
from everlong.folders import place
from everlong.llm import KNOWN, Endpoint, endpoint_at
from everlong.store import close_to_others, make_folder, read_input, write_private
from everlong.web.fields import invalid
from everlong.web.state.reach import NEAR_BY, Reach
from everlong.wire import FORMATS

__all__ = ["Source", "Sources", "environment_sources", "sources_file"]

FILE = "sources.json"
MOST_SOURCES = 50
LONGEST_NAME = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A place with models. `models` are their names if they are known without a request.

    `fast_model` is the one of them that it recommends for summaries and titles of the conversations held there.
    A `local` source is a slow model on this machine: it answers, and does nothing beside the conversation.
    """

    name: str
    endpoint: Endpoint
    models: tuple[str, ...] = ()
    local: bool = False
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


class Sources:
    """All sources, the server's own first. Without a `file`, added sources are lost when the program ends.

    `reach` says which servers an added source may be; the server's own may be any.
    """

    def __init__(self, given: Sequence[Source], file: Path | None, reach: Reach = NEAR_BY) -> None:
        self.given = tuple(given)
        self.reach = reach
        self._file = file
        self.added: tuple[Source, ...] = () if file is None else _read(file)

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
            raise invalid(f"the name of a source may have at most {LONGEST_NAME} characters and no slash")
        if any(source.name == own_name for source in self.given):
            raise Refused(f"{own_name!r} is set by the server itself; choose another name", status=409, kind="taken")
        if len(self.added) >= MOST_SOURCES:
            raise invalid(f"there are already {MOST_SOURCES} sources")
        return Source(name=own_name, endpoint=endpoint, fast_model=fast_model.strip())

    def give(self, source: Source) -> None:
        """Add a source of the server's own, for this run."""
        self.given = (*(other for other in self.given if other.name != source.name), source)

    def add(self, source: Source) -> None:
        """Store a source; it replaces one of the same name. Raises Refused if the file cannot be written."""
        self._store((*(other for other in self.added if other.name != source.name), source))

    def remove(self, name: str) -> None:
        """Remove an added source and its key."""
        if all(source.name != name for source in self.added):
            if self.named(name) is not None:
                raise Refused(f"{name!r} is set by the server itself", status=409, kind="given")
            raise Refused(f"there is no source {name[:LONGEST_NAME]!r}", status=404, kind="no_source")
        self._store(tuple(source for source in self.added if source.name != name))

    def _store(self, added: tuple[Source, ...]) -> None:
        if self._file is not None:
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
            try:
                _write(self._file, json.dumps({"sources": rows}, indent=2))
            except OSError as error:
                reason = f"the file of sources cannot be written: {error.strerror}"
                raise Refused(reason, status=500, kind="not_kept") from None
        self.added = added


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
        rows = json.loads(read_input(path).decode("utf-8"))["sources"]
    except (InputError, ValueError, LookupError, TypeError, RecursionError):
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
