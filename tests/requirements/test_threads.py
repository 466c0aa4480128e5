"""Requirement lines about stored conversations, on every engine: N1-4, N3-11, SB-4, CB-1.3 … 1.6, CS-3, CS-6."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from everlong.core import Event, EventKind, Message, Point, Withdrawal, encode, reply_budget, session_budget
from everlong.engine import Threads
from everlong.errors import StoreError
from everlong.store import (
    exported,
    import_session,
    sessions_in,
)
from everlong.wire import read
from tests.core.build import system, user
from tests.store.contract.entries import point, talk
from tests.store.engines import ENGINES, Clock, Opener

NOON = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)


@pytest.fixture(params=ENGINES, ids=lambda engine: engine.name)
def opener(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opener]:
    with request.param.place(tmp_path) as opener:
        yield opener


@pytest.fixture
def store(opener: Opener) -> Iterator[Threads]:
    with opener(Clock()) as store:
        store.create("t")
        yield store


# --- N1-4, N3-11: the budgets of a history ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("window", "reserve", "system_tokens", "budget"),
    [(64_000, 0.15, 2_400, 50_000), (65_536, 0.15, 3_000, 50_705), (200_000, 0.15, 0, 168_000), (2_000, 0.5, 500, 0)],
)
def test_N1_4_the_budget_is_the_window_without_reserve_system_text_and_2_000(
    window: int, reserve: float, system_tokens: int, budget: int
) -> None:
    assert session_budget(window, reserve=reserve, system=system_tokens) == budget


@pytest.mark.parametrize(
    ("window", "reply", "budget"), [(32_768, 8_192, 20_480), (128_000, 4_096, 119_808), (8_192, 8_192, 4_096)]
)
def test_N3_11_the_budget_is_the_window_without_the_reply_and_4_096_at_least_4_096(
    window: int, reply: int, budget: int
) -> None:
    assert reply_budget(window, reply) == budget


# --- SB-4: the summary is kept with the session --------------------------------------------------------


def test_SB_4_the_summary_is_restored_on_load_and_evicted_messages_stay(opener: Opener) -> None:
    with opener(Clock()) as store:
        store.create("t")
        store.append("t", [*talk(3), point(4, "[summary] two turns")])
    with opener(Clock()) as store:
        assert store.open("t").messages == (user("[summary] two turns"), *talk(3)[4:])
        assert [row.entry for row in store.last("t", 10)] == list(talk(3))


def test_SB_4_a_nanobot_session_keeps_its_summary_in_its_metadata_object(store: Threads) -> None:
    store.append("t", [*talk(3), point(4, "two turns")])
    header = json.loads(exported(store, "t", "nanobot").splitlines()[0])
    assert header["metadata"]["_last_summary"]["text"] == "two turns"
    assert header["last_consolidated"] == 4
    assert "summary" not in header


@pytest.mark.parametrize("place", ["metadata", "top"])
def test_SB_4_a_summary_is_read_from_the_metadata_and_from_the_top_of_the_line(store: Threads, place: str) -> None:
    header: dict[str, object] = {"_type": "metadata", "key": "cli:direct", "last_consolidated": 2}
    header |= {"metadata": {"_last_summary": {"text": "we met"}}} if place == "metadata" else {"summary": "we met"}
    lines = [header, *({"role": message.role.value, "content": message.text} for message in talk(2))]
    (session,) = sessions_in("\n".join(map(json.dumps, lines)).encode(), "file")
    imported = import_session(store, session)
    assert (imported.thread, imported.messages, imported.points) == ("cli:direct", 4, 1)
    sent = store.open("cli:direct").messages
    assert "we met" in sent[0].text
    assert [message.text for message in sent[1:]] == [message.text for message in talk(2)[2:]]


# --- CB-1: compaction points ---------------------------------------------------------------------------


def test_CB_1_3_stored_messages_never_change_and_all_are_still_shown(store: Threads) -> None:
    rows = store.append("t", talk(4))
    stored = [encode(row.entry) for row in rows if isinstance(row.entry, Message)]
    store.append("t", [point(4), *talk(1), point(8), Withdrawal(8)])
    assert tuple(store.read("t", 0, 8)) == rows
    assert [encode(row.entry) for row in store.last("t", 100)[:8] if isinstance(row.entry, Message)] == stored


def test_CB_1_4_a_point_has_its_summary_boundary_and_time_and_there_may_be_many(store: Threads) -> None:
    for turn in range(5):
        store.append("t", talk(1, f"topic {turn}"))
        store.append("t", [point(store.thread("t").length, f"summary {turn}")], ids=[f"point {turn}"])
    points = store.points("t")
    assert [row.id for row, _ in points] == [f"point {turn}" for turn in range(5)]
    for turn, (row, stands) in enumerate(points):
        assert stands
        assert isinstance(row.entry, Point)
        assert (row.entry.summary, row.entry.boundary) == ((user(f"summary {turn}"),), row.order)
        assert row.time > points[max(0, turn - 1)][0].time or turn == 0
    assert store.thread("t").points == 5


def test_CB_1_5_what_is_sent_starts_after_the_newest_boundary_with_its_summary_in_front(store: Threads) -> None:
    store.append("t", [system("be kind"), *talk(3), point(3, "older"), *talk(1, "later"), point(8, "newer")])
    assert store.open("t").messages == (system("be kind"), user("newer"), *talk(1, "later"))


def test_CB_1_6_each_thread_has_its_own_state_and_can_be_listed_and_archived(store: Threads) -> None:
    store.create("u", title="second")
    for name in "tu":
        store.append(name, talk(2, name))
    store.append("t", [point(4, "only here")])
    assert store.open("t").messages == (user("only here"),)
    assert store.open("u").messages == talk(2, "u")
    assert [(thread.id, thread.points) for thread in store.threads()] == [("t", 1), ("u", 0)]
    store.change("u", archived=True)
    assert [thread.id for thread in store.threads()] == ["t"]


def test_CB_1_6_the_conversation_before_any_point_can_be_opened_from_the_list(store: Threads) -> None:
    store.append("t", [*talk(2), point(2, "one"), *talk(1, "more"), point(5, "two"), user("last")])
    (first, _), (second, _) = store.points("t")
    assert store.open("t", before=first.order).messages == talk(2)
    assert store.open("t", before=second.order).messages == (user("one"), *talk(2)[2:], *talk(1, "more"))
    assert store.open("t").messages == (user("two"), *talk(1, "more"), user("last"))


# --- CS ------------------------------------------------------------------------------------------------


def test_CS_3_the_last_n_of_a_chat_in_time_order(store: Threads) -> None:
    store.create("other")
    for turn in range(6):
        store.append("t", [user(f"t {turn}")])
        store.append("other", [user(f"other {turn}")])
    rows = store.last("t", 3)
    assert [row.entry for row in rows] == [user("t 3"), user("t 4"), user("t 5")]
    assert [row.time for row in rows] == sorted(row.time for row in rows)


def test_CS_6_a_compression_is_kept_between_its_turn_and_the_outcome_as_its_child(store: Threads) -> None:
    counts = {"original_count": 40, "compressed_count": 12, "max_messages": 12, "max_chars_per_message": 4_000}
    turn = Event(id="turn", kind=EventKind.TURN_STARTED, time=NOON)
    cut = Event(
        id="cut",
        kind=EventKind.CONTEXT_COMPRESSED,
        time=NOON,
        parent="turn",
        messages_before=40,
        messages_after=12,
        data=json.dumps(counts),
    )
    done = Event(id="done", kind=EventKind.TURN_FINISHED, time=NOON, parent="turn")
    store.record("t", [turn])
    store.record("t", [cut])
    store.record("t", [done])
    assert [event.kind for event in store.events("t")] == ["turn.started", "context.compressed", "turn.finished"]
    (kept,) = store.events("t", kinds=["context.compressed"])
    assert kept.parent == "turn"
    assert json.loads(kept.data) == counts
    with pytest.raises(StoreError):
        store.record("t", [Event(id="again", kind=EventKind.TURN_FAILED, time=NOON, parent="turn")])


def test_a_session_goes_out_and_comes_back(store: Threads) -> None:
    store.append("t", [*talk(3), point(4, "two turns")])
    document = read(exported(store, "t", "nanobot"))
    assert [message.text for message in document.messages if "two turns" not in message.text] == [
        message.text for message in talk(3)
    ]
    assert document.boundaries == (4,)
