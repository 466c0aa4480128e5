"""Whatever is done to it, a SQLite store answers as the plain one in memory does, also after it was opened anew."""

import tempfile
from datetime import datetime, timedelta
from pathlib import Path

from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from everlong.core.events import Event, EventKind
from everlong.core.messages import Message
from everlong.core.points import Entry, Point, Recalled, Withdrawal
from everlong.core.refs import message_ref
from everlong.core.threads import Thread
from everlong.errors import StoreError
from everlong.store.memory import MemoryThreads
from everlong.store.sqlite import SqliteThreads
from tests.core.build import assistant, calls, result, system, user
from tests.store.engines import START

LARGE = "a large result " * 200
MESSAGES = (system("be brief"), user("hello"), user("你好"), assistant("yes"), calls("1"), result("1", LARGE))
NUMBERS = st.integers(0, 12)
MESSAGE = st.sampled_from(MESSAGES)
#: What is to be added, as (kind, number, message); the number is brought into the range of what is there.
WISHES = st.lists(st.tuples(st.sampled_from("mmmmpppwwr!"), NUMBERS, MESSAGE), max_size=4)
EVENTS = st.builds(
    lambda number, kind, parent: Event(id=f"e{number}", kind=kind, time=START, parent=f"e{parent}"),
    st.integers(0, 4),
    st.sampled_from([EventKind.SUMMARY_STARTED, EventKind.SUMMARY_APPLIED, EventKind.SUMMARY_FAILED]),
    st.integers(0, 4),
)


class Both(RuleBasedStateMachine):
    """Two stores, each told the same."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "threads.db"
        self.now = START
        self.memory = MemoryThreads(clock=self.clock)
        self.sqlite = SqliteThreads(self.path, clock=self.clock)

    def clock(self) -> datetime:
        return self.now

    def teardown(self) -> None:
        self.sqlite.close()
        self.folder.cleanup()

    def both(self, method: str, *given: object, **named: object) -> None:
        """The same answer, or the same refusal in the same words."""
        answers = []
        for store in (self.memory, self.sqlite):
            try:
                answers.append(getattr(store, method)(*given, **named))
            except StoreError as error:
                answers.append((type(error), str(error)))
        self.now += timedelta(seconds=1)
        assert answers[0] == answers[1]

    def entry(self, thread: Thread, wish: tuple[str, int, Message]) -> Entry:
        kind, number, message = wish
        points = [row.order for row, _ in self.memory.points(thread.id)] or [0]
        match kind:
            case "p":
                return Point(boundary=number % (thread.length + 1), summary=(message,))
            case "w":
                return Withdrawal(points[number % len(points)])
            case "r":
                return Recalled(number % (thread.length + 1), message)
            case "!":
                return Withdrawal(number)
            case _:
                return message

    def pick(self, number: int) -> Thread:
        """One of the threads that are there."""
        there = self.memory.threads(archived=None)
        return there[number % len(there)]

    @initialize()
    def first(self) -> None:
        self.both("create", "a", owner="ada")
        self.both("append", "a", MESSAGES, ids=[f"m{number}" for number in range(len(MESSAGES))])

    @rule(name=st.sampled_from("abc"), owner=st.sampled_from(["ada", "ben"]))
    def create(self, name: str, owner: str) -> None:
        self.both("create", name, owner=owner, title=f"of {owner}")

    @rule(one=NUMBERS, wishes=WISHES, expected=st.sampled_from([None, None, None, 0, -1]), again=st.booleans())
    def append(self, one: int, wishes: list[tuple[str, int, Message]], expected: int | None, again: bool) -> None:
        thread = self.pick(one)
        ids = [f"{thread.length + number - again}" for number in range(len(wishes))]
        entries = [self.entry(thread, wish) for wish in wishes]
        self.both("append", thread.id, entries, ids=ids, expected=thread.length if expected == 0 else expected)

    @rule(one=NUMBERS, order=NUMBERS)
    def branch(self, one: int, order: int) -> None:
        thread = self.pick(one)
        new = f"branch {len(self.memory.threads(archived=None))}"
        self.both("branch", thread.id, order % (thread.length + 2), new, title="branch")

    @rule(one=NUMBERS, archived=st.booleans())
    def change(self, one: int, archived: bool) -> None:
        self.both("change", self.pick(one).id, archived=archived, settings='{"a":1}')

    @rule(one=NUMBERS, events=st.lists(EVENTS, min_size=1, max_size=4))
    def record(self, one: int, events: list[Event]) -> None:
        self.both("record", self.pick(one).id, events)
        self.both("unfinished", self.pick(one).id)

    @rule()
    def reopen(self) -> None:
        self.sqlite.close()
        self.sqlite = SqliteThreads(self.path, clock=self.clock)

    @rule(one=NUMBERS, number=NUMBERS)
    def look(self, one: int, number: int) -> None:
        name = self.pick(one).id
        for message in MESSAGES:
            self.both("original", name, message_ref(message))
        self.both("last", name, number)
        self.both("row", name, f"{number}")
        self.both("events", name, after=f"e{number}")
        self.both("open", name, before=number)

    @invariant()
    def same_threads_and_views(self) -> None:
        self.both("threads", archived=None)
        self.both("threads", owner="ada")
        for thread in self.memory.threads(archived=None):
            assert list(self.sqlite.read(thread.id)) == list(self.memory.read(thread.id))
            assert self.sqlite.open(thread.id) == self.memory.open(thread.id)
            assert self.sqlite.points(thread.id) == self.memory.points(thread.id)


def test_sqlite_answers_as_memory_does() -> None:
    # Not shrunk: with a disk below, that takes minutes.
    few = settings(max_examples=12, stateful_step_count=20, phases=[Phase.generate])
    run_state_machine_as_test(Both, settings=few)
