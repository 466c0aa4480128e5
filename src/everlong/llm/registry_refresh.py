"""The weekly refresh of the tables of models: fetched in the background, checked, and kept in a folder.

models.dev first, litellm's table where that is away. Offline is normal: whatever fails leaves what is known as it is,
and is one line. Nothing here waits for anything but its own fetch; nothing that was kept gets worse.
"""

import asyncio
import json
import logging
import tempfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zlib import crc32

import aiohttp

from everlong.core import JsonObject
from everlong.errors import InputError
from everlong.windows import FILE, LEAST_WINDOW, SOURCES, Entry, Registry, Source, assembled, bundled, pack, unpack

__all__ = [
    "NEVER_TRIED",
    "LastTry",
    "RefreshSettings",
    "Refreshed",
    "due",
    "fetched_registry",
    "implausible",
    "last_try",
    "refresh",
    "refresh_if_due",
    "registry_now",
    "write_registry",
    "write_try",
]

STATE = "refresh.json"


@dataclass(frozen=True, slots=True)
class LastTry:
    """The last time that tables were fetched, or were to be; `failure` is why they were not, in one line."""

    at: datetime | None
    failure: str = ""


NEVER_TRIED = LastTry(None)


def registry_now(folder: Path) -> Registry:
    """What the package brought, with what was fetched since. Never raises, never waits for a network."""
    fetched = fetched_registry(folder)
    if not len(fetched):
        return bundled()
    return Registry(tuple(entry for entry in bundled().merged(fetched) if entry.window >= LEAST_WINDOW))


def fetched_registry(folder: Path) -> Registry:
    """What was fetched; an empty registry if nothing was, or it cannot be read."""
    try:
        return unpack((folder / FILE).read_bytes())
    except (OSError, EOFError, ValueError, LookupError, TypeError, AttributeError, zlib.error):
        return Registry(())


def write_registry(folder: Path, registry: Registry) -> None:
    """Keep what was fetched in place of what was kept before. Raises OSError."""
    tables: list[JsonObject] = [{"name": name, "date": date} for name, date in registry.snapshots]
    _write_file(folder / FILE, pack(registry, tables))


def last_try(folder: Path) -> LastTry:
    """When tables were last fetched into the folder; NEVER_TRIED if nothing readable says so."""
    try:
        state = json.loads((folder / STATE).read_bytes())
        at = datetime.fromisoformat(state["tried"])
        return NEVER_TRIED if at.tzinfo is None else LastTry(at, str(state["failure"]))
    except (OSError, ValueError, LookupError, TypeError):
        return NEVER_TRIED


def write_try(folder: Path, tried: LastTry) -> None:
    """Keep when it was tried and what came of it. Raises OSError."""
    state = {"tried": None if tried.at is None else tried.at.isoformat(), "failure": tried.failure}
    _write_file(folder / STATE, json.dumps(state, ensure_ascii=False).encode("utf-8", "backslashreplace"))


def _write_file(path: Path, content: bytes) -> None:
    """The whole file or nothing: who reads meanwhile sees the old one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
        whole = Path(scratch) / path.name
        whole.write_bytes(content)
        whole.replace(path)


LARGEST = 32 * 1024 * 1024  # bytes; the tables are 1 to 4 MB
BLOCK = 64 * 1024
SECONDS = 60.0  # for one table
MOST_ROWS = 100_000
KNOWN_SHARE = 0.1  # of the known rows, that a table must have too
CHANGED_SHARE = 0.5  # of the rows in common, that may say something else
JITTER = 0.1  # of the time between two refreshes: not everyone asks on the same day
RETRY = timedelta(days=1)
UNFINISHED = "the last refresh did not finish"

log = logging.getLogger("everlong.refresh")
_under_way: set[asyncio.Task["Refreshed | None"]] = set()  # asyncio itself holds tasks only weakly


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshSettings:
    """Whether and how often tables are fetched by themselves; `days` 0 is never."""

    offline: bool = False
    days: float = 7.0

    def __post_init__(self) -> None:
        if not 0 <= self.days <= 36_500:
            raise InputError(f"the days between two refreshes are a number from 0 on, not {self.days}")

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> "RefreshSettings":
        """What EVERLONG_OFFLINE and EVERLONG_REFRESH_DAYS say. Example: {"EVERLONG_OFFLINE": "1"} -> offline"""
        offline = environment.get("EVERLONG_OFFLINE", "").strip().lower() not in ("", "0", "false", "no", "off")
        days = environment.get("EVERLONG_REFRESH_DAYS", "").strip()
        try:
            return cls(offline=offline, days=float(days) if days else cls().days)
        except ValueError:
            raise InputError(f"EVERLONG_REFRESH_DAYS is a number of days, not {days!r}") from None


DEFAULT_REFRESH = RefreshSettings()


@dataclass(frozen=True, slots=True, kw_only=True)
class Refreshed:
    """What came of a refresh: the table that was taken and its rows, or "" and none; `said` tells it in one line."""

    table: str
    rows: int
    said: str


async def refresh(
    session: aiohttp.ClientSession | None,
    folder: Path,
    *,
    now: datetime,
    sources: Sequence[Source] = SOURCES,
    seconds: float = SECONDS,
) -> Refreshed:
    """Fetch the first table that can be had and believed, and keep it. Raises nothing; the old stays otherwise."""
    if session is None:
        async with aiohttp.ClientSession(trust_env=True) as own:
            return await refresh(own, folder, now=now, sources=sources, seconds=seconds)
    failures: list[str] = []
    try:
        await asyncio.to_thread(write_try, folder, LastTry(now, UNFINISHED))
        for source in sources:
            try:
                body = await _fetched(session, source.url, seconds)
                rows = await asyncio.to_thread(_believed_rows, folder, source, body, now)
            except (aiohttp.ClientError, TimeoutError, OSError, ValueError, ArithmeticError, RecursionError) as error:
                failures.append(f"{source.table}: {_reason(error)}")
                continue
            await asyncio.to_thread(_write_rows, folder, source, rows, now)
            said = f"{len(rows):,} models of {source.table}, as of {_day(now)}"
            return Refreshed(table=source.table, rows=len(rows), said="; ".join([said, *failures]))
        said = f"the tables of models stay as they are ({'; '.join(failures) or 'no source is named'})"
        await asyncio.to_thread(write_try, folder, LastTry(now, said))
    except OSError as error:
        said = f"the tables of models cannot be kept: {_reason(error)}"
    return Refreshed(table="", rows=0, said=said)


def refresh_if_due(
    folder: Path,
    now: datetime,
    *,
    settings: RefreshSettings = DEFAULT_REFRESH,
    sources: Sequence[Source] = SOURCES,
) -> "asyncio.Task[Refreshed | None]":
    """Refresh in the background if it is time. The task needs no waiting for; its result is None if it was not."""

    async def run() -> Refreshed | None:
        if not await asyncio.to_thread(due, folder, now, settings, sources):
            return None
        done = await refresh(None, folder, now=now, sources=sources)
        log.info("%s", done.said)
        return done

    task = asyncio.get_running_loop().create_task(run(), name="everlong-refresh")
    _under_way.add(task)
    task.add_done_callback(_under_way.discard)
    return task


def due(
    folder: Path,
    now: datetime,
    settings: RefreshSettings = DEFAULT_REFRESH,
    sources: Sequence[Source] = SOURCES,
) -> bool:
    """Whether it is time: a week after the last refresh, or after the bundled table; a day after one that failed."""
    if settings.offline or not settings.days or not sources:
        return False
    tried = last_try(folder)
    wait = timedelta(days=settings.days)
    since = tried.at
    if since is None:
        dates = [date for table, date in registry_now(folder).snapshots if table == sources[0].table]
        if not dates:
            return True
        since = datetime.fromisoformat(max(dates)).replace(tzinfo=UTC)
    elif since > now:  # a clock was set back
        return True
    if tried.failure:
        wait = min(wait, RETRY)
    late = JITTER * crc32(f"{folder} {since.isoformat()}".encode("utf-8", "replace")) / 0xFFFFFFFF
    return now - since >= wait * (1 + late)


def implausible(fresh: Registry, known: Registry) -> str:
    """Why a table cannot be believed, beside what is known of it; "" if it can."""
    before = {_identity(entry): entry.window for entry in known}
    shared = [(entry.window, before[_identity(entry)]) for entry in fresh if _identity(entry) in before]
    if not len(fresh):
        return "no models in it"
    if len(fresh) > MOST_ROWS:
        return f"{len(fresh):,} models, more than there are"
    if len(shared) < KNOWN_SHARE * len(before):
        return f"it has {len(shared):,} of {len(before):,} known models"
    changed = sum(new != old for new, old in shared)
    if changed > CHANGED_SHARE * len(shared):
        return f"it says something else of {changed:,} of {len(shared):,} known models"
    return ""


async def _fetched(session: aiohttp.ClientSession, url: str, seconds: float) -> bytes:
    async with session.get(url, timeout=aiohttp.ClientTimeout(total=seconds)) as response:
        if response.status != 200:
            raise ValueError(f"status {response.status}")
        body = bytearray()
        async for block in response.content.iter_chunked(BLOCK):
            body += block
            if len(body) > LARGEST:
                raise ValueError(f"more than {LARGEST:,} bytes")
        return bytes(body)


def _believed_rows(folder: Path, source: Source, body: bytes, now: datetime) -> Registry:
    """The rows of a table, made as the bundled ones were. Raises ValueError if they cannot be believed."""
    known = registry_now(folder)
    fresh = source.parse(json.loads(body), _day(now))
    rows = _of(assembled(_tables(source, fresh, known)), source.table)
    reason = implausible(rows, _of(known, source.table))
    if reason:
        raise ValueError(reason)
    return rows


def _tables(source: Source, fresh: Registry, known: Registry) -> list[Registry]:
    """The table that was fetched, with what is known of those that are believed less; nothing of the others."""
    names = [each.table for each in SOURCES]
    at = names.index(source.table)
    return [*(Registry(()) for _ in names[:at]), fresh, *(_of(known, name) for name in names[at + 1 :])]


def _write_rows(folder: Path, source: Source, rows: Registry, now: datetime) -> None:
    others = (entry for entry in fetched_registry(folder) if entry.table != source.table)
    write_registry(folder, Registry((*others, *rows)))
    write_try(folder, LastTry(now))


def _of(registry: Registry, table: str) -> Registry:
    return Registry(tuple(entry for entry in registry if entry.table == table))


def _identity(entry: Entry) -> tuple[str, str]:
    return entry.provider, entry.id.lower()


def _day(now: datetime) -> str:
    return now.astimezone(UTC).date().isoformat()


def _reason(error: BaseException) -> str:
    if isinstance(error, json.JSONDecodeError | UnicodeDecodeError):
        return "no JSON"
    return " ".join(str(error).split()) or type(error).__name__
