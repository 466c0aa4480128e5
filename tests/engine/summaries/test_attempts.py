"""Authors that write no summaries: asked twice, then ever more seldom, in every process and after every restart."""

import asyncio
from datetime import UTC, datetime
from itertools import pairwise
from math import log2
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from everlong.core import Event, EventKind
from everlong.engine.contracts import Call
from everlong.engine.settings import Settings
from everlong.engine.summaries.attempts import ENDS, PATIENCE, Past, attempt_data
from everlong.engine.summaries.author import Tried
from everlong.engine.summaries.schedule import Summaries
from everlong.engine.thread import left_by
from everlong.llm import Answer, ReceivedRequest, Refusal, ScriptedModel, ScriptedServer, Step, Window, reads_files
from everlong.store import open_store
from tests.core.build import system
from tests.engine.authors import HONEST, accounts, author, both, is_asked_to_summarise, of_kind
from tests.engine.talking import Talk, lawful
from tests.gateway.resending import Resending
from tests.gateway.running import RunningGateway

REQUESTS = 140
WRONG: dict[str, Step] = {
    "another shape": Answer(text='<tool_call>{"name": "read_file", "arguments": {}}</tool_call>'),
    "an empty answer": Answer(text=""),
    "a refusal": Answer(text="I'm sorry, but I can't help with that."),
    "a failure": Refusal(503, "away"),
}


def test_a_client_of_the_gateway_pays_for_a_handful_of_summaries_that_come_to_nothing() -> None:
    def talks(asked: ReceivedRequest) -> Step:
        return WRONG["another shape"] if is_asked_to_summarise(asked) else Answer(text=f"Noted {asked.number}.")

    client = Resending("openai-chat")
    with (
        ScriptedServer(talks, window=Window(6_000, told=True)) as upstream,
        RunningGateway(upstream=upstream.url) as gateway,
    ):
        for number in range(REQUESTS):
            client.ask(gateway, f"Note {number}: " + f"pier {number} has boats. " * 50)
            client.settle(gateway)
        [conversation] = gateway.services.conversations.all()
        threads = gateway.services.engine.threads
        compactions = len({left_by(row) for row, _ in threads.points(conversation.thread)})
        applied = threads.events(conversation.thread, kinds=[EventKind.SUMMARY_APPLIED])
        metrics = gateway.services.metrics.written()[0].decode()
    asked = [one for one in upstream.requests if is_asked_to_summarise(one)]
    assert compactions >= 10
    assert 2 <= len(asked) <= 2 + log2(compactions)
    assert len(asked) < len(applied) <= compactions + 1
    assert all(event.reason.startswith("by rules") for event in applied)
    assert len(upstream.requests) - len(asked) == REQUESTS, "no request was refused or sent twice"
    assert f'everlong_calls_total{{what="summary"}} {len(asked)}.0' in metrics
    assert 'everlong_calls_total{what="conversation"} 140.0' in metrics


async def _talked(talk: Talk, summaries: Summaries, turns: int) -> None:
    for turn in range(turns):
        await talk.say(f"Question {turn}: what does function_{turn} do?")
        await summaries.drain()


@pytest.mark.parametrize(
    ("wrong", "preset"),
    [
        *((wrong, "auto") for wrong in WRONG),
        *(("a refusal", preset) for preset in ("chatbox", "static-buffer", "nanobot")),
    ],
)
def test_an_author_that_writes_none_is_asked_ever_more_seldom(wrong: str, preset: str) -> None:
    async def run() -> None:
        settings = Settings(preset=preset, summaries="on")
        call = Call(model="gpt-4o", served=8_000 if preset == "chatbox" else 16_000, max_tokens=500)
        talk = Talk(ScriptedModel(reads_files(1)), settings=settings, call=call)
        writer = author(lambda _: WRONG[wrong])
        await _talked(talk, Summaries(talk.engine, [writer], own_model=False), 60)
        calls = len(writer.model.requests)  # type: ignore[attr-defined]
        assert 2 <= calls <= 3 + log2(240), "240 rows"
        starts = of_kind(talk, EventKind.SUMMARY_STARTED)
        compactions = of_kind(talk, EventKind.CONTEXT_COMPRESSED)
        assert len(starts) <= len(compactions) + 1
        talk.one_outcome_each()

    asyncio.run(asyncio.wait_for(run(), 300))


def test_rules_write_meanwhile_and_say_when_the_author_is_asked_again() -> None:
    async def run() -> None:
        talk = Talk(ScriptedModel(reads_files(1), Window(16_000, told=True)))
        await _talked(talk, Summaries(talk.engine, [author("no")], own_model=False), 60)
        reasons = [event.reason for event in of_kind(talk, EventKind.SUMMARY_APPLIED)]
        assert reasons[1].startswith("by rules: gpt-4o-mini failed to write a summary 2 times and is asked again")
        assert len(accounts(talk)) == len(reasons)
        lawful([asked.messages for asked in talk.model.requests])  # type: ignore[attr-defined]

    asyncio.run(asyncio.wait_for(run(), 300))


def test_an_author_that_comes_back_is_trusted_again() -> None:
    async def run() -> None:
        talk = Talk(ScriptedModel(reads_files(1), Window(16_000, told=True)))
        answers = iter(["no", "no", *[HONEST] * 100])
        writer = author(lambda _: Answer(text=next(answers)))
        await _talked(talk, Summaries(talk.engine, [writer], own_model=False), 90)
        by_rules = [event.reason.startswith("by rules") for event in of_kind(talk, EventKind.SUMMARY_APPLIED)]
        first = by_rules.index(False)
        assert 1 < first <= 4
        assert len(by_rules) > first + 2
        assert not any(by_rules[first:])

    asyncio.run(asyncio.wait_for(run(), 300))


def test_a_restart_forgets_nothing(tmp_path: Path) -> None:
    asked: list[ReceivedRequest] = []

    def no(request: ReceivedRequest) -> Step:
        asked.append(request)
        return Answer(text="")

    async def run(turns: int, process: int) -> None:
        with open_store(f"sqlite:///{tmp_path}/talk.db") as threads:
            talk = Talk(
                ScriptedModel(reads_files(1), Window(16_000, told=True)), threads=threads, thread=f"begun by {process}"
            )
            talk.thread = "begun by 0"
            await _talked(talk, Summaries(talk.engine, [author(no)], own_model=False), turns)

    asyncio.run(run(15, 0))
    assert len(asked) == 2
    for process in range(1, 13):
        asyncio.run(run(5, process))
    assert 3 <= len(asked) <= 6


@pytest.mark.parametrize("window", [64_000, 32_000])
def test_a_large_system_text_makes_no_summary_due_after_each_turn(window: int) -> None:
    """With 29k of system text in 64k a summary at every turn was due for ever."""

    async def run() -> None:
        model = ScriptedModel(both(lambda asked: Answer(text=f"Noted {asked.number}. " + "word " * 300)))
        talk = Talk(model, call=Call(model="gpt-4o", served=window, max_tokens=500))
        fixed = talk.threads.create("fixed").id
        words = " ".join(f"rule{number}" for number in range(window // 6))
        talk.threads.append(fixed, [system(words)])
        talk.thread = fixed
        summaries = Summaries(talk.engine)
        for turn in range(60):
            await talk.say(f"Turn {turn}: " + "thing " * 300)
            await summaries.drain()
        written = [event for event in of_kind(talk, EventKind.SUMMARY_APPLIED) if event.tokens_after]
        sizes = [(event.tokens_before or 0, event.tokens_after or 0) for event in written]
        head = model.requests[0].tokens
        for (_, left), (reached, _) in pairwise(sizes):
            assert reached - left >= 0.3 * (window - head - 2_000)
        assert len(of_kind(talk, EventKind.SUMMARY_STARTED)) <= len(of_kind(talk, EventKind.CONTEXT_COMPRESSED)) + 1

    asyncio.run(asyncio.wait_for(run(), 300))


# --- the rule itself ------------------------------------------------------------------------------------------------

WRITER = author()


def _outcome(rows: int, *, wrong: int, wrote: bool = False, awaits: int | None = None) -> Event:
    tried = Tried(endpoint=WRITER.model.endpoint, name=WRITER.name, calls=wrong, wrong=wrong, wrote=wrote)
    data = attempt_data(rows, awaits, [tried])
    return Event(id=str(rows), kind=EventKind.SUMMARY_APPLIED, time=datetime(2030, 1, 1, tzinfo=UTC), data=data)


@given(st.lists(st.integers(1, 200), min_size=1, max_size=120), st.booleans())
def test_pauses_double_whatever_the_rhythm(steps: list[int], corrected: bool) -> None:
    past, rows = Past(), 0
    asked: list[tuple[int, int]] = []
    for step in steps:
        rows += step
        may = past.may_ask([WRITER], rows)
        wrong = 0 if not may else 2 if corrected and may[0].corrections else 1
        assert bool(may) is not bool(past.excuse([WRITER], rows))
        past = past.after(_outcome(rows, wrong=wrong))
        if may:
            asked.append((rows, past.rest_of(WRITER).pause))
    paused = [(at, pause) for at, pause in asked if pause]
    for (one, pause), (two, next_pause) in pairwise(paused):
        assert two - one >= pause
        assert next_pause == 2 * pause
    assert len(asked) <= PATIENCE + log2(rows + 1)


def test_one_summary_ends_the_pause_and_what_cannot_be_read_changes_nothing() -> None:
    past = Past().after(_outcome(10, wrong=2)).after(_outcome(31, wrong=1))
    assert past.rest_of(WRITER).until == 31 + 2 * 2 * 10
    assert past.after(Event(id="x", kind=ENDS[0], time=datetime(2030, 1, 1, tzinfo=UTC), data="?")).rests == past.rests
    assert past.after(_outcome(80, wrong=0, wrote=True)).may_ask([WRITER], 80) == [WRITER]
