"""The weekly refresh of the model registry: a table is fetched in the background, checked, and written to a folder.

The sources are tried in their order. Being offline is normal: a failure changes nothing and is reported in one line.
"""

import asyncio
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zlib import crc32

import aiohttp

from everlong.errors import InputError
from everlong.llm.bodies import PACKED, read_whole
from everlong.llm.registry_files import (
    LastTry,
    fetched_registry,
    last_try,
    registry_now,
    write_registry,
    write_try,
)
from everlong.windows import SOURCES, Entry, Registry, Source, assembled

__all__ = [
    "RefreshSettings",
    "Refreshed",
    "due",
    "implausible",
    "refresh",
    "refresh_if_due",
]

LARGEST = 32 * 1024 * 1024  # bytes; the tables are 1 to 4 MB
SECONDS = 60.0  # for one table
MOST_ROWS = 100_000
KNOWN_SHARE = 0.1  # the share of the known rows that a table must have too
CHANGED_SHARE = 0.5  # the share of the common rows that may differ
JITTER = 0.1  # the share of the time between two refreshes that is random, so that not everyone asks on the same day
RETRY = timedelta(days=1)
UNFINISHED = "the last refresh did not finish"

log = logging.getLogger("everlong.refresh")
_under_way: set[asyncio.Task["Refreshed | None"]] = set()  # asyncio itself holds tasks only weakly


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshSettings:
    """Whether and how often the model registry is refreshed automatically. `days` 0 means never."""

    offline: bool = False
    days: float = 7.0

    def __post_init__(self) -> None:
        if not 0 <= self.days <= 36_500:
            raise InputError(f"the days between two refreshes must be a number from 0 to 36,500, not {self.days}")

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> "RefreshSettings":
        """Read EVERLONG_OFFLINE and EVERLONG_REFRESH_DAYS. Example: {"EVERLONG_OFFLINE": "1"} -> offline"""
        offline = environment.get("EVERLONG_OFFLINE", "").strip().lower() not in ("", "0", "false", "no", "off")
        days = environment.get("EVERLONG_REFRESH_DAYS", "").strip()
        try:
            return cls(offline=offline, days=float(days) if days else cls().days)
        except ValueError:
            raise InputError(f"EVERLONG_REFRESH_DAYS must be a number of days, not {days!r}") from None


DEFAULT_REFRESH = RefreshSettings()


@dataclass(frozen=True, slots=True, kw_only=True)
class Refreshed:
    """The outcome of a refresh: the table that was fetched and its rows, or "" and 0; `said` reports it in one line."""

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
    """Download the first reachable and plausible table of models and save it. Never raises."""
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
        said = f"the model registry was not refreshed ({'; '.join(failures) or 'no source is configured'})"
        await asyncio.to_thread(write_try, folder, LastTry(now, said))
    except OSError as error:
        said = f"the model registry cannot be saved: {_reason(error)}"
    return Refreshed(table="", rows=0, said=said)


def refresh_if_due(
    folder: Path,
    now: datetime,
    *,
    settings: RefreshSettings = DEFAULT_REFRESH,
    sources: Sequence[Source] = SOURCES,
) -> "asyncio.Task[Refreshed | None]":
    """Refresh the model registry in the background if it is due. The task's result is None if it was not."""

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
    """Return whether a refresh is due: `days` after the last one or the bundled table, or a day after a failure."""
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
    """Return why a table is not plausible compared with the known one; "" if it is."""
    before = {_identity(entry): entry.window for entry in known}
    shared = [(entry.window, before[_identity(entry)]) for entry in fresh if _identity(entry) in before]
    if not len(fresh):
        return "it lists no models"
    if len(fresh) > MOST_ROWS:
        return f"it lists {len(fresh):,} models, which is too many"
    if len(shared) < KNOWN_SHARE * len(before):
        return f"it lists only {len(shared):,} of {len(before):,} known models"
    changed = sum(new != old for new, old in shared)
    if changed > CHANGED_SHARE * len(shared):
        return f"it contradicts {changed:,} of {len(shared):,} known models"
    return ""


async def _fetched(session: aiohttp.ClientSession, url: str, seconds: float) -> bytes:
    timeout = aiohttp.ClientTimeout(total=seconds)
    async with session.get(url, timeout=timeout, headers=PACKED, auto_decompress=False) as response:
        if response.status != 200:
            raise ValueError(f"status {response.status}")
        body = await read_whole(response, LARGEST + 1)
        if len(body) > LARGEST:
            raise ValueError(f"more than {LARGEST:,} bytes")
        return body


def _believed_rows(folder: Path, source: Source, body: bytes, now: datetime) -> Registry:
    """Return the rows of a table, assembled like the bundled ones. Raises ValueError if they are not plausible."""
    known = registry_now(folder)
    fresh = source.parse(json.loads(body), _day(now))
    rows = _of(assembled(_tables(source, fresh, known)), source.table)
    reason = implausible(rows, _of(known, source.table))
    if reason:
        raise ValueError(reason)
    return rows


def _tables(source: Source, fresh: Registry, known: Registry) -> list[Registry]:
    """Return the fetched table with the known rows of the sources after it; nothing of the sources before it."""
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
