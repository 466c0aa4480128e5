"""Contract: what was learned is kept: token counts, windows, calibrations."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta, timezone

import pytest

from everlong.engine import Threads
from tests.store.contract.entries import HOSTILE_TEXTS
from tests.store.engines import START, Opener

Reopen = Callable[[], Threads]


def test_counts_are_kept_by_vocabulary_and_reference(store: Threads, reopen: Reopen) -> None:
    store.keep_counts("o200k_base", {"aa": 7, "bb": 0})
    store.keep_counts("other", {"aa": 9})
    store.keep_counts("o200k_base", {})
    again = reopen()
    assert again.counts("o200k_base", ["aa", "bb", "cc"]) == {"aa": 7, "bb": 0}
    assert again.counts("other", ["aa", "bb"]) == {"aa": 9}
    assert again.counts("none", ["aa"]) == again.counts("o200k_base", []) == {}


def test_counts_may_be_said_again(store: Threads) -> None:
    store.keep_counts("v", {"aa": 7})
    store.keep_counts("v", {"aa": 8, "bb": 2})
    assert store.counts("v", ["aa", "bb", "aa"]) == {"aa": 8, "bb": 2}


def test_thousands_of_counts_at_once(store: Threads) -> None:
    counts = {f"{number:016x}": number for number in range(5_000)}
    store.keep_counts("v", counts)
    assert store.counts("v", list(counts)) == counts


def test_the_newest_fact_counts(store: Threads, reopen: Reopen) -> None:
    assert store.fact("window", "gpt-4o") is None
    store.keep_fact("window", "gpt-4o", '{"context": 1}')
    store.keep_fact("window", "gpt-4o", '{"context": 128000}')
    store.keep_fact("window", "模型/x:7b", '{"context": 32768}')
    store.keep_fact("calibration", "gpt-4o", "[1.05, 12]")
    again = reopen()
    assert json.loads(again.fact("window", "gpt-4o") or "") == {"context": 128_000}
    assert {key: json.loads(value) for key, value in again.facts("window").items()} == {
        "gpt-4o": {"context": 128_000},
        "模型/x:7b": {"context": 32_768},
    }
    assert again.facts("calibration").keys() == {"gpt-4o"}
    assert again.facts("none") == {}
    assert again.fact("calibration", "模型/x:7b") is None


def test_any_text_is_a_key(store: Threads, reopen: Reopen) -> None:
    keys = [text for name, text in HOSTILE_TEXTS.items() if name != "300 kB"]
    for number, key in enumerate(keys):
        store.keep_fact(key, key, str(number))
        store.keep_counts(key, {key: number})
    again = reopen()
    for number, key in enumerate(keys):
        assert again.fact(key, key) == str(number)
        assert again.facts(key) == {key: str(number)}
        assert again.counts(key, [key]) == {key: number}


def test_several_facts_are_kept_at_once(store: Threads, reopen: Reopen) -> None:
    store.keep_fact("state", "a", "0")
    store.keep_facts("state", {})
    values = {"b": "2", "a": "1", **dict.fromkeys(HOSTILE_TEXTS.values(), "3")}
    store.keep_facts("state", values)
    assert reopen().facts("state") == values


# Forgetting


def test_one_fact_is_dropped_and_no_other(store: Threads, reopen: Reopen) -> None:
    for kind, key in (("state", "a"), ("state", "b"), ("window", "a")):
        store.keep_fact(kind, key, "1")
    store.drop_fact("state", "a")
    store.drop_fact("state", "a")
    store.drop_fact("none", "a")
    again = reopen()
    assert again.facts("state") == {"b": "1"}
    assert again.facts("window") == {"a": "1"}


def test_facts_that_were_kept_before_a_time_are_dropped(
    opener: Opener, opened_stores: list[Threads], reopen: Reopen
) -> None:
    now = START
    store = opener(lambda: now)
    opened_stores.append(store)
    for key in ("old", "old too", "said again"):
        store.keep_fact("state", key, "1")
    store.keep_fact("window", "old", "2")
    now = START + timedelta(hours=1)
    store.keep_fact("state", "said again", "3")
    store.keep_fact("state", "new", "4")
    assert store.drop_facts("state", START) == 0, "before, not at"
    assert store.drop_facts("state", START + timedelta(microseconds=1)) == 2
    again = reopen()
    assert again.facts("state") == {"said again": "3", "new": "4"}
    assert again.fact("state", "old") is None
    assert again.facts("window") == {"old": "2"}
    assert again.drop_facts("state", now + timedelta(days=1)) == 2
    assert again.drop_facts("state", now + timedelta(days=1)) == again.drop_facts("none", now) == 0
    again.keep_fact("state", "old", "5")
    assert again.facts("state") == {"old": "5"}


TIMES = {
    "in UTC": datetime(2026, 1, 1, 0, 30, tzinfo=UTC),
    "in another zone": datetime(2026, 1, 1, 8, 30, tzinfo=timezone(timedelta(hours=8))),
    "without a zone": datetime(2026, 1, 1, 0, 30, tzinfo=UTC).astimezone().replace(tzinfo=None),
}


@pytest.mark.parametrize("before", TIMES.values(), ids=TIMES)
def test_a_time_of_any_zone_is_taken(opener: Opener, opened_stores: list[Threads], before: datetime) -> None:
    times = iter([START, START + timedelta(hours=1)])
    store = opener(lambda: next(times))
    opened_stores.append(store)
    store.keep_fact("state", "old", "1")
    store.keep_fact("state", "new", "2")
    assert store.drop_facts("state", before) == 1
    assert store.facts("state") == {"new": "2"}


def test_any_text_is_a_kind_to_drop(store: Threads) -> None:
    kinds = [text for name, text in HOSTILE_TEXTS.items() if name != "300 kB"]
    for kind in kinds:
        store.keep_fact(kind, "key", "1")
    for kind in kinds:
        assert store.drop_facts(kind, START + timedelta(days=1)) == 1
        assert store.facts(kind) == {}


def test_facts_are_read_kept_and_dropped_from_many_threads(store: Threads) -> None:
    large = "x" * 20_000

    def work(hand: int) -> int:
        for number in range(20):
            store.keep_fact(f"kind {hand}", str(number), f'"{hand} {number} {large}"')
            assert store.fact(f"kind {hand}", str(number)) == f'"{hand} {number} {large}"'
        return store.drop_facts(f"kind {hand}", START + timedelta(days=1))

    with ThreadPoolExecutor(4) as hands:
        assert list(hands.map(work, range(4))) == [20] * 4
