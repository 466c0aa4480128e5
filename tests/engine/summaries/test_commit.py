"""A summary that comes after a plain cut: kept beside what the cut left, seen by nobody until the next one."""

import asyncio
from dataclasses import replace

import pytest

from everlong.core import EventKind, Point, Recalled, Withdrawal
from everlong.engine.settings import Settings
from everlong.engine.summaries.commit import SUMMARY, commit_summary
from everlong.engine.summaries.snapshot import Snapshot, Wanted, snapshot_of
from everlong.engine.thread import CallContext, newest_summary, refreshed, work_on
from everlong.llm import ScriptedModel, Window, reads_files
from everlong.summarize import Summary
from tests.core.build import assistant, system, user
from tests.engine.talking import Talk

WRITTEN = Summary(language="en", context="Files were read, one for each question.")
EARLY = "What was the harbour password of the lighthouse keeper?"


def work_in(talk: Talk, journal: object) -> CallContext:
    context = talk.engine.blocking.context
    state = refreshed(context.threads, talk.thread, context.states.get(talk.thread))
    return work_on(context, state, talk.call, journal, "")  # type: ignore[arg-type]


async def cut_before_its_summary() -> tuple[Talk, Snapshot]:
    """A thread whose summary is still being written when it is cut."""
    talk = Talk(ScriptedModel(reads_files(1), Window(16_000, told=True)), Settings(window=16_000))
    said = "The harbour password of the lighthouse keeper is amber-heron-42."
    await talk.engine.append(talk.thread, [user(said), assistant("Noted.")])
    for turn in range(14):
        await talk.say(f"Question {turn}: what does function_{turn} do?")
    context = talk.engine.blocking.context
    with context.journal(talk.thread) as journal:
        started = journal.note(EventKind.SUMMARY_STARTED)
        snapshot = snapshot_of(work_in(talk, journal), Wanted(reason="it is due", style="structured"))
    assert snapshot is not None
    await talk.engine.compact(talk.thread, talk.call)
    return talk, replace(snapshot, started=started)


def kept(talk: Talk, snapshot: Snapshot) -> None:
    context = talk.engine.blocking.context
    with context.journal(talk.thread) as journal:
        outcome = commit_summary(work_in(talk, journal), snapshot, WRITTEN)
    assert outcome.kind is EventKind.SUMMARY_APPLIED
    assert outcome.figures is None


def recalled(talk: Talk) -> int:
    return sum(isinstance(row.entry, Recalled) for row in talk.threads.read(talk.thread))


def test_not_a_byte_changes_until_the_next_cut_takes_it_along() -> None:
    async def run() -> None:
        talk, snapshot = await cut_before_its_summary()
        await talk.engine.append(talk.thread, [user(EARLY)])
        before = (await talk.engine.prepare(talk.thread, talk.call)).request.messages
        assert recalled(talk) == 1
        kept(talk, snapshot)
        assert (await talk.engine.prepare(talk.thread, talk.call)).request.messages == before
        assert WRITTEN.context not in "\n".join(message.text for message in before)
        await talk.engine.append(talk.thread, [assistant("amber-heron-42")])
        for turn in range(14):
            await talk.say(f"And then {turn}: what does function_{turn} do?")
        after = (await talk.engine.prepare(talk.thread, talk.call)).request.messages
        assert sum(WRITTEN.context in message.text for message in after) == 1

    asyncio.run(asyncio.wait_for(run(), 300))


@pytest.mark.parametrize("asked", [False, True], ids=["nothing recalled", "something recalled"])
def test_an_undo_takes_back_the_cut_and_the_summary_beside_it_at_once(asked: bool) -> None:
    async def run() -> None:
        views = []
        for late in (False, True):
            talk, snapshot = await cut_before_its_summary()
            if asked:
                await talk.engine.append(talk.thread, [user(EARLY)])
                await talk.engine.prepare(talk.thread, talk.call)
            if late:
                kept(talk, snapshot)
            await talk.engine.undo(talk.thread)
            assert newest_summary(talk.threads, talk.thread) is None
            assert talk.threads.open(talk.thread).point is None
            views.append((await talk.engine.prepare(talk.thread, talk.call)).request.messages)
        assert views[0] == views[1]
        assert recalled(talk) == (2 if asked else 0)

    asyncio.run(asyncio.wait_for(run(), 300))


def test_a_question_that_came_before_the_summary_and_after_the_cut_is_looked_up() -> None:
    async def run() -> None:
        talk, snapshot = await cut_before_its_summary()
        await talk.engine.append(talk.thread, [user(EARLY)])
        kept(talk, snapshot)
        sent = (await talk.engine.prepare(talk.thread, talk.call)).request.messages
        assert recalled(talk) == 1
        assert any("amber-heron-42" in message.text for message in sent)

    asyncio.run(asyncio.wait_for(run(), 300))


async def with_a_snapshot(by_hand: bool = False, turns: int = 8, rules: str = "") -> tuple[Talk, Snapshot]:
    """A thread from which a summary was begun, and nothing happened since."""
    talk = Talk(ScriptedModel(reads_files(1), Window(16_000, told=True)), Settings(window=16_000))
    if rules:
        await talk.engine.append(talk.thread, [system(rules)])
    for turn in range(turns):
        await talk.say(f"Question {turn}: what does function_{turn} do?")
    with talk.engine.blocking.context.journal(talk.thread) as journal:
        started = journal.note(EventKind.SUMMARY_STARTED)
        wanted = Wanted(reason="it is due", style="structured", by_hand=by_hand)
        snapshot = snapshot_of(work_in(talk, journal), wanted)
    assert snapshot is not None
    return talk, replace(snapshot, started=started)


def test_a_committed_summary_is_a_compaction_that_is_reported_with_its_size() -> None:
    talk, snapshot = asyncio.run(with_a_snapshot())
    context = talk.engine.blocking.context
    with context.journal(talk.thread) as journal:
        outcome = commit_summary(work_in(talk, journal), snapshot, WRITTEN)
    (compressed,) = [event for event in talk.events if event.kind is EventKind.CONTEXT_COMPRESSED]
    assert (outcome.kind, compressed.reason) == (EventKind.SUMMARY_APPLIED, SUMMARY)
    state = context.states.get(talk.thread)
    assert state is not None
    assert state.view is not None
    point = context.threads.points(talk.thread)[-1][0]
    assert isinstance(point.entry, Point)
    assert outcome.figures is not None
    assert outcome.figures == point.entry.figures
    assert (compressed.tokens_before, compressed.tokens_after) == point.entry.sizes
    assert (point.entry.tokens_before, point.entry.tokens_after) == (snapshot.before, state.view.tokens)
    assert (point.id, outcome.summary and outcome.summary.covers) == (snapshot.started, snapshot.covers)


@pytest.mark.parametrize("what", ["undo", "summary"])
def test_a_summary_that_was_overtaken_is_not_committed(what: str) -> None:
    talk, snapshot = asyncio.run(with_a_snapshot())
    context = talk.engine.blocking.context
    (row,) = context.threads.append(
        talk.thread, [Point(boundary=2, summary=(user("x"),), tokens_before=9, tokens_after=5, reason=SUMMARY)]
    )
    if what == "undo":
        context.threads.append(talk.thread, [Withdrawal(row.order)])
    with context.journal(talk.thread) as journal:
        outcome = commit_summary(work_in(talk, journal), snapshot, WRITTEN)
    assert (outcome.kind, outcome.reason) == (EventKind.SUMMARY_SKIPPED, "the thread was changed meanwhile")


def test_a_summary_by_hand_compacts_even_where_a_compaction_came_first() -> None:
    talk, snapshot = asyncio.run(with_a_snapshot(by_hand=True))
    context = talk.engine.blocking.context
    assert talk.engine.blocking.compact(talk.thread, talk.call) is not None
    for turn in range(3):
        asyncio.run(talk.say(f"And then {turn}: what does function_{turn} do?"))
    with context.journal(talk.thread) as journal:
        outcome = commit_summary(work_in(talk, journal), snapshot, WRITTEN)
    assert outcome.kind is EventKind.SUMMARY_APPLIED
    assert outcome.figures is not None


@pytest.mark.parametrize(("rules", "kind"), [(10_000, EventKind.SUMMARY_APPLIED), (11_000, EventKind.SUMMARY_SKIPPED)])
def test_a_summary_that_saves_less_than_a_twentieth_is_not_committed(rules: int, kind: EventKind) -> None:
    """Two turns after a long system text, which stays: a summary saves about six hundred tokens."""
    talk, snapshot = asyncio.run(with_a_snapshot(turns=2, rules="rule " * rules))
    assert 0.045 < 600 / snapshot.before < 0.055
    with talk.engine.blocking.context.journal(talk.thread) as journal:
        assert commit_summary(work_in(talk, journal), snapshot, WRITTEN).kind is kind
