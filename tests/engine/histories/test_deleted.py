"""Messages that a person deletes: no request, summary, recall, search or title knows them; undone, all is as it was."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings, strategies as st

from everlong.core import EventKind, Gone, History, Message, Point, Recalled, Removal, Role, Text
from everlong.engine import Call, Engine, Settings
from everlong.engine.summaries.commit import commit_summary
from everlong.errors import BudgetImpossible, InputError, NoThread, ThreadBusy
from everlong.llm import ScriptedModel, Window, reads_files
from everlong.store import MemoryThreads
from everlong.wire import valid
from tests.core.build import assistant, calls, result, system, user
from tests.engine.summaries.test_commit import WRITTEN, cut_before_its_summary, work_in
from tests.engine.talking import FORMATS, Talk
from tests.properties.histories import conversations, histories

SAID = (
    system("Be kind."),
    user("My zebrafish is called Quentin."),
    assistant("A fine name."),
    user("Read the list."),
    calls("1", "2"),
    result("1", "one"),
    result("2", "two"),
    assistant("Two entries."),
    user("Thanks."),
)


def engine_with(messages: Sequence[Message], **chosen: str) -> Engine:
    engine = Engine(MemoryThreads(), **chosen)  # type: ignore[arg-type]
    engine.threads.create("t")
    engine.threads.append("t", messages)
    return engine


def request(engine: Engine, fmt: str = "openai-chat", thread: str = "t", **more: int) -> History:
    return engine.blocking.prepare(thread, Call(model="gpt-4o", fmt=fmt, max_tokens=100, **more)).request.messages  # type: ignore[arg-type]


def text_of(messages: History) -> str:
    return "\n".join([text for m in messages for text in (m.text, *(r.text for r in m.results))])


@pytest.mark.parametrize(
    ("deleted", "goes"),
    [
        ([1], (1,)),
        ([2], (2,)),
        ([4], (4, 5, 6)),
        ([5], (4, 5, 6)),
        ([6, 1], (1, 4, 5, 6)),
        ([8], (8,)),
    ],
    ids=["a question", "an answer", "an answer with calls", "one of its results", "two of them", "the last"],
)
@pytest.mark.parametrize("fmt", FORMATS)
def test_the_next_request_is_as_if_it_was_never_said(fmt: str, deleted: list[int], goes: tuple[int, ...]) -> None:
    engine = engine_with(SAID)
    before = request(engine, fmt)
    assert engine.blocking.remove_messages("t", deleted) == goes
    other = engine_with([message for at, message in enumerate(SAID) if at not in goes])
    now = request(engine, fmt)
    assert now == request(other, fmt)
    assert valid(fmt, now)
    assert engine.blocking.restore_messages("t", [goes[-1]]) == goes
    assert request(engine, fmt) == before


@settings(max_examples=40, deadline=None)
@given(conversations() | histories(), st.data())
def test_any_messages_of_any_history(history: History, data: st.DataObject) -> None:
    free = [at for at, message in enumerate(history) if message.role is not Role.SYSTEM]
    if not free:
        return
    engine = engine_with(history)
    gone: set[int] = set()
    for order in data.draw(st.lists(st.sampled_from(free), min_size=1, max_size=4)):
        if order not in gone:
            gone |= set(engine.blocking.remove_messages("t", [order]))
    left = [message for at, message in enumerate(history) if at not in gone]
    fmt = data.draw(st.sampled_from(FORMATS))
    now = request(engine, fmt)
    assert now == request(engine_with(left), fmt)
    assert valid(fmt, now)
    fresh = Engine(engine.threads)
    assert request(fresh, fmt) == now, "another process sends the same"


@settings(max_examples=10, deadline=None)
@given(st.data())
def test_no_word_of_it_is_in_what_compactions_and_recalls_left(data: st.DataObject) -> None:
    """A small window: rounds are cut, summed up by rules, recalled; then some of them are deleted."""
    engine = engine_with([system("Be brief.")])
    said: dict[int, str] = {}
    for turn in range(data.draw(st.integers(4, 14))):
        word = f"walrus{turn}x"
        rows = engine.blocking.append("t", [user(f"{word} " + f"tells of tide {turn} and moon {turn}. " * 30)])
        said[rows[0].order] = word
        request(engine, served=4_000)
        rows = engine.blocking.append("t", [assistant(f"noted {word} " + "the sea is wide " * 40)])
        said[rows[0].order] = word
        if data.draw(st.booleans()):
            engine.blocking.append("t", [user(f"what did walrus{data.draw(st.integers(0, turn))}x say of the tide?")])
            request(engine, served=4_000)
        if data.draw(st.integers(0, 5)) == 0:
            engine.blocking.compact("t", Call(model="gpt-4o", served=4_000, max_tokens=100))
    turns = sorted(set(said.values()))
    forgotten = data.draw(st.lists(st.sampled_from(turns), min_size=1, max_size=3, unique=True))
    told = [row.order for row in engine.threads.read("t") if _tells(row.entry, forgotten)]
    engine.blocking.remove_messages("t", told)
    for one in (engine, Engine(engine.threads)):
        now = request(one, served=4_000)
        assert valid("openai-chat", now)
        assert [word for word in forgotten if word in text_of(now)] == []
        assert all(not one.blocking.recall("t", word).hits for word in forgotten)
    rows = [row.entry for row in engine.threads.read("t")]
    assert not [word for word in forgotten if word in repr(rows)]


def _tells(entry: object, words: Sequence[str]) -> bool:
    return isinstance(entry, Message) and any(word in entry.text for word in words)


async def long_talk() -> Talk:
    talk = Talk(ScriptedModel(reads_files(1), Window(8_000, told=True)), Settings(window=8_000))
    said = "The harbour password of the lighthouse keeper is amber-heron-42."
    await talk.engine.append(talk.thread, [user(said), assistant("Noted.")])
    for turn in range(14):
        await talk.say(f"Question {turn}: what does function_{turn} do?")
    await talk.engine.compact(talk.thread, talk.call)
    await talk.engine.append(talk.thread, [user("What was the harbour password of the lighthouse keeper?")])
    return talk


def test_compactions_and_recalls_that_tell_of_it_go_and_come_back_with_it() -> None:
    async def run() -> None:
        talk = await long_talk()
        before = (await talk.engine.prepare(talk.thread, talk.call)).request.messages
        assert any(isinstance(row.entry, Recalled) for row in talk.threads.read(talk.thread))
        assert "amber-heron-42" in text_of(before)
        gone = await talk.engine.remove_messages(talk.thread, [1])
        assert talk.threads.points(talk.thread) == []
        prepared = await talk.engine.prepare(talk.thread, talk.call)
        now = prepared.request.messages
        assert "amber-heron-42" not in text_of(now)
        assert prepared.tokens <= prepared.budget.window - prepared.budget.reply, "never an overflow"
        assert any(isinstance(row.entry, Point) for row in talk.threads.read(talk.thread)), "compacted at once"
        assert 1 in gone
        await talk.engine.restore_messages(talk.thread, [1])
        again = (await talk.engine.prepare(talk.thread, talk.call)).request.messages
        assert again == before, "the compaction of before stands again"

    asyncio.run(asyncio.wait_for(run(), 300))


def test_a_summary_that_was_being_written_meanwhile_is_not_kept() -> None:
    async def run() -> None:
        talk, snapshot = await cut_before_its_summary()
        await talk.engine.remove_messages(talk.thread, [1])
        context = talk.engine.blocking.context
        with context.journal(talk.thread) as journal:
            outcome = commit_summary(work_in(talk, journal), snapshot, replace(WRITTEN, context="amber-heron-42"))
        assert outcome.kind is EventKind.SUMMARY_SKIPPED

    asyncio.run(asyncio.wait_for(run(), 300))


def test_what_is_erased_goes_for_good_in_every_thread_that_shares_it() -> None:
    engine = engine_with(SAID)
    engine.threads.branch("t", 5, "b")
    request(engine, thread="b")
    assert engine.blocking.erase_messages("t", [1]) == {"t": (1,), "b": (1,)}
    for name in ("t", "b"):
        assert "zebrafish" not in text_of(request(engine, thread=name))
        assert isinstance([row.entry for row in engine.threads.read(name)][1], Gone)
    assert engine.blocking.restore_messages("t", [1]) == ()
    assert "zebrafish" not in text_of(request(engine))
    assert engine.blocking.erase_messages("t", [1]) == {}


def test_what_was_deleted_can_be_erased() -> None:
    engine = engine_with(SAID)
    engine.blocking.remove_messages("t", [4])
    assert engine.blocking.erase_messages("t", [4]) == {"t": (4, 5, 6)}
    assert "one" not in text_of(request(engine))


@pytest.mark.parametrize(
    ("title", "after"),
    [
        ("A zebrafish called Quentin", "Read the list."),
        ("Reading the list", "Reading the list"),
        ("Be kind to lists", "Be kind to lists"),
        ("", ""),
    ],
)
def test_a_title_that_tells_of_it_is_made_again(title: str, after: str) -> None:
    for erases in (False, True):
        engine = engine_with(SAID)
        engine.threads.change("t", title=title)
        (engine.blocking.erase_messages if erases else engine.blocking.remove_messages)("t", [1])
        assert engine.threads.thread("t").title == after
    engine = engine_with(SAID)
    engine.threads.change("t", title=title)
    engine.blocking.remove_messages("t", [1])
    engine.blocking.restore_messages("t", [1])
    assert engine.threads.thread("t").title == ("My zebrafish is called Quentin." if title != after else title)


@pytest.mark.parametrize(
    ("orders", "why"),
    [
        ([], "name at least one"),
        ([99], "no message 99"),
        ([-1], "orders"),
        ([0], "system text"),
        ([1, 99], "no message 99"),
        ("1", "orders"),
        (["1"], "orders"),
    ],
)
def test_what_is_no_message_is_refused_and_nothing_goes(orders: Sequence[int], why: str) -> None:
    engine = engine_with(SAID)
    for use in (engine.blocking.remove_messages, engine.blocking.restore_messages, engine.blocking.erase_messages):
        if use == engine.blocking.restore_messages and why.startswith(("no message", "system")):
            continue
        with pytest.raises(Exception, match=why) as told:
            use("t", orders)
        assert isinstance(told.value, InputError) or "erase" in str(told.value)
    with pytest.raises(InputError, match="was not deleted"):
        engine.blocking.restore_messages("t", [1])
    with pytest.raises(NoThread):
        engine.blocking.remove_messages("nowhere", [1])
    assert engine.threads.thread("t").length == len(SAID)


def test_twice_is_refused() -> None:
    engine = engine_with(SAID)
    engine.blocking.remove_messages("t", [1])
    with pytest.raises(InputError, match="no message 1 to delete"):
        engine.blocking.remove_messages("t", [1])


def test_everything_can_be_deleted_and_the_talk_goes_on() -> None:
    engine = engine_with(SAID)
    for order in (1, 2, 3, 4, 7, 8):
        engine.blocking.remove_messages("t", [order])
    assert engine.blocking.preview("t", Call(model="gpt-4o")).messages == 1
    engine.blocking.append("t", "Hello again")
    assert text_of(request(engine)) == "Be kind.\nHello again"
    with pytest.raises(BudgetImpossible):
        request(engine, served=50)


def test_while_a_turn_is_under_way_it_waits_or_is_refused() -> None:
    async def run() -> None:
        engine = Engine(MemoryThreads(), busy="refuse")
        replies = engine.stream("t", "hello", model=ScriptedModel(reads_files(1)))
        await anext(replies)
        with pytest.raises(ThreadBusy):
            await engine.remove_messages("t", [0])
        await replies.aclose()
        assert await engine.remove_messages("t", [0]) == (0,)
        entries = [row.entry for row in engine.threads.read("t")]
        assert any(isinstance(entry, Removal) for entry in entries)
        assert not any(isinstance(entry, Message) and entry.parts == (Text("hello"),) for entry in entries)

    asyncio.run(run())
