"""A look at the next request: the same figures as the request itself, and no trace of the look."""

import pytest

from everlong.core import Message, Role, Text
from everlong.engine.contracts import Call
from everlong.engine.engine import Engine
from everlong.engine.preview import Meter
from everlong.engine.settings import Settings
from everlong.store import MemoryThreads
from everlong.wire import Usage

CALL = Call(model="gpt-4o", tools=('{"type":"function","function":{"name":"read"}}',), max_tokens=500)


def said(role: Role, text: str) -> Message:
    return Message(role, (Text(text),))


def engine_with(rounds: int, window: int | None = None) -> Engine:
    engine = Engine(MemoryThreads(), settings=Settings(window=window))
    talk = [said(Role.SYSTEM, "Answer briefly.")]
    for number in range(rounds):
        talk += [said(Role.USER, f"Question {number}?"), said(Role.ASSISTANT, f"Answer {number}: " + "boats " * 200)]
    engine.blocking.append("t", [*talk, said(Role.USER, "And now?")])
    return engine


def test_it_says_what_the_request_will_say() -> None:
    engine = engine_with(3)
    looked = engine.blocking.preview("t", CALL)
    assert looked.tokens == engine.blocking.prepare("t", CALL).tokens
    assert set(looked.parts) == {"system", "tools", "user", "assistant"}
    assert sum(looked.parts.values()) == pytest.approx(looked.tokens, abs=len(looked.parts))


def test_a_look_leaves_no_trace() -> None:
    engine = engine_with(3)
    before = engine.threads.thread("t")
    engine.blocking.preview("t", CALL)
    assert engine.threads.thread("t") == before
    assert engine.threads.events("t") == []


def test_after_a_cut_the_parts_name_the_summary_and_what_it_covers() -> None:
    engine = engine_with(40, window=8_000)
    engine.blocking.prepare("t", CALL)
    looked = engine.blocking.preview("t", CALL)
    assert looked.parts["summary"] > 0
    assert 0 < looked.covered < looked.messages
    assert looked.tokens < looked.threshold <= looked.limit < 8_000


@pytest.mark.parametrize(
    ("model", "usage", "certainty", "known"),
    [
        ("gpt-4o", None, "counted", True),
        ("nobody-knows-me", None, "estimated", False),
        ("gpt-4o", Usage(prompt=700), "reported", True),
    ],
    ids=["own vocabulary", "unknown model", "reported"],
)
def test_it_says_how_certain_it_is(model: str, usage: Usage | None, certainty: str, known: bool) -> None:
    engine = engine_with(3)
    call = Call(model=model)
    if usage is not None:
        engine.blocking.record_usage(engine.blocking.prepare("t", call), usage)
    looked = engine.blocking.preview("t", call)
    assert (looked.certainty, looked.window.known) == (certainty, known)


def test_one_meter_says_how_full_the_window_is() -> None:
    engine = engine_with(3, window=8_000).blocking
    prepared = engine.prepare("t", CALL)
    estimated = Meter.estimated(prepared)
    assert (estimated.tokens, estimated.limit, estimated.certainty) == (prepared.tokens, 8_000, "estimated")
    assert estimated.share == pytest.approx(prepared.tokens / 8_000)
    assert estimated.percent == round(100 * prepared.tokens / 8_000)
    looked = engine.preview("t", CALL)
    assert (looked.meter.tokens, looked.meter.limit, looked.meter.threshold) == (looked.tokens, 8_000, looked.threshold)
    assert looked.meter.threshold == estimated.threshold


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        (Usage(prompt=700, output=60, reasoning=50), 710),
        (Usage(prompt=700, output=10, reasoning=50), None),
        (None, None),
        (Usage(prompt=100), None),
        (Usage(prompt=900_000), None),
    ],
    ids=["thoughts are not sent again", "more thoughts than output", "nothing", "of a part", "cannot be true"],
)
def test_a_meter_by_what_the_provider_reported(usage: Usage | None, tokens: int | None) -> None:
    prepared = engine_with(3, window=8_000).blocking.prepare("t", CALL)
    meter = Meter.reported(prepared, usage)
    assert (None if meter is None else meter.tokens) == tokens
    assert meter is None or (meter.exact, meter.certainty) == (True, "exact")


def test_a_meter_of_a_window_that_nobody_knows_says_so() -> None:
    engine = engine_with(1).blocking
    unknown = Meter.estimated(engine.prepare("t", Call(model="nobody-knows-me")))
    assert (unknown.certainty, unknown.known, unknown.limit) == ("unknown", False, 128_000)
    assert Meter(tokens=5, limit=0, exact=False, known=True).percent == 0
