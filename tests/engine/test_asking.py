"""The engine in five lines: ask and stream, functions as tools, one turn at a time, owners, and SDKs that ask."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest

from everlong import (
    Call,
    ContextOverflow,
    Engine,
    Failed,
    Finished,
    HttpModel,
    InputError,
    NoThread,
    NotRecovered,
    Prepared,
    ProviderError,
    Said,
    Settings,
    ThreadBusy,
    open_engine,
)
from everlong.core import EventKind, Message, Role
from everlong.llm import ReceivedRequest
from everlong.llm.scripted.script import Script
from everlong.testing import Answer, Refusal, ScriptedServer, Window, in_turn


def run(script: Script, talk: Callable[[Engine, HttpModel], Any], **settings: Any) -> list[ReceivedRequest]:
    async def main() -> None:
        with ScriptedServer(script) as server, open_engine("memory:", **settings) as engine:
            async with HttpModel(server.url, "gpt-4o") as model:
                await talk(engine, model)
            asked.extend(server.requests)

    asked: list[ReceivedRequest] = []
    asyncio.run(main())
    return asked


def said(engine: Engine, thread: str) -> list[tuple[str, str]]:
    entries = [row.entry for row in engine.threads.read(thread)]
    return [(entry.role.value, entry.text) for entry in entries if isinstance(entry, Message)]


def test_a_question_is_asked_answered_and_kept_across_processes(tmp_path: Path) -> None:
    url = str(tmp_path / "chat.db")
    with ScriptedServer(lambda asked: Answer(text=f"{len(asked.messages)} messages")) as server:
        for number in (1, 3):  # each time as another process would
            with open_engine(url) as engine:
                answer = engine.blocking.ask("t", f"question {number}", model=HttpModel(server.url, "gpt-4o"))
                assert answer.text == f"{number} messages"
    with open_engine(url) as engine:
        assert said(engine, "t") == [
            ("user", "question 1"),
            ("assistant", "1 messages"),
            ("user", "question 3"),
            ("assistant", "3 messages"),
        ]


def test_an_answer_comes_piece_by_piece_and_the_system_text_is_not_kept() -> None:
    async def talk(engine: Engine, model: HttpModel) -> None:
        replies = [reply async for reply in engine.stream("t", "What floats?", model=model, system="Be brief.")]
        assert "".join(reply.text for reply in replies if isinstance(reply, Said)) == "Boats and ducks."
        assert isinstance(replies[-1], Finished)
        assert said(engine, "t") == [("user", "What floats?"), ("assistant", "Boats and ducks.")]

    (asked,) = run(lambda _: Answer(text="Boats and ducks."), talk)
    assert [(message.role.value, message.text) for message in asked.messages] == [
        ("system", "Be brief."),
        ("user", "What floats?"),
    ]


def weather(city: str, days: int = 1) -> dict[str, Any]:
    """Tell the weather of a city."""
    if city == "Atlantis":
        raise LookupError("no such city")
    return {"city": city, "days": days}


async def now() -> str:
    """Tell the time."""
    return "noon"


def calls(*made: tuple[str, str]) -> Answer:
    return Answer(calls=made)


def test_functions_are_called_until_the_model_has_no_more_calls() -> None:
    async def talk(engine: Engine, model: HttpModel) -> None:
        answer = await engine.ask("t", "How is Oslo?", model=model, tools=[weather, now])
        assert answer.text == "Fine."
        results = [
            result for row in engine.threads.read("t") if isinstance(row.entry, Message) for result in row.entry.results
        ]
        assert [(result.text, result.failed) for result in results] == [
            ('{"city":"Oslo","days":3}', False),
            ("noon", False),
            ("LookupError: no such city", True),
            ('city: missing; expected {"type": "string"}', True),
        ]

    made = [
        calls(("weather", '{"city": "Oslo", "days": "3"}'), ("now", "{}")),
        calls(("weather", '{"city": "Atlantis"}'), ("weather", "{}")),
        Answer(text="Fine."),
    ]
    asked = run(in_turn(made), talk)
    assert len(asked) == 3
    assert [len(request.tools) for request in asked] == [2, 2, 2]


def test_a_call_of_a_tool_that_is_only_a_schema_is_the_callers() -> None:
    schema = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}

    async def talk(engine: Engine, model: HttpModel) -> None:
        answer = await engine.ask("t", "Look.", model=model, tools=[schema, now])
        assert [call.name for call in answer.message.calls] == ["look"]

    assert len(run(lambda _: calls(("look", "{}")), talk)) == 1


def test_a_tool_that_is_not_there_is_told_so_and_the_others_are_answered() -> None:
    async def talk(engine: Engine, model: HttpModel) -> None:
        assert (await engine.ask("t", "Go.", model=model, tools=[now])).text == "Fine."
        results = [result.text for row in engine.threads.read("t") for result in getattr(row.entry, "results", ())]
        assert results == ["there is no tool 'nope'; available tools: now", "noon"]

    run(in_turn([calls(("nope", "{}"), ("now", "{}")), Answer(text="Fine.")]), talk)


def test_a_model_that_calls_for_ever_is_stopped() -> None:
    async def talk(engine: Engine, model: HttpModel) -> None:
        with pytest.raises(ProviderError, match="still calling tools"):
            await engine.ask("t", "Go.", model=model, tools=[now])

    assert len(run(lambda _: calls(("now", "{}")), talk)) == 50


def test_a_second_turn_of_a_thread_waits_for_the_first() -> None:
    async def talk(engine: Engine, model: HttpModel) -> None:
        await asyncio.gather(*(engine.ask("t", f"question {n}", model=model) for n in range(6)))
        roles = [role for role, _ in said(engine, "t")]
        assert roles == ["user", "assistant"] * 6

    asked = run(lambda asked: Answer(text=f"to {asked.messages[-1].text}"), talk)
    assert [len(request.messages) for request in asked] == [1, 3, 5, 7, 9, 11]


def test_a_second_turn_is_refused_if_the_engine_is_set_to() -> None:
    async def talk(engine: Engine, model: HttpModel) -> None:
        first = engine.stream("t", "one", model=model)
        await anext(first)
        with pytest.raises(ThreadBusy, match="another turn of thread 't'"):
            await engine.ask("t", "two", model=model)
        await engine.ask("other", "free", model=model)
        await first.aclose()
        assert (await engine.ask("t", "three", model=model)).text == "yes"
        assert ("user", "two") not in said(engine, "t")

    run(lambda _: Answer(text="yes"), talk, busy="refuse")


def test_one_who_gives_up_waiting_does_not_keep_the_others_waiting() -> None:
    async def talk(engine: Engine, model: HttpModel) -> None:
        first = engine.stream("t", "one", model=model)
        await anext(first)
        waiting = asyncio.create_task(engine.ask("t", "two", model=model))
        third = asyncio.create_task(engine.ask("t", "three", model=model))
        await asyncio.sleep(0)  # both stand in the queue then
        waiting.cancel()
        assert isinstance([reply async for reply in first][-1], Finished)
        await third
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert [text for role, text in said(engine, "t") if role == "user"] == ["one", "three"]

    run(lambda _: Answer(text="yes"), talk)


def test_a_thread_is_its_owners() -> None:
    async def talk(engine: Engine, model: HttpModel) -> None:
        await engine.ask("t", "mine", model=model, owner="ann")
        for trespass in (
            lambda: engine.ask("t", "x", model=model, owner="bob"),
            lambda: engine.append("t", "x", owner="bob"),
            lambda: engine.prepare("t", Call(model="gpt-4o"), owner="bob"),
            lambda: engine.recall("t", "mine", owner="bob"),
        ):
            with pytest.raises(NoThread, match="belongs to 'bob'"):
                await trespass()
        with pytest.raises(NoThread):  # an empty header is no key to everything
            await engine.ask("t", "x", model=model, owner="")
        await engine.append("t", "still mine", owner="ann")
        assert [text for role, text in said(engine, "t") if role == "user"] == ["mine", "still mine"]

    run(lambda _: Answer(text="yes"), talk)


def test_a_failure_is_the_last_piece_and_what_ask_raises() -> None:
    async def talk(engine: Engine, model: HttpModel) -> None:
        replies = [reply async for reply in engine.stream("t", "hello", model=model)]
        assert isinstance(replies[-1], Failed)
        with pytest.raises(ProviderError, match="not today"):
            await engine.ask("u", "hello", model=model)

    run(lambda _: Refusal(status=403, body='{"error": {"message": "not today"}}'), talk)


def test_a_model_without_a_name_and_an_event_loop_are_told_in_one_line() -> None:
    async def inside() -> None:
        with open_engine("memory:") as engine, pytest.raises(InputError, match="await engine"):
            engine.blocking.ask("t", "hello", model=HttpModel("http://127.0.0.1:1/v1", "gpt-4o"))
        async with HttpModel("http://127.0.0.1:1/v1") as nameless:
            with open_engine("memory:") as engine, pytest.raises(InputError, match="has no name"):
                await engine.ask("t", "hello", model=nameless)
        with open_engine("memory:") as engine, pytest.raises(InputError, match="model must be a model, such as"):
            await engine.ask("t", "hello", model="gpt-4o")  # type: ignore[arg-type]
        with pytest.raises(InputError, match="unknown provider 'opnai'; did you mean openai"):
            HttpModel("opnai", "gpt-4o")

    asyncio.run(inside())


# --- those who call an SDK themselves --------------------------------------------------------------------------------

LONG = "the ship sails north with salt and rope. " * 60


def ask_openai(url: str, body: dict[str, Any]) -> Any:
    with openai.OpenAI(base_url=url, api_key="k", max_retries=0) as client:
        return client.chat.completions.create(**body)


def ask_responses(url: str, body: dict[str, Any]) -> Any:
    with openai.OpenAI(base_url=url, api_key="k", max_retries=0) as client:
        return client.responses.create(**body)


def ask_anthropic(url: str, body: dict[str, Any]) -> Any:
    with anthropic.Anthropic(base_url=url.removesuffix("/v1"), api_key="k", max_retries=0) as client:
        return client.messages.create(**body)


@pytest.mark.parametrize(
    ("fmt", "ask"),
    [("openai-chat", ask_openai), ("openai-responses", ask_responses), ("anthropic", ask_anthropic)],
)
def test_an_sdk_asks_what_is_prepared_and_its_refusal_gives_the_next_request(fmt: str, ask: Callable[..., Any]) -> None:
    """The registry says 128,000; the server takes 6,000 and says so only when it refuses."""
    call = Call(model="gpt-4o", fmt=fmt, max_tokens=300)
    refusals = 0
    with ScriptedServer(lambda _: Answer(text="Noted."), window=Window(6_000)) as server:
        engine = open_engine("memory:").blocking
        for number in range(30):
            engine.append("t", f"note {number}: {LONG}")
            prepared: Prepared | None = engine.prepare("t", call)
            while prepared is not None:
                try:
                    response = ask(server.url, prepared.body())
                except (openai.APIError, anthropic.APIError) as error:
                    refusals += 1
                    prepared = engine.refused(prepared, error)
                else:
                    prepared = engine.answered(prepared, response)
        entries = [row.entry for row in engine.context.threads.read("t") if isinstance(row.entry, Message)]
        assert [entry.role for entry in entries] == [Role.USER, Role.ASSISTANT] * 30
        assert {entry.text for entry in entries if entry.role is Role.ASSISTANT} == {"Noted."}
        assert 1 <= refusals <= 2  # then the window is known
        assert len(server.requests) == 30 + refusals
        assert engine.context.threads.events("t", kinds=[EventKind.WINDOW_LEARNED])


def test_a_refusal_that_nothing_helps_is_raised_as_it_is() -> None:
    engine = open_engine("memory:").blocking
    engine.append("t", "hello")
    with ScriptedServer(lambda _: Refusal(status=401, body='{"error": {"message": "wrong key"}}')) as server:
        prepared = engine.prepare("t", Call(model="gpt-4o"))
        with pytest.raises(openai.AuthenticationError) as raised:
            ask_openai(server.url, prepared.body())
        with pytest.raises(ProviderError, match="wrong key") as told:
            engine.refused(prepared, raised.value)
        assert told.value.status == 401
    assert engine.context.threads.events("t", kinds=[EventKind.TURN_FAILED])


def test_an_overflow_behind_another_exception_is_understood() -> None:
    engine = open_engine("memory:", settings=Settings(window=200_000)).blocking
    for number in range(40):
        engine.append(
            "t", [{"role": "user", "content": f"{number} {LONG}"}, {"role": "assistant", "content": "Noted."}]
        )
    engine.append("t", "Well?")
    prepared = engine.prepare("t", Call(model="gpt-4o"))
    for _ in range(2):
        try:
            try:
                raise ContextOverflow("maximum context length is 9000 tokens", limit=9_000)
            except ContextOverflow as cause:
                raise RuntimeError("the framework failed") from cause
        except RuntimeError as error:
            smaller = engine.refused(prepared, error)
        assert smaller.tokens < min(prepared.tokens, 9_000)
        prepared = smaller
    with pytest.raises(NotRecovered):
        engine.refused(prepared, ContextOverflow("still too long"))
