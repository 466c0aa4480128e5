"""What conversations cost and what compaction saved, summed from the events of the app's threads.

The tokens that a compaction leaves out are saved with every later request, until it is undone. The events of a thread
are read once, then only the new ones.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from statistics import median

from everlong.core import Event, EventKind, Json, JsonObject, Thread
from everlong.engine import FOR_SUMMARIES, Threads, cached_in, calls_in
from everlong.web.state.settings import OWNER
from everlong.windows import Registry, window

__all__ = ["Usage", "entries_of"]

MILLION = 1_000_000
SPENT = ("calls", "prompt", "cached", "output", "cost", "summary_calls", "summary_cost")
OF_THREADS = ("calls", "prompt", "cost", "summary_calls", "summary_cost", "compactions")
KINDS = (
    EventKind.USAGE_RECORDED,
    EventKind.CONTEXT_COMPRESSED,
    EventKind.CONTEXT_RESTORED,
    EventKind.OVERFLOW_DETECTED,
    EventKind.OVERFLOW_RECOVERED,
)
MOST_THREADS = 200  # in one answer


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageEntry:
    """What one event adds to a day, a model and a thread."""

    time: datetime
    model: str = ""
    calls: int = 0
    prompt: int = 0
    cached: int = 0
    output: int = 0
    cost: float = 0.0
    summary_calls: int = 0
    summary_cost: float = 0.0
    saved_tokens: int = 0
    saved_cost: float = 0.0
    compactions: int = 0
    overflows: int = 0
    recovered: int = 0


@dataclass(slots=True)
class _Ledger:
    """The entries of one thread up to its event `last`."""

    last: str = ""
    left_out: int = 0
    entries: list[UsageEntry] = field(default_factory=list)


class Usage:
    """The usage of all threads. Safe in any operating system thread."""

    def __init__(self, threads: Threads, registry: Registry | None) -> None:
        self._threads = threads
        self._registry = registry
        self._ledgers: dict[str, _Ledger] = {}

    def of(self, days: int, today: datetime | None = None) -> JsonObject:
        """Return the usage of the last days: by day, by model and by thread, and how well compaction worked."""
        now = (today or datetime.now(UTC)).astimezone(UTC)
        first = (now - timedelta(days=days - 1)).replace(hour=0, minute=0, second=0, microsecond=0)
        threads = self._threads.threads(owner=OWNER, archived=None)
        entries = {thread.id: self._entries(thread) for thread in threads if thread.updated >= first}
        recent = {name: [entry for entry in own if entry.time >= first] for name, own in entries.items()}
        every = [entry for own in recent.values() for entry in own]
        grouped: dict[datetime, list[UsageEntry]] = {first + timedelta(days=at): [] for at in range(days)}
        for entry in every:
            day = entry.time.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
            grouped.setdefault(day, []).append(entry)
        conversations = [thread for thread in threads if "parent" not in json.loads(thread.metadata)]
        return {
            "days": [{"day": f"{day:%Y-%m-%d}", **_sum(grouped[day])} for day in sorted(grouped)],
            "models": _by_model(every),
            "threads": _by_thread(conversations, recent),
            "success": _success(conversations, every),
        }

    def _entries(self, thread: Thread) -> list[UsageEntry]:
        ledger = self._ledgers.setdefault(thread.id, _Ledger())
        events = self._threads.events(thread.id, after=ledger.last, kinds=[kind.value for kind in KINDS])
        if events:
            new, ledger.left_out = entries_of(events, ledger.left_out, self._registry)
            ledger.entries += new
            ledger.last = events[-1].id
        return ledger.entries


def entries_of(events: Iterable[Event], left_out: int, registry: Registry | None) -> tuple[list[UsageEntry], int]:
    """Return the entries of events, and the tokens left out by compactions after them; `left_out` is those before."""
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
    cached, calls, cost = cached_in(event), calls_in(event), event.cost or 0.0
    summary = event.reason == FOR_SUMMARIES
    prompt = event.tokens_before or 0
    prices = window(event.model, registry=registry).prices
    price = prices.cache_read if cached * 2 > prompt and prices.cache_read is not None else prices.input
    return UsageEntry(
        time=event.time,
        model=event.model,
        calls=calls,
        prompt=prompt,
        cached=cached,
        output=event.tokens_after or 0,
        cost=cost,
        summary_calls=calls if summary else 0,
        summary_cost=cost if summary else 0.0,
        saved_tokens=left_out,
        saved_cost=left_out * (price or 0.0) / MILLION,
    )


def _sum(entries: list[UsageEntry]) -> JsonObject:
    return {
        "calls": sum(entry.calls for entry in entries),
        "prompt": sum(entry.prompt for entry in entries),
        "cached": sum(entry.cached for entry in entries),
        "output": sum(entry.output for entry in entries),
        "cost": sum(entry.cost for entry in entries),
        "summary_calls": sum(entry.summary_calls for entry in entries),
        "summary_cost": sum(entry.summary_cost for entry in entries),
        "saved_tokens": sum(entry.saved_tokens for entry in entries),
        "saved_cost": sum(entry.saved_cost for entry in entries),
        "compactions": sum(entry.compactions for entry in entries),
        "overflows": sum(entry.overflows for entry in entries),
        "recovered": sum(entry.recovered for entry in entries),
    }


def _by_model(entries: list[UsageEntry]) -> list[Json]:
    by_model: dict[str, list[UsageEntry]] = {}
    for entry in entries:
        if entry.model:
            by_model.setdefault(entry.model, []).append(entry)
    rows: list[tuple[int, Json]] = []
    for model, own in by_model.items():
        total = _sum(own)
        row: JsonObject = {"model": model}
        rows.append((sum(entry.prompt for entry in own), row | {name: total[name] for name in SPENT}))
    return [row for _, row in sorted(rows, key=lambda pair: -pair[0])]


def _by_thread(threads: list[Thread], entries: dict[str, list[UsageEntry]]) -> list[Json]:
    rows: list[tuple[int, Json]] = []
    for thread in threads:
        own = entries.get(thread.id, [])
        if own:
            total, prompt = _sum(own), sum(entry.prompt for entry in own)
            row: JsonObject = {"id": thread.id, "title": thread.title}
            rows.append((prompt, row | {name: total[name] for name in OF_THREADS}))
    return [row for _, row in sorted(rows, key=lambda pair: -pair[0])][:MOST_THREADS]


def _success(threads: list[Thread], entries: list[UsageEntry]) -> JsonObject:
    lengths = [thread.messages for thread in threads]
    return {
        "overflow_errors": sum(entry.overflows for entry in entries),
        "recovered": sum(entry.recovered for entry in entries),
        "compactions": sum(entry.compactions for entry in entries),
        "threads": len(threads),
        "threads_by_hand": sum(not thread.parent[0] for thread in threads),
        "median_length": median(lengths) if lengths else 0,
        "longest": max(lengths, default=0),
    }
