"""Contract: threads are made, listed, changed and archived; none of it touches the log."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone

import pytest

from everlong.engine import Threads
from everlong.errors import NoThread, StoreError, ThreadExists
from tests.core.build import user
from tests.store.contract.entries import CONVERSATION, point
from tests.store.engines import START, Opener

Reopen = Callable[[], Threads]
Use = Callable[[Threads], object]


def test_a_new_thread_is_empty_and_says_who_owns_it(store: Threads) -> None:
    made = store.create("t", owner="ann", title="天气", metadata='{"model": "gpt-4o"}')
    assert (made.id, made.owner, made.title, made.archived) == ("t", "ann", "天气", False)
    assert (made.length, made.messages, made.points, made.parent) == (0, 0, 0, ("", 0))
    assert json.loads(made.metadata) == {"model": "gpt-4o"}
    assert json.loads(made.settings) == {}
    assert START < made.created <= made.updated
    assert store.thread("t") == made
    assert list(store.read("t")) == []
    assert store.last("t", 5) == []
    assert store.open("t").messages == ()


def test_a_name_is_taken_once(store: Threads) -> None:
    made = store.create("t", title="first")
    with pytest.raises(ThreadExists, match="t"):
        store.create("t", title="second")
    assert store.thread("t") == made


USES: dict[str, Use] = {
    "thread": lambda store: store.thread("none"),
    "change": lambda store: store.change("none", title="x"),
    "branch": lambda store: store.branch("none", 0, "new"),
    "remove": lambda store: store.remove("none"),
    "append": lambda store: store.append("none", [user("a")]),
    "read": lambda store: list(store.read("none")),
    "last": lambda store: store.last("none", 1),
    "row": lambda store: store.row("none", "x"),
    "open": lambda store: store.open("none"),
    "points": lambda store: store.points("none"),
    "pin": lambda store: store.pin("none", None, "x"),
    "unpin": lambda store: store.unpin("none", "x"),
    "pins": lambda store: store.pins("none"),
    "record": lambda store: store.record("none", []),
    "events": lambda store: store.events("none"),
    "unfinished": lambda store: store.unfinished("none"),
    "original": lambda store: store.original("none", "0" * 16),
    "search": lambda store: store.search("x", thread="none"),
    "vectors": lambda store: store.vectors("none", "m"),
    "keep_vectors": lambda store: store.keep_vectors("none", "m", {0: b"x"}),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_what_is_not_there_is_said_to_be_missing(store: Threads, use: Use) -> None:
    with pytest.raises(NoThread, match="none"):
        use(store)
    assert store.threads() == []


def test_threads_are_listed_the_latest_changed_first(store: Threads) -> None:
    for name in ("a", "b", "c"):
        store.create(name)
    store.append("a", [user("hello")])
    assert [thread.id for thread in store.threads()] == ["a", "c", "b"]
    store.change("b", title="renamed")
    assert [thread.id for thread in store.threads()] == ["b", "a", "c"]
    assert [thread.id for thread in store.threads(limit=2)] == ["b", "a"]
    assert [thread.id for thread in store.threads(limit=2, skip=1)] == ["a", "c"]
    assert [thread.id for thread in store.threads(skip=2)] == ["c"]
    assert store.threads(limit=0) == store.threads(skip=3) == []
    assert store.threads(limit=-1) == store.threads(limit=-5, skip=1) == store.threads(skip=2**70) == []
    assert store.threads(skip=-1) == store.threads() == store.threads(limit=2**70)


def test_threads_are_listed_by_owner(store: Threads) -> None:
    for name, owner in (("a", "ann"), ("b", "bob"), ("c", ""), ("d", "ann")):
        store.create(name, owner=owner)
    assert {thread.id for thread in store.threads(owner="ann")} == {"a", "d"}
    assert [thread.id for thread in store.threads(owner="")] == ["c"]
    assert len(store.threads()) == 4
    assert store.threads(owner="An") == store.threads(owner="%") == []


def test_an_archived_thread_leaves_the_list_and_nothing_else(store: Threads) -> None:
    store.create("t")
    rows = store.append("t", CONVERSATION)
    assert store.change("t", archived=True).archived
    assert store.threads() == []
    assert [thread.id for thread in store.threads(archived=True)] == ["t"]
    assert [thread.id for thread in store.threads(archived=None)] == ["t"]
    assert tuple(store.read("t")) == rows
    assert store.search("config")[0].thread == "t"
    assert not store.change("t", archived=False).archived
    assert store.threads(archived=True) == []
    assert [thread.id for thread in store.threads()] == ["t"]


def test_a_change_changes_what_it_names(store: Threads, reopen: Reopen) -> None:
    made = store.create("t", owner="ann", title="one", metadata='{"a": 1}')
    rows = store.append("t", [user("a"), point(1)])
    changed = store.change("t", title="two", settings='{"preset": "auto", "名": [1, null, 2.5]}')
    assert (changed.title, changed.owner, changed.created) == ("two", "ann", made.created)
    assert json.loads(changed.settings) == {"preset": "auto", "名": [1, None, 2.5]}
    assert json.loads(changed.metadata) == {"a": 1}
    changed = store.change("t", metadata='{"b": "\\u0000\\ud83d"}')
    assert json.loads(changed.metadata) == {"b": "\x00\ud83d"}
    assert (changed.title, changed.length, changed.messages, changed.points) == ("two", 2, 1, 1)
    assert store.change("t", title="").title == ""
    assert tuple(store.read("t")) == rows
    known = store.thread("t")
    assert reopen().thread("t") == known


def test_what_is_known_grows_with_the_thread(store: Threads, reopen: Reopen) -> None:
    made = store.create("t")
    store.append("t", CONVERSATION)
    store.append("t", [point(4)])
    known = store.thread("t")
    assert (known.length, known.messages, known.points) == (7, 6, 1)
    assert known.created == made.created
    assert known.updated - made.updated >= timedelta(seconds=2)
    assert reopen().threads() == [known]


NO_OBJECTS = {
    "empty": "",
    "no JSON": "{",
    "a list": "[]",
    "null": "null",
    "a text": '"{}"',
    "very deep": "[" * 100_000,
}


@pytest.mark.parametrize("text", NO_OBJECTS.values(), ids=NO_OBJECTS)
def test_settings_and_metadata_are_json_objects(store: Threads, reopen: Reopen, text: str) -> None:
    made = store.create("t", metadata='{"a": 1}')
    with pytest.raises(StoreError, match="metadata must be a JSON object"):
        store.create("u", metadata=text)
    with pytest.raises(StoreError, match="metadata must be a JSON object"):
        store.change("t", title="new", metadata=text)
    with pytest.raises(StoreError, match="settings must be a JSON object"):
        store.change("t", title="new", settings=text)
    assert reopen().threads() == [made]


CLOCKS = {
    "another zone": datetime(2026, 5, 1, 9, 30, 0, 5, tzinfo=timezone(timedelta(hours=8))),
    "no zone, which is local time": datetime(2026, 5, 1, 9, 30),
}


@pytest.mark.parametrize("now", CLOCKS.values(), ids=CLOCKS)
def test_times_are_moments_whatever_zone_the_clock_says(
    opener: Opener, opened_stores: list[Threads], now: datetime
) -> None:
    store = opener(lambda: now)
    opened_stores.append(store)
    made = store.create("t")
    rows = store.append("t", [user("a")])
    assert {made.created, made.updated, rows[0].time} == {now.astimezone(UTC)}
    assert {time.utcoffset() for time in (made.created, rows[0].time)} == {timedelta(0)}
    changed = store.change("t", title="b")
    store.close()
    opened_stores.append(opener(lambda: now))
    assert opened_stores[-1].thread("t") == changed
    assert tuple(opened_stores[-1].read("t")) == rows


def test_threads_of_one_moment_are_listed_as_they_were_made(opener: Opener, opened_stores: list[Threads]) -> None:
    store = opener(lambda: START)
    opened_stores.append(store)
    names = [f"t{number}" for number in (3, 1, 2, 5, 4)]
    for name in names:
        store.create(name)
    store.append("t1", [user("a")])
    assert [thread.id for thread in store.threads()] == names
    assert [thread.id for thread in store.threads(limit=2, skip=2)] == names[2:4]


def test_a_name_of_hundreds_of_kilobytes_is_a_name(store: Threads, reopen: Reopen) -> None:
    long = "长" * 100_000
    for name in (f"{long}a", f"{long}b"):
        store.create(name, owner=long, title=long)
        store.append(name, [user(name[-1])], ids=[long])
        store.branch(name, 1, f"{name} again")
    again = reopen()
    assert len(again.threads(owner=long)) == 4
    row = again.row(f"{long}a again", long)
    assert row is not None
    assert row.entry == user("a")


def test_a_store_is_closed_by_leaving_it_and_may_be_closed_twice(store: Threads, reopen: Reopen) -> None:
    store.create("t")
    with reopen() as again:
        assert again.thread("t").id == "t"
    again.close()


WHILE_CLOSED: dict[str, Use] = {
    "create": lambda store: store.create("new"),
    "threads": lambda store: store.threads(),
    "counts": lambda store: store.counts("v", ["a"]),
    "keep_counts": lambda store: store.keep_counts("v", {"a": 1}),
    "fact": lambda store: store.fact("a", "b"),
    "keep_fact": lambda store: store.keep_fact("a", "b", "{}"),
    "keep_facts": lambda store: store.keep_facts("a", {"b": "{}"}),
    "change_fact": lambda store: store.change_fact("a", "b", lambda text: text),
    "facts": lambda store: store.facts("a"),
    **USES,
}


@pytest.mark.parametrize("use", WHILE_CLOSED.values(), ids=WHILE_CLOSED)
def test_a_closed_store_says_that_it_is_closed(store: Threads, reopen: Reopen, use: Use) -> None:
    store.create("none")
    store.append("none", [user("a")])
    store.close()
    with pytest.raises(StoreError, match="closed"):
        use(store)
    again = reopen()
    assert ([thread.id for thread in again.threads()], again.thread("none").length) == (["none"], 1)


def test_reading_ends_with_the_store(store: Threads) -> None:
    store.create("t")
    store.append("t", [user(str(number)) for number in range(500)])
    reading = store.read("t")
    assert next(reading).order == 0
    store.close()
    with pytest.raises(StoreError, match="closed"):
        list(reading)
