"""Requirement lines about stored conversations, on every engine: N1-4, N3-11, SB-4, CB-1.3 … 1.6, CS-3, CS-6, CS-7."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from everlong.core import Event, EventKind, Message, Point, Role, Withdrawal, encode, pairs_of, reply_budget
from everlong.engine import Threads
from everlong.errors import InputError, StoreError
from everlong.store import (
    HistorySettings,
    MemoryThreads,
    exported,
    history,
    import_session,
    session_budget,
    sessions_in,
)
from everlong.tokens import Counter
from everlong.wire import read
from tests.core.build import assistant, calls, result, system, user
from tests.store.contract.entries import point, talk
from tests.store.engines import ENGINES, Clock, Opener

COUNTER = Counter("gpt-4o")
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


# --- N1-4: history by token budget -------------------------------------------------------------------


def test_N1_4_without_a_budget_the_last_fifty_messages(store: Threads) -> None:
    store.append("t", talk(100))
    assert history(store, "t") == talk(100)[-50:]
    assert history(store, "t", max_messages=10) == talk(100)[-10:]


def test_N1_4_an_empty_session_is_an_empty_list(store: Threads) -> None:
    assert history(store, "t") == history(store, "t", max_tokens=1_000, counter=COUNTER) == ()


def test_N1_4_never_above_the_budget_newest_first(store: Threads) -> None:
    store.append("t", talk(20))
    whole = COUNTER.messages(talk(20)[-6:])
    assert history(store, "t", max_tokens=whole, counter=COUNTER) == talk(20)[-6:]
    assert history(store, "t", max_tokens=whole - 1, counter=COUNTER) == talk(20)[-4:]


def test_N1_4_never_above_fifty_messages_even_with_room_left(store: Threads) -> None:
    store.append("t", talk(40))
    assert len(history(store, "t", max_tokens=10_000_000, counter=COUNTER)) == 50


def test_N1_4_the_system_text_is_not_history(store: Threads) -> None:
    store.append("t", [system("be kind"), *talk(2)])
    assert history(store, "t") == talk(2)


@pytest.mark.parametrize(
    ("window", "reserve", "system_tokens", "budget"),
    [(64_000, 0.15, 2_400, 50_000), (65_536, 0.15, 3_000, 50_705), (200_000, 0.15, 0, 168_000), (2_000, 0.5, 500, 0)],
)
def test_N1_4_the_budget_is_the_window_without_reserve_system_text_and_2_000(
    window: int, reserve: float, system_tokens: int, budget: int
) -> None:
    assert session_budget(window, reserve=reserve, system=system_tokens) == budget


# --- N3-11: whole pairs ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("window", "reply", "budget"), [(32_768, 8_192, 20_480), (128_000, 4_096, 119_808), (8_192, 8_192, 4_096)]
)
def test_N3_11_the_budget_is_the_window_without_the_reply_and_4_096_at_least_4_096(
    window: int, reply: int, budget: int
) -> None:
    assert reply_budget(window, reply) == budget


def test_N3_11_an_odd_number_of_messages_orphans_nobody(store: Threads) -> None:
    store.append("t", talk(10))
    assert history(store, "t", max_messages=7) == talk(10)[-6:]
    assert history(store, "t", max_messages=1) == ()


def test_N3_11_a_pair_that_does_not_fit_goes_whole(store: Threads) -> None:
    store.append("t", [user("short"), assistant("long " * 500), *talk(1)])
    assert history(store, "t", max_tokens=400, counter=COUNTER) == talk(1)
    store.append("t", [user("short"), assistant("long " * 500)])
    assert history(store, "t", max_tokens=400, counter=COUNTER) == ()


def test_N3_11_a_question_keeps_its_tool_use(store: Threads) -> None:
    turn = (user("look"), calls("1", "2"), result("1"), result("2"), assistant("seen"))
    store.append("t", [*talk(3), *turn])
    assert history(store, "t", max_messages=6) == turn
    assert history(store, "t", max_messages=7) == (*talk(3)[-2:], *turn)


def test_N3_11_of_a_long_loop_the_newest_steps_stay_with_their_results(store: Threads) -> None:
    loop = [message for turn in range(40) for message in (calls(f"{turn}"), result(f"{turn}", f"output {turn}"))]
    store.append("t", [user("do it all"), *loop])
    kept = history(store, "t", max_messages=51)
    assert kept == tuple(loop[-50:])
    assert len(pairs_of(kept)) == 25


rounds = st.lists(st.tuples(st.integers(0, 3), st.integers(1, 60)), max_size=12)


@given(rounds, st.integers(1, 30), st.none() | st.integers(0, 600))
@settings(max_examples=60, deadline=None)
def test_N3_11_whatever_was_said_the_history_is_whole_rounds_within_both_limits(
    made: list[tuple[int, int]], most: int, budget: int | None
) -> None:
    said: list[Message] = []
    for number, (tools, words) in enumerate(made):
        said.append(user(f"question {number} " + "word " * words))
        for tool in range(tools):
            said += [calls(f"{number}.{tool}"), result(f"{number}.{tool}", "output " * words)]
        said.append(assistant(f"answer {number}"))
    store = MemoryThreads()
    store.create("t")
    store.append("t", said)
    kept = history(store, "t", max_messages=most, max_tokens=budget, counter=COUNTER)
    assert kept == tuple(said)[len(said) - len(kept) :]
    assert len(kept) <= most
    assert budget is None or COUNTER.messages(kept) <= budget
    assert len(pairs_of(kept)) == sum(len(message.results) for message in kept)
    tools_in_last = made[-1][0] if made else 0
    assert not kept or kept[0].role is Role.USER or tools_in_last


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


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, HistorySettings()),
        ({"EVERLONG_HISTORY_MESSAGES": "12"}, HistorySettings(messages=12)),
        (
            {"EVERLONG_HISTORY_MESSAGES": "12", "EVERLONG_HISTORY_CHARACTERS": " 4000 "},
            HistorySettings(messages=12, characters=4_000),
        ),
        ({"EVERLONG_HISTORY_MESSAGES": "", "HISTORY_MESSAGES": "7"}, HistorySettings()),
    ],
    ids=["nothing said", "the window", "both", "empty is not said"],
)
def test_CS_7_settings_come_from_the_environment(environment: dict[str, str], expected: HistorySettings) -> None:
    assert HistorySettings.from_environment(environment) == expected


@pytest.mark.parametrize("value", ["many", "0", "-1", "1.5"])
def test_CS_7_a_setting_that_makes_no_sense_is_refused_by_name(value: str) -> None:
    with pytest.raises(InputError, match="EVERLONG_HISTORY_MESSAGES"):
        HistorySettings.from_environment({"EVERLONG_HISTORY_MESSAGES": value})


def test_a_session_goes_out_and_comes_back(store: Threads) -> None:
    store.append("t", [*talk(3), point(4, "two turns")])
    document = read(exported(store, "t", "nanobot"))
    assert [message.text for message in document.messages if "two turns" not in message.text] == [
        message.text for message in talk(3)
    ]
    assert document.boundaries == (4,)
