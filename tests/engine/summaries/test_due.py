"""When a summary is due: each figure on both sides of its border."""

from dataclasses import replace

import pytest

from everlong.core import CallId, Message, Role, ToolCall
from everlong.engine.blocking_engine import BlockingEngine
from everlong.engine.budget import counter_for
from everlong.engine.contracts import Call, Prepared
from everlong.engine.engine import Engine
from everlong.engine.requests.due import STEP, TURN
from everlong.engine.settings import Settings
from everlong.engine.summaries.due import (
    is_due,
    is_due_when_idle,
    style_of,
)
from everlong.store import MemoryThreads
from tests.core.build import assistant, system, user

CALL = Call(model="gpt-4o", max_tokens=500, tools=('{"name": "look"}',))
LOOP = Message(Role.ASSISTANT, (ToolCall(CallId("1"), "look", "{}"),))


def answered(settings: Settings, *, rounds: int = 1, last: Message | None = None) -> tuple[BlockingEngine, Prepared]:
    """A thread whose last request was answered."""
    engine = Engine(MemoryThreads(), settings=settings).blocking
    engine.append("t", [system("Work carefully.")])
    for number in range(rounds - 1):
        engine.append("t", [user(f"Question {number}?"), assistant("Yes.")])
    engine.append("t", [user("And now?")])
    prepared = engine.prepare("t", CALL)
    engine.append("t", [assistant("So it is.") if last is None else last])
    return engine, prepared


def due(engine: BlockingEngine, prepared: Prepared, settings: Settings) -> bool:
    """Whether a summary should begin now."""
    return is_due(engine.context, prepared, settings, style_of(settings))


@pytest.mark.parametrize(("last", "margin"), [(None, TURN), (LOOP, STEP)], ids=["a turn", "a step of a loop"])
@pytest.mark.parametrize("window", [16_000, 200_000])
def test_a_summary_is_due_shortly_before_the_threshold(
    last: Message | None, margin: tuple[int, float], window: int
) -> None:
    settings = Settings(window=window)
    engine, prepared = answered(settings, last=last)
    movable = prepared.threshold - prepared.budget.tools - prepared.budget.fixed
    border = prepared.threshold - min(margin[0], margin[1] * movable)
    assert due(engine, replace(prepared, tokens=int(border) + 1), settings)
    assert not due(engine, replace(prepared, tokens=int(border) - 1), settings)


def test_after_a_compaction_what_was_sent_before_decides_nothing() -> None:
    settings = Settings(window=16_000)
    engine, prepared = answered(settings)
    full = replace(prepared, tokens=16_000)
    assert due(engine, full, settings)
    assert not due(engine, replace(full, compactions=1), settings)


@pytest.mark.parametrize(("rounds", "is_now"), [(9, False), (10, True)])
def test_a_rolling_summary_is_due_after_ten_rounds(rounds: int, is_now: bool) -> None:
    settings = Settings(window=64_000, preset="nanobot", summaries="on")
    assert due(*answered(settings, rounds=rounds), settings) is is_now
    assert not due(*answered(settings, rounds=rounds, last=LOOP), settings)


@pytest.mark.parametrize(("rounds", "is_now"), [(25, False), (26, True)])
def test_a_buffer_is_summarised_once_it_has_evicted_something(rounds: int, is_now: bool) -> None:
    settings = Settings(window=64_000, preset="static-buffer")
    assert due(*answered(settings, rounds=rounds), settings) is is_now


@pytest.mark.parametrize(("tokens", "is_now"), [(100_799, False), (100_800, True)])
def test_chatbox_is_due_at_its_own_figure(tokens: int, is_now: bool) -> None:
    settings = Settings(window=200_000, preset="chatbox")
    engine, prepared = answered(settings)
    answer = counter_for(CALL.model).message(assistant("So it is."))  # a finished message counts
    assert due(engine, replace(prepared, tokens=tokens - answer), settings) is is_now
    engine, prepared = answered(settings, last=LOOP)
    assert not due(engine, replace(prepared, tokens=tokens), settings)


def test_an_idle_thread_is_one_in_which_nobody_spoke_since() -> None:
    settings = Settings(window=16_000, cold_mark=0.5)
    engine, prepared = answered(settings)
    border = int(0.5 * prepared.budget.movable) + prepared.budget.fixed + prepared.budget.tools
    style = style_of(settings)
    assert is_due_when_idle(engine.context, replace(prepared, tokens=border + 1), settings, style)
    assert not is_due_when_idle(engine.context, replace(prepared, tokens=border - 1), settings, style)
    engine.append("t", [user("Are you there?")])
    assert not is_due_when_idle(engine.context, replace(prepared, tokens=border + 1), settings, style)


@pytest.mark.parametrize("preset", ["nanobot", "static-buffer", "chatbox", "simple"])
def test_what_is_assembled_again_at_every_call_has_no_cold_cache(preset: str) -> None:
    settings = Settings(window=16_000, preset=preset, summaries="on", cold_mark=0.0)
    engine, prepared = answered(settings)
    assert not is_due_when_idle(engine.context, prepared, settings, style_of(settings))


@pytest.mark.parametrize(
    ("settings", "on"),
    [
        (Settings(), True),
        (Settings(mode="trim"), False),
        (Settings(mode="off"), False),
        (Settings(summaries="off"), False),
        (Settings(preset="off"), False),
        (Settings(preset="off", summaries="on"), False),
        (Settings(preset="nanobot"), False),
        (Settings(preset="nanobot", summaries="on"), True),
        (Settings(preset="simple"), False),
        (Settings(preset="chatbox"), True),
        (Settings(preset="static-buffer"), True),
    ],
    ids=lambda value: "" if isinstance(value, bool) else f"{value.preset}, {value.mode}, {value.summaries}",
)
def test_where_summaries_are_begun_by_themselves(settings: Settings, on: bool) -> None:
    assert settings.summarises is on
