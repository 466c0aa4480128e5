"""What conversations cost and what compaction saved: summed from the events of the app's threads.

What a compaction leaves out is saved with every request after it, until it is undone. Events of a thread are read once
and then only what is new.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from statistics import median

from everlong.core import Event, EventKind, Json, JsonObject, Thread
from everlong.engine import Threads
from everlong.web.state.settings import OWNER
from everlong.windows import Registry, window

__all__ = ["Usage", "entries_of"]

MILLION = 1_000_000
KINDS = (
    EventKind.USAGE_RECORDED,
    EventKind.CONTEXT_COMPRESSED,
    EventKind.CONTEXT_RESTORED,
    EventKind.OVERFLOW_DETECTED,
    EventKind.OVERFLOW_RECOVERED,
)
MOST_THREADS = 200  # of which the page is told


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageEntry:
    """What one event adds: to a day, a model and a thread."""

    time: datetime
    model: str = ""
    calls: int = 0
    prompt: int = 0
    cached: int = 0
    output: int = 0
    cost: float = 0.0
    saved_tokens: int = 0
    saved_cost: float = 0.0
    compactions: int = 0
    overflows: int = 0
    recovered: int = 0


@dataclass(slots=True)
class _Ledger:
    last: str = ""
    left_out: int = 0
    entries: list[UsageEntry] = field(default_factory=list)


class Usage:
    """The ledger of the app. May be used from any thread of the process."""

    def __init__(self, threads: Threads, registry: Registry | None) -> None:
        self._threads = threads
        self._registry = registry
        self._known: dict[str, _Ledger] = {}

    def of(self, days: int, today: datetime | None = None) -> JsonObject:
        """The last so many days: by day, by model, by thread, and the figures of success."""
        now = (today or datetime.now(UTC)).astimezone(UTC)
        first = (now - timedelta(days=days - 1)).replace(hour=0, minute=0, second=0, microsecond=0)
        threads = self._threads.threads(owner=OWNER, archived=None)
        entries = {thread.id: self._entries(thread) for thread in threads if thread.updated >= first}
        recent = {name: [one for one in told if one.time >= first] for name, told in entries.items()}
        every = [one for told in recent.values() for one in told]
        grouped: dict[datetime, list[UsageEntry]] = {first + timedelta(days=at): [] for at in range(days)}
        for one in every:
            day = one.time.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
            grouped.setdefault(day, []).append(one)
        talks = [thread for thread in threads if "parent" not in json.loads(thread.metadata)]
        return {
            "days": [{"day": f"{day:%Y-%m-%d}", **_sum(grouped[day])} for day in sorted(grouped)],
            "models": _models(every),
            "threads": _by_thread(talks, recent),
            "success": _success(talks, every),
        }

    def _entries(self, thread: Thread) -> list[UsageEntry]:
        known = self._known.setdefault(thread.id, _Ledger())
        events = self._threads.events(thread.id, after=known.last, kinds=[kind.value for kind in KINDS])
        if events:
            new, known.left_out = entries_of(events, known.left_out, self._registry)
            known.entries += new
            known.last = events[-1].id
        return known.entries


def entries_of(events: Iterable[Event], left_out: int, registry: Registry | None) -> tuple[list[UsageEntry], int]:
    """What events add, and how many tokens compactions have left out after them; `left_out` is how many before."""
    entries: list[UsageEntry] = []
    for event in events:
        match event.kind:
            case EventKind.USAGE_RECORDED:
                entries.append(_call_entry(event, 0 if event.reason else left_out, registry))
            case EventKind.CONTEXT_COMPRESSED:
                left_out += max(0, (event.tokens_before or 0) - (event.tokens_after or 0))
                entries.append(UsageEntry(time=event.time, compactions=1))
            case EventKind.CONTEXT_RESTORED:
                left_out = max(0, left_out - max(0, (event.tokens_after or 0) - (event.tokens_before or 0)))
            case EventKind.OVERFLOW_DETECTED:
                entries.append(UsageEntry(time=event.time, overflows=1))
            case EventKind.OVERFLOW_RECOVERED:
                entries.append(UsageEntry(time=event.time, recovered=1))
            case _:
                continue
    return entries, left_out


def _call_entry(event: Event, left_out: int, registry: Registry | None) -> UsageEntry:
    cached = _cached(event)
    prompt = event.tokens_before or 0
    prices = window(event.model, registry=registry).prices
    price = prices.cache_read if cached * 2 > prompt and prices.cache_read is not None else prices.input
    return UsageEntry(
        time=event.time,
        model=event.model,
        calls=1,
        prompt=prompt,
        cached=cached,
        output=event.tokens_after or 0,
        cost=event.cost or 0.0,
        saved_tokens=left_out,
        saved_cost=left_out * (price or 0.0) / MILLION,
    )


def _cached(event: Event) -> int:
    try:
        cached = json.loads(event.data or "{}").get("cached")
    except (ValueError, AttributeError):
        return 0
    return cached if isinstance(cached, int) else 0


def _sum(entries: list[UsageEntry]) -> JsonObject:
    return {
        "prompt": sum(one.prompt for one in entries),
        "cached": sum(one.cached for one in entries),
        "output": sum(one.output for one in entries),
        "cost": sum(one.cost for one in entries),
        "saved_tokens": sum(one.saved_tokens for one in entries),
        "saved_cost": sum(one.saved_cost for one in entries),
        "compactions": sum(one.compactions for one in entries),
        "overflows": sum(one.overflows for one in entries),
        "recovered": sum(one.recovered for one in entries),
    }


def _models(entries: list[UsageEntry]) -> list[Json]:
    by_model: dict[str, list[UsageEntry]] = {}
    for one in entries:
        if one.model:
            by_model.setdefault(one.model, []).append(one)
    rows: list[tuple[int, Json]] = []
    for model, told in by_model.items():
        total = _sum(told)
        row: JsonObject = {"model": model, "calls": sum(one.calls for one in told)}
        rows.append((sum(one.prompt for one in told), row | {name: total[name] for name in SPENT}))
    return [row for _, row in sorted(rows, key=lambda pair: -pair[0])]


SPENT = ("prompt", "cached", "output", "cost")


def _by_thread(threads: list[Thread], entries: dict[str, list[UsageEntry]]) -> list[Json]:
    rows: list[tuple[int, Json]] = []
    for thread in threads:
        told = entries.get(thread.id, [])
        if told:
            total, prompt = _sum(told), sum(one.prompt for one in told)
            row: JsonObject = {"id": thread.id, "title": thread.title, "calls": sum(one.calls for one in told)}
            rows.append((prompt, row | {name: total[name] for name in ("prompt", "cost", "compactions")}))
    return [row for _, row in sorted(rows, key=lambda pair: -pair[0])][:MOST_THREADS]


def _success(threads: list[Thread], entries: list[UsageEntry]) -> JsonObject:
    lengths = [thread.messages for thread in threads]
    return {
        "overflow_errors": sum(one.overflows for one in entries),
        "recovered": sum(one.recovered for one in entries),
        "compactions": sum(one.compactions for one in entries),
        "threads": len(threads),
        "threads_by_hand": sum(not thread.parent[0] for thread in threads),
        "median_length": median(lengths) if lengths else 0,
        "longest": max(lengths, default=0),
    }
