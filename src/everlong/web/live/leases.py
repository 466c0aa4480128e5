"""Which process runs the turn of which thread, kept in the store with the answer so far.

A turn is leased: a fact next to its thread names the process, and no other process starts a turn there. A process that
runs turns has a heartbeat: it writes a number that grows. If the number stands still for the length of a lease, by the
clock of the observer, the process counts as dead: the first observer ends its turns and keeps their text. A process
that was only slow finds its lease taken and stops. The clocks of two machines are never compared.
"""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from time import monotonic
from typing import TypeAlias

from everlong.core import JsonText
from everlong.engine import Threads
from everlong.errors import EverlongError

__all__ = ["End", "Lease", "Leases"]

KIND = "partial answer"
BEATS = "app process"
BEATS_A_LEASE = 3
log = logging.getLogger("everlong.web")


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """A running turn: its process, its id, the owner of its thread, and the words of the answer so far.

    `number` counts its answers: a turn with tools gives several. `tries` counts the processes that died during it.
    """

    process: str = ""
    turn: str = ""
    owner: str = ""
    number: int = 0
    model: str = ""
    text: str = ""
    thinking: str = ""
    tries: int = 0


#: Ends the turn that a dead process left in a thread; the caller holds the lease.
End: TypeAlias = Callable[[str, Lease], Awaitable[None]]
#: Stops the turn of a thread, because another process has ended it already.
Stop: TypeAlias = Callable[[str], None]


class Leases:
    """The turns of all processes on one store. Its methods read and write the store; safe in any thread."""

    def __init__(self, threads: Threads, process: str, seconds: float, *, shared: bool) -> None:
        self._threads = threads
        self._shared = shared
        self._process = process
        self._seconds = seconds
        self._beat = 0
        #: Threads in which this process runs a turn.
        self._held: set[str] = set()
        #: By process: the last heartbeat that was seen, and when it was new.
        self._seen: dict[str, tuple[str, float]] = {}

    def of(self, thread: str) -> Lease | None:
        """Return the turn that runs in a thread, in any process."""
        return _load(self._threads.fact(KIND, thread))

    def all(self) -> dict[str, Lease]:
        """Return the turns that run, by thread."""
        return {thread: _load(value) or Lease() for thread, value in self._threads.facts(KIND).items()}

    def take(self, thread: str, turn: str, *, owner: str = "", tries: int = 0) -> bool:
        """Begin a turn, unless another process runs one there; return whether it may begin."""
        if not self._held:
            self._keep_beat()
        wanted = Lease(process=self._process, turn=turn, owner=owner, tries=tries)

        def change(value: JsonText | None) -> JsonText | None:
            known = _load(value)
            if known is None or not known.process:
                return _dump(wanted)
            own = replace(known, turn=turn, tries=tries or known.tries)
            return _dump(own) if known.process == self._process else value

        stands = _load(self._threads.change_fact(KIND, thread, change))
        mine = stands is not None and (stands.process, stands.turn) == (self._process, turn)
        if mine:
            self._held.add(thread)
        return mine

    def write(self, thread: str, number: int, model: str, text: str, thinking: str) -> bool:
        """Keep the words of a running answer; return False if this process no longer runs the turn."""

        def change(value: JsonText | None) -> JsonText | None:
            known = _load(value)
            if known is None or known.process != self._process:
                return value
            return _dump(replace(known, number=number, model=model, text=text, thinking=thinking))

        stands = _load(self._threads.change_fact(KIND, thread, change))
        return stands is not None and stands.process == self._process

    def release(self, thread: str, turn: str) -> None:
        """End a turn: the next one may begin in any process."""

        def change(value: JsonText | None) -> JsonText | None:
            known = _load(value)
            return None if known is not None and (known.process, known.turn) == (self._process, turn) else value

        stands = _load(self._threads.change_fact(KIND, thread, change))
        if stands is None or stands.process != self._process:
            self._held.discard(thread)

    def forget(self, thread: str) -> None:
        """Delete the lease of a removed thread."""
        self._threads.drop_fact(KIND, thread)

    def close(self) -> None:
        """Drop the heartbeat of this process, because it runs no more turns."""
        if self._shared:
            self._threads.drop_fact(BEATS, self._process)

    async def watch(self, end: End, stop: Stop) -> None:
        """Renew the leases of this process, and end the turns of dead processes, until cancelled."""
        while True:
            await asyncio.sleep(self._seconds / BEATS_A_LEASE)
            with suppress(EverlongError):  # the store is away: no other process can read it either
                await self._look(end, stop)

    async def _look(self, end: End, stop: Stop) -> None:
        held = set(self._held)
        if held:
            await asyncio.to_thread(self._keep_beat)
        leases = await asyncio.to_thread(self.all)
        for thread in held - {name for name, lease in leases.items() if lease.process == self._process}:
            stands = await asyncio.to_thread(self.of, thread)
            if thread in self._held and (stands is None or stands.process != self._process):
                self._held.discard(thread)
                stop(thread)
        gone = await asyncio.to_thread(self._gone, {lease.process for lease in leases.values()} - {self._process})
        for thread, lease in leases.items():
            if lease.process in gone:
                await self.take_over(thread, lease, end)
        for process in gone:
            await asyncio.to_thread(self._threads.drop_fact, BEATS, process)

    async def take_over(self, thread: str, lease: Lease, end: End) -> None:
        """End the turn of a dead process, unless another process does. Its text stays until then."""
        mine = replace(lease, process=self._process)

        def change(value: JsonText | None) -> JsonText | None:
            return _dump(mine) if _load(value) == lease else value

        if not self._held:
            await asyncio.to_thread(self._keep_beat)
        if _load(await asyncio.to_thread(self._threads.change_fact, KIND, thread, change)) != mine:
            return
        log.info("the process that was answering in %s is gone; this process ends its turn", thread)
        self._held.add(thread)
        try:
            await end(thread, lease)
        finally:
            with suppress(EverlongError):
                await asyncio.to_thread(self.release, thread, lease.turn)

    def _gone(self, processes: set[str]) -> set[str]:
        """Return the processes whose heartbeat has stood still for a lease; one without a name counts as gone."""
        beats = self._threads.facts(BEATS) if processes else {}
        now = monotonic()
        self._seen = {name: seen for name, seen in self._seen.items() if name in processes}
        for process in processes:
            beat = beats.get(process, "")
            if self._seen.get(process, ("", 0.0))[0] != beat or process not in self._seen:
                self._seen[process] = (beat, now)
        return {name for name, (_, since) in self._seen.items() if not name or now - since >= self._seconds}

    def _keep_beat(self) -> None:
        if not self._shared:
            return
        self._beat += 1
        self._threads.keep_fact(BEATS, self._process, json.dumps(self._beat))


def _dump(lease: Lease) -> JsonText:
    return json.dumps({name: getattr(lease, name) for name in Lease.__dataclass_fields__})


def _load(value: JsonText | None) -> Lease | None:
    """Return a lease that was stored; None if there is none. If it cannot be read, return one that no process holds."""
    if value is None:
        return None
    try:
        fields = json.loads(value)
        known = {name: fields[name] for name in Lease.__dataclass_fields__ if name in fields}
        return Lease(**known)
    except (ValueError, TypeError):
        return Lease()
