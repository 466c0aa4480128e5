"""A conversation through the engine: what the model sees, call after call, and what is kept."""

import asyncio
import os
from itertools import pairwise

import pytest

from everlong.core import OUTCOMES, EventKind, Message, Point, Reasoning, Role, Text, Withdrawal
from everlong.engine.contracts import Call, Failed, Finished, Restarted, Said
from everlong.engine.engine import Engine
from everlong.engine.settings import Settings
from everlong.engine.turn import converse
from everlong.errors import BudgetImpossible, ContextOverflow, MalformedHistory, NotRecovered, ProviderError
from everlong.llm import Answer, HttpModel, Refusal, ScriptedModel, ScriptedServer, Window, in_turn, reads_files
from everlong.llm.scripted.script import Broken
from everlong.wire import Usage
from tests.core.build import system, user
from tests.engine.talking import FORMATS, Talk, lawful, over_http

MALFORMED = Refusal(
    400,
    '{"error":{"message":"messages.2: `tool_use` ids were found without `tool_result` blocks immediately after: '
    'call_0_0. Each `tool_use` block must have a corresponding `tool_result` block in the next message."}}',
)
TURNS = 2_000 if os.environ.get("EVERLONG_SOAK") else 60


def test_a_conversation_outgrows_its_window_unseen() -> None:
    model = ScriptedModel(reads_files(2), Window(16_000, told=True))
    talk = Talk(model)

    async def run() -> None:
        for turn in range(TURNS):
            before = talk.stored
            replies = await talk.say(f"Question {turn}: what does function_{turn} do?")
            assert isinstance(replies[-1], Finished)
            assert talk.stored[: len(before)] == before

    asyncio.run(run())
    lawful([asked.messages for asked in model.requests])
    assert all(asked.tokens + 500 <= 16_000 for asked in model.requests)
    extended = sum(two.messages[: len(one.messages)] == one.messages for one, two in pairwise(model.requests))
    cuts = talk.kinds().count(EventKind.CONTEXT_COMPRESSED.value)
    assert cuts > 2
    assert extended == len(model.requests) - 1 - cuts
    for asked in model.requests:
        questions = [message for message in asked.messages if message.text.startswith("Question")]
        assert questions[-1] in talk.stored
    _each_start_has_one_outcome(talk)


def _each_start_has_one_outcome(talk: Talk) -> None:
    events = talk.threads.events(talk.thread)
    for event in events:
        if event.kind in OUTCOMES:
            ends = [other for other in events if other.parent == event.id and other.kind in OUTCOMES[event.kind]]
            assert len(ends) == 1, event


def test_another_process_goes_on_with_the_same_bytes() -> None:
    model = ScriptedModel(reads_files(2), Window(16_000, told=True))
    talk = Talk(model)

    async def run() -> None:
        for turn in range(20):
            talk.engine = Engine(talk.threads, settings=talk.settings)  # nothing in memory from before
            await talk.say(f"Question {turn}")

    asyncio.run(run())
    cuts = talk.kinds().count(EventKind.CONTEXT_COMPRESSED.value)
    extended = sum(two.messages[: len(one.messages)] == one.messages for one, two in pairwise(model.requests))
    assert cuts >= 1
    assert extended == len(model.requests) - 1 - cuts


def test_an_unknown_window_is_learned_from_the_first_overflow_and_kept() -> None:
    model = ScriptedModel(reads_files(1), Window(8_000))
    talk = Talk(model, call=Call(model="some-new-model", max_tokens=500), lines=120)

    async def run() -> None:
        for turn in range(8):
            assert isinstance((await talk.say(f"Question {turn}"))[-1], Finished)

    asyncio.run(run())
    refused = [asked for asked in model.requests if asked.tokens + 500 > 8_000]
    assert len(refused) == 1
    assert talk.kinds().count("window.learned") == 1
    assert talk.kinds().count("overflow.recovered") == 1
    again = Engine(talk.threads).blocking.prepare(talk.thread, Call(model="some-new-model", endpoint="scripted"))
    assert (again.window.context, again.window.source) == (8_000, "learned")


def test_a_second_and_third_overflow_end_in_one_clear_error() -> None:
    always = Refusal(400, '{"error":{"message":"prompt is too long: 9000 tokens > 1000 maximum"}}')
    model = ScriptedModel(lambda asked: always)
    talk = Talk(model)
    replies = asyncio.run(talk.say("Hello"))
    (last,) = replies
    assert isinstance(last, Failed)
    assert isinstance(last.error, NotRecovered)
    assert len(model.requests) <= 3
    sizes = [asked.tokens for asked in model.requests]
    assert all(one > two for one, two in pairwise(sizes))
    assert talk.kinds()[-2:] == ["overflow.failed", "turn.failed"]


@pytest.mark.parametrize(
    ("words", "part"), [("你好，请继续", "新建对话"), ("Hello, go on", "new thread")], ids=["zh", "en"]
)
def test_the_last_word_is_in_the_users_language(words: str, part: str) -> None:
    model = ScriptedModel(lambda asked: Refusal(413, "request entity too large"))
    last = asyncio.run(Talk(model).say(words))[-1]
    assert isinstance(last, Failed)
    assert part in str(last.error)


def test_off_is_off_and_the_error_is_typed() -> None:
    model = ScriptedModel(reads_files(1), Window(3_000))
    talk = Talk(model, settings=Settings(mode="off"), lines=300)
    last = asyncio.run(talk.say("Hello"))[-1]
    assert isinstance(last, Failed)
    assert type(last.error) is ContextOverflow
    assert model.requests[-1].messages == talk.stored
    assert "context.compressed" not in talk.kinds()


def test_a_malformed_history_is_sent_once_more_as_plain_words() -> None:
    model = ScriptedModel(
        in_turn([Answer(text="Reading.", calls=(("read_file", "{}"),)), MALFORMED, Answer(text="Done.")])
    )
    talk = Talk(model)
    last = asyncio.run(talk.say("Read it"))[-1]
    assert isinstance(last, Finished)
    assert not any(message.calls or message.results for message in model.requests[-1].messages)
    assert any(message.calls for message in talk.stored)


def test_a_history_that_stays_malformed_is_an_error_after_one_more_try() -> None:
    model = ScriptedModel(in_turn([Answer(text="", calls=(("read_file", "{}"),))], then=lambda asked: MALFORMED))
    last = asyncio.run(Talk(model).say("Read it"))[-1]
    assert isinstance(last, Failed)
    assert isinstance(last.error, MalformedHistory)
    assert len(model.requests) == 3


def test_a_server_that_truncates_in_silence_is_found_out() -> None:
    model = ScriptedModel(reads_files(1), Window(4_096, truncates=True))
    talk = Talk(model, call=Call(model="a-model-of-mine"), lines=1_200)
    replies = asyncio.run(talk.say("Read it"))
    assert any(isinstance(reply, Restarted) for reply in replies)
    assert isinstance(replies[-1], Finished)
    assert model.requests[-1].tokens <= 4_096
    assert "window.learned" in talk.kinds()


def test_a_stream_that_breaks_is_an_error_event_and_its_words_stay() -> None:
    model = ScriptedModel(lambda asked: Broken(Answer(text="one two three four five six"), 1))
    talk = Talk(model)
    replies = asyncio.run(talk.say("Hello"))
    assert [type(reply) for reply in replies] == [Said, Failed]
    assert [message.role for message in talk.stored] == [Role.SYSTEM, Role.USER, Role.ASSISTANT]
    shown = "".join(reply.text for reply in replies if isinstance(reply, Said))
    assert shown
    assert talk.stored[-1].text == shown
    assert (talk.stored[-1].ending, talk.stored[-1].model) == ("broken off", "gpt-4o")
    assert talk.kinds()[-1] == "turn.failed"


def test_a_caller_who_goes_away_leaves_a_finished_turn_behind() -> None:
    talk = Talk(ScriptedModel(lambda asked: Answer(text="one two three four five six")))

    async def run() -> None:
        await talk.engine.append(talk.thread, [user("Hello")])
        stream = converse(talk.engine, talk.model, talk.thread, talk.call)
        first = await anext(stream)
        await stream.aclose()
        assert isinstance(first, Said)
        assert (talk.stored[-1].text, talk.stored[-1].ending) == (first.text, "stopped")

    asyncio.run(run())
    assert talk.kinds() == ["turn.started", "turn.failed"]
    assert not talk.threads.unfinished(talk.thread)


@pytest.mark.parametrize("fmt", FORMATS)
def test_after_words_or_thoughts_that_broke_off_every_provider_accepts_the_next_request(fmt: str) -> None:
    """The connection breaks after each piece in turn: after thoughts alone, and in the middle of the words."""
    answer = Answer(text="one two three " * 200, thinking="Hm, let me think.")
    last: list[tuple[type, ...]] = [()]

    async def run(model: HttpModel) -> None:
        talk = Talk(model, call=Call(model="m", fmt=fmt, max_tokens=500))
        assert isinstance((await talk.say("Hello"))[-1], Failed)
        if talk.stored[-1].role is Role.ASSISTANT:
            assert talk.stored[-1].ending == "broken off"
            last.append(tuple(type(part) for part in talk.stored[-1].parts))
        assert isinstance((await talk.say("And now?"))[-1], Finished)

    for pieces in range(1, 14):
        script = in_turn([Broken(answer, pieces), Answer(text="Good.")])
        with ScriptedServer(script, window=Window(16_000, told=True)) as server:
            over_http(server, run, fmt)
            lawful([asked.messages for asked in server.requests], fmt)
            cut_short = last[-1] == (Reasoning,)
            assert not (cut_short and "think" in server.requests[-1].body.decode()), "thoughts are whole or absent"
    assert {(Reasoning,), (Reasoning, Text)} <= {*last}


@pytest.mark.parametrize(
    ("answer", "ending"),
    [
        (Answer(text="All of it."), ""),
        (Answer(text="As far as it went", stop="length"), "length"),
        (Answer(text=""), "empty"),
    ],
)
def test_an_answer_says_how_it_ended_and_who_gave_it(answer: Answer, ending: str) -> None:
    talk = Talk(ScriptedModel(lambda asked: answer))
    asyncio.run(talk.say("Hello"))
    assert (talk.stored[-1].ending, talk.stored[-1].model) == (ending, "gpt-4o")


def test_what_alone_exceeds_the_window_is_told_in_parts_and_nothing_is_sent() -> None:
    model = ScriptedModel(window=Window(2_000, told=True))
    talk = Talk(model, call=Call(model="gpt-4o", max_tokens=200, tools=('{"name":"t"}',)))
    with pytest.raises(BudgetImpossible) as raised:
        asyncio.run(talk.say("word " * 4_000))
    assert dict(raised.value.parts)["the shortest answer"] == 200
    assert not model.requests
    assert talk.kinds() == ["turn.started", "turn.failed"]


def test_undo_gives_back_the_request_as_it_was() -> None:
    model = ScriptedModel(reads_files(1), Window(16_000, told=True))
    talk = Talk(model)

    async def run() -> None:
        for turn in range(5):
            await talk.say(f"Question {turn}")
        call = Call(model="gpt-4o", endpoint="scripted", served=16_000)
        before = await talk.engine.prepare(talk.thread, call)
        point = await talk.engine.compact(talk.thread, call)
        assert point is not None
        after = await talk.engine.prepare(talk.thread, call)
        assert after.tokens < before.tokens
        assert await talk.engine.undo(talk.thread) is not None
        undone = await talk.engine.prepare(talk.thread, call)
        assert undone.request.messages == before.request.messages
        assert await talk.engine.undo(talk.thread) is None

    asyncio.run(run())
    entries = [row.entry for row in talk.threads.read(talk.thread)]
    assert [type(entry) for entry in entries if not isinstance(entry, Message)] == [Point, Withdrawal]


def test_a_pinned_message_and_a_pinned_text_stand_in_every_request_on_every_path() -> None:
    model = ScriptedModel(reads_files(2), Window(16_000, told=True))
    talk = Talk(model)

    async def run() -> None:
        await talk.say("Remember: the port is 4711.")
        await talk.engine.pin(talk.thread, 1)
        await talk.engine.pin(talk.thread, text="Never touch the vendor folder.")
        start = len(model.requests)
        for turn in range(20):
            await talk.say(f"Question {turn}")
        await talk.engine.compact(talk.thread, Call(model="gpt-4o", endpoint="scripted", served=16_000))
        await talk.say("And now?")
        for asked in model.requests[start:]:
            texts = [message.text for message in asked.messages]
            assert texts.count("Remember: the port is 4711.") == 1
            assert texts.count("Never touch the vendor folder.") == 1

    asyncio.run(run())
    assert talk.kinds().count("context.compressed") > 2


def test_pins_above_their_share_are_refused_in_figures() -> None:
    talk = Talk(ScriptedModel(window=Window(8_000, told=True)))

    async def run() -> None:
        await talk.engine.pin(talk.thread, text="word " * 3_000)
        await talk.say("Hello")

    with pytest.raises(BudgetImpossible, match="pinned text"):
        asyncio.run(run())


def test_a_smaller_model_is_adapted_to_before_the_request_and_a_larger_one_gets_all_back() -> None:
    large = ScriptedModel(reads_files(2), Window(128_000, told=True), endpoint="large")
    talk = Talk(large)

    async def run() -> None:
        for turn in range(15):
            await talk.say(f"Question {turn}")
        small = ScriptedModel(reads_files(2), Window(8_000, told=True), endpoint="small")
        talk.model = small
        await talk.say("On a small one")
        assert all(asked.tokens + 500 <= 8_000 for asked in small.requests)
        talk.model = large
        await talk.say("Back on the large one")

    asyncio.run(run())
    raw = [message for message in talk.stored if message.role is not Role.ASSISTANT]
    assert all(message in large.requests[-1].messages for message in raw)
    assert "context.restored" in talk.kinds()


def test_usage_that_lies_teaches_nothing() -> None:
    lie = Usage(prompt=10_000_000, output=5)
    model = ScriptedModel(lambda asked: Answer(text="ok", usage=lie), Window(32_000, told=True))
    talk = Talk(model)

    async def run() -> None:
        for turn in range(12):
            assert isinstance((await talk.say(f"Question {turn} " + "word " * 400))[-1], Finished)

    asyncio.run(run())
    assert "context.compressed" not in talk.kinds()


def test_other_errors_are_handed_on_as_they_are() -> None:
    model = ScriptedModel(lambda asked: Refusal(401, '{"error":{"message":"bad key"}}'))
    talk = Talk(model)
    last = asyncio.run(talk.say("Hello"))[-1]
    assert isinstance(last, Failed)
    assert type(last.error) is ProviderError
    assert len(model.requests) == 1


def test_an_empty_thread_of_system_text_alone_is_sent() -> None:
    talk = Talk(ScriptedModel())
    prepared = talk.engine.blocking.prepare(talk.thread, Call(model="gpt-4o"))
    assert prepared.request.messages[0] == system("Work carefully.")
