"""Contract: events beside the messages; every start has one outcome or is known to be unfinished."""

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from everlong.core import OUTCOMES, Event, EventKind
from everlong.engine import Threads
from everlong.errors import StoreError
from tests.store.contract.entries import HOSTILE_TEXTS

Reopen = Callable[[], Threads]
NOON = datetime(2026, 3, 4, 12, 0, 0, 123_456, tzinfo=UTC)
FULL = Event(
    id="e1",
    kind=EventKind.CONTEXT_COMPRESSED,
    time=NOON,
    parent="turn",
    reason="high mark 高",
    model="gpt-4o",
    messages_before=40,
    messages_after=12,
    tokens_before=90_000,
    tokens_after=0,
    cost=0.0125,
    data='{"max_messages": 12, "note": "\\u0000"}',
)


@pytest.fixture
def thread(store: Threads) -> str:
    return store.create("t").id


def event(name: str, kind: EventKind = EventKind.USAGE_RECORDED, parent: str = "") -> Event:
    return Event(id=name, kind=kind, time=NOON, parent=parent)


def test_events_come_back_in_order_and_whole(store: Threads, thread: str, reopen: Reopen) -> None:
    recorded = [FULL, event("e3"), event("e2"), event("事件")]
    store.record(thread, recorded[:2])
    store.record(thread, recorded[2:])
    store.record(thread, [])
    assert store.events(thread) == recorded
    assert reopen().events(thread) == recorded


@pytest.mark.parametrize("text", [text for name, text in HOSTILE_TEXTS.items() if name != "300 kB"])
def test_words_in_events_come_back_to_the_byte(store: Threads, thread: str, reopen: Reopen, text: str) -> None:
    odd = Event(id=f"e{text[:100]}", kind=EventKind.RECALLED, time=NOON, parent=text[:100], reason=text, model=text)
    store.record(thread, [odd])
    assert reopen().events(thread) == [odd]


def test_events_after_one_and_of_some_kinds(store: Threads, thread: str) -> None:
    turn = event("a", EventKind.TURN_STARTED)
    recorded = [turn, FULL, event("b"), event("c", EventKind.TURN_FINISHED, "a")]
    store.record(thread, recorded)
    assert store.events(thread, after="e1") == recorded[2:]
    assert store.events(thread, after="c") == []
    assert store.events(thread, kinds=["turn.started", "context.compressed"]) == recorded[:2]
    assert store.events(thread, after="a", kinds=[EventKind.TURN_FINISHED]) == recorded[3:]
    assert store.events(thread, kinds=["recalled"]) == []


def test_an_event_is_kept_once(store: Threads, thread: str, reopen: Reopen) -> None:
    store.record(thread, [FULL, event("b")])
    store.record(thread, [FULL, event("b"), event("c"), event("c")])
    assert reopen().events(thread) == [FULL, event("b"), event("c")]


def test_events_are_of_their_thread(store: Threads, thread: str) -> None:
    store.create("other")
    store.record(thread, [event("a", EventKind.TURN_STARTED)])
    store.record("other", [event("a", EventKind.TURN_STARTED), event("b", EventKind.TURN_FAILED, "a")])
    assert len(store.events("other")) == 2
    assert [one.id for one in store.unfinished(thread)] == ["a"]
    assert store.unfinished("other") == []


@pytest.mark.parametrize(("start", "outcome"), [(start, end) for start, ends in OUTCOMES.items() for end in ends])
def test_a_start_is_unfinished_until_its_outcome(
    store: Threads, thread: str, reopen: Reopen, start: EventKind, outcome: EventKind
) -> None:
    store.record(thread, [event("a", start), event("other", start), event("child", parent="a")])
    assert [one.id for one in store.unfinished(thread)] == ["a", "other"]
    store.record(thread, [event("end", outcome, "a")])
    assert [one.id for one in store.unfinished(thread)] == ["other"]
    assert [one.id for one in reopen().unfinished(thread)] == ["other"]


def test_a_start_within_a_start_ends_alone(store: Threads, thread: str) -> None:
    store.record(thread, [event("turn", EventKind.TURN_STARTED), event("over", EventKind.OVERFLOW_DETECTED, "turn")])
    store.record(thread, [event("saved", EventKind.OVERFLOW_RECOVERED, "over")])
    assert [one.id for one in store.unfinished(thread)] == ["turn"]
    store.record(thread, [event("done", EventKind.TURN_FINISHED, "turn")])
    assert store.unfinished(thread) == []


SECONDS = {
    "the same outcome": EventKind.SUMMARY_APPLIED,
    "another outcome": EventKind.SUMMARY_FAILED,
    "skipped": EventKind.SUMMARY_SKIPPED,
}


@pytest.mark.parametrize("kind", SECONDS.values(), ids=SECONDS)
def test_a_second_outcome_is_refused_with_its_batch(
    store: Threads, thread: str, reopen: Reopen, kind: EventKind
) -> None:
    kept = [event("a", EventKind.SUMMARY_STARTED), event("b", EventKind.SUMMARY_APPLIED, "a")]
    store.record(thread, kept)
    with pytest.raises(StoreError):
        store.record(thread, [event("x"), event("c", kind, "a"), event("y")])
    again = reopen()
    assert again.events(thread) == kept
    again.record(thread, [event("x")])
    assert again.events(thread) == [*kept, event("x")]


def test_two_outcomes_in_one_batch_are_refused(store: Threads, thread: str) -> None:
    batch = [
        event("a", EventKind.TURN_STARTED),
        event("b", EventKind.TURN_FINISHED, "a"),
        event("c", EventKind.TURN_FAILED, "a"),
    ]
    with pytest.raises(StoreError):
        store.record(thread, batch)
    assert store.events(thread) == []
    store.record(thread, batch[:2])
    assert store.unfinished(thread) == []


#: name -> what was recorded before, and an outcome that does not follow from it.
WITHOUT_START = {
    "no parent": ((), event("end", EventKind.TURN_FINISHED)),
    "a parent that is not there": ((), event("end", EventKind.SUMMARY_FAILED, "gone")),
    "a start of another kind": ((event("a", EventKind.TURN_STARTED),), event("end", EventKind.SUMMARY_APPLIED, "a")),
    "no start": ((event("a"),), event("end", EventKind.TURN_FAILED, "a")),
    "itself": ((), event("end", EventKind.TURN_FAILED, "end")),
}


@pytest.mark.parametrize(("before", "outcome"), WITHOUT_START.values(), ids=WITHOUT_START)
def test_an_outcome_without_its_start_is_refused_with_its_batch(
    store: Threads, thread: str, reopen: Reopen, before: tuple[Event, ...], outcome: Event
) -> None:
    store.record(thread, before)
    with pytest.raises(StoreError, match="has no matching"):
        store.record(thread, [event("x"), outcome])
    assert reopen().events(thread) == list(before)


def test_a_start_comes_before_its_outcome_in_a_batch(store: Threads, thread: str) -> None:
    start, end = event("a", EventKind.TURN_STARTED), event("b", EventKind.TURN_FINISHED, "a")
    with pytest.raises(StoreError, match="has no matching"):
        store.record(thread, [end, start])
    store.record(thread, [start, end])
    assert store.events(thread) == [start, end]


def test_what_is_no_outcome_may_name_any_parent(store: Threads, thread: str, reopen: Reopen) -> None:
    free = [event("a", parent="of another thread"), event("b", EventKind.TURN_STARTED, "a turn elsewhere")]
    store.record(thread, free)
    assert reopen().events(thread) == free


def test_an_outcome_said_again_is_no_second_outcome(store: Threads, thread: str) -> None:
    batch = [event("a", EventKind.TURN_STARTED), event("b", EventKind.TURN_FINISHED, "a")]
    store.record(thread, batch)
    store.record(thread, batch)
    assert store.events(thread) == batch


def test_a_branch_has_a_history_of_its_own(store: Threads, thread: str) -> None:
    store.record(thread, [event("a", EventKind.TURN_STARTED)])
    store.branch(thread, 0, "b")
    assert store.events("b") == store.unfinished("b") == []
