"""What every key has spent, by day: added up in memory, written to the store every few seconds, read from there.

The figures are what answers reported, at the registry's prices. A call without a known price counts its tokens and is
counted in `unpriced`. For a request that ended without a report, because its client disconnected, the estimate counts.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from threading import Lock

import msgspec

from everlong.core import Event, EventKind, JsonText
from everlong.engine import Threads, calls_in
from everlong.errors import EverlongError

__all__ = ["Ledger", "Spend", "spend_of"]

log = logging.getLogger("everlong.gateway")

#: The names with spending, and the days of each.
NAMES, OF_NAME = "gateway/spend", "gateway/spend/"
KEPT = timedelta(days=400)


class Spend(msgspec.Struct, omit_defaults=True):
    """What was spent in a day. `aside` is the part of `dollars` for summaries and titles; `last` is the last change."""

    requests: int = 0
    prompt: int = 0
    output: int = 0
    dollars: float = 0.0
    aside: float = 0.0
    unpriced: int = 0
    last: str = ""

    @property
    def tokens(self) -> int:
        """Tokens of prompts and answers."""
        return self.prompt + self.output

    def plus(self, other: "Spend") -> "Spend":
        """Return the sum of both."""
        return Spend(
            self.requests + other.requests,
            self.prompt + other.prompt,
            self.output + other.output,
            self.dollars + other.dollars,
            self.aside + other.aside,
            self.unpriced + other.unpriced,
            max(self.last, other.last),
        )


_READER = msgspec.json.Decoder(Spend)


def _decoded(text: JsonText | None) -> Spend:
    try:
        return _READER.decode(text) if text else Spend()
    except msgspec.MsgspecError:
        return Spend()


def spend_of(event: Event) -> Spend | None:
    """Return what an engine event says was spent; None if it is not a usage record."""
    if event.kind is not EventKind.USAGE_RECORDED:
        return None
    dollars = event.cost or 0.0
    return Spend(
        prompt=event.tokens_before or 0,
        output=event.tokens_after or 0,
        dollars=dollars,
        aside=dollars if event.reason else 0.0,
        unpriced=calls_in(event) if event.cost is None else 0,
    )


@dataclass(frozen=True, slots=True)
class _Row:
    name: str
    day: str


class Ledger:
    """What every key has spent. `clock` is the wall clock, in UTC.

    `add` never blocks and may be called from any thread; the other methods access the store and may block.
    """

    def __init__(self, store: Threads, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._store = store
        self._clock = clock
        self._mine = Lock()
        self._flushing = Lock()
        self._pending: dict[_Row, Spend] = {}
        self._named: set[str] = set()

    def add(self, name: str, spend: Spend) -> None:
        """Count what a key spent now."""
        now = self._clock()
        row = _Row(name, now.strftime("%Y-%m-%d"))
        spend.last = now.isoformat(timespec="seconds")
        with self._mine:
            self._pending[row] = self._pending.get(row, Spend()).plus(spend)

    def flush(self) -> None:
        """Write what was added. What cannot be written now is written the next time."""
        with self._flushing:
            while True:
                with self._mine:
                    if not self._pending:
                        return
                    row = next(iter(self._pending))
                    spend = self._pending.pop(row)
                try:
                    self._write(row, spend)
                except EverlongError as error:
                    with self._mine:
                        self._pending[row] = self._pending.get(row, Spend()).plus(spend)
                    log.warning("the gateway's store: %s", error)
                    return

    def _write(self, row: _Row, spend: Spend) -> None:
        def change(text: JsonText | None) -> JsonText:
            return msgspec.json.encode(_decoded(text).plus(spend)).decode()

        if row.name not in self._named:
            self._store.keep_fact(NAMES, row.name, "true")
            self._named.add(row.name)
        self._store.change_fact(OF_NAME + row.name, row.day, change)

    def names(self) -> list[str]:
        """Return the names with spending, including those of keys that no longer exist."""
        with self._mine:
            here = {row.name for row in self._pending}
        return sorted({*self._store.facts(NAMES), *here})

    def days(self, name: str, since: str = "") -> dict[str, Spend]:
        """Return what a key spent, by day (2026-11-16), from a day on; unwritten spending is included."""
        found = {day: _decoded(text) for day, text in self._store.facts(OF_NAME + name).items() if day >= since}
        with self._mine:
            here = {row.day: spend for row, spend in self._pending.items() if row.name == name and row.day >= since}
        for day, spend in here.items():
            found[day] = found.get(day, Spend()).plus(spend)
        return dict(sorted(found.items()))

    def sweep(self) -> None:
        """Forget what was spent more than a year ago."""
        before = self._clock() - KEPT
        try:
            for name in self._store.facts(NAMES):
                self._store.drop_facts(OF_NAME + name, before)
        except EverlongError as error:
            log.warning("the gateway's store: %s", error)
