"""Whether the store answers, and how long requests wait for it.

A file is there or it is not. A server may be restarted, paused or cut off: requests wait for it for a while, so that a
short outage changes nothing, and then continue without it. Nobody waits a second time for the same outage.
"""

import logging
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock
from time import monotonic
from typing import TypeVar

from everlong.errors import EverlongError, StoreError

__all__ = ["Availability"]

T = TypeVar("T")
WAIT = 10.0  # seconds from the beginning of an outage for which requests wait
HANDS = 16  # concurrent calls to a server

log = logging.getLogger("everlong.gateway")


class Availability:
    """Calls a store with a time limit. If it is `near` (a file or memory), there is no limit."""

    def __init__(self, *, near: bool, probe: Callable[[], object], wait: float = WAIT) -> None:
        self._near = near
        self._probe = probe
        self._wait = wait
        self._hands = None if near else ThreadPoolExecutor(max_workers=HANDS, thread_name_prefix="everlong-asking")
        self._away_since: float | None = None
        self._probing = False
        self._mine = Lock()

    @property
    def away(self) -> bool:
        """Whether the store did not answer the last call."""
        return self._away_since is not None

    def ask(self, work: Callable[[], T]) -> T:
        """Return the store's answer. Raises StoreError if there is none in time."""
        if self._hands is None:
            return work()
        now = monotonic()
        since = self._away_since
        left = self._wait if since is None else since + self._wait - now
        if left <= 0:
            raise StoreError("the store does not answer; the gateway continues without it until it does")
        try:
            asked = self._hands.submit(work)
        except RuntimeError:
            raise StoreError("the store was closed") from None
        try:
            answer = asked.result(left)
        except TimeoutError:
            self._note_away(now)
            raise StoreError(f"the store did not answer for {self._wait:.0f} s; continuing without it") from None
        except EverlongError:
            self._note_away(now)
            raise
        self._away_since = None
        return answer

    def close(self) -> None:
        """Stop calling the store."""
        if self._hands is not None:
            self._hands.shutdown(wait=False, cancel_futures=True)

    def _note_away(self, since: float) -> None:
        """Record an outage, and start one task that finds out when it is over."""
        with self._mine:
            self._away_since = since if self._away_since is None else min(since, self._away_since)
            if self._probing:
                return
            self._probing = True
        self._look()

    def _look(self) -> None:
        assert self._hands is not None
        try:
            self._hands.submit(self._probe).add_done_callback(self._looked)
        except RuntimeError:  # closed
            return

    def _looked(self, probed: "Future[object]") -> None:
        if probed.cancelled():
            return
        if isinstance(probed.exception(), EverlongError):
            self._look()  # the store itself waits for the server, up to a minute
            return
        with self._mine:
            self._probing = False
            self._away_since = None
        log.warning("the gateway's store answers again")
