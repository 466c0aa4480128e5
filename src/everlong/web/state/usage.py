"""What conversations cost and what compaction saved, summed from the events of the app's threads.

`engine.Savings` computes what was saved: each request compared with what it would have been, less the cost of
summaries. Days, models and threads are sums over the same entries, so each of them adds up to the same total. The
events of a thread are read once, then only the new ones.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from statistics import median
from threading import Lock

from everlong.core import Event, EventKind, Json, JsonObject, JsonText, Thread
from everlong.engine import ASSEMBLED, FOR_SUMMARIES, Savings, Spared, Threads, cached_in, calls_in
from everlong.web.state.settings import OWNER
from everlong.windows import Registry

__all__ = ["Usage", "entries_of"]

SPENT = ("calls", "prompt", "cached", "output", "cost", "summary_calls", "summary_cost", "saved_tokens", "saved_cost")
OF_THREADS = (*SPENT, "compactions")
KINDS = (
    EventKind.USAGE_RECORDED,
    EventKind.CONTEXT_COMPRESSED,
    EventKind.CONTEXT_RESTORED,
    EventKind.OVERFLOW_DETECTED,
    EventKind.OVERFLOW_RECOVERED,
)
REMOVED = "usage of removed threads"  # facts: sums by day and model, without any text of a thread
MOST_THREADS = 200  # in one answer
LATE = timedelta(days=1)  # a summary may still cost something after the last message
DEEPEST = 16  # sub-agents of sub-agents


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
    savings: Savings = field(default_factory=Savings)
    entries: list[UsageEntry] = field(default_factory=list)


class Usage:
    """The usage of all threads. Safe in any operating system thread."""

    def __init__(self, threads: Threads, registry: Registry | None) -> None:
        self._threads = threads
        self._registry = registry
        self._ledgers: dict[str, _Ledger] = {}
        self._lock = Lock()  # two pages that ask at once must not count events twice

    def of(self, days: int, today: datetime | None = None) -> JsonObject:
        """Return the usage of the last days: by day, by model and by thread, and how well compaction worked."""
        now = (today or datetime.now(UTC)).astimezone(UTC)
        first = (now - timedelta(days=days - 1)).replace(hour=0, minute=0, second=0, microsecond=0)
        threads = self._threads.threads(owner=OWNER, archived=None)
        entries = {thread.id: self._entries(thread) for thread in threads if thread.updated >= first - LATE}
        recent = {name: [entry for entry in own if entry.time >= first] for name, own in entries.items()}
        removed = [entry for entry in self._removed() if entry.time >= first]
        every = [*(entry for own in recent.values() for entry in own), *removed]
        grouped: dict[datetime, list[UsageEntry]] = {first + timedelta(days=at): [] for at in range(days)}
        for entry in every:
            day = entry.time.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
            grouped.setdefault(day, []).append(entry)
        known = {thread.id: thread for thread in threads}
        conversations = [
            thread
            for thread in threads
            if _conversation(thread.id, known) == thread.id and "parent" not in json.loads(thread.metadata)
        ]
        return {
            "days": [{"day": f"{day:%Y-%m-%d}", **_sum(grouped[day])} for day in sorted(grouped)],
            "models": _by_model(every),
            "threads": _by_thread(known, recent, removed),
            "success": _success(conversations, every),
        }

    def keep(self, thread: str) -> None:
        """Keep what a thread has cost, because it is about to be removed: the cost stays in the totals."""
        by_day: dict[tuple[str, str], list[UsageEntry]] = {}
        for entry in self._entries(self._threads.thread(thread)):
            by_day.setdefault((f"{entry.time.astimezone(UTC):%Y-%m-%d}", entry.model), []).append(entry)
        for (day, model), entries in by_day.items():
            key = json.dumps([day, model])
            entries += _from_fact(key, self._threads.fact(REMOVED, key))
            self._threads.keep_fact(REMOVED, key, json.dumps(_sum(entries)))

    def _removed(self) -> list[UsageEntry]:
        return [entry for key, value in self._threads.facts(REMOVED).items() for entry in _from_fact(key, value)]

    def _entries(self, thread: Thread) -> list[UsageEntry]:
        with self._lock:
            ledger = self._ledgers.setdefault(thread.id, _Ledger(savings=Savings(self._registry)))
            events = self._threads.events(thread.id, after=ledger.last, kinds=[kind.value for kind in KINDS])
            if events:
                ledger.entries += entries_of(events, ledger.savings)
                ledger.last = events[-1].id
            return list(ledger.entries)


def entries_of(events: Iterable[Event], savings: Savings) -> list[UsageEntry]:
    """Return the entries of events; `savings` has followed the thread up to them."""
    entries: list[UsageEntry] = []
    for event in events:
        spared = savings.after(event)
        match event.kind:
            case EventKind.USAGE_RECORDED:
                entries.append(_call_entry(event, spared))
            case EventKind.CONTEXT_COMPRESSED if not event.reason.startswith(ASSEMBLED):
                entries.append(UsageEntry(time=event.time, compactions=1))
            case EventKind.OVERFLOW_DETECTED:
                entries.append(UsageEntry(time=event.time, overflows=1))
            case EventKind.OVERFLOW_RECOVERED:
                entries.append(UsageEntry(time=event.time, recovered=1))
            case _:
                continue
    return entries


def _call_entry(event: Event, spared: Spared) -> UsageEntry:
    calls, cost = calls_in(event), event.cost or 0.0
    summary = event.reason == FOR_SUMMARIES
    return UsageEntry(
        time=event.time,
        model=event.model,
        calls=calls,
        prompt=event.tokens_before or 0,
        cached=cached_in(event),
        output=event.tokens_after or 0,
        cost=cost,
        summary_calls=calls if summary else 0,
        summary_cost=cost if summary else 0.0,
        saved_tokens=spared.tokens,
        saved_cost=spared.dollars,
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
        if entry.model or entry.calls:
            by_model.setdefault(entry.model, []).append(entry)
    rows: list[tuple[int, Json]] = []
    for model, own in by_model.items():
        total = _sum(own)
        row: JsonObject = {"model": model}
        rows.append((_prompt(own), row | {name: total[name] for name in SPENT}))
    return [row for _, row in sorted(rows, key=lambda pair: -pair[0])]


def _from_fact(key: str, value: JsonText | None) -> list[UsageEntry]:
    """Return what threads that are gone have cost on a day with a model; nothing if it cannot be read."""
    if value is None:
        return []
    try:
        day, model = json.loads(key)
        sums = {name: figure for name, figure in json.loads(value).items() if name in UsageEntry.__dataclass_fields__}
        return [UsageEntry(time=datetime.fromisoformat(f"{day}T12:00:00+00:00"), model=model, **sums)]
    except (ValueError, TypeError, AttributeError):
        return []


def _by_thread(known: dict[str, Thread], entries: dict[str, list[UsageEntry]], removed: list[UsageEntry]) -> list[Json]:
    """Return a row for each conversation, including its sub-agents and versions.

    A last row without an id sums up the conversations beyond the limit and the removed ones.
    """
    own: dict[str, list[UsageEntry]] = {}
    for name, spent in entries.items():
        own.setdefault(_conversation(name, known), []).extend(spent)
    ranked = sorted(((name, spent) for name, spent in own.items() if spent), key=lambda pair: -_prompt(pair[1]))
    rows = [_thread_row(name, known[name].title, spent) for name, spent in ranked[:MOST_THREADS]]
    rest = [*(entry for _, spent in ranked[MOST_THREADS:] for entry in spent), *removed]
    return [*rows, *([_thread_row("", "", rest)] if rest else [])]


def _thread_row(name: str, title: str, entries: list[UsageEntry]) -> JsonObject:
    total = _sum(entries)
    return {"id": name, "title": title, **{figure: total[figure] for figure in OF_THREADS}}


def _conversation(name: str, known: dict[str, Thread]) -> str:
    """Return the conversation that a thread belongs to, for a sub-agent or a version."""
    for _ in range(DEEPEST):
        metadata = json.loads(known[name].metadata)
        parent = metadata.get("parent")
        above = parent.get("thread") if isinstance(parent, dict) else metadata.get("version_of")
        if not isinstance(above, str) or above not in known:
            break
        name = above
    return name


def _prompt(entries: list[UsageEntry]) -> int:
    return sum(entry.prompt for entry in entries)


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
