"""Contract: messages are removed from all that is read and restored as they were; erased, they are in no file."""

from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from everlong.core import (
    Entry,
    Event,
    EventKind,
    Gone,
    Message,
    Point,
    Recalled,
    Removal,
    Restoration,
    Withdrawal,
    message_ref,
    ref_of,
    view,
    visible,
)
from everlong.engine import Threads
from everlong.errors import StoreError
from everlong.store import MemoryThreads
from tests.core.build import assistant, calls, result, system, user
from tests.store.contract.entries import point, talk
from tests.store.engines import START

Reopen = Callable[[], Threads]
LARGE = "a walrus in a long log\n" * 500
#: What is read of a thread.
LOG: tuple[Entry, ...] = (
    system("You are kind."),
    user("where is the walrus?"),
    calls("1", arguments='{"path": "walrus.txt"}'),
    result("1", LARGE),
    assistant("At the pier."),
    point(3, "[summary] They look for a walrus."),
    user("and the otter?"),
    Recalled(6, user("[background] walrus")),
    assistant("In the river."),
)


def filled(store: Threads, thread: str = "t") -> Threads:
    store.create(thread, owner="ann")
    store.append(thread, LOG, ids=[f"{thread}{number}" for number in range(len(LOG))])
    return store


def entries(store: Threads, thread: str = "t") -> list[Entry]:
    return [row.entry for row in store.read(thread)]


def found(store: Threads, words: str, **where: str) -> list[int]:
    return sorted(hit.row.order for hit in store.search(words, limit=100, **where))  # type: ignore[arg-type]


def test_what_was_removed_is_in_nothing_that_is_read(store: Threads, reopen: Reopen) -> None:
    filled(store).pin("t", 1)
    before = store.thread("t")
    store.append("t", [Removal((1, 2, 3, 5, 7))])
    for at_hand in (lambda: store, reopen):
        again = at_hand()
        read = entries(again)
        assert read == [*visible((*LOG, Removal((1, 2, 3, 5, 7))))]
        assert [at for at, entry in enumerate(read) if isinstance(entry, Gone)] == [1, 2, 3, 5, 7]
        assert again.open("t").messages == view((*LOG, Removal((1, 2, 3, 5, 7)))) == (LOG[0], LOG[4], LOG[6], LOG[8])
        assert again.open("t", 8).messages == (LOG[0], LOG[4], LOG[6])
        assert [row.order for row in again.last("t", 9)] == [0, 4, 6, 8]
        assert [row.order for row in again.last("t", 2)] == [6, 8]
        assert (again.points("t"), again.pins("t")) == ([], ())
        assert found(again, "walrus") == found(again, "walrus", owner="ann") == []
        assert found(again, "otter river") == [6, 8]
        assert again.original("t", ref_of(LARGE)) is None
        row = again.row("t", "t1")
        assert row is not None
        assert isinstance(row.entry, Gone)
        now = again.thread("t")
        assert (now.length, now.messages, now.points, now.standing) == (10, 4, before.points, 0)
        with pytest.raises(StoreError, match="no message 1 to pin"):
            again.pin("t", 1)


def test_what_is_restored_is_as_it_was(store: Threads, reopen: Reopen) -> None:
    filled(store).pin("t", 1)
    opened, pins, before = store.open("t"), store.pins("t"), store.thread("t")
    assert found(store, "walrus") == [1, 2, 3]
    store.append("t", [Removal((1, 2, 3, 5, 7))])
    assert found(store, "walrus") == []
    store.append("t", [Restoration(9)])
    for at_hand in (lambda: store, reopen):
        again = at_hand()
        assert entries(again) == [*LOG, Removal((1, 2, 3, 5, 7)), Restoration(9)]
        assert again.open("t").messages == opened.messages
        assert again.open("t").point == opened.point
        assert again.pins("t") == pins
        assert found(again, "walrus") == [1, 2, 3]
        assert again.original("t", ref_of(LARGE)) == LARGE.encode()
        now = again.thread("t")
        assert (now.messages, now.points, now.standing) == (before.messages, before.points, before.standing)
    again.append("t", [Removal((4,))])
    assert entries(again)[4] == Gone()
    assert found(again, "walrus pier") == [1, 2, 3]


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        (Removal((99,)), "no message 99"),
        (Removal((-1,)), "no message -1"),
        (Removal((4, 4)), "no message 4"),
        (Removal((9,)), "no message 9"),
        (Removal((10,)), "no message 10"),
        (Restoration(1), "no removal 1"),
        (Restoration(99), "no removal 99"),
        (Withdrawal(5), "no point 5"),
    ],
)
def test_only_what_is_there_can_be_removed_or_restored(store: Threads, entry: Entry, why: str) -> None:
    filled(store).append("t", [Removal((5,))])
    with pytest.raises(StoreError, match=why):
        store.append("t", [entry])
    assert store.thread("t").length == 10


def test_the_leading_system_text_is_found_behind_what_is_gone(store: Threads, reopen: Reopen) -> None:
    said = (user("first"), system("You are kind."), user("second"), assistant("yes"))
    store.create("t")
    store.append("t", [*said, Removal((0,)), point(3)])
    for at_hand in (lambda: store, reopen):
        opened = at_hand().open("t")
        assert opened.messages == (said[1], *point(3).summary, said[3])
        assert [row.order for row in opened.head] == [1]


def test_what_was_said_again_stays_known_by_its_reference(store: Threads, reopen: Reopen) -> None:
    store.create("t")
    store.append("t", [user("the same"), assistant("yes"), user("the same")])
    ref = message_ref(user("the same"))
    whole = store.original("t", ref)
    store.append("t", [Removal((0,))])
    assert store.original("t", ref) == whole is not None
    store.erase("t", [0])
    assert reopen().original("t", ref) == whole
    store = reopen()
    store.append("t", [Removal((2,))])
    assert store.original("t", ref) is None


def test_a_branch_keeps_what_it_had_and_begins_without_what_was_removed(store: Threads, reopen: Reopen) -> None:
    filled(store)
    store.branch("t", 9, "before")
    store.append("t", [Removal((1, 2, 3, 5, 7))])
    store.branch("t", 9, "after")
    store.branch("t", 10, "later")
    for at_hand in (lambda: store, reopen):
        again = at_hand()
        assert entries(again, "before") == [*LOG]
        assert [hit.thread for hit in again.search("walrus", limit=9)] == ["before"] * 3
        for name in ("after", "later"):
            assert again.open(name).messages == (LOG[0], LOG[4], LOG[6], LOG[8])
            assert again.thread(name).messages == 4
            assert again.original(name, ref_of(LARGE)) is None
    again.append("later", [Restoration(9)])
    assert again.open("later").messages == (LOG[0], LOG[4], LOG[6], LOG[8]), "a branch has nothing to bring back"


def test_what_is_erased_goes_with_all_that_tells_of_it(store: Threads, reopen: Reopen) -> None:
    filled(store).pin("t", 1)
    store.pin("t", 6)
    failed = Event(id="f", kind=EventKind.TURN_FAILED, time=START, parent="s", reason="refused: 'walrus'")
    other = Event(id="u", kind=EventKind.USAGE_RECORDED, time=START, reason="title")
    store.record("t", [Event(id="s", kind=EventKind.TURN_STARTED, time=START), failed, other])
    store.keep_counts("v", {message_ref(LOG[1]): 5, message_ref(LOG[6]): 6})  # type: ignore[arg-type]
    assert store.erase("t", [2]) == {"t": (2, 3, 5, 7)}
    for at_hand in (lambda: store, reopen):
        again = at_hand()
        read = entries(again)
        assert [at for at, entry in enumerate(read) if isinstance(entry, Gone)] == [2, 3, 5, 7]
        assert (read[1], read[4], read[9]) == (LOG[1], LOG[4], Removal((2, 3, 5, 7)))
        assert again.open("t").messages == (LOG[0], LOG[1], LOG[4], LOG[6], LOG[8])
        assert again.points("t") == []
        assert [pin.order for pin in again.pins("t")] == [1, 6]
        assert found(again, "walrus") == [1]
        assert (again.thread("t").messages, again.thread("t").length) == (5, 10)
        assert again.original("t", ref_of(LARGE)) is None
        assert {event.id: event.reason for event in again.events("t")} == {"s": "", "f": "", "u": "title"}
    assert again.erase("t", [1]) == {"t": (1,)}
    assert [pin.order for pin in again.pins("t")] == [6]
    assert again.counts("v", [message_ref(LOG[1]), message_ref(LOG[6])]) == {message_ref(LOG[6]): 6}  # type: ignore[arg-type]
    assert again.erase("t", [1, 2]) == {}, "what was erased before is no error"
    again.append("t", [Restoration(9), user("a walrus again"), Point(boundary=4, summary=(user("s"),))])
    assert isinstance(entries(again)[2], Gone)
    assert found(again, "walrus") == [12]


def test_what_was_removed_before_can_be_erased(store: Threads, reopen: Reopen) -> None:
    filled(store).append("t", [Removal((1, 5, 7))])
    assert store.erase("t", [1]) == {"t": (1, 5, 7)}
    store = reopen()
    assert (store.thread("t").length, store.thread("t").messages) == (10, 6)
    store.append("t", [Restoration(9)])
    assert [at for at, entry in enumerate(entries(store)) if isinstance(entry, Gone)] == [1, 5, 7]


@pytest.mark.parametrize("order", [0, 5, 7, 99, -1])
def test_only_messages_are_erased(store: Threads, order: int) -> None:
    filled(store)
    if order == 0:
        assert store.erase("t", [0])["t"][0] == 0
        return
    with pytest.raises(StoreError, match=f"no message {order} to erase"):
        store.erase("t", [order])
    assert entries(store) == [*LOG]


def test_it_goes_from_every_thread_that_shares_it_and_from_no_other(store: Threads, reopen: Reopen) -> None:
    filled(store)
    filled(store, "other")
    store.branch("t", 5, "b")
    store.append("b", [user("on we go"), Point(boundary=4, summary=(user("[walrus]"),))])
    store.branch("b", 2, "c")
    store.branch("t", 1, "d")
    store.remove("t")
    erased = store.erase("c", [1])
    assert erased == {"c": (1,), "b": (1, 6)}
    for at_hand in (lambda: store, reopen):
        again = at_hand()
        assert entries(again, "other") == [*LOG]
        assert entries(again, "d") == [LOG[0]]
        assert entries(again, "c") == [LOG[0], Gone(), Removal((1,))]
        assert entries(again, "b") == [LOG[0], Gone(), *LOG[2:5], user("on we go"), Gone(), Removal((1, 6))]
        assert again.open("b").messages == (LOG[0], *LOG[2:5], user("on we go"))


def test_the_thread_goes_on_after_it(store: Threads, reopen: Reopen) -> None:
    filled(store).erase("t", [1])
    store.append("t", [*talk(2), point(12, "[newer]")])
    again = reopen()
    assert again.open("t").messages == (LOG[0], *point(12, "[newer]").summary, *talk(2)[2:])
    assert again.thread("t").standing == 1
    again.remove("t")
    assert found(again, "walrus otter") == []


# --- bytes ---------------------------------------------------------------------------------------

SECRETS = ("zebrafish", "quokka", "斑马鱼")
LONG = f"{SECRETS[0]} in a long result, {SECRETS[2]}\n" * 300


def contents(place: Path, store: Threads) -> bytes:
    """All that a store keeps: the bytes of its files, or what its tables hold."""
    url = getattr(getattr(store, "_database", None), "_url", None)
    if url is None:
        return b"\n".join(path.read_bytes() for path in sorted(place.rglob("*")) if path.is_file())
    with psycopg.connect(url) as link:
        tables = link.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'everlong'").fetchall()
        rows = [link.execute(f"SELECT {name}::text FROM everlong.{name}").fetchall() for (name,) in tables]  # type: ignore[arg-type]
        texts = link.execute("SELECT content FROM everlong.texts").fetchall()
        read = "\n".join(text for table in rows for (text,) in table).encode()
        return read + b"\n".join(bytes(content) for (content,) in texts)


def holds(content: bytes, word: str) -> bool:
    escaped = word.encode("ascii", "backslashreplace")
    return word.encode() in content or escaped in content or word.encode().hex().encode() in content


def test_the_words_are_in_no_byte(store: Threads, tmp_path: Path, reopen: Reopen) -> None:
    store.create("t", owner="ann")
    secret = f"my {SECRETS[0]} is called {SECRETS[1]}, {SECRETS[2]}"
    store.append("t", [*talk(30, "before")])
    store.append("t", [user(secret), calls("1", arguments=f'{{"name": "{SECRETS[1]}"}}'), result("1", LONG)])
    store.append("t", [*talk(60, "after"), point(80, f"[{SECRETS[0]} {SECRETS[2]}]")])
    store.append("t", [point(100, "x" * 3000 + SECRETS[1]), user("who?"), Recalled(184, user(SECRETS[0]))])
    store.branch("t", 70, "b")
    store.record("t", [Event(id="s", kind=EventKind.TURN_STARTED, time=START)])
    failed = Event(id="f", kind=EventKind.TURN_FAILED, time=START, parent="s", reason=f"bad word {SECRETS[1]}")
    store.record("t", [failed])
    assert store.search(SECRETS[0])
    kept = contents(tmp_path, store)
    assert isinstance(store, MemoryThreads) or all(holds(kept, word) for word in SECRETS)
    store.append("t", [Removal((60,))])
    store.erase("t", [60, 61])
    assert [word for word in SECRETS if holds(contents(tmp_path, store), word)] == []
    again = reopen()
    assert [word for word in SECRETS if again.search(word)] == []
    again.append("t", [user("more")])
    assert [word for word in SECRETS if holds(contents(tmp_path, again), word)] == []
    assert len(again.open("t").messages) == 30 * 2 + 60 * 2 + 2


# --- any log -------------------------------------------------------------------------------------

WORDS = ("walrus", "otter", "seal")


@st.composite
def acts(draw: st.DrawFn) -> list[tuple[str, int]]:
    names = st.sampled_from(["say", "say", "call", "point", "remove", "remove", "restore", "erase", "branch"])
    return draw(st.lists(st.tuples(names, st.integers(0, 40)), max_size=25))


def act(store: Threads, what: str, number: int) -> None:
    length = store.thread("t").length
    read = entries(store)
    messages = [at for at, entry in enumerate(read) if isinstance(entry, Message)]
    removals = [at for at, entry in enumerate(read) if isinstance(entry, Removal)]
    match what:
        case "say":
            store.append("t", [user(f"{WORDS[number % 3]} {number}")])
        case "call":
            store.append("t", [calls(str(number)), result(str(number), f"{WORDS[number % 3]} result")])
        case "point":
            store.append("t", [point(number % (length + 1), f"[{number}]")])
        case "remove" if messages:
            store.append("t", [Removal((messages[number % len(messages)],))])
        case "restore" if removals:
            store.append("t", [Restoration(removals[number % len(removals)])])
        case "erase" if messages:
            store.erase("t", [messages[number % len(messages)]])
        case "branch" if length:
            store.branch("t", number % (length + 1), f"b{length}-{len(store.threads())}")
        case _:
            return


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(acts())
def test_every_store_reads_what_the_simplest_one_reads(store: Threads, steps: list[tuple[str, int]]) -> None:
    simple = MemoryThreads()
    for one in (store, simple):
        for thread in one.threads():
            one.remove(thread.id)
        one.create("t")
    for what, number in steps:
        for one in (store, simple):
            act(one, what, number)
    for thread in simple.threads():
        name, known = thread.id, store.thread(thread.id)
        assert entries(store, name) == entries(simple, name)
        assert store.open(name).messages == simple.open(name).messages
        assert (known.messages, known.length, known.standing) == (thread.messages, thread.length, thread.standing)
        for word in WORDS:
            assert found(store, word, thread=name) == found(simple, word, thread=name)
