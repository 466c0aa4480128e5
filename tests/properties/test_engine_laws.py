"""The laws on every request that the engine prepares, whatever happens to a thread between two of them.

A life is a list of integers, spent like dice: turns with tools, pins, compactions and undoing them, other models with
other windows and formats, refusals, other processes.
"""

import os
from dataclasses import dataclass, field

from hypothesis import given, settings, strategies as st

from everlong.core import History, Message, Point, Protection, Role, Row, ToolResult, protected
from everlong.engine import Call, Engine, Prepared, Settings
from everlong.errors import BudgetImpossible, ContextOverflow, NotRecovered
from everlong.store import MemoryThreads
from everlong.tokens import Counter
from everlong.wire import Usage, repair_history, valid
from tests.core.build import assistant, calls, result, system, user
from tests.properties.histories import FORMATS, Dice

THREAD = "life"
WINDOWS = (6_000, 3_000, 24_000)
MODELS = ("gpt-4o", "a-model-of-mine")
SIZES = (5, 40, 300, 900)  # lines of a tool result
SYSTEM = "You are careful.\nNever touch vendor/."
REPLY = 300
COUNTERS = {model: Counter(model) for model in MODELS}


def lines(number: int, count: int) -> str:
    return "\n".join(f"value_{number}_{line} = {number * line}" for line in range(count))


@dataclass
class Life:
    """A thread, the engine that runs it, and what was sent last."""

    reports: bool = True
    threads: MemoryThreads = field(default_factory=MemoryThreads)
    call: Call = field(default_factory=lambda: Call(model=MODELS[0], served=WINDOWS[0], max_tokens=REPLY))
    number: int = 0
    found: set[str] = field(default_factory=set)
    stored: tuple[Row, ...] = ()
    #: What was sent last, and for which state of cuts, pins, model and format: while that stays, requests extend.
    sent: tuple[tuple[object, ...], History] | None = None

    def __post_init__(self) -> None:
        self.engine = self.another()
        self.threads.create(THREAD)
        self.threads.append(THREAD, [system(SYSTEM)])

    def another(self) -> Engine:
        return Engine(self.threads, settings=Settings(pin_share=1.0))

    def add(self, *messages: Message) -> None:
        self.threads.append(THREAD, list(messages))

    def next(self) -> int:
        self.number += 1
        return self.number

    def state(self) -> tuple[object, ...]:
        known = self.threads.thread(THREAD)
        withdrawn = sum(not stands for _, stands in self.threads.points(THREAD))
        return (known.points, withdrawn, self.threads.pins(THREAD), self.call)

    def ask(self, *, refused: bool = False) -> None:
        """One call with all its checks; nothing is sent where what must stay cannot fit."""
        blocking = self.engine.blocking
        try:
            prepared = blocking.prepare(THREAD, self.call)
        except BudgetImpossible:
            self.sent = None
            return
        self.check(prepared)
        self.check_another(prepared)
        if refused:
            try:
                smaller = blocking.recover(prepared, ContextOverflow("prompt is too long"))
            except NotRecovered:
                self.sent = None
                return
            assert smaller.counted < prepared.counted
            self.check(smaller)
            prepared = smaller
        true = COUNTERS[self.call.model].messages(prepared.request.messages)
        usage = Usage(prompt=true, output=10) if self.reports else None
        assert blocking.record_usage(prepared, usage) is None

    def check(self, prepared: Prepared) -> None:
        messages, fmt = prepared.request.messages, self.call.fmt
        rows = tuple(self.threads.read(THREAD))
        assert rows[: len(self.stored)] == self.stored, "law 1"
        self.stored = rows
        counted = COUNTERS[self.call.model].messages(messages)
        assert counted == prepared.counted
        assert counted + (prepared.request.max_tokens or 0) <= prepared.budget.window, "law 2"
        assert valid(fmt, messages), "law 3"
        self.check_protected(prepared, rows)
        self.check_accounted(prepared, rows)
        state = self.state()
        if self.sent is not None and self.sent[0] == state:
            before = self.sent[1]
            assert messages[: len(before)] == before, "law 6"
        self.sent = (state, messages)

    def check_protected(self, prepared: Prepared, rows: tuple[Row, ...]) -> None:
        messages, fmt = prepared.request.messages, self.call.fmt
        said = tuple(row.entry for row in rows if isinstance(row.entry, Message))
        whole = repair_history(said, fmt).messages
        shortened = {edit.at for edit in prepared.edits}
        orders = [row.order for row in rows if isinstance(row.entry, Message)]
        sent = _Texts(messages)
        for at, why in protected(said).items():
            if why is Protection.UNREAD and orders[at] in shortened:
                continue  # told of in an edit; allowed only where it could not fit
            assert said[at] in messages or said[at] in whole, f"law 4: {why}"
            assert _texts(said[at]) <= sent, f"law 4: {why}"
        for pin in self.threads.pins(THREAD):
            pinned = pin.text if pin.order is None else said[orders.index(pin.order)].text
            assert pinned in sent, "law 4: pin"

    def check_accounted(self, prepared: Prepared, rows: tuple[Row, ...]) -> None:
        point = self.threads.open(THREAD).point
        boundary = point.entry.boundary if point is not None and isinstance(point.entry, Point) else 0
        told = {edit.at for edit in prepared.edits}
        sent = _Texts(prepared.request.messages)
        for row in rows:
            if isinstance(row.entry, Message) and row.order >= boundary and row.order not in told:
                assert _texts(row.entry) <= sent, "law 5"
        for ref in {edit.ref for edit in prepared.edits if edit.ref is not None} - self.found:
            assert self.threads.original(THREAD, ref) is not None, "law 5"
            self.found.add(ref)

    def check_another(self, prepared: Prepared) -> None:
        """A process that knows nothing but the store prepares the same bytes."""
        points = self.threads.thread(THREAD).points
        again = self.another().blocking.prepare(THREAD, self.call)
        self.stored = tuple(self.threads.read(THREAD))
        if self.reports and self.threads.thread(THREAD).points > points:
            return  # without the last usage it reckons more carefully, and may cut a little earlier
        assert again.request.messages == prepared.request.messages, "same in, same out"

    def step(self, dice: Dice) -> None:
        match dice.throw(12):
            case 0 | 1 | 2 | 3 | 4 | 5:
                self.turn(dice)
            case 6:
                orders = [row.order for row in self.stored if _is_question(row)]
                if dice.throw(2) or not orders:
                    self.engine.blocking.pin(THREAD, text=f"pinned text {self.next()}")
                elif len(self.threads.pins(THREAD)) < 3:
                    self.engine.blocking.pin(THREAD, dice.pick(orders))
            case 7:
                for pin in self.threads.pins(THREAD)[:1]:
                    self.engine.blocking.unpin(THREAD, pin.id)
            case 8:
                self.compact()
            case 9:
                self.engine.blocking.undo(THREAD)
            case 10:
                model = dice.pick(MODELS)
                window, fmt = dice.pick(WINDOWS), dice.pick(FORMATS)
                self.call = Call(model=model, served=window, fmt=fmt, endpoint=f"at {window}", max_tokens=REPLY)
            case _:
                self.engine = self.another()

    def compact(self) -> None:
        points = self.threads.thread(THREAD).points
        try:
            point = self.engine.blocking.compact(THREAD, self.call)
        except BudgetImpossible:
            return
        assert (point is None) == (self.threads.thread(THREAD).points == points)

    def turn(self, dice: Dice) -> None:
        self.add(user(f"Question {self.next()}: what is value_{dice.throw(9)}_{dice.throw(9)}?"))
        for _ in range(dice.throw(3)):
            self.ask(refused=dice.throw(12) == 11)
            names = [f"call_{self.next()}" for _ in range(1 + dice.throw(2))]
            self.add(calls(*names))
            self.add(*(result(name, lines(self.next(), dice.pick(SIZES))) for name in names))
        self.ask(refused=dice.throw(12) == 11)
        self.add(assistant(f"Answer {self.next()}. " + "It is so. " * dice.throw(60)))


def _is_question(row: Row) -> bool:
    return isinstance(row.entry, Message) and row.entry.role is Role.USER


def _texts(message: Message) -> set[str]:
    found = {part.text for part in message.parts if isinstance(part, ToolResult)}
    return found | ({message.text} if message.text else set())


class _Texts(set[str]):
    """Texts of messages; a text counts as there also where a repair joined it to its neighbour."""

    def __init__(self, messages: History) -> None:
        super().__init__(text for message in messages for text in _texts(message))

    def __contains__(self, text: object) -> bool:
        return super().__contains__(text) or any(str(text) in other for other in self)

    def __ge__(self, others: object) -> bool:
        return isinstance(others, set) and all(other in self for other in others)


@settings(max_examples=400 if os.environ.get("EVERLONG_SOAK") else 40)
@given(st.lists(st.integers(0, 2**48), min_size=1, max_size=14), st.booleans())
def test_the_laws_hold_on_every_request_of_a_life(throws: list[int], reports: bool) -> None:
    life = Life(reports)
    for throw in throws:
        life.step(Dice(throw))
    life.turn(Dice(0))
