"""The store as one of several users sees it: the user's own threads and facts, and nothing else.

The app works with it as if there were no other users. Each call that names a thread checks its owner; to this user,
threads of others do not exist. Ids of threads are random, so two users do not choose the same one.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from types import TracebackType
from typing import Self

from everlong.core import Entry, Event, Hit, JsonText, Opened, Pin, Row, Thread
from everlong.engine import Threads
from everlong.errors import NoThread
from everlong.web.state.settings import OWNER

__all__ = ["MemberThreads"]

MOST_KNOWN = 10_000  # threads whose owner is remembered: it never changes


class MemberThreads:
    """The threads and facts of one owner in a store. The app sees `OWNER` as the owner of each. Thread-safe."""

    def __init__(self, threads: Threads, owner: str) -> None:
        self._threads = threads
        self._owner = owner
        self._known: dict[str, None] = {}

    @property
    def warnings(self) -> tuple[str, ...]:
        """Always empty: a store's warnings could reveal something about other users."""
        return ()

    def _own(self, thread: str) -> str:
        """Return the thread. Raises NoThread if it is another's."""
        if thread not in self._known:
            self._shown(self._threads.thread(thread))
        return thread

    def _shown(self, thread: Thread) -> Thread:
        if thread.owner != self._owner:
            raise NoThread(f"there is no thread {thread.id!r}")
        if len(self._known) >= MOST_KNOWN:
            self._known.clear()
        self._known[thread.id] = None
        return replace(thread, owner=OWNER)

    def _kind(self, kind: str) -> str:
        return f"{self._owner} {kind}"

    # Threads

    def create(
        self,
        thread: str,
        *,
        owner: str = "",  # noqa: ARG002 - it always belongs to this user
        title: str = "",
        metadata: JsonText = "{}",
        at: datetime | None = None,
    ) -> Thread:
        """Create a thread of this user."""
        return self._shown(self._threads.create(thread, owner=self._owner, title=title, metadata=metadata, at=at))

    def thread(self, thread: str) -> Thread:
        """Return what is known of a thread."""
        return self._shown(self._threads.thread(thread))

    def threads(
        self, *, owner: str | None = None, archived: bool | None = False, limit: int | None = None, skip: int = 0
    ) -> list[Thread]:
        """List this user's threads; none if another owner than the app is named."""
        if owner not in (None, OWNER):
            return []
        found = self._threads.threads(owner=self._owner, archived=archived, limit=limit, skip=skip)
        return [replace(thread, owner=OWNER) for thread in found]

    def change(
        self,
        thread: str,
        *,
        title: str | None = None,
        archived: bool | None = None,
        settings: JsonText | None = None,
        metadata: JsonText | None = None,
        at: datetime | None = None,
    ) -> Thread:
        """Change a thread."""
        return self._shown(
            self._threads.change(
                self._own(thread), title=title, archived=archived, settings=settings, metadata=metadata, at=at
            )
        )

    def branch(self, thread: str, order: int, new: str, *, title: str = "", at: datetime | None = None) -> Thread:
        """Branch a thread."""
        return self._shown(self._threads.branch(self._own(thread), order, new, title=title, at=at))

    def remove(self, thread: str) -> None:
        """Remove a thread."""
        self._threads.remove(self._own(thread))
        self._known.pop(thread, None)

    # The log

    def append(
        self,
        thread: str,
        entries: Sequence[Entry],
        *,
        ids: Sequence[str] | None = None,
        expected: int | None = None,
        at: datetime | None = None,
    ) -> tuple[Row, ...]:
        """Append to a thread."""
        return self._threads.append(self._own(thread), entries, ids=ids, expected=expected, at=at)

    def read(self, thread: str, start: int = 0, stop: int | None = None) -> Iterator[Row]:
        """Read rows."""
        return self._threads.read(self._own(thread), start, stop)

    def last(self, thread: str, messages: int) -> list[Row]:
        """Return the last messages."""
        return self._threads.last(self._own(thread), messages)

    def row(self, thread: str, name: str) -> Row | None:
        """Return a row by its name."""
        return self._threads.row(self._own(thread), name)

    def open(self, thread: str, before: int | None = None) -> Opened:
        """Return what a view is made of."""
        return self._threads.open(self._own(thread), before)

    def points(self, thread: str) -> list[tuple[Row, bool]]:
        """Return the compactions."""
        return self._threads.points(self._own(thread))

    def erase(self, thread: str, orders: Sequence[int]) -> dict[str, tuple[int, ...]]:
        """Erase messages, also from other threads of this user."""
        return self._threads.erase(self._own(thread), orders)

    # Pins and events

    def pin(self, thread: str, order: int | None, text: str = "") -> Pin:
        """Pin a message or a text."""
        return self._threads.pin(self._own(thread), order, text)

    def unpin(self, thread: str, pin: str) -> None:
        """Remove a pin."""
        self._threads.unpin(self._own(thread), pin)

    def pins(self, thread: str) -> tuple[Pin, ...]:
        """Return the pins."""
        return self._threads.pins(self._own(thread))

    def record(self, thread: str, events: Sequence[Event]) -> None:
        """Record events."""
        self._threads.record(self._own(thread), events)

    def events(self, thread: str, *, after: str = "", kinds: Sequence[str] = ()) -> list[Event]:
        """Return events."""
        return self._threads.events(self._own(thread), after=after, kinds=kinds)

    def unfinished(self, thread: str) -> list[Event]:
        """Return starts without an outcome."""
        return self._threads.unfinished(self._own(thread))

    # Finding what left the window

    def original(self, thread: str, ref: str) -> bytes | None:
        """Return what is behind a reference."""
        return self._threads.original(self._own(thread), ref)

    def search(
        self, query: str, *, thread: str | None = None, owner: str | None = None, limit: int = 10, around: int = 1
    ) -> list[Hit]:
        """Search a thread, or all threads of this user."""
        if owner not in (None, OWNER):
            return []
        of = None if thread is None else self._own(thread)
        return self._threads.search(query, thread=of, owner=self._owner, limit=limit, around=around)

    # What was learned, separately for each user

    def counts(self, vocabulary: str, refs: Sequence[str]) -> dict[str, int]:
        """Return token counts. They are stored by a digest of the content, so only someone who has it can ask."""
        return self._threads.counts(vocabulary, refs)

    def keep_counts(self, vocabulary: str, counts: Mapping[str, int]) -> None:
        """Keep token counts."""
        self._threads.keep_counts(vocabulary, counts)

    def vectors(self, thread: str, model: str, start: int = 0, stop: int | None = None) -> dict[int, bytes]:
        """Return vectors."""
        return self._threads.vectors(self._own(thread), model, start, stop)

    def keep_vectors(self, thread: str, model: str, vectors: Mapping[int, bytes]) -> None:
        """Keep vectors."""
        self._threads.keep_vectors(self._own(thread), model, vectors)

    def fact(self, kind: str, key: str) -> JsonText | None:
        """Return a fact of this user."""
        return self._threads.fact(self._kind(kind), key)

    def keep_fact(self, kind: str, key: str, value: JsonText) -> None:
        """Keep a fact of this user."""
        self._threads.keep_fact(self._kind(kind), key, value)

    def keep_facts(self, kind: str, values: Mapping[str, JsonText]) -> None:
        """Keep several facts of this user."""
        self._threads.keep_facts(self._kind(kind), values)

    def change_fact(self, kind: str, key: str, change: Callable[[JsonText | None], JsonText | None]) -> JsonText | None:
        """Change a fact of this user."""
        return self._threads.change_fact(self._kind(kind), key, change)

    def facts(self, kind: str) -> dict[str, JsonText]:
        """Return all facts of this user of a kind."""
        return self._threads.facts(self._kind(kind))

    def drop_fact(self, kind: str, key: str) -> None:
        """Forget a fact of this user."""
        self._threads.drop_fact(self._kind(kind), key)

    def drop_facts(self, kind: str, before: datetime) -> int:
        """Forget old facts of this user."""
        return self._threads.drop_facts(self._kind(kind), before)

    def close(self) -> None:
        """Do nothing: all users share the store."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        self.close()
