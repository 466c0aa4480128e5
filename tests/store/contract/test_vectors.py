"""Contract: vectors are kept with the message that they were made of, and go with it."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from everlong.core import Point, Removal
from everlong.engine import Threads
from everlong.errors import NoThread
from tests.core.build import user
from tests.store.contract.entries import HOSTILE_TEXTS, SUMMARY

Reopen = Callable[[], Threads]
#: Bytes that occur in no file by chance.
MARKED = bytes(range(200, 256)) * 4


@pytest.fixture
def filled(store: Threads) -> Threads:
    store.create("t", owner="ann")
    store.append("t", [user(f"said {number}") for number in range(6)])
    return store


def test_vectors_are_kept_by_model_and_order(filled: Threads, reopen: Reopen) -> None:
    filled.keep_vectors("t", "m", {0: b"\x00\x01", 4: b"\xff" * 600})
    filled.keep_vectors("t", "other", {4: b"x"})
    filled.keep_vectors("t", "m", {})
    again = reopen()
    assert again.vectors("t", "m") == {0: b"\x00\x01", 4: b"\xff" * 600}
    assert again.vectors("t", "other") == {4: b"x"}
    assert again.vectors("t", "m", 1) == again.vectors("t", "m", 4, 5) == {4: b"\xff" * 600}
    assert again.vectors("t", "m", 0, 4) == {0: b"\x00\x01"}
    assert again.vectors("t", "none") == {}


def test_newer_vectors_replace_older_ones(filled: Threads) -> None:
    filled.keep_vectors("t", "m", {1: b"old", 2: b"stays"})
    filled.keep_vectors("t", "m", {1: b"new"})
    assert filled.vectors("t", "m") == {1: b"new", 2: b"stays"}


def test_only_messages_that_are_there_have_vectors(filled: Threads) -> None:
    filled.append("t", [Point(boundary=2, summary=SUMMARY), Removal((3,))])
    filled.keep_vectors("t", "m", {2: b"said", 3: b"removed", 6: b"a point", 9: b"nothing", -1: b"no order"})
    assert filled.vectors("t", "m") == {2: b"said"}


def test_a_thread_that_is_not_there_has_no_vectors(store: Threads) -> None:
    with pytest.raises(NoThread):
        store.vectors("none", "m")
    with pytest.raises(NoThread):
        store.keep_vectors("none", "m", {0: b"x"})


def test_vectors_are_erased_with_the_message_in_every_thread_that_shares_it(filled: Threads, reopen: Reopen) -> None:
    filled.branch("t", 4, "branch")
    for thread in ("t", "branch"):
        filled.keep_vectors(thread, "m", {1: MARKED, 2: b"stays"})
        filled.keep_vectors(thread, "other", {1: MARKED})
    assert set(filled.erase("t", [1])) == {"t", "branch"}
    again = reopen()
    for thread in ("t", "branch"):
        assert again.vectors(thread, "m") == {2: b"stays"}
        assert again.vectors(thread, "other") == {}
    again.keep_vectors("t", "m", {1: MARKED})
    assert again.vectors("t", "m") == {2: b"stays"}, "who was computing meanwhile brings nothing back"


def test_no_file_has_a_byte_of_vectors_that_were_erased(filled: Threads, tmp_path: Path) -> None:
    filled.keep_vectors("t", "m", dict.fromkeys(range(6), MARKED))
    filled.erase("t", range(6))
    filled.close()
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and MARKED[:56] in path.read_bytes()]


def test_vectors_go_with_the_thread_and_do_not_come_back_with_its_name(filled: Threads, reopen: Reopen) -> None:
    filled.branch("t", 4, "branch")
    filled.keep_vectors("t", "m", {1: b"a"})
    filled.keep_vectors("branch", "m", {1: b"b"})
    filled.remove("t")
    filled.create("t")
    filled.append("t", [user("said again")])
    again = reopen()
    assert again.vectors("t", "m") == {}
    assert again.vectors("branch", "m") == {1: b"b"}


@pytest.mark.parametrize("text", HOSTILE_TEXTS.values(), ids=HOSTILE_TEXTS)
def test_any_text_may_name_a_thread_or_a_model(store: Threads, text: str) -> None:
    store.create(text[:300])
    store.append(text[:300], [user("a")])
    store.keep_vectors(text[:300], text[:300], {0: b"x"})
    assert store.vectors(text[:300], text[:300]) == {0: b"x"}
    store.remove(text[:300])


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(kept=st.dictionaries(st.integers(0, 5), st.binary(max_size=40)))
def test_what_was_kept_comes_back_byte_for_byte(filled: Threads, kept: dict[int, bytes]) -> None:
    before = filled.vectors("t", "m")
    filled.keep_vectors("t", "m", kept)
    assert filled.vectors("t", "m") == before | kept
