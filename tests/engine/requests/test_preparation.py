"""When a compaction is due, what is restored, recalled, warned of and refused: figures on both sides of a border."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from everlong.core import Action, EventKind, Message, Point, Recalled, Role, Withdrawal
from everlong.engine.contracts import Call
from everlong.engine.engine import Engine
from everlong.engine.recall import block as recalled
from everlong.engine.requests import preparation
from everlong.engine.requests.due import reason_to_compact
from everlong.engine.settings import Settings
from everlong.engine.thread import CallContext, work_on
from everlong.engine.view import View
from everlong.errors import BudgetImpossible
from everlong.store import MemoryThreads
from everlong.summarize import Summary, encode_summary
from everlong.wire import valid
from tests.core.build import assistant, calls, result, system, user

START = datetime(2026, 1, 1, tzinfo=UTC)
CALL = Call(model="gpt-4o", max_tokens=500)


class Desk:
    """A thread, its engine and a clock that stands still."""

    def __init__(self, settings: Settings | None = None, rounds: int = 4) -> None:
        self.now = START
        chosen = Settings(window=16_000) if settings is None else settings
        self.engine = Engine(MemoryThreads(), settings=chosen, clock=lambda: self.now).blocking
        self.engine.append("t", [system("Work carefully.")])
        for number in range(rounds):
            self.engine.append(
                "t", [user(f"Question {number}: " + "word " * 90), assistant(f"{number} " + "word " * 90)]
            )
        self.engine.append("t", [user("And now?")])

    def context(self, call: Call = CALL) -> CallContext:
        """The context of a call as it is now."""
        engine = self.engine.context
        return work_on(engine, engine.state("t"), call, engine.journal("t"), "turn")

    def kinds(self) -> list[EventKind]:
        """What happened."""
        return [event.kind for event in self.engine.context.threads.events("t")]

    def point(self, **figures: int | str) -> int:
        """A compaction of the first three messages, with these figures; its order."""
        said = {"tokens_before": 900, "tokens_after": 100, "model": "gpt-4o", **figures}
        point = Point(boundary=3, summary=(user("Before."),), **said)  # type: ignore[arg-type]
        return self.engine.context.threads.append("t", [point])[0].order


def of(tokens: int) -> View:
    """A view of so many tokens."""
    return View((), (), tokens)


def test_a_compaction_is_due_above_the_threshold_and_not_at_it() -> None:
    context = Desk().context()
    threshold, limit = context.budget.threshold, context.budget.limit
    reasons = [reason_to_compact(context, of(tokens)) for tokens in (threshold, threshold + 1, limit, limit + 1)]
    assert reasons == ["", "threshold reached", "threshold reached", "threshold reached"]


def test_only_a_prompt_that_the_window_cannot_hold_is_called_larger_than_it() -> None:
    """The limit leaves out the answer and the margin: a step may go past both marks and still fit into the window."""
    context = Desk().context()
    window = context.budget.parts.window
    held = context.budget.unanchored().gauge.countable(window) - context.budget.parts.tools
    assert held > context.budget.limit
    reasons = [reason_to_compact(context, of(tokens)) for tokens in (held, held + 1)]
    assert reasons == ["threshold reached", "larger than the window"]


@pytest.mark.parametrize(("seconds", "due"), [(300, ""), (301, "cold cache")])
def test_a_cold_cache_is_one_that_is_older_than_its_time(seconds: int, due: str) -> None:
    desk = Desk(Settings(window=16_000, cold_mark=0.3, cache_seconds=300.0))
    desk.engine.prepare("t", CALL)
    desk.now += timedelta(seconds=seconds)
    context = desk.context()
    fixed = context.budget.parts.fixed
    cold = fixed + int(0.3 * (context.budget.limit - fixed))
    assert reason_to_compact(context, of(cold + 1)) == due
    assert reason_to_compact(context, of(cold)) == ""


def test_what_was_never_sent_is_in_no_cache() -> None:
    context = Desk(Settings(window=16_000, cold_mark=0.0)).context()
    assert reason_to_compact(context, of(context.budget.threshold)) == ""


def test_after_an_undo_only_what_must_be_is_compacted() -> None:
    desk = Desk()
    desk.engine.context.threads.append("t", [Withdrawal(desk.point())])
    context = desk.context()
    assert context.state.undone
    assert reason_to_compact(context, of(context.budget.threshold + 1)) == ""
    assert reason_to_compact(context, of(context.budget.limit + 1)) == "threshold reached"
    desk.point()
    assert not desk.context().state.undone


@pytest.mark.parametrize(
    ("limit", "model", "new", "reason"),
    [
        (1.0, "gpt-4o", 0.39, ""),
        (1.0, "gpt-4o", 0.41, "threshold reached"),
        (0.85, "gpt-4o", 0.39, "threshold reached"),
        (1.0, "gpt-4.1", 0.39, "threshold reached"),
        (1.0, "gpt-4o", 1.5, "larger than the window"),
    ],
    ids=["too little is new", "enough", "made for a smaller window", "for another model", "it must be"],
)
def test_law6_another_compaction_waits_until_enough_is_new(limit: float, model: str, new: float, reason: str) -> None:
    desk = Desk()
    desk.point()
    budget = desk.context().budget
    tokens = max(budget.threshold, int(new * budget.limit)) + 1
    left = tokens - int(new * budget.movable)
    desk.point(tokens_after=left, limit=int(limit * budget.empty_limit), model=model)
    assert reason_to_compact(desk.context(), of(tokens)) == reason


@pytest.mark.parametrize(("share", "restored"), [(0.79, True), (0.81, False)])
def test_a_point_is_withdrawn_where_the_window_is_a_quarter_larger(share: float, restored: bool) -> None:
    desk = Desk()
    desk.point(limit=int(share * desk.context().budget.compacted_limit))
    preparation._restore(context := desk.context())
    assert (context.state.opened.point is None) is restored


def test_a_point_stays_where_what_it_covers_would_not_fit_below_the_threshold() -> None:
    for more, restored in ((0, True), (1, False)):
        desk = Desk()
        desk.point()
        context = desk.context()
        since = context.budget.counter.messages(context.state.since)
        desk.point(limit=1, tokens_before=context.budget.threshold - since + more)
        points = len(desk.engine.context.threads.points("t"))
        preparation._restore(desk.context())
        standing = [row for row, stands in desk.engine.context.threads.points("t") if stands]
        assert (len(standing) < points) is restored, more


def test_a_point_that_knows_no_size_is_never_withdrawn_for_it() -> None:
    desk = Desk()
    desk.point(limit=0)
    preparation._restore(context := desk.context())
    assert context.state.opened.point is not None


@pytest.mark.parametrize(("earlier", "now", "warned"), [(0, 1, False), (0, 2, True), (1, 2, True), (2, 3, False)])
def test_a_warning_comes_once_when_nine_tenths_of_the_threshold_are_passed(
    earlier: int, now: int, warned: bool
) -> None:
    desk = Desk()
    context = desk.context()
    mark = int(0.9 * context.budget.threshold)
    tokens = [0, mark, mark + 1, mark + 2]
    context.state = replace(context.state, view=of(tokens[earlier]))
    with context.journal:
        preparation._warn(context, of(tokens[now]))
    assert (EventKind.CONTEXT_WARNED in desk.kinds()) is warned


def test_pins_may_take_their_share_and_no_more() -> None:
    for more in (0, 1):
        desk = Desk()
        desk.engine.pin("t", 1)
        desk.engine.pin("t", text="Remember the milk.")
        context = desk.context()
        counter = context.budget.counter
        taken = counter.message(context.state.since[0]) + counter.message(user("Remember the milk."))
        settings = replace(context.settings, pin_share=(taken - more + 0.5) / context.budget.messages)
        context.settings = settings
        if more:
            with pytest.raises(BudgetImpossible) as told:
                preparation._check_pins(context)
            assert {name for name, _ in told.value.parts} == {"pinned text", "pinned message 1"}
        else:
            preparation._check_pins(context)


def test_a_question_is_looked_up_once_and_only_if_no_compaction_knew_it() -> None:
    desk = Desk()
    state = desk.context().state
    last = state.opened.rows[-1]
    assert recalled._unsent_question(state) == last
    desk.engine.context.threads.append("t", [Recalled(last.order, user("From before."))])
    assert recalled._unsent_question(desk.context().state) is None
    desk.engine.append("t", [user("Another?")])
    assert recalled._unsent_question(desk.context().state) is not None
    desk.point()
    assert recalled._unsent_question(desk.context().state) is None
    desk.engine.append("t", [assistant("Yes.")])
    assert recalled._unsent_question(desk.context().state) is None


CONTEXT = user("<<<BEGIN_OPENCLAW_INTERNAL_CONTEXT>>>\nnone\n<<<END_OPENCLAW_INTERNAL_CONTEXT>>>")
ACTION = assistant("Thought: I look.\n<code>\nprint(read('pier.txt'))\n</code>")
RECALLS = {
    "a question": ((user("Which pier?"),), "Which pier?"),
    "a question, context behind it": ((user("Which pier?"), CONTEXT), "Which pier?"),
    "a result in a user's role": ((ACTION, user("Observation:\nRow 7: the pier has 40 berths.")), None),
    "a result, context behind it": ((calls("1"), result("1"), CONTEXT), None),
    "the next task behind a result": ((ACTION, user("Observation:\nDone.\nNew task:\nWhich pier?")), "Observation:"),
}


@pytest.mark.parametrize(("added", "question"), RECALLS.values(), ids=RECALLS.keys())
def test_what_is_recalled_for_are_words_of_the_user(added: tuple[Message, ...], question: str | None) -> None:
    desk = Desk()
    desk.engine.append("t", [assistant("Noted."), *added])
    found = recalled._unsent_question(desk.context().state)
    entry = None if found is None else found.entry
    assert (entry is None) if question is None else (isinstance(entry, Message) and entry.text.startswith(question))


@pytest.mark.parametrize(("fmt", "length"), [("anthropic", True), ("openai-chat", False)])
def test_a_reply_limit_is_written_where_the_format_needs_one(fmt: str, length: bool) -> None:
    prepared = Desk().engine.prepare("t", Call(model="gpt-4o", fmt=fmt))
    assert (prepared.request.max_tokens is not None) is length


def test_a_compaction_by_hand_that_saves_a_twentieth_or_less_is_not_made() -> None:
    desk = Desk(rounds=0)
    assert desk.engine.compact("t", CALL) is None
    assert not desk.engine.context.threads.points("t")
    assert desk.engine.undo("t") is None


def test_a_view_that_was_made_for_another_format_is_made_again() -> None:
    desk = Desk(rounds=0)
    broken = "an id, with blanks"  # which one provider takes and another refuses
    desk.engine.append(
        "t", [calls(broken), result(broken), assistant("Done."), user("Next?"), assistant("Yes."), user("So?")]
    )
    assert desk.engine.prepare("t", CALL).request.messages[2].calls[0].id == broken
    other = desk.engine.prepare("t", replace(CALL, fmt="anthropic"))
    assert valid("anthropic", other.request.messages)
    assert desk.engine.prepare("t", CALL).request.messages[2].calls[0].id == broken


@pytest.mark.parametrize(("taken", "share", "budget"), [(0, 1.0, 2_000), (0, 0.05, None), (-300, 1.0, 300)])
def test_what_is_recalled_takes_the_least_of_its_bounds(taken: int, share: float, budget: int | None) -> None:
    """Never more than a fixed number of tokens, its share of the limit, or what is left below the threshold."""
    desk = Desk(Settings(window=16_000, recall_share=share), rounds=0)
    for number in range(12):
        lamps = [f"The lamp of quay {number} burns at berth {number * 40 + berth}." for berth in range(18)]
        desk.engine.append("t", [user(f"What of the lamps of quay {number}?"), assistant("\n\n".join(lamps))])
    point = Point(boundary=26, summary=(user("Before."),), tokens_before=9_000, tokens_after=100, model="gpt-4o")
    desk.engine.context.threads.append("t", [point])
    desk.engine.append("t", [user("At which berth does the lamp of a quay burn?")])
    context = desk.context()
    most = int(share * context.budget.movable) if budget is None else budget
    assert recalled.recall_needed(context, of(context.budget.threshold + taken if taken else 0))
    (entry,) = [row.entry for row in context.state.opened.rows if isinstance(row.entry, Recalled)]
    assert 0.9 * most < context.budget.counter.message(entry.message) <= most


#: preset -> the role of the message that holds the summary where everything fits, and where it does not
PLACES: dict[str, tuple[Role | None, Role | None]] = {
    "nanobot": (None, Role.SYSTEM),
    "nanobot-v3": (None, Role.SYSTEM),
    "static-buffer": (Role.SYSTEM, Role.SYSTEM),
    "chatbox": (Role.USER, Role.USER),
    "simple": (Role.USER, Role.USER),
}


@pytest.mark.parametrize("preset", PLACES)
@pytest.mark.parametrize("full", [False, True], ids=["all fits", "too long"])
def test_where_a_preset_that_assembles_every_request_puts_the_summary(preset: str, full: bool) -> None:
    desk = Desk(Settings(window=8_000, preset=preset), rounds=60 if full else 4)
    summary = Summary(language="en", context="Lamps were compared.", covers=5)
    point = Point(boundary=5, summary=(user("-"),), reason="summary", account=encode_summary(summary))
    desk.engine.context.threads.append("t", [point])
    sent = desk.engine.prepare("t", CALL).request.messages
    roles = [message.role for message in sent if "Lamps were compared." in message.text]
    assert roles == [role for role in [PLACES[preset][full]] if role is not None]
    covered = any("Question 0:" in message.text for message in sent)
    assert covered is (not full and preset != "chatbox")
    assert sent[-1] == user("And now?")


def test_a_point_names_every_message_that_left_with_its_order_in_the_thread() -> None:
    desk = Desk(rounds=12)
    point = desk.engine.compact("t", CALL)
    assert point is not None
    gone = {edit.at for edit in point.edits if edit.action is Action.DROP}
    assert gone
    sent = desk.engine.prepare("t", CALL).request.messages
    rows = {row.order: row.entry for row in desk.engine.context.threads.read("t")}
    assert all(isinstance(rows[order], Message) and rows[order] not in sent for order in gone)
    left = {order for order, entry in rows.items() if isinstance(entry, Message) and entry not in sent}
    assert left == gone
    assert all(desk.engine.recall("t", edit.ref).original for edit in point.edits if edit.action is Action.DROP)


def test_a_request_reports_what_its_newest_point_did() -> None:
    desk = Desk(rounds=12)
    point = desk.engine.compact("t", CALL)
    assert point is not None
    assert point.edits
    assert desk.engine.prepare("t", CALL).edits == point.edits


def test_a_request_that_is_assembled_again_reports_only_its_own_edits() -> None:
    desk = Desk(Settings(window=16_000, preset="simple"), rounds=12)
    own = desk.engine.prepare("t", CALL).edits
    assert own
    edit = replace(own[0], reason="of a point")
    desk.engine.context.threads.append("t", [Point(boundary=3, summary=(user("-"),), edits=(edit,))])
    assert edit not in desk.engine.prepare("t", CALL).edits
