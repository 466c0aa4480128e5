"""Requirement lines about calls and their recovery, through the engine over HTTP.

N1-3.*, N1-4, N3-9 … 11, CB-3, CB-7, CS-6 … 8.
"""

import json
from itertools import pairwise

import pytest

from everlong.core import EventKind, Reasoning, Role
from everlong.engine import Call, Engine, Failed, Finished, Restarted, Settings
from everlong.errors import ContextOverflow, InputError, NotRecovered, ProviderError
from everlong.llm import Answer, HttpModel, Refusal, ScriptedServer, Window, in_turn, reads_files
from everlong.llm.scripted.script import Script
from everlong.store import MemoryThreads
from everlong.tokens import Counter
from tests.core.build import assistant, calls, result, system, user
from tests.engine.talking import FORMATS, Talk, over_http, pages

TOO_LONG = Refusal(400, '{"error":{"message":"prompt is too long: 9000 tokens > 8000 maximum"}}')
OTHERS = {
    "401": Refusal(401, '{"error":{"message":"Incorrect API key provided"}}'),
    "404": Refusal(404, '{"error":{"message":"The model `x` does not exist"}}'),
    "quota": Refusal(402, '{"error":{"message":"You exceeded your current quota"}}'),
    "parameter": Refusal(400, '{"error":{"message":"Unknown parameter: \'context_window\'."}}'),
}
OK = Answer(text="ok")
#: The three who call: what each has appended before it does.
CALLERS = {
    "user message": [user("What is the port?")],
    "system message": [user("[background task finished] The build is green.")],
    "sub-agent": [user("Find the port."), calls("sub_1"), result("sub_1", pages(3, 30))],
}


def _old(talk: Talk, rounds: int = 12) -> None:
    for at in range(rounds):
        old = assistant(f"Answer {at}.", reasoning="Hm. " * 50)
        talk.threads.append(
            talk.thread, [user(f"Question {at}"), calls(f"c{at}"), result(f"c{at}", pages(at, 30)), old]
        )


def _asked(
    script: Script, talk_of: type[Talk] = Talk, *, fmt: str = "openai-chat", **given: object
) -> tuple[Talk, ...]:
    """A thread with a past and one more question; the talk."""

    async def run(model: HttpModel) -> Talk:
        talk = talk_of(model, **given)  # type: ignore[arg-type]
        _old(talk)
        talk.last = (await talk.say("What is the port?"))[-1]  # type: ignore[attr-defined]
        return talk

    with ScriptedServer(script) as server:
        talk = over_http(server, run, fmt)
        talk.asked = list(server.requests)  # type: ignore[attr-defined]
    return (talk,)


@pytest.mark.parametrize("name", OTHERS)
def test_N1_3_1_other_errors_are_not_taken_for_an_overflow(name: str) -> None:
    (talk,) = _asked(lambda asked: OTHERS[name], settings=Settings(preset="nanobot"))
    assert isinstance(talk.last, Failed)  # type: ignore[attr-defined]
    assert not isinstance(talk.last.error, ContextOverflow)  # type: ignore[attr-defined]
    assert "overflow.detected" not in talk.kinds()
    assert len(talk.asked) == 1  # type: ignore[attr-defined]


@pytest.mark.parametrize("preset", ["nanobot", "nanobot-v3", "auto"])
@pytest.mark.parametrize("fmt", FORMATS)
def test_N1_3_2_an_overflow_is_compressed_and_tried_again_unseen(fmt: str, preset: str) -> None:
    async def run(model: HttpModel) -> None:
        talk = Talk(model, settings=Settings(preset=preset))
        _old(talk)
        replies = await talk.say("What is the port?")
        assert isinstance(replies[-1], Finished)
        assert not any(isinstance(reply, Failed | Restarted) for reply in replies)
        assert talk.stored[-1].text == "ok"
        assert [kind for kind in talk.kinds() if kind.startswith("overflow")] == [
            "overflow.detected",
            "overflow.recovered",
        ]

    with ScriptedServer(in_turn([TOO_LONG], then=lambda asked: OK)) as server:
        over_http(server, run, fmt)
        one, two = server.requests
    assert two.tokens < one.tokens


@pytest.mark.parametrize("preset", ["nanobot", "nanobot-v3", "auto"])
def test_N1_3_2_if_that_fails_the_message_is_clear_and_no_raw_error(preset: str) -> None:
    (talk,) = _asked(lambda asked: TOO_LONG, settings=Settings(preset=preset))
    last = talk.last  # type: ignore[attr-defined]
    assert isinstance(last, Failed)
    assert isinstance(last.error, NotRecovered)
    assert "new thread" in str(last.error)
    assert "{" not in str(last.error)


def test_N1_3_3_the_emergency_view_keeps_system_text_and_question_and_is_under_60_percent() -> None:
    window = 8_000
    refused = in_turn([TOO_LONG], then=lambda asked: OK)
    (talk,) = _asked(refused, settings=Settings(preset="nanobot", window=window))
    one, two = talk.asked  # type: ignore[attr-defined]
    assert two.tokens <= 0.6 * window
    assert 0.5 * window < one.tokens <= 0.85 * window
    assert sum(message.role is Role.USER for message in two.messages) == 5, "the last rounds, no fewer"
    assert two.messages[0].text == one.messages[0].text == "Work carefully."
    assert two.messages[-1].text == "What is the port?"
    assert not any(isinstance(part, Reasoning) for message in two.messages for part in message.parts)


def test_N1_4_with_the_preset_nanobot_a_64k_model_sees_at_most_about_50k() -> None:
    threads = MemoryThreads()
    threads.create("t")
    threads.append("t", [system("rule " * 2_000)])
    for at in range(200):
        threads.append("t", [user(f"Question {at}"), assistant(pages(at, 60))])
    threads.append("t", [user("And now?")])
    blocking = Engine(threads, settings=Settings(preset="nanobot")).blocking
    prepared = blocking.prepare("t", Call(model="gpt-4o", served=64_000))
    system_text = Counter("gpt-4o").message(system("rule " * 2_000))
    budget = 64_000 * 0.85 - system_text - 2_000
    assert 0.9 * budget < prepared.counted - system_text <= budget or len(prepared.request.messages) == 52
    assert prepared.request.messages[-1] == user("And now?")


@pytest.mark.parametrize("caller", CALLERS)
def test_N3_9_all_three_callers_are_protected_by_the_same_call(caller: str) -> None:
    async def run(model: HttpModel) -> Talk:
        talk = Talk(
            model, settings=Settings(preset="nanobot-v3"), call=Call(model="gpt-4o", max_tokens=321, temperature=0.25)
        )
        _old(talk)
        await talk.engine.append(talk.thread, CALLERS[caller])
        assert isinstance((await talk.ask())[-1], Finished)
        server.model.script = lambda asked: TOO_LONG
        talk.threads.append(talk.thread, CALLERS["user message"])
        (last,) = await talk.ask()
        assert isinstance(last, Failed)
        assert isinstance(last.error, NotRecovered)
        talk.one_outcome_each()
        return talk

    with ScriptedServer(in_turn([TOO_LONG], then=lambda asked: OK)) as server:
        over_http(server, run)
    assert {(asked.max_tokens, asked.temperature) for asked in server.requests} == {(321, 0.25)}


def test_N3_10_an_overflow_is_an_exception_of_its_own_below_the_general_one() -> None:
    assert issubclass(ContextOverflow, ProviderError)
    (talk,) = _asked(lambda asked: TOO_LONG, settings=Settings(mode="off"))
    last = talk.last  # type: ignore[attr-defined]
    assert isinstance(last, Failed)
    assert type(last.error) is ContextOverflow
    assert (last.error.limit, last.error.requested) == (8_000, 9_000)


@pytest.mark.parametrize(("window", "reply"), [(32_768, 8_192), (16_000, 500), (12_000, 6_000)])
def test_N3_11_with_the_preset_v3_history_is_whole_within_window_less_reply_and_4_096(window: int, reply: int) -> None:
    threads = MemoryThreads()
    threads.create("t")
    for at in range(200):
        threads.append("t", [user(f"Question {at}"), assistant(pages(at, 30))])
    threads.append("t", [user("And now?")])
    blocking = Engine(threads, settings=Settings(preset="nanobot-v3")).blocking
    prepared = blocking.prepare("t", Call(model="gpt-4o", served=window, max_tokens=reply))
    budget = min(max(4_096, window - reply - 4_096), int(0.85 * window))
    pair = Counter("gpt-4o").messages([user("Question 199"), assistant(pages(199, 30))])
    assert budget - 1.1 * pair < prepared.counted <= budget or len(prepared.request.messages) == 51
    messages = prepared.request.messages
    assert messages[-1] == user("And now?")
    for one, two in pairwise(messages):
        if two.role is Role.ASSISTANT:
            assert one.role is Role.USER, "an answer has its question"


def test_CB_3_an_unknown_model_is_flagged_with_a_hint_to_configure() -> None:
    (talk,) = _asked(lambda asked: OK, call=Call(model="nobody-knows-me"))
    hints = [event.reason for event in talk.events if event.kind == EventKind.CONTEXT_WARNED]
    assert len(hints) == 1
    assert "nobody-knows-me" in hints[0]
    assert "EVERLONG_WINDOW" in hints[0]


def test_CB_7_a_switch_to_a_smaller_window_adapts_before_the_request() -> None:
    async def run(model: HttpModel) -> Talk:
        talk = Talk(model)
        _old(talk, 30)
        await talk.say("On the large one")
        server.model.window = Window(6_000)
        talk.call = Call(model="gpt-4o", max_tokens=500, served=6_000)
        assert isinstance((await talk.say("On the small one"))[-1], Finished)
        return talk

    with ScriptedServer(lambda asked: OK) as server:
        talk = over_http(server, run)
    assert "overflow.detected" not in talk.kinds()
    assert server.requests[-1].tokens + 500 <= 6_000
    assert server.requests[0].tokens > 6_000


def test_CS_6_a_cut_is_told_between_start_and_call_as_a_child_and_only_when_something_was_cut() -> None:
    (talk,) = _asked(lambda asked: OK, call=Call(model="gpt-4o", parent="agent-1"), settings=Settings(preset="simple"))
    kinds = talk.kinds()
    assert kinds == ["turn.started", "context.compressed", "usage.recorded", "turn.finished"]
    started, cut = talk.events[:2]
    assert started.parent == "agent-1"
    assert cut.parent == started.id
    told = json.loads(cut.data)
    assert told["original_count"] == len(talk.stored) - 1 == cut.messages_before
    assert told["compressed_count"] == len(talk.asked[0].messages) == cut.messages_after  # type: ignore[attr-defined]
    assert (told["max_messages"], told["max_chars_per_message"]) == (12, 4_000)
    short = Talk(talk.model, settings=Settings(preset="simple"))
    short.threads.append(short.thread, [user("Hello")])
    short.engine.blocking.prepare(short.thread, Call(model="gpt-4o"))
    assert short.kinds() == ["turn.started"]


def test_CS_6_a_cut_at_the_mark_has_the_same_names() -> None:
    (talk,) = _asked(lambda asked: OK, call=Call(model="gpt-4o", served=4_000, max_tokens=200))
    (cut,) = (event for event in talk.events if event.kind == EventKind.CONTEXT_COMPRESSED)
    told = json.loads(cut.data)
    assert told["original_count"] > told["compressed_count"] > 0
    assert told["max_messages"] is told["max_chars_per_message"] is None
    assert (cut.tokens_before or 0) > (cut.tokens_after or 0)


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, Settings()),
        ({"EVERLONG_MODE": "off"}, Settings(mode="off")),
        ({"EVERLONG_PRESET": "simple", "EVERLONG_THRESHOLD": "0.8"}, Settings(preset="simple", threshold=0.8)),
        ({"EVERLONG_WINDOW": "32000", "EVERLONG_RESERVE": "900"}, Settings(window=32_000, reserve=900)),
        ({"EVERLONG_RECALL_SHARE": "0", "OTHER": "x"}, Settings(recall_share=0.0)),
    ],
    ids=["nothing", "mode", "preset", "sizes", "recall"],
)
def test_CS_7_settings_come_from_the_environment(environment: dict[str, str], expected: Settings) -> None:
    assert Settings.from_environment(environment) == expected


@pytest.mark.parametrize("wrong", [{"EVERLONG_THRESHOLD": "2"}, {"EVERLONG_WINDOW": "big"}, {"EVERLONG_MODE": "maybe"}])
def test_CS_7_a_setting_that_makes_no_sense_is_refused_by_name(wrong: dict[str, str]) -> None:
    name = next(iter(wrong)).removeprefix("EVERLONG_").lower()
    with pytest.raises(InputError, match=name):
        Settings.from_environment(wrong)


@pytest.mark.parametrize("fmt", FORMATS)
def test_CS_8_budget_tool_output_many_providers_and_retrieval_work_together(fmt: str) -> None:
    """The document's future list, but the summary: one thread in each format, cut by tokens, old facts found again."""

    async def run(model: HttpModel) -> Talk:
        talk = Talk(model, call=Call(model="gpt-4o", max_tokens=500, served=8_000))
        await talk.say("The deployment password hint is heron-4711, remember it.")
        for turn in range(14):
            await talk.say(f"Question {turn}")
        await talk.say("What was the deployment password hint?")
        return talk

    with ScriptedServer(reads_files(1), window=Window(8_000, told=True)) as server:
        talk = over_http(server, run, fmt)
    assert talk.kinds().count("context.compressed") >= 2
    assert all(asked.tokens + 500 <= 8_000 for asked in server.requests)
    assert any("heron-4711" in message.text for message in server.requests[-1].messages)
