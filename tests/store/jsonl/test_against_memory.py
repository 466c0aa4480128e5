"""Whatever is done to it, and whoever rewrites its files, a JSONL store answers as the plain one in memory does."""

import tempfile
from datetime import datetime, timedelta
from pathlib import Path

from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from everlong.core import Entry, Event, EventKind, Point, Recalled, Withdrawal, message_ref
from everlong.errors import StoreError
from everlong.store.jsonl import JsonlThreads
from everlong.store.memory import MemoryThreads
from tests.core.build import assistant, calls, result, system, user
from tests.store.contract.entries import EVERYTHING
from tests.store.engines import START
from tests.store.jsonl.session_files import NanobotSession

LARGE = "a large result " * 200
MESSAGES = (
    system("be brief"),
    user("hello"),
    user("你\u2028好 \ud83d"),
    assistant("yes"),
    calls("1", "2"),
    result("1", LARGE),
    EVERYTHING,
)
NAMES = st.sampled_from(["a", "b", "c:d/.."])
POSITIONS = st.integers(0, 12)

ENTRIES: st.SearchStrategy[Entry] = st.one_of(
    st.sampled_from(MESSAGES),
    st.sampled_from(MESSAGES),
    st.builds(lambda at, said: Point(boundary=at, summary=(said,)), POSITIONS, st.sampled_from(MESSAGES)),
    st.builds(Withdrawal, POSITIONS),
    st.builds(Recalled, POSITIONS, st.sampled_from(MESSAGES)),
)
EVENTS = st.builds(
    lambda number, kind, parent: Event(id=f"e{number}", kind=kind, time=START, parent=f"e{parent}"),
    st.integers(0, 9),
    st.sampled_from([EventKind.SUMMARY_STARTED, EventKind.SUMMARY_APPLIED, EventKind.SUMMARY_FAILED]),
    st.integers(0, 9),
)


class Both(RuleBasedStateMachine):
    """Two stores, each told the same; a second JSONL store looks on."""

    def __init__(self) -> None:
        super().__init__()
        self.place = tempfile.TemporaryDirectory()
        self.folder = Path(self.place.name)
        self.now = START
        self.memory = MemoryThreads(clock=self.clock)
        self.jsonl = JsonlThreads(self.folder, clock=self.clock)

    def clock(self) -> datetime:
        return self.now

    def teardown(self) -> None:
        warnings = self.jsonl.warnings
        self.jsonl.close()
        self.place.cleanup()
        assert warnings == ()

    def both(self, method: str, *given: object, **named: object) -> None:
        """The same answer, or the same refusal in the same words."""
        answers = []
        for store in (self.memory, self.jsonl):
            try:
                answers.append(getattr(store, method)(*given, **named))
            except StoreError as error:
                answers.append((type(error), str(error)))
        self.now += timedelta(seconds=1)
        assert answers[0] == answers[1]

    @initialize()
    def first(self) -> None:
        self.both("create", "a", owner="ada")

    @rule(name=NAMES, owner=st.sampled_from(["ada", "ben"]))
    def create(self, name: str, owner: str) -> None:
        self.both("create", name, owner=owner, title=f"of {owner}")

    @rule(name=NAMES, entries=st.lists(ENTRIES, max_size=4), first=st.integers(0, 20), expected=st.none() | POSITIONS)
    def append(self, name: str, entries: list[Entry], first: int, expected: int | None) -> None:
        ids = [f"r{number}" for number in range(first, first + len(entries))]
        self.both("append", name, entries, ids=ids, expected=expected)

    @rule(name=NAMES, order=POSITIONS, new=NAMES)
    def branch(self, name: str, order: int, new: str) -> None:
        self.both("branch", name, order, new, title="branch")

    @rule(name=NAMES, archived=st.booleans())
    def change(self, name: str, archived: bool) -> None:
        self.both("change", name, archived=archived, settings='{"a":1}')

    @rule(name=NAMES, events=st.lists(EVENTS, max_size=3))
    def record(self, name: str, events: list[Event]) -> None:
        self.both("record", name, events)

    @rule(rebuild=st.booleans())
    def reopen(self, rebuild: bool) -> None:
        self.jsonl.close()
        if rebuild:
            (self.folder / ".everlong-index.db").unlink()
        self.jsonl = JsonlThreads(self.folder, clock=self.clock)

    @rule(name=NAMES)
    def nanobot_saves(self, name: str) -> None:
        if any(thread.id == name for thread in self.memory.threads(archived=None)):
            NanobotSession.load(self.folder, name).save(self.folder)

    @rule(name=NAMES, entry=st.sampled_from(MESSAGES))
    def another_process_appends(self, name: str, entry: Entry) -> None:
        if any(thread.id == name for thread in self.memory.threads(archived=None)):
            with JsonlThreads(self.folder, clock=self.clock) as other:
                (row,) = other.append(name, [entry])
            self.memory.append(name, [entry], ids=[row.id])
            self.now += timedelta(seconds=1)

    @rule(name=NAMES, start=POSITIONS, stop=st.none() | POSITIONS)
    def look(self, name: str, start: int, stop: int | None) -> None:
        for message in MESSAGES:
            self.both("original", name, message_ref(message))
        self.both("last", name, start)
        self.both("row", name, f"r{start}")
        self.both("points", name)
        self.both("events", name, after=f"e{start}")
        self.both("unfinished", name)
        self.both("open", name, before=stop)

    @invariant()
    def same_threads_and_views(self) -> None:
        self.both("threads", archived=None)
        self.both("threads", owner="ada")
        for thread in self.memory.threads(archived=None):
            assert list(self.jsonl.read(thread.id)) == list(self.memory.read(thread.id))
            assert self.jsonl.open(thread.id) == self.memory.open(thread.id)


def test_jsonl_answers_as_memory_does() -> None:
    run_state_machine_as_test(Both, settings=settings(max_examples=15, stateful_step_count=15))
