"""Threads in memory in front of the gateway's store, built from clients' requests."""

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from threading import Lock

from everlong.core import OUTCOMES, Event, EventKind, History, JsonText
from everlong.gateway.conversations.state_store import StateStore
from everlong.store import MemoryThreads

__all__ = ["MemoryFirstThreads"]

OF_SUMMARIES = frozenset(kind for kind in EventKind if kind.value.startswith("summary."))
#: Kinds of facts that every answer refines a little; they are stored at intervals, for the next process.
LEARNED_STEADILY = frozenset({"calibration"})
PAUSE = 1.0  # seconds between two writes of such a fact
FRESH = 30.0  # seconds for which a fact from the store is used without reading it again
FRESH_WHERE_SHARED = 1.0  # the same if other processes serve the same clients
NEEDED = frozenset({"window", "limits"})  # kinds that decide what another process sends next
MOST_READ = 4_096  # facts from the store that are held; clients may name any models


class MemoryFirstThreads(MemoryThreads):
    """Threads in memory in front of the store: built from clients' requests, dropped to save memory.

    Windows and calibrations that calls teach are read from the store at intervals and written to it later, so that no
    answer waits for a disk. Events go to observers and are not stored.
    """

    def __init__(self, state_store: StateStore, ticks: Callable[[], float]) -> None:
        super().__init__()
        self._state_store = state_store
        self._ticks = ticks
        self._fresh = FRESH_WHERE_SHARED if state_store.shared else FRESH
        self._read: OrderedDict[tuple[str, str], tuple[float, JsonText | None]] = OrderedDict()
        self._reading = Lock()
        self._stored: dict[tuple[str, str], float] = {}
        self._unstored: dict[tuple[str, str], JsonText] = {}
        self._turns: dict[str, set[str]] = {}
        #: Called with every event of a thread after it was recorded. They must not block.
        self.listeners: list[Callable[[str, Event], None]] = []

    def fact(self, kind: str, key: str) -> JsonText | None:
        """Return a fact that this or another process has learned."""
        now = self._ticks()
        with self._reading:
            known = self._read.get((kind, key))
        if known is not None and now - known[0] < self._fresh:
            return known[1]
        found = self._state_store.fact(kind, key)
        if found is None and self._state_store.away:  # the last known value still counts
            return None if known is None else known[1]
        self._hold(kind, key, found)
        return found

    def keep_fact(self, kind: str, key: str, value: JsonText) -> None:
        """Keep a fact in memory at once and store it soon; facts that change often, at most once a second."""
        self._hold(kind, key, value)
        if kind in LEARNED_STEADILY:
            now, before = self._ticks(), self._stored.get((kind, key))
            if before is not None and now - before < PAUSE:
                self._unstored[kind, key] = value
                return
            self._stored[kind, key] = now
            self._unstored.pop((kind, key), None)
            if len(self._stored) > MOST_READ:
                self._stored.clear()
        self._state_store.keep_fact(kind, key, value, needed=kind in NEEDED)

    def keep_facts(self, kind: str, values: Mapping[str, JsonText]) -> None:
        """Keep facts in memory at once, and store them soon."""
        for key, value in values.items():
            self.keep_fact(kind, key, value)

    def store_all(self) -> None:
        """Store the waiting facts."""
        waiting, self._unstored = self._unstored, {}
        for (kind, key), value in waiting.items():
            self._state_store.keep_fact(kind, key, value)

    def change_fact(self, kind: str, key: str, change: Callable[[JsonText | None], JsonText | None]) -> JsonText | None:
        """Change a fact in the store at once, because other processes change it too."""
        after = self._state_store.store.change_fact(kind, key, change)
        self._hold(kind, key, after)
        return after

    def expire_facts(self) -> None:
        """Read facts again at the next use: another process continued a conversation and may know more."""
        with self._reading:
            for place, (_, value) in self._read.items():
                self._read[place] = (-FRESH, value)

    def record(self, thread: str, events: Sequence[Event]) -> None:
        """Keep the events that show whether work is in progress; observers get all of them."""
        lasting = [event for event in events if event.kind in OF_SUMMARIES]
        if lasting:  # a conversation of which only digests are held has no thread, but also no summary
            super().record(thread, lasting)
        with self._reading:
            for event in events:
                if event.kind is EventKind.TURN_STARTED:
                    self._turns.setdefault(thread, set()).add(event.id)
                elif event.kind in OUTCOMES[EventKind.TURN_STARTED] and thread in self._turns:
                    self._turns[thread].discard(event.parent)
                    if not self._turns[thread]:
                        del self._turns[thread]
        for event in events:
            for listener in self.listeners:
                listener(thread, event)

    def under_way(self, thread: str) -> bool:
        """Whether a turn or a summary of the thread has started and not ended."""
        with self._reading:
            if self._turns.get(thread):
                return True
        return bool(self.unfinished(thread))

    def renew(self, thread: str, messages: History, start: int = 0) -> None:
        """Replace rows with as many messages: clients resend them with each request and may have changed them."""
        with self._held() as memory:
            stored = memory.threads[thread]
            renewed = [replace(row, entry=said) for row, said in zip(stored.rows[start:], messages, strict=False)]
            stored.rows[start : start + len(renewed)] = renewed
            stored.forget_words(start)

    def remove(self, thread: str) -> None:
        """Drop a thread."""
        with self._reading:
            self._turns.pop(thread, None)
        super().remove(thread)

    def _hold(self, kind: str, key: str, value: JsonText | None) -> None:
        with self._reading:
            self._read[kind, key] = (self._ticks(), value)
            self._read.move_to_end((kind, key))
            while len(self._read) > MOST_READ:
                self._read.popitem(last=False)
