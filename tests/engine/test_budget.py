"""Where a cut is due and where it goes: by price, by window, by what one wants to pay."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings, strategies as st

from everlong.core import EventKind
from everlong.engine.budget import Anchor, budget_of, target_share, window_of, writing_weight
from everlong.engine.contracts import Call
from everlong.engine.engine import Engine
from everlong.engine.requests.due import due_at
from everlong.engine.settings import HIGHEST_THRESHOLD, LOWEST_THRESHOLD, Settings
from everlong.engine.summaries.due import is_due_when_idle, style_of
from everlong.errors import BudgetImpossible
from everlong.llm import ScriptedModel, Window, reads_files
from everlong.store import MemoryThreads
from everlong.windows import Prices, Registry
from tests.core.build import assistant, system, user
from tests.engine.talking import Talk

ANTHROPIC, HALF, PLAIN = Prices(3.0, 15.0, 0.3, 3.75), Prices(2.5, 10.0, 1.25), Prices(3.0, 15.0)
TOOLS = ('{"name": "look", "description": "' + "looks for something " * 100 + '"}',)


@pytest.mark.parametrize(
    ("window", "room", "prices", "low"),
    [
        (64_000, 43_000, ANTHROPIC, 0.28),
        (200_000, 180_000, ANTHROPIC, 0.25),
        (64_000, 43_000, HALF, 0.5),
        (64_000, 43_000, PLAIN, 0.5),
        (64_000, 43_000, Prices(), 0.28),
        (16_000, 10_000, ANTHROPIC, 0.5),
        (32_000, 20_000, ANTHROPIC, 0.4),
    ],
    ids=["a tenth", "large", "half price", "no cache", "nobody says", "small: half stays", "8 000 tokens stay"],
)
def test_how_deep_a_cut_goes(window: int, room: int, prices: Prices, low: float) -> None:
    assert target_share(window, room, prices, 0.9) == pytest.approx(low)


def test_a_read_that_costs_nothing_divides_nothing() -> None:
    assert writing_weight(Prices(0.0, 0.0, 0.0, 0.0)) > 0


@given(
    window=st.integers(2_000, 1_000_000),
    cap=st.none() | st.integers(1, 1_000_000),
    threshold=st.floats(LOWEST_THRESHOLD, HIGHEST_THRESHOLD),
    low=st.none() | st.floats(0.001, HIGHEST_THRESHOLD),
    tools=st.booleans(),
)
@settings(max_examples=150, deadline=None)
def test_marks_stand_in_their_order_whatever_is_set(
    window: int, cap: int | None, threshold: float, low: float | None, tools: bool
) -> None:
    chosen = Settings(window=window, soft_cap=cap, threshold=threshold, low_mark=low)
    engine = Engine(MemoryThreads(), settings=chosen)
    engine.blocking.append("t", [user("Hello.")])
    context = engine.blocking.context
    call = Call(model="gpt-4o", tools=TOOLS if tools else (), max_tokens=100)
    sizes = budget_of(context.threads, chosen, call)
    assert 0 < sizes.parts.target <= sizes.parts.threshold <= 1
    assert 0 <= sizes.target <= sizes.compacted_limit
    assert sizes.threshold <= sizes.limit
    if cap is not None:
        assert sizes.threshold + sizes.parts.tools <= max(cap, sizes.parts.tools + cap // 4 + 1)


def test_a_soft_cap_holds_after_a_message_that_was_larger_than_it() -> None:
    async def run() -> None:
        model = ScriptedModel(reads_files(1), Window(200_000, told=True))
        talk = Talk(model, Settings(window=200_000, soft_cap=8_000, mode="trim"))
        await talk.say("What is this about? " + "word " * 9_000)
        for turn in range(20):
            await talk.say(f"Question {turn}: what does function_{turn} do?")
        assert (await talk.engine.prepare(talk.thread, talk.call)).tokens <= 8_000

    asyncio.run(asyncio.wait_for(run(), 300))


def test_a_thread_with_a_lower_threshold_than_the_low_mark_of_all_goes_on() -> None:
    chosen = Settings(low_mark=0.8).for_thread('{"threshold": 0.5}')
    engine = Engine(MemoryThreads(), settings=chosen)
    engine.blocking.append("t", [user("Hello.")])
    budget = engine.blocking.prepare("t", Call(model="gpt-4o", max_tokens=100)).budget
    assert (budget.target, budget.threshold) == (0.5, 0.5)


#: tokens that were said, and the soft cap -> whether it is reason enough that the cache is cold
COLD: dict[str, tuple[int, int | None, bool]] = {
    "over .6 of the cap": (5_400, 8_000, True),
    "under .6 of the cap": (4_200, 8_000, False),
    "no cap: far from .6 of the window": (5_400, None, False),
    "a cap above the window is none": (5_400, 100_000, False),
}


@pytest.mark.parametrize(("tokens", "cap", "due"), COLD.values(), ids=COLD)
def test_the_cold_mark_is_a_share_of_the_soft_cap(tokens: int, cap: int | None, due: bool) -> None:
    now = [datetime(2026, 1, 1, tzinfo=UTC)]
    chosen = Settings(window=64_000, soft_cap=cap, cold_mark=0.6, cache_seconds=300.0)
    engine = Engine(MemoryThreads(), settings=chosen, clock=lambda: now[0])
    talk = engine.blocking
    for _ in range(tokens // 600):
        talk.append("t", [user("word " * 292), assistant("word " * 292)])
    talk.append("t", [user("And now?")])
    call = Call(model="gpt-4o", tools=TOOLS, max_tokens=500)
    warm = talk.prepare("t", call)
    assert warm.tokens - warm.budget.tools == pytest.approx(tokens, rel=0.05)
    talk.append("t", [assistant("So it is.")])
    assert is_due_when_idle(talk.context, warm, chosen, style_of(chosen)) is due
    talk.append("t", [user("And then?")])
    assert not cuts(engine)
    now[0] += timedelta(seconds=301)
    cold = talk.prepare("t", call)
    assert cuts(engine) == (["cold cache"] if due else [])
    assert (cold.tokens < warm.tokens) is due


def cuts(engine: Engine) -> list[str]:
    """Why what was sent was cut."""
    events = engine.blocking.context.threads.events("t")
    return [event.reason for event in events if event.kind is EventKind.CONTEXT_COMPRESSED]


def test_limit_and_threshold_leave_room_for_the_tools_and_give_nothing_away() -> None:
    call = Call(model="gpt-4o", tools=TOOLS, standing=(system("The house rules. " * 50),), max_tokens=100)
    budget = budget_of(MemoryThreads(), Settings(window=32_000), call)
    beside = budget.counter.messages(call.standing)
    assert budget.beside == beside
    assert budget.parts.tools == beside + budget.counter.tools(TOOLS)
    assert budget.true(budget.limit) <= budget.messages + budget.parts.tools < budget.true(budget.limit + 2)
    assert budget.true(budget.threshold) <= budget.true_threshold < budget.true(budget.threshold + 2)
    assert budget.messages == 32_000 - 100 - budget.parts.margin - budget.parts.tools
    assert dict(budget.other_parts) == {
        "tool schemas": budget.counter.tools(TOOLS),
        "standing context": beside,
        "the shortest answer": 100,
    }


def test_tools_that_leave_nothing_for_messages_are_an_error_that_adds_up() -> None:
    call, settings = Call(model="gpt-4o", tools=TOOLS, max_tokens=100), Settings(window=16_000)
    parts = budget_of(MemoryThreads(), settings, call).parts
    enough = next(size for size in range(400, 2_000) if size - 100 - parts.tools - size // 32 > 0)
    assert budget_of(MemoryThreads(), replace(settings, window=2 * enough), call).messages > 0
    with pytest.raises(BudgetImpossible) as told:
        budget_of(MemoryThreads(), replace(settings, window=parts.tools), call)
    assert told.value.limit == parts.tools
    assert sum(size for _, size in told.value.parts) >= parts.tools


@pytest.mark.parametrize(("model", "kept"), [("gpt-4o", True), ("gpt-4o-mini", False)])
def test_a_report_of_another_model_anchors_nothing(model: str, kept: bool) -> None:
    anchor = Anchor("gpt-4o", 0, 500, 700)
    budget = budget_of(MemoryThreads(), Settings(window=32_000), Call(model=model), anchor=anchor)
    assert (budget.gauge.anchor is not None) is kept
    assert budget.unanchored().gauge.anchor is None
    assert (budget.limit == budget.compacted_limit) is not kept


@pytest.mark.parametrize(
    ("preset", "threshold", "window", "tokens"),
    [
        ("chatbox", None, 200_000, 100_800),
        ("chatbox", 0.5, 200_000, 84_000),
        ("chatbox", 0.9, 200_000, 151_200),
        ("chatbox", None, 40_000, 12_000),
        ("auto", None, 200_000, 186_880),
        ("auto", 0.6, 200_000, 116_928),
        ("nanobot", None, 200_000, 153_000),
    ],
    ids=["its own", "a person's", "90 % is 90 %", "half at least", "ours", "ours, set", "of the document's budget"],
)
def test_where_a_preset_is_due(preset: str, threshold: float | None, window: int, tokens: int) -> None:
    settings = Settings(preset=preset, threshold=threshold, window=window)
    assert due_at(MemoryThreads(), settings, Call(model="gpt-4o")) == tokens


def test_a_long_answer_leaves_less_than_the_preset_wants() -> None:
    """A request of the size that the preset waits for would not fit, so it is due at the share of what does."""
    call = Call(model="gpt-4o", max_tokens=100_000)
    sizes = budget_of(MemoryThreads(), Settings(preset="chatbox", threshold=0.9, window=200_000), call)
    assert sizes.true_threshold == int(0.9 * sizes.messages) < 151_200


def test_a_window_is_looked_up_once_for_the_same_figures_and_tables() -> None:
    small, large = Registry(()), Registry(())
    assert window_of("m", "", override=9_000).context == 9_000
    assert window_of("m", "", override=8_000).context == 8_000
    assert window_of("m", "", default=4_000).context == 4_000
    assert window_of("m", "", registry=small) is window_of("m", "", registry=small)
    assert window_of("m", "", registry=small) is not window_of("m", "", registry=large)
