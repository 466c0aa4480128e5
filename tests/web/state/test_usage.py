"""What was spent and saved, from events."""

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from everlong.core import Event, EventKind
from everlong.engine import Savings
from everlong.store import MemoryThreads
from everlong.web.state import usage
from everlong.web.state.settings import OWNER
from everlong.web.state.usage import Usage, entries_of
from everlong.windows import window
from tests.web.running import an_app

NOW = datetime(2026, 3, 18, 12, tzinfo=UTC)


def spent(number: int, prompt: int, *, day: int = 0, reason: str = "", cached: int = 0) -> Event:
    return Event(
        id=f"u{number}",
        kind=EventKind.USAGE_RECORDED,
        time=NOW - timedelta(days=day),
        model="gpt-4o",
        reason=reason,
        tokens_before=prompt,
        tokens_after=10,
        cost=0.5,
        data=f'{{"cached":{cached}}}',
    )


def cut(number: int, before: int, after: int, kind: EventKind = EventKind.CONTEXT_COMPRESSED) -> Event:
    return Event(id=f"c{number}", kind=kind, time=NOW, tokens_before=before, tokens_after=after)


def test_what_was_left_out_is_saved_with_every_later_request_until_it_is_undone() -> None:
    undone = cut(9, 400, 1_000, EventKind.CONTEXT_RESTORED)
    events = [
        spent(1, 1_000),
        cut(1, 1_000, 400),
        spent(2, 420),
        spent(3, 440, reason="title"),
        undone,
        spent(4, 1_100),
    ]
    savings = Savings()
    entries = entries_of(events, savings)
    assert [entry.saved_tokens for entry in entries] == [0, 0, 600, 0, 0]
    assert savings.left_out == 0
    price = window("gpt-4o").prices.input or 0.0
    assert entries[2].saved_cost == pytest.approx(600 * price / 1_000_000)


def test_days_models_and_threads_add_up() -> None:
    threads = MemoryThreads(clock=lambda: NOW)
    threads.create("a", owner=OWNER, title="A")
    threads.create("b", owner=OWNER, title="B")
    threads.create("of-a-client", owner="client")
    threads.record("a", [spent(1, 100, day=1, cached=40), spent(2, 200), cut(1, 900, 300)])
    threads.record("b", [spent(3, 50), spent(4, 7, day=45)])
    threads.record("of-a-client", [spent(5, 9_999)])
    usage = Usage(threads, None)
    for _ in range(2):  # what was read before is not counted twice
        told = usage.of(3, NOW)
    days = told["days"]
    assert isinstance(days, list)
    assert [(day["day"], day["prompt"], day["cached"], day["compactions"]) for day in days] == [  # type: ignore[index,call-overload]
        ("2026-03-16", 0, 0, 0),
        ("2026-03-17", 100, 40, 0),
        ("2026-03-18", 250, 0, 1),
    ]
    assert told["models"] == [
        {
            "model": "gpt-4o",
            "calls": 3,
            "prompt": 350,
            "cached": 40,
            "output": 30,
            "cost": 1.5,
            "summary_calls": 0,
            "summary_cost": 0.0,
            "saved_tokens": 0,
            "saved_cost": 0.0,
        },
    ]
    assert [(row["id"], row["prompt"]) for row in told["threads"]] == [("a", 300), ("b", 50)]  # type: ignore[index,union-attr,call-overload]


def test_calls_and_cost_of_summaries_stand_beside_those_of_the_conversation() -> None:
    threads = MemoryThreads(clock=lambda: NOW)
    threads.create("a", owner=OWNER, title="A")
    two = replace(spent(2, 300, reason="summary"), data='{"cached":0,"calls":2}')
    threads.record("a", [spent(1, 100), two, spent(3, 20, reason="title")])
    told = Usage(threads, None).of(1, NOW)
    for rows in (told["days"], told["models"], told["threads"]):
        [row] = rows  # type: ignore[misc]
        figures = (row["calls"], row["cost"], row["summary_calls"], row["summary_cost"])  # type: ignore[call-overload,index]
        assert figures == (4, 1.5, 2, 0.5)


def test_usage_of_a_turn_is_told_over_the_api() -> None:
    with an_app() as (app, _):
        page = app.page()
        page.say(page.thread(), "hello there")
        told = page.get("/everlong/api/usage?days=7")
        assert len(told["days"]) == 7
        assert told["days"][-1]["prompt"] > 0
        assert told["success"] == {
            "overflow_errors": 0,
            "recovered": 0,
            "compactions": 0,
            "threads": 1,
            "threads_by_hand": 1,
            "median_length": 3,
            "longest": 3,
        }


MONEY = ("cost", "summary_cost", "saved_cost")
COUNTED = ("calls", "prompt", "cached", "output", "summary_calls", "saved_tokens")
KINDS = st.sampled_from(["asked", "summary", "title", "cut", "undone", "again", "overflow"])
HAPPENED = st.lists(st.tuples(st.sampled_from("abcdef"), KINDS, st.integers(0, 9_000), st.integers(0, 4)), max_size=40)


def happened(number: int, kind: str, size: int, day: int) -> Event:
    """An event of that kind."""
    match kind:
        case "asked":
            return replace(
                spent(number, size, day=day, cached=size // 2), model=("gpt-4o", "claude-sonnet-4-5")[size % 2]
            )
        case "summary" | "title":
            return spent(number, size, day=day, reason=kind)
        case "cut":
            return cut(number, size + 100, 100)
        case "again":
            return replace(cut(number, size + 100, 100), reason="preset simple")
        case "undone":
            return cut(number, 100, size + 100, EventKind.CONTEXT_RESTORED)
        case _:
            return replace(cut(number, size, size, EventKind.OVERFLOW_DETECTED))


@settings(max_examples=60, deadline=None)
@given(events=HAPPENED, most=st.sampled_from([1, 2, 200]))
def test_days_models_and_threads_add_up_to_the_same(events: list[tuple[str, str, int, int]], most: int) -> None:
    threads = MemoryThreads(clock=lambda: NOW)
    for name in "abcdef":  # d works for a, e for d, and f is an earlier version of b
        above = {"d": {"parent": {"thread": "a"}}, "e": {"parent": {"thread": "d"}}, "f": {"version_of": "b"}}
        threads.create(name, owner=OWNER, title=name, metadata=json.dumps(above.get(name, {})))
    for number, (name, kind, size, day) in enumerate(events):
        threads.record(name, [happened(number, kind, size, day)])
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(usage, "MOST_THREADS", most)
        told: Any = Usage(threads, None).of(5, NOW)
    assert {row["id"] for row in told["threads"]} <= {"a", "b", "c", ""}
    for figure in (*COUNTED, *MONEY):
        sums = [sum(row[figure] for row in told[rows]) for rows in ("days", "models", "threads")]
        assert sums == [pytest.approx(sums[0])] * 3, figure
    made = sum(kind == "cut" for _, kind, _, _ in events)
    assert sum(day["compactions"] for day in told["days"]) == told["success"]["compactions"] == made
    assert sum(row["compactions"] for row in told["threads"]) == made


def test_two_pages_that_ask_at_once_count_an_event_once() -> None:
    threads = MemoryThreads(clock=lambda: NOW)
    threads.create("a", owner=OWNER)
    threads.record("a", [spent(number, 10) for number in range(400)])
    counted = Usage(threads, None)
    with ThreadPoolExecutor(8) as pool:
        told: list[Any] = list(pool.map(lambda _: counted.of(1, NOW), range(16)))
    assert {one["days"][0]["prompt"] for one in told} == {4_000}


def test_what_a_thread_has_cost_is_still_spent_when_it_is_deleted() -> None:
    with an_app() as (app, _):
        page = app.page()
        kept, gone = page.thread("Kept"), page.thread("Gone")
        for thread in (kept, gone, gone):
            page.say(thread, "How much?")
        before = page.get("/everlong/api/usage")
        page.do("DELETE", f"/everlong/api/threads/{gone}")
        after = page.get("/everlong/api/usage")
        assert (after["days"], after["models"]) == (before["days"], before["models"])
        assert [row["id"] for row in after["threads"]] == [kept, ""]
        assert "Gone" not in str(app.state.threads.facts("usage of removed threads"))
