"""What is learned from a call: tools count wherever messages do, and a report about something else teaches nothing."""

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from everlong.core import Event, EventKind
from everlong.engine.blocking_engine import BlockingEngine
from everlong.engine.budget import calibration_of, counter_for, learned_window
from everlong.engine.contracts import Call, Prepared
from everlong.engine.engine import Engine
from everlong.engine.settings import Settings
from everlong.engine.usage import (
    FOR_SUMMARIES,
    LEAST_TRUE,
    STOOD_STILL,
    Saved,
    Savings,
    Spent,
    cost_of,
    saved_on,
    spent_on,
)
from everlong.errors import ContextOverflow, NotRecovered
from everlong.store import MemoryThreads
from everlong.windows import Prices
from everlong.wire import Usage
from tests.core.build import assistant, user

TOOLS = tuple(json.dumps({"name": f"look_{n}", "description": "looks for something " * 60}) for n in range(6))
CALL = Call(model="gpt-4o", endpoint="http://a/v1", tools=TOOLS, max_tokens=200)


def a_talk(rounds: int = 8, window: int = 16_000) -> BlockingEngine:
    """A thread that nothing was sent of yet."""
    engine = Engine(MemoryThreads(), settings=Settings(window=window)).blocking
    engine.append("t", [turn(f"{n} " + "word " * 150) for n in range(rounds) for turn in (user, assistant)])
    engine.append("t", [user("And now?")])
    return engine


def counted(prepared: Prepared) -> int:
    """All that was counted for a request: its messages and its tools."""
    return prepared.counted + prepared.budget.tools


def ratios(engine: BlockingEngine) -> list[float]:
    """How the endpoint's counts relate to ours, as far as it was learned."""
    return [round(ratio, 3) for ratio in calibration_of(engine.context.threads, CALL, counter_for("gpt-4o")).ratios]


def test_the_tools_are_a_good_part_of_these_requests() -> None:
    prepared = a_talk().prepare("t", CALL)
    assert prepared.budget.tools > 0.2 * counted(prepared)


def test_an_answer_to_a_request_with_tools_teaches_the_ratio_of_all_that_was_sent() -> None:
    engine = a_talk()
    prepared = engine.prepare("t", CALL)
    engine.record_usage(prepared, Usage(prompt=round(1.25 * counted(prepared)), output=5))
    assert ratios(engine) == [1.25]


def test_an_overflow_of_a_request_with_tools_teaches_the_ratio_of_all_that_was_sent() -> None:
    engine = a_talk()
    prepared = engine.prepare("t", CALL)
    tokens = round(1.5 * counted(prepared))
    again = engine.recover(prepared, ContextOverflow("too long", requested=tokens, limit=tokens - 1))
    assert ratios(engine) == [
        1.5 if tokens <= counted(prepared) + 200 else round((tokens - 200) / counted(prepared), 3)
    ]
    assert learned_window(engine.context.threads, CALL) == tokens - 1
    assert again.tokens < tokens
    assert again.counted < prepared.counted


@pytest.mark.parametrize(("extra", "learned"), [(0, 200), (1, 1)], ids=["reply and no more", "more than the reply"])
def test_a_reserve_that_is_counted_in_teaches_nothing_too_high(extra: int, learned: int) -> None:
    """The figure of an overflow may include the reserve for the answer; the smaller reading is learned from."""
    engine = a_talk()
    prepared = engine.prepare("t", CALL)
    engine.recover(prepared, ContextOverflow("too long", requested=counted(prepared) + 200 + extra))
    assert ratios(engine) == [round((counted(prepared) + learned) / counted(prepared), 3)]


def test_a_ceiling_is_no_window() -> None:
    engine = a_talk()
    engine.recover(engine.prepare("t", CALL), ContextOverflow("too much a minute", limit=3_000, ceiling=True))
    assert learned_window(engine.context.threads, CALL) is None


def test_the_third_attempt_is_not_made_and_every_attempt_is_smaller() -> None:
    engine = a_talk(rounds=20)
    first = engine.prepare("t", CALL)
    second = engine.recover(first, ContextOverflow("too long"))
    third = engine.recover(second, ContextOverflow("too long"))
    assert first.counted > second.counted > third.counted
    with pytest.raises(NotRecovered):
        engine.recover(third, ContextOverflow("too long"))


def test_a_report_of_a_part_of_the_request_teaches_nothing() -> None:
    for share, learned in ((LEAST_TRUE - 0.01, False), (LEAST_TRUE + 0.01, True)):
        engine = a_talk()
        prepared = engine.prepare("t", CALL)
        engine.record_usage(prepared, Usage(prompt=round(share * counted(prepared)), output=5))
        assert bool(ratios(engine)) is learned, share


def test_the_next_count_starts_from_what_was_reported() -> None:
    engine = a_talk()
    prepared = engine.prepare("t", CALL)
    reported = round(1.25 * counted(prepared))
    engine.record_usage(prepared, Usage(prompt=reported, output=5))
    engine.append("t", [assistant("So it is."), user("And then?")])
    extended = engine.prepare("t", CALL)
    news = extended.counted - prepared.counted
    assert reported + news <= extended.tokens <= reported + 2 * news
    assert engine.preview("t", CALL).certainty == "reported"
    other = engine.prepare("t", replace(CALL, model="gpt-4o-mini"))
    assert other.tokens < reported  # of another model nothing was reported


@pytest.mark.parametrize(("more", "window"), [(STOOD_STILL - 1, None), (STOOD_STILL, 8_192)])
def test_a_report_that_stands_still_although_more_is_sent_is_a_window(more: int, window: int | None) -> None:
    engine, counter = a_talk(rounds=23, window=32_000), counter_for("gpt-4o")
    prepared = engine.prepare("t", CALL)
    assert 8_192 < counted(prepared) < 9_000
    held = Usage(prompt=8_192, output=5)
    assert engine.record_usage(prepared, held) is None
    news = next(news for n in range(200) if counter.messages(news := [assistant("Yes."), user("word " * n)]) == more)
    engine.append("t", news)
    extended = engine.prepare("t", CALL)
    assert counted(extended) - counted(prepared) == more
    overflow = engine.record_usage(extended, held)
    assert (None if overflow is None else overflow.limit) == window
    assert learned_window(engine.context.threads, CALL) == window


def test_what_was_spent_is_summed_by_model_the_dearest_first() -> None:
    engine = a_talk()
    for model, usage in (
        ("gpt-4o-mini", Usage(prompt=900, cached=100, output=10)),
        ("gpt-4o", Usage(prompt=900, output=10)),
    ):
        prepared = engine.prepare("t", replace(CALL, model=model))
        engine.record_usage(prepared, usage)
    events = engine.context.threads.events("t")
    first, second = spent_on(events)
    assert (first.model, second.model) == ("gpt-4o", "gpt-4o-mini")
    assert (second.calls, second.prompt, second.cached, second.output, second.unpriced) == (1, 900, 100, 10, 0)
    assert spent_on(event for event in events if event.kind is EventKind.TURN_STARTED) == []
    assert Spent("m").cost == 0.0


@pytest.mark.parametrize(
    ("prices", "cost"),
    [
        (Prices(3.0, 15.0, 0.3, 3.75), 600 * 3.0 + 300 * 0.3 + 100 * 3.75 + 50 * 15.0),
        (Prices(3.0, 15.0), 1_000 * 3.0 + 50 * 15.0),
        (Prices(None, 15.0), 50 * 15.0),
        (Prices(3.0, None), 1_000 * 3.0),
    ],
    ids=["cached and written have prices", "one price for all", "only answers cost", "only prompts cost"],
)
def test_what_a_call_costs(prices: Prices, cost: float) -> None:
    usage = Usage(prompt=1_000, cached=300, cache_written=100, output=50)
    assert cost_of(usage, prices) == pytest.approx(cost / 1_000_000)
    assert cost_of(usage, Prices()) is None


def happened(kind: EventKind, before: int = 0, after: int = 0, model: str = "m", reason: str = "") -> Event:
    now = datetime(2026, 3, 18, tzinfo=UTC)
    return Event(id="e", kind=kind, time=now, model=model, reason=reason, tokens_before=before, tokens_after=after)


ASKED = happened(EventKind.USAGE_RECORDED, 5_000, 100)
CUT = happened(EventKind.CONTEXT_COMPRESSED, 10_000, 4_000)
UNDONE = happened(EventKind.CONTEXT_RESTORED, 4_000, 10_000)
AGAIN = replace(CUT, reason="preset simple")
SUMMARY = happened(EventKind.USAGE_RECORDED, 9_000, 500, reason=FOR_SUMMARIES)
COURSES: dict[str, tuple[list[Event], list[Saved]]] = {
    "nothing": ([], []),
    "no compaction": ([ASKED, ASKED], []),
    "nothing asked since": ([ASKED, CUT], []),
    "three requests": ([ASKED, CUT, ASKED, ASKED, ASKED], [Saved("m", 3, 18_000)]),
    "two compactions": ([CUT, ASKED, CUT, ASKED], [Saved("m", 2, 18_000)]),
    "undone": ([CUT, ASKED, UNDONE, ASKED], [Saved("m", 1, 6_000)]),
    "undone without one": ([UNDONE, ASKED], []),
    "a summary is no request: it takes": ([CUT, SUMMARY], [Saved("m", 0, -9_500)]),
    "what a summary took is taken off": ([CUT, SUMMARY, ASKED, ASKED], [Saved("m", 2, 2_500)]),
    "a preset that assembles each request": (
        [AGAIN, ASKED, AGAIN, ASKED, ASKED],  # each tells of its own request alone
        [Saved("m", 2, 12_000)],
    ),
    "two models": (
        [CUT, ASKED, replace(ASKED, model="n"), replace(ASKED, model="n")],
        [Saved("n", 2, 12_000), Saved("m", 1, 6_000)],
    ),
}


@pytest.mark.parametrize("name", COURSES)
def test_what_compaction_saved_is_counted_from_the_events(name: str) -> None:
    events, saved = COURSES[name]
    assert saved_on(events) == saved


@pytest.mark.parametrize(
    ("cached", "dollars"),
    [
        # 1 000 000 tokens were left out of a request of 1 000 000; 1 900 000 of the whole were sent before
        (0, 3.0),  # nobody caches: what was left out would have been paid in full
        (900_000, (1.9 * 0.3 + 0.1 * 3) - (0.9 * 0.3 + 0.1 * 3)),  # it would have been read from the cache
    ],
    ids=["no cache", "a warm cache"],
)
def test_what_is_saved_is_what_it_would_have_cost_less_what_it_cost(cached: int, dollars: float) -> None:
    asked = happened(EventKind.USAGE_RECORDED, 1_000_000, 0, model="claude-sonnet-4-5")
    asked = replace(asked, data=f'{{"cached":{cached}}}')
    savings = Savings(left_out=1_000_000, whole=1_900_000, model=asked.model, caches=True)
    assert savings.after(asked).dollars == pytest.approx(dollars)


def test_the_first_request_after_a_compaction_pays_for_the_new_prefix() -> None:
    warm = happened(EventKind.USAGE_RECORDED, 100_000, 0, model="claude-sonnet-4-5")
    savings = Savings()
    savings.after(replace(warm, data='{"cached":90000}'))
    savings.after(happened(EventKind.CONTEXT_COMPRESSED, 100_000, 40_000))
    spared = savings.after(replace(warm, tokens_before=41_000))  # nothing of it is in the cache
    assert spared.tokens == 60_000
    assert spared.dollars == pytest.approx((100_000 * 0.3 + 1_000 * 3 - 41_000 * 3) / 1_000_000)
    assert spared.dollars < 0
    assert savings.after(replace(warm, tokens_before=42_000, data='{"cached":41000}')).dollars > 0
