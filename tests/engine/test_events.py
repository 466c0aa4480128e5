"""What is told to logs and traces, and what it adds up to."""

import asyncio
import logging
from datetime import UTC, datetime

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from everlong.core import Event, EventKind
from everlong.engine.engine import Engine
from everlong.engine.events import logs_events, traces_events
from everlong.engine.thread import EngineContext
from everlong.engine.usage import Spent, spent_on
from everlong.llm import ScriptedModel, Window, reads_files
from everlong.store import MemoryThreads
from tests.engine.talking import Talk


def _talk_told_to(*observers: object) -> Talk:
    talk = Talk(ScriptedModel(reads_files(1), Window(8_000)), lines=200)
    talk.engine = Engine(talk.threads, observers=observers)  # type: ignore[arg-type]

    async def run() -> None:
        for turn in range(5):
            await talk.say(f"the secret word is plover, question {turn}")

    asyncio.run(run())
    return talk


def test_every_event_is_one_log_record_without_contents(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="everlong.events")
    talk = _talk_told_to(logs_events())
    assert [record.everlong["event"] for record in caplog.records] == talk.kinds()  # type: ignore[attr-defined]
    assert "plover" not in caplog.text


def test_a_turn_is_a_span_with_its_usage_and_a_recovery_lies_inside() -> None:
    kept = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(kept))
    talk = _talk_told_to(traces_events(provider))
    spans = kept.get_finished_spans()
    turns = [span for span in spans if span.name == "chat gpt-4o"]
    assert len(turns) == talk.kinds().count("turn.started")
    assert all(span.attributes["gen_ai.usage.input_tokens"] > 0 for span in turns)
    (recovery,) = [span for span in spans if span.name == "recover gpt-4o"]
    assert recovery.parent.span_id in {span.context.span_id for span in turns}
    assert any(event.name == "context.compressed" for span in turns for event in span.events)


def test_an_observer_that_raises_breaks_no_turn_and_silences_no_other(caplog: pytest.LogCaptureFixture) -> None:
    heard: list[str] = []

    def broken(thread: str, event: Event) -> None:
        raise RuntimeError(f"no room for {event.kind.value}")

    talk = _talk_told_to(broken, lambda thread, event: heard.append(event.kind.value))
    assert heard == talk.kinds()
    talk.one_outcome_each()
    failures = [record for record in caplog.records if record.name == "everlong.observers"]
    assert len(failures) == len(heard)
    assert "no room for turn.started" in caplog.text


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit], ids=["interrupt", "exit"])
def test_an_observer_may_still_end_the_program(stop: type[BaseException]) -> None:
    def ending(thread: str, event: Event) -> None:
        raise stop

    threads = MemoryThreads()
    threads.create("t")
    journal = EngineContext(threads=threads, observers=(ending,)).journal("t")
    journal.note(EventKind.TURN_STARTED)
    with pytest.raises(stop):
        journal.__exit__()


@pytest.mark.parametrize("data", ["", "{}", "null", "[]", "nonsense", '{"cached": null}', '{"cached": "x"}'])
def test_the_ledger_reads_events_that_say_less(data: str) -> None:
    event = Event(id="e", kind=EventKind.USAGE_RECORDED, time=datetime(2026, 1, 1, tzinfo=UTC), model="m", data=data)
    assert spent_on([event]) == [Spent("m", calls=1, unpriced=1)]


def test_the_ledger_adds_up_calls_tokens_and_money() -> None:
    talk = _talk_told_to()
    (spent,) = spent_on(talk.threads.events(talk.thread))
    answered = [asked for asked in talk.model.requests if asked.tokens + 500 <= 8_000]  # type: ignore[attr-defined]
    assert (spent.model, spent.calls, spent.unpriced) == ("gpt-4o", len(answered), 0)
    assert spent.prompt == sum(asked.tokens for asked in answered)
    assert 0 < spent.cached < spent.prompt
    assert spent.cost > 0
