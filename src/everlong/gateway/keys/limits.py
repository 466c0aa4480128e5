"""Admits requests within the limits of their key: exactly, even if several processes serve one key.

A process that serves alone counts in memory and writes nothing for a request. Processes that share a store count in one
account there: one change of it admits a request, and requests that wait for the same account share a change. A store
that does not answer in time does not stop anyone: the process then counts only what it admits itself, and adds that to
the account when the store is back.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Lock
from time import time
from types import TracebackType
from typing import Self
from uuid import uuid4

from everlong.core import JsonText
from everlong.engine import Threads
from everlong.errors import EverlongError, Refused
from everlong.gateway.config import NO_LIMITS, Limits
from everlong.gateway.keys.accounts import (
    LEASE,
    Account,
    Asked,
    Held,
    NoPlace,
    Used,
    admit,
    allowances,
    decoded,
    encoded,
    roll,
    settle,
)
from everlong.gateway.keys.spend import Ledger, Spend
from everlong.wire import Allowance

__all__ = ["BYTES_PER_TOKEN", "Admission", "Limiter"]

log = logging.getLogger("everlong.gateway")

BYTES_PER_TOKEN = 4  # of a request whose tokens are not known yet
ACCOUNTS = "gateway/limits"
PATIENCE = 5.0  # seconds that an admission waits for the store
AWAY = 10.0  # seconds for which a store that did not answer is not asked again
EVERY = 1.0  # seconds between two writes of usage
RENEWED = LEASE / 3
AGAIN = (0.05, 0.2)  # seconds after which a request without a free place asks again
WRITERS = 4  # accounts that are changed concurrently
IDLE = 120.0  # seconds after which an unused account is forgotten here


@dataclass(slots=True)
class _Waiting:
    limits: Limits
    asked: Asked
    result: "asyncio.Future[Refused | None]"


@dataclass(slots=True)
class _Counted:
    """One account as this process knows it, and what is not yet written to the store."""

    name: str
    account: Account = field(default_factory=Account)
    loaded: bool = False
    #: What this process has in progress.
    requests: int = 0
    tokens: int = 0
    dollars: float = 0.0
    #: What was used and is not in the store yet.
    used: Used = field(default_factory=Used)
    waiting: list[_Waiting] = field(default_factory=list)
    writing: "asyncio.Task[None] | None" = None
    #: Whether there is something to write, and whether somebody may be waiting for it.
    changed: bool = False
    urgent: bool = False
    written: float = 0.0
    touched: float = 0.0


class Limiter:
    """Counts what all clients send. `shared` says whether other processes serve the same keys.

    A client without limits is not counted. A client that was idle for some time is forgotten here. All methods except
    `spend` are for the event loop.
    """

    def __init__(
        self,
        store: Threads,
        ledger: Ledger,
        *,
        shared: bool = False,
        patience: float = PATIENCE,
        again: Sequence[float] = AGAIN,
        clock: Callable[[], float] = time,
    ) -> None:
        self._store = store
        self._ledger = ledger
        self._shared = shared
        self._patience = patience
        self._again = again
        self._clock = clock
        self._process = uuid4().hex[:12]
        self._accounts: dict[str, _Counted] = {}
        self._mine = Lock()
        self._away_until = 0.0
        self._writers = ThreadPoolExecutor(max_workers=WRITERS, thread_name_prefix="everlong-limits")

    def __len__(self) -> int:
        """How many accounts are remembered here."""
        return len(self._accounts)

    def admit(self, name: str, limits: Limits, tokens: int = 0, dollars: float = 0.0) -> "Admission":
        """Return the admission of a key's request: enter it before the request is served, and leave it afterwards.

        async with limiter.admit("team-a", limits, 1_200): … # raises Refused (429) on entering
        """
        return Admission(self, name, limits, Asked(max(0, tokens), max(0.0, dollars)))

    def spend(self, name: str, spend: Spend) -> None:
        """Count the spending of a key with limits. May be called from any thread."""
        with self._mine:
            counted = self._accounts.get(name)
            if counted is None and self._shared:
                counted = self._accounts[name] = _Counted(name, touched=self._clock())
            if counted is not None:  # otherwise its next request reads it from the ledger
                self._settle(counted, Used(0, spend.tokens, spend.dollars))

    def _settle(self, counted: _Counted, used: Used) -> None:
        settle(counted.account, used)
        if self._shared:
            counted.used.tokens += used.tokens
            counted.used.dollars += used.dollars
            counted.changed = True

    async def run(self) -> None:
        """Write usage, renew leases and forget idle accounts, at intervals. Ends when cancelled."""
        while True:
            await asyncio.sleep(EVERY)
            now = self._clock()
            for counted in list(self._accounts.values()):
                due = counted.changed or (counted.requests > 0 and now - counted.written > RENEWED)
                if self._shared and due and counted.writing is None and not self._away(now):
                    counted.writing = asyncio.create_task(self._write(counted))
                elif not due and not counted.requests and not counted.waiting and now - counted.touched > IDLE:
                    del self._accounts[counted.name]
            await asyncio.to_thread(self._ledger.flush)

    def close(self) -> None:
        """Write usage and release everything that this process holds. The event loop may wait for it."""
        for counted in self._accounts.values():
            if self._shared and (counted.changed or counted.requests) and not self._away(self._clock()):
                counted.requests = counted.tokens = 0
                counted.dollars = 0.0
                try:
                    self._change(counted, [])
                except EverlongError as error:
                    log.warning("the gateway's store: %s", error)
        self._writers.shutdown(wait=False, cancel_futures=True)
        self._ledger.flush()

    # --- one request -------------------------------------------------------------------------------

    async def _enter(self, name: str, limits: Limits, asked: Asked) -> tuple[Refused | None, list[Allowance]]:
        counted = self._accounts.get(name)
        if counted is None:
            counted = self._accounts[name] = _Counted(name)
        counted.touched = self._clock()
        if not counted.loaded and not self._shared:
            await self._load(counted)
        if self._shared and not self._away(self._clock()):
            refused = await self._ask_store(counted, limits, asked)
            for pause in self._again:  # another process may be releasing the place of the key's last answer right now
                if not isinstance(refused, NoPlace):
                    break
                await asyncio.sleep(pause)
                refused = await self._ask_store(counted, limits, asked)
        else:
            refused = self._decide_here(counted, limits, asked)
        with self._mine:
            return refused, allowances(counted.account, limits, self._clock())

    async def _load(self, counted: _Counted) -> None:
        """Read what was spent before this process started."""
        loop = asyncio.get_running_loop()
        try:
            started = await loop.run_in_executor(self._writers, self._opened, counted.name)
        except EverlongError as error:
            log.warning("the gateway's store: %s", error)
            return
        with self._mine:
            if not counted.loaded:
                counted.account.day, counted.account.month = started.day, started.month
                used = Used(started.requests, started.tokens, started.dollars)
                counted.account.month_dollars += started.month_dollars - started.dollars
                settle(counted.account, used)
                counted.loaded = True

    def _opened(self, name: str) -> Account:
        """A new account with the ledger's spending of today and this month."""
        account = Account()
        roll(account, self._clock())
        for day, spend in self._ledger.days(name, account.month).items():
            account.month_dollars += spend.dollars
            if day == account.day:
                account.requests, account.tokens, account.dollars = spend.requests, spend.tokens, spend.dollars
        return account

    def _decide_here(self, counted: _Counted, limits: Limits, asked: Asked) -> Refused | None:
        """Admit by what this process knows."""
        with self._mine:
            now = roll(counted.account, self._clock())
            self._hold(counted, counted.account, now)
            refused = admit(counted.account, limits, asked, self._process, now)
            if refused is None:
                self._take(counted, asked)
                if self._shared:
                    counted.used.requests += 1
                    counted.changed = True
            return refused

    def _take(self, counted: _Counted, asked: Asked) -> None:
        counted.requests += 1
        counted.tokens += asked.tokens
        counted.dollars += asked.dollars

    def _hold(self, counted: _Counted, account: Account, now: float) -> None:
        """Record what this process has in progress in an account."""
        if counted.requests:
            account.held[self._process] = Held(now + LEASE, counted.requests, counted.tokens, counted.dollars)
        else:
            account.held.pop(self._process, None)

    def _leave(self, name: str, limits: Limits, asked: Asked) -> None:
        counted = self._accounts.get(name)
        if counted is None or not counted.requests:
            return
        self._give_back(counted, asked)
        # A place that others may wait for is released at once; everything else is written within a second.
        at_once = self._shared and limits.at_once is not None and not self._away(self._clock())
        counted.urgent = at_once
        if at_once and counted.writing is None:
            counted.writing = asyncio.get_running_loop().create_task(self._write(counted))

    # --- the account in the store ------------------------------------------------------------------

    def _away(self, now: float) -> bool:
        return now < self._away_until

    async def _ask_store(self, counted: _Counted, limits: Limits, asked: Asked) -> Refused | None:
        """Admit by the account in the store; if the store does not answer in time, by what is known here."""
        loop = asyncio.get_running_loop()
        waiting = _Waiting(limits, asked, loop.create_future())
        counted.waiting.append(waiting)
        if counted.writing is None:
            counted.writing = loop.create_task(self._write(counted))
        try:
            done, _ = await asyncio.wait((waiting.result,), timeout=self._patience)
            if done:
                return waiting.result.result()
        except asyncio.CancelledError:  # the client disconnected; if it was admitted, release its place
            if waiting.result.done() and not waiting.result.cancelled() and waiting.result.result() is None:
                self._give_back(counted, asked)
            raise
        finally:
            if waiting in counted.waiting:
                counted.waiting.remove(waiting)
            waiting.result.cancel()
        self._go_without("it did not answer in time")
        return self._decide_here(counted, limits, asked)

    def _go_without(self, reason: str) -> None:
        now = self._clock()
        if not self._away(now):
            log.warning("the gateway's store: %s; limits apply to each process separately until it is back", reason)
        self._away_until = now + AWAY

    async def _write(self, counted: _Counted) -> None:
        """Change the account in the store, and repeat while requests wait for it."""
        loop = asyncio.get_running_loop()
        try:
            while True:
                asking, counted.waiting, counted.urgent = counted.waiting, [], False
                try:
                    refusals = await loop.run_in_executor(self._writers, self._change, counted, asking)
                except EverlongError as error:
                    self._go_without(str(error))
                    refusals = [self._decide_here(counted, one.limits, one.asked) for one in asking]
                self._answer_waiting(counted, asking, refusals)
                if not (counted.waiting or counted.urgent) or self._away(self._clock()):
                    return
        finally:
            counted.writing = None
            for one in counted.waiting:  # the store stopped answering while they waited
                one.result.set_result(self._decide_here(counted, one.limits, one.asked))
            counted.waiting = []

    def _answer_waiting(self, counted: _Counted, asking: list[_Waiting], refusals: list[Refused | None]) -> None:
        for one, refused in zip(asking, refusals, strict=True):
            if not one.result.done():
                one.result.set_result(refused)
            elif refused is None:  # it no longer waits: it was admitted here, or its client is gone
                self._give_back(counted, one.asked)

    def _give_back(self, counted: _Counted, asked: Asked) -> None:
        with self._mine:
            counted.requests -= 1
            counted.tokens -= asked.tokens
            counted.dollars = counted.dollars - asked.dollars if counted.requests else 0.0
            self._hold(counted, counted.account, self._clock())
            counted.changed = counted.changed or self._shared

    def _change(self, counted: _Counted, asking: list[_Waiting]) -> list[Refused | None]:
        """Change the account in the store once: usage, holds and new requests. Not in the event loop."""
        opened = None if counted.loaded else encoded(self._opened(counted.name))
        with self._mine:
            used, counted.used, counted.changed = counted.used, Used(), False
            held = Held(0.0, counted.requests, counted.tokens, counted.dollars)
        outcome: list[Refused | None] = []
        seen = Account()

        def change(text: JsonText | None) -> JsonText:
            nonlocal outcome, seen
            seen = account = decoded(opened if text is None else text)
            now = roll(account, self._clock())
            settle(account, used)
            account.held.pop(self._process, None)
            if held.requests:
                account.held[self._process] = Held(now + LEASE, held.requests, held.tokens, held.dollars)
            outcome = [admit(account, one.limits, one.asked, self._process, now) for one in asking]
            return encoded(account)

        try:
            self._store.change_fact(ACCOUNTS, counted.name, change)
        except EverlongError:
            with self._mine:
                counted.used.requests += used.requests
                counted.used.tokens += used.tokens
                counted.used.dollars += used.dollars
                counted.changed = True
            raise
        with self._mine:
            for one, refused in zip(asking, outcome, strict=True):
                if refused is None:
                    self._take(counted, one.asked)
            settle(seen, counted.used)  # what was used meanwhile
            counted.account, counted.loaded, counted.written = seen, True, self._clock()
        return outcome


class Admission:
    """One request, admitted once and released once. Leaving twice, or without entering, does nothing."""

    def __init__(self, limiter: Limiter, name: str, limits: Limits, asked: Asked) -> None:
        self._limiter = limiter
        self._name, self._limits = name, limits
        self.asked = asked
        #: What is left of the limits, whether admitted or not.
        self.left: list[Allowance] = []
        self._inside = False

    async def enter(self) -> None:
        """Admit the request. Raises Refused (429) with the seconds to wait, if waiting helps."""
        if not self._inside and self._limits != NO_LIMITS:
            refused, self.left = await self._limiter._enter(self._name, self._limits, self.asked)
            if refused is not None:
                raise refused
            self._inside = True

    def leave(self) -> None:
        """Release its place."""
        if self._inside:
            self._inside = False
            self._limiter._leave(self._name, self._limits, self.asked)

    async def __aenter__(self) -> Self:
        await self.enter()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.leave()
