"""The threads that the gateway works on: in memory, made of what clients send, given up when room is needed.

Windows and calibrations that calls teach are read from the store behind, once in a while, and written to it later:
nothing here waits for a disk before an answer begins. Events are told to observers and not kept.
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import replace
from threading import Lock

from everlong.core import OUTCOMES, Event, EventKind, History, JsonText
from everlong.gateway.conversations.persistence import StateStore
from everlong.store import MemoryThreads

__all__ = ["MemoryFirstThreads"]

OF_SUMMARIES = frozenset(kind for kind in EventKind if kind.value.startswith("summary."))
FRESH = 30.0  # seconds for which a fact of the store behind is taken as it is
MOST_READ = 4_096  # facts of the store behind that are held; clients name models as they like


class MemoryFirstThreads(MemoryThreads):
    """Threads in memory in front of what is kept."""

    def __init__(self, kept: StateStore, ticks: Callable[[], float]) -> None:
        super().__init__()
        self._kept = kept
        self._ticks = ticks
        self._read: OrderedDict[tuple[str, str], tuple[float, JsonText | None]] = OrderedDict()
        self._reading = Lock()
        self._turns: dict[str, set[str]] = {}
        #: Told of each thread that got a summary, after it did. They must not wait.
        self.after_summary: list[Callable[[str], None]] = []

    def fact(self, kind: str, key: str) -> JsonText | None:
        """What was learned, here or by another process."""
        now = self._ticks()
        with self._reading:
            known = self._read.get((kind, key))
        if known is not None and now - known[0] < FRESH:
            return known[1]
        found = self._kept.fact(kind, key)
        self._hold(kind, key, found)
        return found

    def keep_fact(self, kind: str, key: str, value: JsonText) -> None:
        """Keep it: here at once, in the store behind soon."""
        self._hold(kind, key, value)
        self._kept.keep_fact(kind, key, value)

    def record(self, thread: str, events: Sequence[Event]) -> None:
        """Keep what tells whether something is under way; of everything else whoever looks on was told."""
        super().record(thread, [event for event in events if event.kind in OF_SUMMARIES])
        with self._reading:
            for event in events:
                if event.kind is EventKind.TURN_STARTED:
                    self._turns.setdefault(thread, set()).add(event.id)
                elif event.kind in OUTCOMES[EventKind.TURN_STARTED] and thread in self._turns:
                    self._turns[thread].discard(event.parent)
        if any(event.kind is EventKind.SUMMARY_APPLIED for event in events):
            for told in self.after_summary:
                told(thread)

    def under_way(self, thread: str) -> bool:
        """Whether a turn or a summary of the thread has begun and not ended."""
        with self._reading:
            if self._turns.get(thread):
                return True
        return bool(self.unfinished(thread))

    def renew(self, thread: str, leading: History) -> None:
        """Other system text in front, as many messages as there were: the client says it anew with each request."""
        with self._held() as memory:
            rows = memory.threads[thread].rows
            rows[: len(leading)] = [replace(row, entry=said) for row, said in zip(rows, leading, strict=False)]

    def remove(self, thread: str) -> None:
        """Let go of a thread."""
        with self._reading:
            self._turns.pop(thread, None)
        super().remove(thread)

    def _hold(self, kind: str, key: str, value: JsonText | None) -> None:
        with self._reading:
            self._read[kind, key] = (self._ticks(), value)
            self._read.move_to_end((kind, key))
            while len(self._read) > MOST_READ:
                self._read.popitem(last=False)
