"""Where models come from: what the server was given, keys of the environment, and what a person added.

What was added is kept in a file that only its owner can read. Keys go into requests and nowhere else: no answer, no
log and no representation has them.
"""

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

from everlong.core import JsonObject
from everlong.errors import InputError, Refused
from everlong.llm import KNOWN, Endpoint, endpoint_at
from everlong.web.fields import invalid

__all__ = ["Source", "Sources", "environment_sources", "sources_file"]

FILE = "sources.json"
ONLY_OWNER = 0o600
MOST = 50
LONGEST_NAME = 60
FORMATS = ("openai-chat", "openai-responses", "anthropic", "gemini")


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A place that has models. `models` are its names where they are known without asking.

    `local` is a model on this machine that reads slowly: it is asked for nothing beside the conversation.
    """

    name: str
    endpoint: Endpoint
    models: tuple[str, ...] = ()
    local: bool = False

    def shown(self, models: int, *, added: bool) -> JsonObject:
        """As the page reads it; the key is only said to be there."""
        at = self.endpoint
        return {
            "name": self.name,
            "url": at.url,
            "format": at.fmt,
            "has_key": bool(at.key),
            "models": models,
            "added": added,
        }


def sources_file(environment: Mapping[str, str]) -> Path:
    """Where added sources are kept: the user's folder for settings."""
    home = environment.get("XDG_CONFIG_HOME", "").strip() or str(Path(environment.get("HOME", "~")) / ".config")
    return Path(home).expanduser() / "everlong" / FILE


def environment_sources(environment: Mapping[str, str]) -> tuple[Source, ...]:
    """A source for EVERLONG_UPSTREAM and for every known provider whose key is there."""
    found: list[Source] = []
    upstream = environment.get("EVERLONG_UPSTREAM", "").strip()
    if upstream:
        key, fmt = environment.get("EVERLONG_KEY", ""), environment.get("EVERLONG_FORMAT", "")
        endpoint = endpoint_at(upstream, key=key, fmt=fmt, environment=environment)
        found.append(Source(name=_name(endpoint), endpoint=endpoint))
    for name, (_, _, variable) in KNOWN.items():
        if variable and environment.get(variable) and all(source.name != name for source in found):
            found.append(Source(name=name, endpoint=endpoint_at(name, environment=environment)))
    return tuple(found)


class Sources:
    """All sources, those that were given first. `file` None keeps nothing beyond this run."""

    def __init__(self, given: Sequence[Source], file: Path | None) -> None:
        self.given = tuple(given)
        self._file = file
        self.added: tuple[Source, ...] = () if file is None else _read(file)

    @property
    def all(self) -> tuple[Source, ...]:
        """Every source once; a given name counts before an added one."""
        names = {source.name for source in self.given}
        return (*self.given, *(source for source in self.added if source.name not in names))

    def named(self, name: str) -> Source | None:
        """The source of that name."""
        return next((source for source in self.all if source.name == name), None)

    def planned(self, where: str, *, name: str = "", key: str = "", fmt: str = "") -> Source:
        """The source that would be added; nothing is kept yet. Raises Refused."""
        if fmt and fmt not in FORMATS:
            raise invalid(f"format is one of {', '.join(FORMATS)}")
        try:
            endpoint = endpoint_at(where.strip(), key=key, fmt=fmt)
        except (InputError, ValueError) as error:
            raise invalid(str(error)) from None
        called = name.strip() or _name(endpoint)
        if not called.isprintable() or "/" in called or len(called) > LONGEST_NAME:
            raise invalid(f"a source's name has no slash and at most {LONGEST_NAME} characters")
        if any(source.name == called for source in self.given):
            raise Refused(f"{called!r} is set by the server itself; choose another name", status=409, kind="taken")
        if len(self.added) >= MOST:
            raise invalid(f"there are {MOST} sources already")
        return Source(name=called, endpoint=endpoint)

    def give(self, source: Source) -> None:
        """Another source of the server's own, for this run."""
        self.given = (*(one for one in self.given if one.name != source.name), source)

    def add(self, source: Source) -> None:
        """Keep a source; one of the same name is replaced. Raises Refused where the file cannot be written."""
        self._keep((*(other for other in self.added if other.name != source.name), source))

    def remove(self, name: str) -> None:
        """Forget a source that was added, and its key."""
        if all(source.name != name for source in self.added):
            if self.named(name) is not None:
                raise Refused(f"{name!r} is set by the server itself", status=409, kind="given")
            raise Refused(f"there is no source {name[:LONGEST_NAME]!r}", status=404, kind="no_source")
        self._keep(tuple(source for source in self.added if source.name != name))

    def _keep(self, added: tuple[Source, ...]) -> None:
        if self._file is not None:
            rows = [
                {"name": one.name, "url": one.endpoint.url, "format": one.endpoint.fmt, "key": one.endpoint.key}
                for one in added
            ]
            try:
                _write(self._file, json.dumps({"sources": rows}, indent=2))
            except OSError as error:
                reason = f"the sources cannot be kept: {error.strerror}"
                raise Refused(reason, status=500, kind="not_kept") from None
        self.added = added


def _name(endpoint: Endpoint) -> str:
    return endpoint.provider or (urlsplit(endpoint.url).netloc or "server").replace("/", "")


def _write(path: Path, text: str) -> None:
    """The whole file or nothing, readable by its owner alone from its first byte on."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as scratch:  # itself closed to others
        whole = Path(scratch) / path.name
        descriptor = os.open(whole, os.O_WRONLY | os.O_CREAT | os.O_EXCL, ONLY_OWNER)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        whole.replace(path)


def _read(path: Path) -> tuple[Source, ...]:
    """What was kept; what cannot be read is left out, and the file as it is."""
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))["sources"]
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return ()
    found: list[Source] = []
    for row in rows if isinstance(rows, list) else []:
        try:
            endpoint = endpoint_at(row["url"], key=row.get("key", ""), fmt=row.get("format", ""))
            found.append(Source(name=str(row["name"]), endpoint=replace(endpoint)))
        except (InputError, LookupError, TypeError, AttributeError, ValueError):
            continue
    return tuple(found)
