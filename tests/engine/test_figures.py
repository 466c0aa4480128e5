"""The figures of a compaction: fixed when it happens, the same in point, event and preview; and they add up."""

import json
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from everlong.core import EventKind, Figures, Message, Point, Role, Row
from everlong.engine import Call, Engine, Savings, Settings
from everlong.engine.blocking_engine import BlockingEngine
from everlong.engine.histories.deleted import remove_messages, restore_messages
from everlong.engine.preview import apportioned
from everlong.errors import BudgetImpossible
from everlong.store import MemoryThreads
from everlong.wire import Usage
from tests.core.build import assistant, calls, result, system, user

WINDOW = 4_000
#: What people and programs do to a thread, in any order.
ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("talk"), st.integers(1, 260)),
        st.tuples(st.just("read"), st.integers(1, 900)),
        st.tuples(st.sampled_from(["pin", "compact", "undo"]), st.just(0)),
    ),
    min_size=1,
    max_size=30,
)


def play(actions: list[tuple[str, int]], model: str, seen: dict[int, Any]) -> BlockingEngine:
    """Do it all; whenever a compaction is there its figures must be those that were seen first."""
    engine = Engine(MemoryThreads(), settings=Settings(window=WINDOW, reserve=500)).blocking
    engine.append("t", [system("Be brief."), user("Mend the ledger.")])
    for number, (action, size) in enumerate(actions):
        try:
            match action:
                case "talk":
                    engine.append("t", [user(f"question {number} " + "word " * size)])
                case "read":
                    text = "\n".join(f"line {number}.{at} of the ledger" for at in range(size))
                    engine.append("t", [calls(f"c{number}"), result(f"c{number}", text), user(f"and {number}?")])
                case "pin":
                    engine.pin("t", 1)
                case "compact":
                    engine.compact("t", Call(model=model))
                case _:
                    engine.undo("t")
            prepared = engine.prepare("t", Call(model=model))
            engine.record_usage(prepared, Usage(prompt=int(prepared.tokens * 0.9), output=9))
            engine.append("t", [assistant(f"answer {number}")])
        except BudgetImpossible:
            continue
        for row, _ in engine.context.threads.points("t"):
            assert isinstance(row.entry, Point)
            assert seen.setdefault(row.order, row.entry.figures) == row.entry.figures
    return engine


def said_before(rows: list[Row], boundary: int) -> int:
    """The messages before a place, counted by hand; the system text at the front is none of them."""
    messages = [row for row in rows if isinstance(row.entry, Message) and row.order < boundary]
    return sum(not (isinstance(row.entry, Message) and row.entry.role is Role.SYSTEM) for row in messages)


@settings(max_examples=40, deadline=None)
@given(actions=ACTIONS, model=st.sampled_from(["gpt-4o", "nobody-knows-me"]))
def test_whatever_happens_each_compaction_has_one_count_and_one_size(
    actions: list[tuple[str, int]], model: str
) -> None:
    seen: dict[int, Figures | None] = {}
    engine = play(actions, model, seen)
    threads = engine.context.threads
    rows = list(threads.read("t", 0))
    points = [row.entry for row, _ in threads.points("t") if isinstance(row.entry, Point)]
    cuts = [event for event in threads.events("t") if event.kind is EventKind.CONTEXT_COMPRESSED]
    assert len(points) == len(cuts)
    for point, cut in zip(points, cuts, strict=True):
        told = point.figures
        assert told is not None
        assert told.messages == said_before(rows, point.boundary)
        assert min(told.kept, told.shortened, told.left_out) >= 0
        assert (cut.tokens_before, cut.tokens_after) == (told.before, told.after) == point.sizes
        assert json.loads(cut.data)["messages"] == told.messages
        assert sum(json.loads(cut.data)[name] for name in ("kept", "shortened", "left_out")) == told.messages
    try:
        preview = engine.preview("t", Call(model=model))
    except BudgetImpossible:
        return
    assert sum(preview.parts.values()) == preview.tokens
    standing = [row.entry for row, stands in threads.points("t") if stands and isinstance(row.entry, Point)]
    newest = standing[-1].figures if standing else None
    assert preview.covered == (0 if newest is None else newest.messages)


def test_the_size_of_a_compaction_is_what_the_meter_showed() -> None:
    engine = Engine(MemoryThreads(), settings=Settings(window=WINDOW, reserve=500)).blocking
    call = Call(model="nobody-knows-me")
    engine.append("t", [system("Be brief."), user("Mend the ledger.")])
    for number in range(12):
        engine.append("t", [user(f"question {number} " + "word " * 60), assistant("an answer " * 20)])
    prepared = engine.prepare("t", call)
    engine.record_usage(prepared, Usage(prompt=int(prepared.tokens * 0.8), output=9))
    before = engine.preview("t", call).tokens
    point = engine.compact("t", call)
    assert point is not None
    assert point.sizes == (before, engine.preview("t", call).tokens)


def test_a_point_of_an_earlier_version_is_counted_by_its_thread() -> None:
    threads = MemoryThreads()
    engine = Engine(threads, settings=Settings(window=WINDOW, reserve=500)).blocking
    engine.append("t", [system("Be brief."), *(user(f"question {number}") for number in range(6))])
    threads.append("t", [Point(boundary=4, summary=(user("In short."),), tokens_before=90, tokens_after=40)])
    engine.append("t", [user("and then?")])
    assert engine.preview("t", Call(model="gpt-4o")).covered == 3


@given(st.integers(0, 10**7), st.dictionaries(st.text(max_size=3), st.integers(0, 10**6), max_size=9))
def test_parts_add_up_to_their_total(total: int, parts: dict[str, int]) -> None:
    shown = apportioned(total, parts)
    assert sum(shown.values()) == (total if any(parts.values()) else 0)
    whole = sum(parts.values())
    for name, size in parts.items():
        assert whole == 0 or abs(shown.get(name, 0) - size * total / whole) < 1


@pytest.mark.parametrize(
    ("total", "parts", "shown"),
    [
        (10, {"a": 1, "b": 1, "c": 1}, {"a": 4, "b": 3, "c": 3}),
        (10, {"a": 0, "b": 7}, {"b": 10}),
        (0, {"a": 5}, {}),
        (7, {}, {}),
    ],
    ids=["rounded up once", "an empty part", "nothing", "no parts"],
)
def test_how_a_total_is_shared(total: int, parts: dict[str, int], shown: dict[str, int]) -> None:
    assert apportioned(total, parts) == shown


def test_a_compaction_that_goes_with_a_deleted_message_saves_no_more_until_it_is_back() -> None:
    engine = Engine(MemoryThreads(), settings=Settings(window=WINDOW, reserve=500)).blocking
    call = Call(model="gpt-4o")
    engine.append("t", [system("Be brief."), user("Mend the ledger.")])
    for number in range(12):
        engine.append("t", [user(f"question {number} " + "word " * 60), assistant("an answer " * 20)])
    point = engine.compact("t", call)
    assert point is not None
    spared = point.sizes[0] - point.sizes[1]

    def left_out() -> int:
        savings = Savings()
        for event in engine.context.threads.events("t"):
            savings.after(event)
        return savings.left_out

    assert left_out() == spared
    remove_messages(engine.context, "t", [4])
    assert left_out() == 0
    restore_messages(engine.context, "t", [4])
    assert left_out() == spared
    assert sum(event.kind is EventKind.CONTEXT_COMPRESSED for event in engine.context.threads.events("t")) == 1
