"""The context document, walked through: its worker loop (history, compressor, assembler, model), chat by chat.

Through the engine, with a scripted model over HTTP and a real store.
"""

import json
from pathlib import Path

import pytest

from everlong.core import EventKind, History, Message, Role, user_text
from everlong.engine import Call, Finished, Settings
from everlong.llm import Answer, HttpModel, ReceivedRequest, ScriptedServer
from everlong.store import open_store
from tests.core.build import assistant, calls, result, user
from tests.engine.talking import FORMATS, Talk, over_http

MODEL = "gpt-4o"
SYSTEM = "Work carefully."
SIMPLE = Settings.from_environment({"EVERLONG_PRESET": "simple"})


def talk_in(folder: Path, model: HttpModel, settings: Settings = SIMPLE, thread: str = "chat 42") -> Talk:
    store = open_store(f"sqlite:///{folder / 'worker.db'}")
    return Talk(model, settings, Call(model=MODEL, max_tokens=500), thread=thread, threads=store)


def last_of(stored: History, count: int) -> list[str]:
    """What the document sends of a history: the last messages of it, from a user message on."""
    kept = list(stored[-count:])
    while kept and kept[0].role is not Role.USER:
        kept.pop(0)
    return [message.text for message in kept]


def sent_by(request: ReceivedRequest) -> tuple[str, list[str], str]:
    """System text, history and question of a request."""
    system = "".join(message.text for message in request.messages if message.role is Role.SYSTEM)
    spoken = [message for message in request.messages if message.role is not Role.SYSTEM]
    return system, [message.text for message in spoken[:-1]], user_text(spoken[-1])


@pytest.mark.parametrize("fmt", FORMATS)
def test_CS_4_CS_5_the_worker_sends_system_the_last_twelve_and_the_question(fmt: str, tmp_path: Path) -> None:
    with ScriptedServer(lambda asked: Answer(text=f"Answer {asked.number}.")) as server:

        async def run(model: HttpModel) -> None:
            talk = talk_in(tmp_path, model)
            for turn in range(20):
                history = talk.stored[1:]
                assert isinstance((await talk.say(f"Question {turn}?"))[-1], Finished)
                system, sent, question = sent_by(server.requests[-1])
                assert system == SYSTEM
                assert sent == last_of(history, 12)
                assert len(sent) == min(12, 2 * turn)
                assert question == f"Question {turn}?"
            assert len(talk.stored) == 1 + 2 * 20, "the history keeps everything"

        over_http(server, run, fmt)
        assert not any(b"(continued)" in request.body for request in server.requests)


#: Histories whose last twelve messages do not begin with a user's.
UNEVEN = {
    "two answers in a row": [
        *(message for n in range(9) for message in (user(f"q{n}"), assistant(f"a{n}"))),
        user("q9"),
        assistant("a9"),
        assistant("And one thing more."),
    ],
    "a question and a tool": [
        *(message for n in range(9) for message in (user(f"q{n}"), assistant(f"a{n}"))),
        user("q9"),
        calls("c1", name="read_file"),
        result("c1", "the file", name="read_file"),
        assistant("a9"),
        assistant("And one thing more."),
    ],
}


@pytest.mark.parametrize("fmt", FORMATS)
@pytest.mark.parametrize("stored", UNEVEN.values(), ids=UNEVEN)
def test_CS_4_the_first_of_the_twelve_is_a_user_message_and_no_stub_stands_before_it(
    stored: list[Message], fmt: str, tmp_path: Path
) -> None:
    with ScriptedServer(lambda _: Answer(text="ok")) as server:

        async def run(model: HttpModel) -> None:
            talk = talk_in(tmp_path, model)
            talk.threads.append(talk.thread, stored)
            assert isinstance((await talk.say("And now?"))[-1], Finished)

        over_http(server, run, fmt)
        (request,) = server.requests
    spoken = [message for message in request.messages if message.role is not Role.SYSTEM]
    expected = last_of(tuple(stored), 12)
    assert len(expected) == 11
    assert user_text(spoken[0]) == expected[0]
    told = "\n".join(message.text for message in spoken)
    assert all(text in told for text in expected if text != "the file")
    assert stored[7].text not in told
    assert b"(continued)" not in request.body


@pytest.mark.parametrize(("characters", "left"), [(3_999, 3_999), (4_000, 4_000), (9_000, 4_000)])
def test_CS_4_a_message_has_at_most_four_thousand_characters(characters: int, left: int, tmp_path: Path) -> None:
    with ScriptedServer(lambda _: Answer(text="ok")) as server:

        async def run(model: HttpModel) -> None:
            talk = talk_in(tmp_path, model)
            talk.threads.append(
                talk.thread, [user("abcd " * (characters // 5) + "x" * (characters % 5)), assistant("ok")]
            )
            assert isinstance((await talk.say("And now?"))[-1], Finished)

        over_http(server, run)
        sent = server.requests[0].messages[1].text
    assert left - 100 < len(sent) <= left
    assert sent.startswith("abcd abcd ")


def test_CS_4_an_empty_history_and_one_with_nothing_to_do(tmp_path: Path) -> None:
    with ScriptedServer(lambda _: Answer(text="ok")) as server:

        async def run(model: HttpModel) -> None:
            talk = talk_in(tmp_path, model)
            for turn in range(7):
                await talk.say(f"Question {turn}?")
            assert EventKind.CONTEXT_COMPRESSED.value not in talk.kinds(), "twelve messages and a question"
            await talk.say("Question 7?")
            assert talk.kinds().count(EventKind.CONTEXT_COMPRESSED.value) == 1

        over_http(server, run)
        assert [message.text for message in server.requests[0].messages] == [SYSTEM, "Question 0?"]


def test_CS_3_each_chat_has_its_own_history(tmp_path: Path) -> None:
    with ScriptedServer(lambda _: Answer(text="ok")) as server:

        async def run(model: HttpModel) -> None:
            one, two = (talk_in(tmp_path, model, thread=name) for name in ("chat 1", "chat 2"))
            for turn in range(3):
                await one.say(f"One {turn}?")
                await two.say(f"Two {turn}?")

        over_http(server, run)
        first, second = server.requests[-2:]
    assert [text for text in sent_by(first)[1] if text != "ok"] == ["One 0?", "One 1?"]
    assert [text for text in sent_by(second)[1] if text != "ok"] == ["Two 0?", "Two 1?"]


def test_CS_6_the_cut_is_an_event_of_the_turn_before_the_model_is_called(tmp_path: Path) -> None:
    with ScriptedServer(lambda _: Answer(text="ok")) as server:

        async def run(model: HttpModel) -> Talk:
            talk = talk_in(tmp_path, model)
            talk.call = Call(model=MODEL, max_tokens=500, parent="agent-1")
            talk.threads.append(talk.thread, [m for n in range(20) for m in (user(f"q{n}"), assistant(f"a{n}"))])
            await talk.say("And now?")
            return talk

        events = over_http(server, run).events
    kinds = [event.kind.value for event in events]
    assert kinds == ["turn.started", "context.compressed", "usage.recorded", "turn.finished"]
    assert (events[0].parent, events[1].parent) == ("agent-1", events[0].id)
    assert json.loads(events[1].data) == {
        "original_count": 42,
        "compressed_count": 14,
        "max_messages": 12,
        "max_chars_per_message": 4_000,
    }


@pytest.mark.parametrize("window", [0, 3, 6])
def test_CS_7_the_two_figures_come_from_the_environment(window: int, tmp_path: Path) -> None:
    variables = {
        "EVERLONG_PRESET": "simple",
        "EVERLONG_HISTORY_WINDOW": str(window),
        "EVERLONG_MAX_CHARS_PER_MESSAGE": "500",
    }
    with ScriptedServer(lambda _: Answer(text="word " * 400)) as server:

        async def run(model: HttpModel) -> Talk:
            talk = talk_in(tmp_path, model, Settings.from_environment(variables))
            for turn in range(8):
                await talk.say(f"Question {turn}?")
            return talk

        over_http(server, run)
        _, sent, question = sent_by(server.requests[-1])
    assert question == "Question 7?"
    assert len(sent) == window // 2 * 2
    assert all(400 < len(text) <= 500 for text in sent[1::2])
