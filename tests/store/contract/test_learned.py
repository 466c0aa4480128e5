"""Contract: what was learned is kept: token counts, windows, calibrations."""

import json
from collections.abc import Callable

from everlong.engine.threads import Threads
from tests.store.contract.entries import HOSTILE_TEXTS

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
