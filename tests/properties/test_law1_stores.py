"""Law 1 over stores: whatever is done to threads, in any order, what was appended reads back equal for ever.

The same calls go to the store under test and to the one in memory; both must say the same, at every step and after
closing and opening again.
"""

import os
import tempfile
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings, strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from everlong.core import (
    CallId,
    Entry,
    Event,
    EventKind,
    Message,
    Point,
    Recalled,
    Role,
    Row,
    Text,
    ToolCall,
    ToolResult,
    Withdrawal,
)
from everlong.engine import Threads
from everlong.errors import StoreError
from everlong.store import MemoryThreads
from tests.store.engines import ENGINES, START, Clock, Engine

SOAK = bool(os.environ.get("EVERLONG_SOAK"))
TEXTS = ("hello", "你好，世界", "NUL \x00", "half \ud83d", "line\u2028end\r\n", "x" * 3_000, "")
texts = st.sampled_from(TEXTS)
messages = st.one_of(
    st.builds(lambda role, text: Message(role, (Text(text),)), st.sampled_from([Role.USER, Role.ASSISTANT]), texts),
    st.builds(lambda text: Message(Role.ASSISTANT, (ToolCall(CallId("1"), "read", text),)), texts),
    st.builds(lambda text: Message(Role.TOOL, (ToolResult(CallId("1"), (Text(text), Text("b"))),)), texts),
    st.builds(lambda text: Message(Role.SYSTEM, (Text(text),), name="ann", extra='{"a": 1}'), texts),
)
kinds = st.sampled_from([EventKind.SUMMARY_STARTED, EventKind.SUMMARY_APPLIED, EventKind.TURN_FAILED])
where = st.integers(0, 1_000)  # taken modulo what there is


class TwoStores(RuleBasedStateMachine):
    """The store under test and the model, side by side."""

    engine: Engine

    @initialize()
    def begin(self) -> None:
        self.left = ExitStack()
        folder = self.left.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True))
        self.opener = self.left.enter_context(self.engine.place(Path(folder)))
        self.store: Threads = self.opener(Clock())
        self.model = MemoryThreads(clock=Clock())
        self.seen: dict[str, tuple[Row, ...]] = {}
        self.numbers = iter(range(1_000_000))
        self._both("create", "t0", owner="ann")
        self.seen["t0"] = ()

    def teardown(self) -> None:
        self.store.close()
        self.left.close()

    def _both(self, call: str, *given: object, **named: object) -> object:
        """The same call to both; either both do it or both refuse."""
        try:
            expected = getattr(self.model, call)(*given, **named)
        except StoreError as error:
            with pytest.raises(type(error)):
                getattr(self.store, call)(*given, **named)
            return None
        getattr(self.store, call)(*given, **named)
        return expected

    def _thread(self, pick: int) -> str:
        return list(self.seen)[pick % len(self.seen)]

    def _append(self, thread: str, entries: list[Entry], expected: int | None = None) -> None:
        ids = [f"row {next(self.numbers)}" for _ in entries]
        self._both("append", thread, entries, ids=ids, expected=expected)

    @rule(pick=where, said=st.lists(messages, min_size=1, max_size=4))
    def say(self, pick: int, said: list[Message]) -> None:
        self._append(self._thread(pick), list(said))

    @rule(pick=where, said=messages)
    def say_twice(self, pick: int, said: Message) -> None:
        thread, name = self._thread(pick), f"row {next(self.numbers)}"
        self._both("append", thread, [said], ids=[name])
        self._both("append", thread, [said], ids=[name])

    @rule(pick=where, boundary=where, text=texts)
    def compact(self, pick: int, boundary: int, text: str) -> None:
        thread = self._thread(pick)
        length = self.model.thread(thread).length
        summary = (Message(Role.USER, (Text(text),)),)
        self._append(thread, [Point(boundary=boundary % (length + 1), summary=summary)], length)

    @rule(pick=where, which=where)
    def withdraw(self, pick: int, which: int) -> None:
        thread = self._thread(pick)
        points = self.model.points(thread)
        self._append(thread, [Withdrawal(points[which % len(points)][0].order if points else 0)])

    @rule(pick=where, before=where, text=texts)
    def recall(self, pick: int, before: int, text: str) -> None:
        thread = self._thread(pick)
        length = self.model.thread(thread).length
        self._append(thread, [Recalled(before % (length + 1), Message(Role.USER, (Text(text),)))])

    @rule(pick=where, wrong=st.sampled_from([Point(boundary=5_000, summary=()), Withdrawal(5_000)]))
    def try_what_cannot_be(self, pick: int, wrong: Entry) -> None:
        self._append(self._thread(pick), [Message(Role.USER, (Text("lost"),)), wrong])

    @precondition(lambda self: len(self.seen) < 4)
    @rule(pick=where, at=where)
    def branch(self, pick: int, at: int) -> None:
        thread, new = self._thread(pick), f"t{len(self.seen)}"
        order = at % (self.model.thread(thread).length + 1)
        self._both("branch", thread, order, new)
        self.seen[new] = self.seen[thread][:order]

    @rule(pick=where, at=where)
    def pin(self, pick: int, at: int) -> None:
        self._both("pin", self._thread(pick), at % 12)

    @rule(pick=where, text=texts)
    def pin_text(self, pick: int, text: str) -> None:
        self._both("pin", self._thread(pick), None, text)

    @rule(pick=where, title=texts, archived=st.booleans())
    def change(self, pick: int, title: str, archived: bool) -> None:
        self._both("change", self._thread(pick), title=title, archived=archived)

    @rule(pick=where, said=st.lists(messages, min_size=1, max_size=2), behind=st.integers(-1, 1))
    def say_on_what_was_read(self, pick: int, said: list[Message], behind: int) -> None:
        thread = self._thread(pick)
        self._append(thread, list(said), self.model.thread(thread).length - behind)

    @rule(pick=where, wishes=st.lists(st.tuples(st.integers(0, 5), kinds, st.integers(0, 5)), min_size=1, max_size=4))
    def record(self, pick: int, wishes: list[tuple[int, EventKind, int]]) -> None:
        thread = self._thread(pick)
        batch = [Event(id=f"e{name}", kind=kind, time=START, parent=f"e{parent}") for name, kind, parent in wishes]
        self._both("record", thread, batch)
        assert self.store.events(thread) == self.model.events(thread)
        assert self.store.unfinished(thread) == self.model.unfinished(thread)

    @rule(pick=where, start=st.integers(-2, 12), count=st.integers(-2, 12))
    def look(self, pick: int, start: int, count: int) -> None:
        thread = self._thread(pick)
        for call, *given in (("last", count), ("read", start, start + count)):
            here, there = (list(getattr(store, call)(thread, *given)) for store in (self.store, self.model))
            assert [(row.id, row.entry) for row in here] == [(row.id, row.entry) for row in there]
        assert self.store.open(thread, start).messages == self.model.open(thread, start).messages

    @rule()
    def close_and_open(self) -> None:
        self.store.close()
        self.store = self.opener(Clock())

    @invariant()
    def both_say_the_same_and_nothing_changed(self) -> None:
        for thread, seen in self.seen.items():
            rows = tuple(self.store.read(thread))
            expected = tuple(self.model.read(thread))
            assert [(row.order, row.id, row.entry) for row in rows] == [(r.order, r.id, r.entry) for r in expected]
            assert rows[: len(seen)] == seen, "a row that was read before is another one now"
            self.seen[thread] = rows
            self._same_view(thread, len(rows))

    def _same_view(self, thread: str, length: int) -> None:
        for before in {None, length // 2}:
            assert self.store.open(thread, before).messages == self.model.open(thread, before).messages
        standing = [(row.order, stands) for row, stands in self.model.points(thread)]
        assert [(row.order, stands) for row, stands in self.store.points(thread)] == standing
        pins = [(pin.order, pin.text) for pin in self.model.pins(thread)]
        assert [(pin.order, pin.text) for pin in self.store.pins(thread)] == pins
        here, there = self.store.thread(thread), self.model.thread(thread)
        assert (here.title, here.archived, here.length, here.messages, here.points, here.parent) == (
            *(there.title, there.archived, there.length, there.messages, there.points),
            there.parent,
        )


CHECKED = [engine for engine in ENGINES if engine.name != "memory"]


@pytest.mark.parametrize("engine", CHECKED, ids=lambda engine: engine.name)
def test_law1_no_sequence_of_calls_changes_what_was_appended(engine: Engine) -> None:
    machine = type(f"TwoStoresOf{engine.name}", (TwoStores,), {"engine": engine})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=100 if SOAK else 8,
            stateful_step_count=20,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow],
        ),
    )
