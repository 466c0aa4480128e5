"""What was spent and saved, from events."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from everlong.core import Event, EventKind
from everlong.store import MemoryThreads
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
    entries, left = entries_of(events, 0, None)
    assert [entry.saved_tokens for entry in entries] == [0, 0, 600, 0, 0]
    assert left == 0
    price = window("gpt-4o").prices.input or 0.0
    assert entries[2].saved_cost == 600 * price / 1_000_000


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
