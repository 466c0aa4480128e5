"""Contract: threads are made, listed, changed and archived; none of it touches the log."""

import json
from collections.abc import Callable
from datetime import timedelta

import pytest

from everlong.engine.threads import Threads
from everlong.errors import NoThread, ThreadExists
from tests.core.build import user
from tests.store.contract.entries import CONVERSATION, point
from tests.store.engines import START

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


def test_a_store_is_closed_by_leaving_it_and_may_be_closed_twice(store: Threads, reopen: Reopen) -> None:
    store.create("t")
    with reopen() as again:
        assert again.thread("t").id == "t"
    again.close()
