"""The store behind the gateway: marks of conversations, notes and facts, with their retention.

`keep` says what is stored: marks and notes (`edits`), also whole conversations (`text`), or only facts about models
(`nothing`).
"""

import asyncio
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from datetime import UTC, datetime, timedelta
from threading import Event, Lock
from typing import TypeVar
from uuid import uuid4

from everlong.core import JsonText
from everlong.engine import Threads
from everlong.errors import EverlongError
from everlong.gateway.config import Keep
from everlong.gateway.conversations.availability import Availability
from everlong.gateway.conversations.marks import Listed, Mark, decoded_mark, encoded_mark

__all__ = ["OURS", "StateStore"]

T = TypeVar("T")
log = logging.getLogger("everlong.gateway")

#: The prefix of our kinds of facts, which are deleted in time; facts about models have other kinds and stay.
OURS = "gateway/"
#: The kinds in use, and the list of marks of each; a store deletes facts by kind.
KINDS, NEWEST = "gateway/kinds", "gateway/newest"
LISTED_EVERY = timedelta(hours=1)
LONGEST_WAIT = 10.0  # seconds for which the end of an answer waits for what other processes need
GATHERED = 0.2  # seconds; a look-up in another process waits longer for what it misses
MOST_MARKS = 500  # in one list; all but the newest are only for branches
MOST_LISTED = 10_000  # kinds that are known to be listed


def _utc_now() -> datetime:
    return datetime.now(UTC)


class StateStore:
    """The store behind the gateway. Reads happen at once, writes one after the other in the background.

    Everything is under the scope of a client's key and is deleted after a time. A failure of the store is logged, but
    no answer fails because of it.
    """

    def __init__(
        self,
        store: Threads,
        *,
        keep: Keep = "edits",
        retention: timedelta = timedelta(days=7),
        clock: Callable[[], datetime] = _utc_now,
        near: bool = True,
        shared: bool = False,
    ) -> None:
        self.store = store
        self.keep: Keep = keep
        self._retention = retention
        self._clock = clock
        #: Whether reading takes no time: a file or memory, not a server.
        self.near = near
        #: Whether other processes serve the same clients: what they need is stored before the client can ask them.
        self.shared = shared
        self._availability = Availability(near=near, probe=lambda: store.fact(KINDS, ""))
        self._name = uuid4().hex  # the name of this process in claims
        self._listed: dict[str, datetime] = {}
        self._writer = ThreadPoolExecutor(max_workers=1, thread_name_prefix="everlong-keeping")
        #: Writes what other processes need for the next request, ahead of everything else.
        self._first = ThreadPoolExecutor(max_workers=1, thread_name_prefix="everlong-first") if shared else self._writer
        self._left = self._left_first = 0  # writes that are still to be done
        self._hurry = Event()  # set while someone waits until everything is written
        self._mine = Lock()

    def list_of_marks(self, scope: str, root: str) -> tuple[str, ...] | None:
        """Return the names of all marks of conversations with the same beginning, oldest first. One indexed look-up.

        None if the store does not answer.
        """
        if self.keep == "nothing":
            return ()
        kind = _kind("marks", scope, root)
        try:
            text = self.ask(lambda: self.store.fact(NEWEST, kind))
            names = [] if text is None else _names(text)
            if names is None:  # an earlier version, which had no list
                names = sorted(self.ask(lambda: self.store.facts(kind)))
        except EverlongError as error:
            self.report(error)
            return None
        return tuple(names)

    def marks(self, scope: str, root: str, names: Sequence[Listed]) -> list[Mark] | None:
        """Return the marks with these names; None if one of them is missing."""
        kind = _kind("marks", scope, root)
        marks = []
        for one in names:
            text = self.fact(kind, one.name)
            mark = None if text is None else decoded_mark(text)
            if mark is None:
                return None
            marks.append(mark)
        return marks

    def add_marks(
        self,
        scope: str,
        root: str,
        marks: Sequence[tuple[Listed, Mark | None]],
        fits: Callable[[Sequence[str]], bool],
    ) -> str | None:
        """Store marks if they still fit the stored list; return the newest name in it, or None if they do not fit.

        They are stored first and then listed. Checking and changing the list is one atomic step, also between
        processes, and a mark that is not listed does not count. Adding the same names again adds nothing. An entry
        without a mark is a withdrawal or a report. Raises StoreError.
        """
        kind = _kind("marks", scope, root)
        new = [one.name for one, _ in marks]
        for one, mark in marks:
            if mark is not None:
                self._keep(kind, one.name, encoded_mark(mark))
        before = [name for name in sorted(self.store.facts(kind)) if name not in new] if self._unlisted(kind) else []

        def change(text: JsonText | None) -> JsonText | None:
            names = [] if text is None else _names(text)
            if names is None:
                names = before
            if new[-1] in names or not fits(names):
                return text
            return json.dumps([*names, *new][-MOST_MARKS:])

        after = _names(self.store.change_fact(NEWEST, kind, change) or "[]") or []
        if new[-1] in after:
            return after[-1]
        for name in new:
            self.store.drop_fact(kind, name)
        return None

    def _unlisted(self, kind: str) -> bool:
        text = self.store.fact(NEWEST, kind)
        return text is not None and _names(text) is None

    def time(self) -> float:
        """Return the time for the names of marks."""
        return self._clock().timestamp()

    @property
    def longest(self) -> float:
        """Seconds after which everything is deleted."""
        return self._retention.total_seconds()

    def claim(self, what: str, name: str, stage: str, seconds: float) -> bool:
        """Claim a piece of work for this process; return False if another process recently claimed the same stage.

        If the store does not answer, every process does the work.
        """
        now = self.time()

        def change(text: JsonText | None) -> JsonText:
            held = {} if text is None else json.loads(text)
            taken = held.get("stage") == stage and now < held.get("until", 0.0) and held.get("by") != self._name
            return str(text) if taken else json.dumps({"stage": stage, "by": self._name, "until": now + seconds})

        try:
            self.ask(lambda: self._list(_kind(what)))
            after = self.ask(lambda: self.store.change_fact(_kind(what), name, change))
        except EverlongError as error:
            self.report(error)
            return True
        return bool(json.loads(after or "{}").get("by") == self._name)

    def note(self, what: str, scope: str, name: str) -> JsonText | None:
        """Return the note that was stored under a name for this client."""
        return None if self.keep == "nothing" else self.fact(_kind(what, scope), name)

    def keep_note(self, what: str, scope: str, name: str, value: JsonText, *, needed: bool = False) -> None:
        """Store a note under a name for this client.

        `needed` means that another process needs it for the next request; see `settle`.
        """
        if self.keep != "nothing":
            self.later(lambda: self._keep(_kind(what, scope), name, value), needed=needed)

    def keep_notes(self, what: str, scope: str, values: Mapping[str, JsonText]) -> None:
        """Store several notes for this client, now."""
        if self.keep != "nothing":
            self._list(_kind(what, scope))
            self.store.keep_facts(_kind(what, scope), values)

    def notes(self, what: str, scope: str) -> dict[str, JsonText]:
        """Return all notes that were stored for this client, by name."""
        return {} if self.keep == "nothing" else self.store.facts(_kind(what, scope))

    def fact(self, kind: str, key: str) -> JsonText | None:
        """Return a fact; None if there is none or the store does not answer."""
        try:
            return self.ask(lambda: self.store.fact(kind, key))
        except EverlongError as error:
            self.report(error)
            return None

    def keep_fact(self, kind: str, key: str, value: JsonText, *, needed: bool = False) -> None:
        """Store a fact in the background."""
        self.later(lambda: self.store.keep_fact(kind, key, value), needed=needed)

    def ask(self, work: Callable[[], T]) -> T:
        """Return the store's answer to a request that waits for it. Raises StoreError if there is none in time."""
        return self._availability.ask(work)

    @property
    def away(self) -> bool:
        """Whether the store does not answer now: then a missing value means nothing."""
        return self._availability.away

    def later(self, write: Callable[[], object], *, needed: bool = False) -> None:
        """Write in the background, in order; what other processes need (`needed`) does not wait for the rest."""
        first = needed and self.shared
        self._count(1, first=first)
        try:
            writer = self._first if first else self._writer
            writer.submit(copy_context().run, self._try, write, first)  # the trace continues there
        except RuntimeError:  # an answer was still in progress when the store was closed
            self._count(-1, first=first)
            log.warning("the gateway's store was closed before everything was written")

    async def settle(self) -> None:
        """Wait briefly until everything that other processes need is written. The answer ends even if it is not."""
        if not self._left_first or self.away:
            return
        written = asyncio.wrap_future(self._first.submit(lambda: None))
        await asyncio.wait([written], timeout=LONGEST_WAIT)

    def flush_needed(self) -> None:
        """Like `settle`, for callers outside the event loop."""
        if self._left_first and not self.away:
            with suppress(TimeoutError):
                self._first.submit(lambda: None).result(LONGEST_WAIT)

    def sweep(self) -> None:
        """Delete everything past its retention."""
        self.later(lambda: self._sweep(self._clock() - self._retention))

    def gather(self) -> None:
        """Wait a moment inside a background write, so that more is written at once; not if someone waits for it."""
        self._hurry.wait(GATHERED)

    def flush(self) -> None:
        """Wait until everything is written, including what the writes themselves add."""
        self._hurry.set()
        while self._left:
            for writer in (self._first, self._writer):
                done: Future[None] = writer.submit(lambda: None)
                done.result()
        self._hurry.clear()

    def close(self) -> None:
        """Write what is left, then close the store."""
        self.flush()
        self._first.shutdown(wait=True)
        self._writer.shutdown(wait=True)
        self._availability.close()
        self.store.close()

    def _try(self, write: Callable[[], object], first: bool) -> None:
        try:
            write()
        except EverlongError as error:
            self.report(error)
        finally:
            self._count(-1, first=first)

    def _count(self, more: int, *, first: bool) -> None:
        with self._mine:
            self._left += more
            self._left_first += more if first else 0

    @property
    def unwritten(self) -> int:
        """How many writes are still to be done."""
        return self._left

    def report(self, error: EverlongError) -> None:
        """Log that the store failed."""
        log.warning("the gateway's store: %s", error)

    def _keep(self, kind: str, name: str, value: JsonText) -> None:
        """Store a fact and list its kind, so that it is found when its time is over."""
        self._list(kind)
        self.store.keep_fact(kind, name, value)

    def _list(self, kind: str) -> None:
        now = self._clock()
        listed = self._listed.get(kind)
        if listed is None or not timedelta() <= now - listed < LISTED_EVERY:
            self.store.keep_fact(KINDS, kind, "true")
            if len(self._listed) >= MOST_LISTED:
                self._listed.clear()
            self._listed[kind] = now

    def _sweep(self, before: datetime) -> None:
        for kind in (*self.store.facts(KINDS), NEWEST):
            self.store.drop_facts(kind, before)
        # Everything of a kind that was last listed so long ago has been deleted by now.
        self.store.drop_facts(KINDS, before - 2 * LISTED_EVERY)
        for thread in self.store.threads(archived=None):
            if thread.owner.startswith(OURS) and thread.updated < before:
                self.store.remove(thread.id)


def _names(text: JsonText) -> list[str] | None:
    """The list of marks; None if it is the single name that earlier versions stored."""
    names = json.loads(text)
    return names if isinstance(names, list) else None


def _kind(what: str, *under: str) -> str:
    return OURS + "/".join((what, *under))
