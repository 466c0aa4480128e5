"""The two documents about nanobot, walked through from their beginning to their end, as a person who chose the preset.

Through the engine, with a scripted model over HTTP and a real store. Each figure has a lower and an upper bound.
"""

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from everlong.core import EventKind, History, Message, Reasoning, Role, rounds_of, user_text
from everlong.engine import Author, Call, Engine, Finished, Settings, Summaries
from everlong.llm import Answer, Endpoint, HttpModel, ReceivedRequest, Refusal, ScriptedServer
from everlong.store import open_store
from everlong.tokens import Counter
from tests.core.build import assistant, calls, result, user
from tests.engine.talking import Talk, over_http

MODEL = "gpt-4o"
COUNTER = Counter(MODEL)
PRESETS = ("nanobot", "nanobot-v3")
WORDS = ("harbour", "lantern", "copper", "meadow", "signal", "winter", "bridge", "kettle", "orchard", "paper", "river")
#: It names the window, so that a full history fits again.
TOO_LONG = Refusal(400, '{"error":{"message":"prompt is too long: 70000 tokens > 64000 maximum"}}')


def words(count: int, seed: int) -> str:
    chosen = random.Random(seed)
    return " ".join(f"{chosen.choice(WORDS)}{chosen.randrange(1_000)}" for _ in range(count))


def talk_in(folder: Path, model: HttpModel, preset: str, window: int, **more: object) -> Talk:
    settings = Settings().with_values({"preset": preset, "window": window, **more})
    store = open_store(f"sqlite:///{folder / 'chat.db'}")
    return Talk(model, settings, Call(model=MODEL), threads=store)


def history(rounds: int, tokens: int, *, asked: int = 0) -> list[Message]:
    """So many questions with their answers, of about so many tokens a pair, and more in the question if `asked`."""
    questions = (f"Question {n}{words(asked // 2, -n)}" for n in range(rounds))
    pairs = ((user(text), assistant(f"Answer {n}: {words(tokens // 2, n)}")) for n, text in enumerate(questions))
    return [message for pair in pairs for message in pair]


def spoken(messages: History) -> int:
    """Messages of user and assistant, without the question that is asked now."""
    return sum(message.role in (Role.USER, Role.ASSISTANT) and not message.calls for message in messages) - 1


def asked(folder: Path, preset: str, window: int, stored: list[Message], **more: object) -> ReceivedRequest:
    """What the model received for one more question after a past of these messages."""
    with ScriptedServer(lambda _: Answer(text="ok")) as server:

        async def run(model: HttpModel) -> None:
            talk = talk_in(folder, model, preset, window, **more)
            talk.threads.append(talk.thread, stored)
            assert isinstance((await talk.say("And now?"))[-1], Finished)

        over_http(server, run)
        return server.requests[0]


# --- the history (N1 stage 4, V3 phase 3) ---------------------------------------------------------------------------


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("window", [64_000, 200_000])
def test_N1_4_N3_11_a_long_past_is_sent_as_fifty_messages_where_they_fit(
    preset: str, window: int, tmp_path: Path
) -> None:
    stored = history(140, 1_000)
    assert 130_000 < COUNTER.messages(stored) < 160_000
    request = asked(tmp_path, preset, window, stored)
    assert spoken(request.messages) == 50
    newest = [f"Question {n}" for n in range(115, 140)]
    assert [user_text(message) for message in request.messages if message.role is Role.USER] == [*newest, "And now?"]


#: What each document gives the history, by window, with an answer of 4 096.
BUDGETS: dict[str, Callable[[int], float]] = {
    "nanobot": lambda window: window * 0.85 - 2_000,
    "nanobot-v3": lambda window: window - 4_096 - 4_096,
}


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize(("window", "tokens"), [(64_000, 1_500), (200_000, 4_500)])
def test_N1_4_N3_11_where_the_budget_decides_it_is_used(preset: str, window: int, tokens: int, tmp_path: Path) -> None:
    stored = history(40, tokens, asked=tokens)
    request = asked(tmp_path, preset, window, stored, max_assistant_message_chars=0)
    sent = COUNTER.messages(request.messages)
    budget = min(BUDGETS[preset](window), window * 0.85)
    pair = COUNTER.messages(stored[:2])
    assert 0.9 * budget - pair <= sent <= window * 0.85
    assert spoken(request.messages) < 50
    assert spoken(request.messages) % 2 == 0, "whole pairs"


@pytest.mark.parametrize("preset", PRESETS)
def test_N1_4_N3_11_the_number_of_messages_is_a_setting(preset: str, tmp_path: Path) -> None:
    assert spoken(asked(tmp_path, preset, 64_000, history(40, 300), max_messages=20).messages) == 20


@pytest.mark.parametrize("preset", PRESETS)
def test_N1_4_an_empty_session_and_a_short_one_are_sent_whole(preset: str, tmp_path: Path) -> None:
    for name, stored in (("empty", []), ("short", history(3, 200))):
        (tmp_path / name).mkdir()
        request = asked(tmp_path / name, preset, 64_000, stored)
        assert [message.text for message in request.messages[1:-1]] == [message.text for message in stored]


# --- tools in a running question (N1 stages 2 and 6, V3 phases 1 and 2) ----------------------------------------------


def tool_rounds(folder: Path, preset: str, past: list[Message], lines: int) -> list[ReceivedRequest]:
    """One question and twenty calls of a tool, each with a result of so many lines of about twenty tokens."""
    left = list(range(20))

    def script(request: ReceivedRequest) -> Answer:
        if request.messages[-1].role is Role.USER:
            left[:] = range(20)
        if not left:
            return Answer(text="Done.")
        return Answer(calls=(("read_file", f'{{"path": "src/part_{left.pop(0)}.py"}}'),))

    class Work(Talk):
        def answered(self, call: str) -> Message:
            return result(call, "\n".join(words(9, hash(call) + n) for n in range(lines)), name="read_file")

    with ScriptedServer(script) as server:

        async def run(model: HttpModel) -> None:
            store = open_store(f"sqlite:///{folder / 'chat.db'}")
            talk = Work(model, Settings(preset=preset, window=64_000), Call(model=MODEL), threads=store)
            talk.threads.append(talk.thread, past)
            assert isinstance((await talk.say("Read everything and report."))[-1], Finished)

        over_http(server, run)
        return list(server.requests)


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize(("lines", "rounds"), [(130, 0), (130, 30)], ids=["alone", "after a past"])
def test_N1_2_4_N3_7_twenty_tool_rounds_in_one_question_stay_under_85_percent(
    preset: str, lines: int, rounds: int, tmp_path: Path
) -> None:
    requests = tool_rounds(tmp_path, preset, history(rounds, 800), lines)
    assert len(requests) == 21
    shares = [COUNTER.messages(request.messages) / 64_000 for request in requests]
    assert max(shares) <= 0.85
    assert max(shares) > 0.45, "the case is large enough to matter"
    full = next(at for at, share in enumerate(shares) if share > 0.45)
    assert min(shares[full:]) >= 0.35, "it does not fall to nothing once it was half full"
    for request in requests:
        assert request.messages[0].text.startswith("Work carefully.")
        assert any(user_text(message) == "Read everything and report." for message in request.messages)


def test_N1_2_2_N1_2_3_the_oldest_results_become_lines_that_name_the_file(tmp_path: Path) -> None:
    last = tool_rounds(tmp_path, "nanobot", [], 130)[-1]
    results = [one.text for message in last.messages for one in message.results]
    short = ["\n" not in text and len(text) < 300 for text in results]
    assert short == sorted(short, reverse=True), "the oldest first"
    assert 1 <= sum(short) < 20
    assert "read_file" in results[0]
    assert "src/part_0.py" in results[0]


def test_N1_6_an_old_decision_outlives_a_new_listing(tmp_path: Path) -> None:
    size = 4_000
    past = [
        user("Plan it."),
        calls("d", name="run"),
        result("d", f"decision: use SQLite. {words(size, 1)}", name="run"),
    ]
    past.append(assistant("Planned."))
    for n in range(8):
        look = calls(f"l{n}", name="list_files", arguments=f'{{"path": "d{n}"}}')
        past += [user(f"Look {n}"), look, result(f"l{n}", words(size // 3, n), name="list_files"), assistant("Seen.")]
    request = asked(tmp_path, "nanobot", 32_000, past)
    texts = {one.name: one.text for message in request.messages for one in message.results}
    lines = [one.text for message in request.messages for one in message.results if len(one.text) < 300]
    assert texts["run"].startswith("decision: use SQLite.")
    assert lines
    assert all("list_files" in line for line in lines)


# --- overflow (N1 stage 3, V3 phase 2) ----------------------------------------------------------------------------


@pytest.mark.parametrize(("preset", "rounds"), [("nanobot", 5), ("nanobot-v3", None)])
def test_N1_3_N3_8_after_an_overflow_the_emergency_as_written_then_the_full_history_again(
    preset: str, rounds: int | None, tmp_path: Path
) -> None:
    past: list[Message] = []
    for n in range(20):
        thought = assistant(f"Answer {n}", reasoning="Hm. " * 40)
        past += [user(f"Question {n}"), calls(f"c{n}"), result(f"c{n}", words(60, n), name="read_file"), thought]
    refused = [TOO_LONG]
    with ScriptedServer(lambda _: refused.pop() if refused else Answer(text="ok")) as server:

        async def run(model: HttpModel) -> Talk:
            talk = talk_in(tmp_path, model, preset, 64_000)
            talk.threads.append(talk.thread, past)
            assert isinstance((await talk.say("And now?"))[-1], Finished)
            assert isinstance((await talk.say("And then?"))[-1], Finished)
            return talk

        talk = over_http(server, run)
        first, emergency, later = (request.messages for request in server.requests)
    assert len(rounds_of(first)) == 21
    assert len(rounds_of(emergency)) == rounds if rounds else 8 <= len(emergency) <= 14
    assert all(len(one.text) < 200 for message in emergency for one in message.results)
    assert not any(isinstance(part, Reasoning) for message in emergency for part in message.parts)
    assert COUNTER.messages(emergency) < 0.6 * 64_000
    assert user_text(emergency[-1]) == "And now?"
    assert len(rounds_of(later)) == 22, "the next call begins from the full history again"
    assert talk.kinds().count(EventKind.OVERFLOW_DETECTED.value) == 1


# --- summaries (N1 stages 5, 8 and 9) --------------------------------------------------------------------------------


def summaries_of(folder: Path, preset: str, window: int, tokens: int) -> tuple[list[History], list[str]]:
    """Forty rounds with summaries switched on: what the model of the conversation received, and what was summarised."""
    told: list[str] = []

    def author(request: ReceivedRequest) -> Answer:
        told.append(request.messages[-1].text)
        return Answer(
            text='{"decisions": ["use SQLite"], "constraints": [], "open_questions": [], "file_changes": [], '
            '"context": "Questions were answered one by one."}'
        )

    with (
        ScriptedServer(author) as writing,
        ScriptedServer(lambda a: Answer(text=words(tokens // 2, a.number))) as server,
    ):

        async def run(model: HttpModel) -> None:
            talk = talk_in(folder, model, preset, window, summaries="on", max_assistant_message_chars=0)
            async with HttpModel(server_endpoint(writing)) as cheap:
                summaries = Summaries(talk.engine, [Author(model=cheap, name="gpt-4o-mini")], own_model=False)
                for n in range(40):
                    assert isinstance((await talk.say(f"Question {n} of forty?"))[-1], Finished)
                    await summaries.drain()

        over_http(server, run)
        return [request.messages for request in server.requests], told


def server_endpoint(server: ScriptedServer) -> Endpoint:
    return Endpoint(url=server.url, fmt="openai-chat", key="secret")


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize(("window", "tokens"), [(64_000, 300), (16_000, 900)], ids=["with room", "without room"])
def test_N1_5_N1_8_every_round_is_in_the_request_or_in_the_summary(
    preset: str, window: int, tokens: int, tmp_path: Path
) -> None:
    requests, told = summaries_of(tmp_path, preset, window, tokens)
    assert 2 <= len(told) <= 14
    summarised = "\n".join(told)
    last = requests[-1]
    shown = "\n".join(message.text for message in last)
    for n in range(40):
        question = f"Question {n} of forty?"
        assert question in shown or question in summarised, f"round {n} is in no place"
    assert any("use SQLite" in message.text for message in last), "the summary is sent"
    assert COUNTER.messages(last) <= 0.85 * window


def test_the_engine_of_the_document_makes_no_call_of_its_own(tmp_path: Path) -> None:
    """N3-13, N1-10: with summaries as the documents leave them, off, nobody but the conversation asks a model."""
    with ScriptedServer(lambda _: Answer(text=words(300, 1))) as server:

        async def run(model: HttpModel) -> Engine:
            talk = talk_in(tmp_path, model, "nanobot-v3", 16_000)
            summaries = Summaries(talk.engine)
            for n in range(30):
                await talk.say(f"Question {n}")
            await summaries.drain()
            return talk.engine

        over_http(server, run)
        assert len(server.requests) == 30
