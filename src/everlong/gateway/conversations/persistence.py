"""What outlives a request and a process: written behind the answers, in order, by one thread.

Kept are digests, cuts and recalled blocks (`edits`), the conversations themselves too (`text`), or only what is no
conversation's: learned windows (`nothing`). Everything is under the scope of a client's key and goes after a time.
A store that fails is told in the log and costs nobody an answer.
"""

import json
import logging
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from threading import Lock

from everlong.core import JsonText
from everlong.engine import Threads
from everlong.errors import EverlongError
from everlong.gateway.config import Keep
from everlong.gateway.conversations.marks import Mark, decoded_mark, encoded_mark

__all__ = ["StateStore"]

log = logging.getLogger("everlong.gateway")

#: What kinds of facts of ours begin with; what is learned of models has kinds of its own and stays.
OURS = "gateway/"
#: The kinds that are in use, and the newest mark of each; a store forgets by kind.
KINDS, NEWEST = "gateway/kinds", "gateway/newest"
LISTED_EVERY = timedelta(hours=1)
MOST_LISTED = 10_000  # kinds that are known to be listed


def _utc_now() -> datetime:
    return datetime.now(UTC)


class StateStore:
    """The store behind the gateway. Reads are made where they are asked for, writes one after the other, later."""

    def __init__(
        self,
        store: Threads,
        *,
        keep: Keep = "edits",
        retention: timedelta = timedelta(days=7),
        clock: Callable[[], datetime] = _utc_now,
        near: bool = True,
    ) -> None:
        self.store = store
        self.keep: Keep = keep
        self._retention = retention
        self._clock = clock
        #: Whether reading takes no time: a file or memory, no server.
        self.near = near
        self._listed: dict[str, datetime] = {}
        self._writer = ThreadPoolExecutor(max_workers=1, thread_name_prefix="everlong-keeping")
        self._left = 0  # writes asked for and not made
        self._mine = Lock()

    def marks(self, scope: str, root: str) -> list[tuple[str, Mark]]:
        """Every mark of the conversations that begin alike, with the digest of the units it speaks of; oldest first."""
        if self.keep == "nothing":
            return []
        try:
            kept = self.store.facts(_kind("marks", scope, root))
        except EverlongError as error:
            self._failed(error)
            return []
        marks = [(key.partition("/")[2], decoded_mark(value)) for key, value in sorted(kept.items())]
        return [(digest, mark) for digest, mark in marks if mark is not None]

    def newest_mark(self, scope: str, root: str) -> str:
        """The name of the mark that was kept last, by any process; "" if there is none."""
        kept = None if self.keep == "nothing" else self.fact(NEWEST, _kind("marks", scope, root))
        return "" if kept is None else str(json.loads(kept))

    def keep_mark(self, scope: str, root: str, digest: str, mark: Mark) -> str:
        """Keep a mark; its name. Marks are read again in the order of their making."""
        name = f"{mark.at:012d}-{self._clock().timestamp():020.6f}/{digest}"
        if self.keep != "nothing":
            kind = _kind("marks", scope, root)
            self.later(lambda: self._keep(kind, name, encoded_mark(mark)))
            self.later(lambda: self.store.keep_fact(NEWEST, kind, json.dumps(name)))
        return name

    def note(self, what: str, scope: str, name: str) -> JsonText | None:
        """A note that was kept under a name for this client."""
        return None if self.keep == "nothing" else self.fact(_kind(what, scope), name)

    def keep_note(self, what: str, scope: str, name: str, value: JsonText) -> None:
        """Keep a note under a name for this client."""
        if self.keep != "nothing":
            self.later(lambda: self._keep(_kind(what, scope), name, value))

    def notes(self, what: str, scope: str) -> dict[str, JsonText]:
        """All notes that were kept for this client, by name."""
        return {} if self.keep == "nothing" else self.store.facts(_kind(what, scope))

    def fact(self, kind: str, key: str) -> JsonText | None:
        """What the store has under that name."""
        try:
            return self.store.fact(kind, key)
        except EverlongError as error:
            self._failed(error)
            return None

    def keep_fact(self, kind: str, key: str, value: JsonText) -> None:
        """Keep it in the store."""
        self.later(lambda: self.store.keep_fact(kind, key, value))

    def later(self, write: Callable[[], object]) -> None:
        """Do it when what was asked before is done."""
        self._count(1)
        try:
            self._writer.submit(self._tried, write)
        except RuntimeError:  # an answer that was still on its way when everything was closed
            self._count(-1)
            log.warning("the gateway's store: closed before all was written")

    def sweep(self) -> None:
        """Forget what is older than it may get."""
        self.later(lambda: self._sweep(self._clock() - self._retention))

    def flush(self) -> None:
        """Wait until everything is written, what the writing itself asks for too."""
        while self._left:
            done: Future[None] = self._writer.submit(lambda: None)
            done.result()

    def close(self) -> None:
        """Write what is left, then let go of the store."""
        self.flush()
        self._writer.shutdown(wait=True)
        self.store.close()

    def _tried(self, write: Callable[[], object]) -> None:
        try:
            write()
        except EverlongError as error:
            self._failed(error)
        finally:
            self._count(-1)

    def _count(self, more: int) -> None:
        with self._mine:
            self._left += more

    def _failed(self, error: EverlongError) -> None:
        log.warning("the gateway's store: %s", error)

    def _keep(self, kind: str, name: str, value: JsonText) -> None:
        """Keep a fact of a kind that is listed, so that it is found when its time has come."""
        now = self._clock()
        listed = self._listed.get(kind)
        if listed is None or not timedelta() <= now - listed < LISTED_EVERY:
            self.store.keep_fact(KINDS, kind, "true")
            if len(self._listed) >= MOST_LISTED:
                self._listed.clear()
            self._listed[kind] = now
        self.store.keep_fact(kind, name, value)

    def _sweep(self, before: datetime) -> None:
        for kind in (*self.store.facts(KINDS), NEWEST):
            self.store.drop_facts(kind, before)
        # Whatever is of a kind that was listed so long ago has gone by now.
        self.store.drop_facts(KINDS, before - 2 * LISTED_EVERY)
        for thread in self.store.threads(archived=None):
            if thread.owner.startswith(OURS) and thread.updated < before:
                self.store.remove(thread.id)


def _kind(what: str, *under: str) -> str:
    return OURS + "/".join((what, *under))
