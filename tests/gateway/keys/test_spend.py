"""What keys spent: every addition once, by day, over several processes, also after a store was away."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Thread

import pytest
from hypothesis import given, strategies as st

from everlong.core import JsonText
from everlong.errors import StoreError
from everlong.gateway.keys.records import KeyRecords
from everlong.gateway.keys.spend import Ledger, Spend
from everlong.llm import ScriptedServer, Window, reads_files
from everlong.store import MemoryThreads, open_store
from tests.engine.authors import both
from tests.gateway.resending import Resending
from tests.gateway.running import RunningGateway


@dataclass
class Clock:
    now: datetime = datetime(2026, 11, 30, 23, 59, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


class Failing(MemoryThreads):
    away = False

    def change_fact(self, kind: str, key: str, change: Callable[[JsonText | None], JsonText | None]) -> JsonText | None:
        if self.away:
            raise StoreError("no answer")
        return super().change_fact(kind, key, change)


def test_what_cannot_be_written_is_written_later_and_counts_meanwhile() -> None:
    store, clock = Failing(), Clock()
    ledger = Ledger(store, clock)
    store.away = True
    ledger.add("team", Spend(requests=1, dollars=0.5))
    ledger.flush()
    ledger.add("team", Spend(requests=1, dollars=0.25))
    assert ledger.days("team")["2026-11-30"].dollars == 0.75
    clock.now += timedelta(minutes=2)
    ledger.add("team", Spend(requests=1, prompt=7))
    store.away = False
    ledger.flush()
    other = Ledger(store, clock)
    assert {day: spend.requests for day, spend in other.days("team").items()} == {"2026-11-30": 2, "2026-12-01": 1}
    assert list(other.days("team", "2026-12")) == ["2026-12-01"]
    assert other.names() == ["team"]


def test_what_is_too_old_goes() -> None:
    kept_at = Clock(datetime(2025, 1, 1, tzinfo=UTC))
    store = MemoryThreads(clock=kept_at)
    ledger = Ledger(store, kept_at)
    ledger.add("team", Spend(requests=1))
    ledger.flush()
    kept_at.now += timedelta(days=399)
    ledger.sweep()
    assert ledger.days("team")
    kept_at.now += timedelta(days=2)
    ledger.sweep()
    assert not ledger.days("team")


@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from("ab"), st.integers(1, 9), st.booleans()), max_size=30))
def test_nothing_is_lost_or_counted_twice(steps: list[tuple[int, str, int, bool]]) -> None:
    store, clock = MemoryThreads(), Clock()
    ledgers = [Ledger(store, clock) for _ in range(3)]
    sums = dict.fromkeys("ab", 0)
    for at, name, tokens, flushes in steps:
        ledgers[at].add(name, Spend(requests=1, prompt=tokens))
        sums[name] += tokens
        if flushes:
            ledgers[at].flush()
    writers = [Thread(target=ledger.flush) for ledger in ledgers]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    fresh = Ledger(store, clock)
    for name, tokens in sums.items():
        assert sum(spend.prompt for spend in fresh.days(name).values()) == tokens


def test_summaries_count_for_the_key_that_caused_them_and_all_adds_up_to_the_metrics(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'gateway.db'}"
    with open_store(url) as store:
        keys = {name: KeyRecords(store).create(name, {"dollars_per_day": 50})[1] for name in ("talker", "other")}
    with (
        ScriptedServer(both(reads_files(2)), window=Window(8_000, told=True)) as upstream,
        RunningGateway(upstream=upstream.url, store=url, summaries="on") as gateway,
    ):
        talker, other = (Resending("openai-chat", key=keys[name]) for name in ("talker", "other"))
        for turn in range(6):
            talker.ask(gateway, f"Question {turn}: what do the files say?")
        other.ask(gateway, "A short one?")
    told = gateway.services.metrics.written()[0].decode()
    dollars = {
        what: float(value) for what, value in re.findall(r'everlong_spent_dollars_total\{what="(\w+)"\} (\S+)', told)
    }
    with open_store(url) as store:
        (spent,), (little,) = (Ledger(store).days(name).values() for name in ("talker", "other"))
    assert spent.aside == pytest.approx(dollars["summary"])
    assert spent.aside > 0
    assert spent.dollars + little.dollars == pytest.approx(sum(dollars.values()))
    assert (little.aside, spent.requests) == (0, talker.turns)
