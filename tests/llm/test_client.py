"""Clients of the four formats against the scripted model over real HTTP."""

import asyncio
import json

import pytest

from everlong.core import Message, Reasoning, Role, Text, ToolCall
from everlong.engine import CallGrew, Failed, Finished, Reply, Request, Said, Thought
from everlong.errors import ContextOverflow, ProviderError, RateLimited
from everlong.llm.client import HttpModel, Patience
from everlong.llm.endpoints import Endpoint
from everlong.llm.scripted.model import Window
from everlong.llm.scripted.script import Answer, Broken, Refusal, Script, in_turn
from everlong.llm.scripted.server import ScriptedServer
from everlong.wire import format_named
from tests.core.build import calls, result, system, user

FORMATS = ["anthropic", "gemini", "ollama", "openai-chat", "openai-responses"]
ASKED = (system("Be brief."), user("你好 hello"), calls("c1"), result("c1", "done"), user("go on"))
IMPATIENT = Patience(connect=2.0, silence=5.0, attempts=3, pause=0.0)


def _model(server: ScriptedServer, fmt: str) -> HttpModel:
    base = server.address + format_named(fmt).api.base
    return HttpModel(Endpoint(url=base, fmt=fmt, key="secret"), patience=IMPATIENT)


async def _replies(server: ScriptedServer, fmt: str, request: Request) -> list[Reply]:
    async with _model(server, fmt) as model:
        return [reply async for reply in model.stream(request)]


def _ask(script: Script, fmt: str, **more: object) -> tuple[list[Reply], ScriptedServer]:
    request = Request(model="m", messages=ASKED, **more)  # type: ignore[arg-type]
    with ScriptedServer(script) as server:
        return asyncio.run(_replies(server, fmt, request)), server


@pytest.mark.parametrize("fmt", FORMATS)
def test_an_answer_comes_in_pieces_and_as_a_whole(fmt: str) -> None:
    answer = Answer(
        text="The answer has seven words in it.",
        thinking="Let me think about that for a moment.",
        calls=(("read_file", '{"path": "a.py"}'), ("list_files", "{}")),
    )
    replies, _ = _ask(lambda asked: answer, fmt)
    assert "".join(reply.text for reply in replies if isinstance(reply, Said)) == answer.text
    assert "".join(reply.text for reply in replies if isinstance(reply, Thought)) == answer.thinking
    assert sum(isinstance(reply, Said) for reply in replies) > 1
    grown = [reply for reply in replies if isinstance(reply, CallGrew)]
    assert {reply.number: reply.name for reply in grown if reply.name} == {0: "read_file", 1: "list_files"}
    last = replies[-1]
    assert isinstance(last, Finished)
    assert last.stop == "calls"
    assert (last.message.role, last.message.text) == (Role.ASSISTANT, answer.text)
    assert [(call.name, json.loads(call.arguments)) for call in last.message.calls] == [
        ("read_file", {"path": "a.py"}),
        ("list_files", {}),
    ]
    assert any(isinstance(part, Reasoning) for part in last.message.parts)


@pytest.mark.parametrize("fmt", FORMATS)
def test_usage_is_what_the_server_counted(fmt: str) -> None:
    replies, server = _ask(lambda asked: Answer(text="ok"), fmt)
    last = replies[-1]
    assert isinstance(last, Finished)
    assert last.usage is not None
    assert last.usage.prompt == server.requests[0].tokens


@pytest.mark.parametrize("fmt", FORMATS)
def test_N3_9_length_temperature_and_tools_reach_the_provider(fmt: str) -> None:
    tool = '{"functionDeclarations":[{"name":"t"}]}' if fmt == "gemini" else '{"name":"t","type":"function"}'
    _, server = _ask(lambda asked: Answer(text="ok"), fmt, max_tokens=77, temperature=0.5, tools=(tool,))
    (asked,) = server.requests
    assert asked.max_tokens == 77
    assert b'"temperature": 0.5' in asked.body
    assert len(asked.tools) == 1
    assert asked.messages[0].text == "Be brief."
    assert "go on" in asked.messages[-1].text


@pytest.mark.parametrize("fmt", FORMATS)
def test_what_came_back_can_be_sent_again(fmt: str) -> None:
    answer = Answer(text="Reading.", thinking="Hm.", calls=(("read_file", "{}"),))

    async def run(server: ScriptedServer) -> Message:
        async with _model(server, fmt) as model:
            first = [reply async for reply in model.stream(Request(model="m", messages=(user("go"),)))][-1]
            assert isinstance(first, Finished)
            said = first.message
            call = said.calls[0].id
            again = Request(model="m", messages=(user("go"), said, result(call, "x", name="read_file")))
            assert isinstance([reply async for reply in model.stream(again)][-1], Finished)
            return said

    with ScriptedServer(in_turn([answer])) as server:
        said = asyncio.run(run(server))
        seen = server.requests[1].messages[1]
    assert seen.parts == said.parts


@pytest.mark.parametrize("fmt", FORMATS)
def test_an_overflow_is_a_typed_failure_and_is_not_retried(fmt: str) -> None:
    request = Request(model="m", messages=(user("word " * 5_000),))
    with ScriptedServer(window=Window(1_000)) as server:
        replies = asyncio.run(_replies(server, fmt, request))
        asked = len(server.requests)
    (failed,) = replies
    assert isinstance(failed, Failed)
    assert isinstance(failed.error, ContextOverflow)
    assert failed.error.limit == 1_000
    assert asked == 1


@pytest.mark.parametrize("fmt", FORMATS)
def test_a_stream_that_breaks_off_ends_in_a_failure(fmt: str) -> None:
    answer = Answer(text="one two three four five six seven eight nine")
    replies, _ = _ask(lambda asked: Broken(answer, 2), fmt)
    last = replies[-1]
    assert isinstance(last, Failed)
    assert last.begun == (len(replies) > 1)
    assert type(last.error) is ProviderError


@pytest.mark.parametrize(("status", "kind"), [(429, RateLimited), (503, ProviderError)], ids=["429", "503"])
def test_what_may_pass_later_is_tried_again_and_then_told(status: int, kind: type[ProviderError]) -> None:
    busy = Refusal(status, '{"error":{"message":"try again later"}}')
    replies, server = _ask(in_turn([busy], then=lambda asked: Answer(text="now")), "openai-chat")
    assert isinstance(replies[-1], Finished)
    assert len(server.requests) == 2
    replies, server = _ask(lambda asked: busy, "openai-chat")
    (failed,) = replies
    assert isinstance(failed, Failed)
    assert type(failed.error) is kind
    assert len(server.requests) == 3


def test_a_wrong_key_is_told_at_once() -> None:
    replies, server = _ask(lambda asked: Refusal(401, '{"error":{"message":"no such key"}}'), "openai-chat")
    (failed,) = replies
    assert isinstance(failed, Failed)
    assert "no such key" in str(failed.error)
    assert len(server.requests) == 1


def test_leaving_a_stream_cancels_it_upstream() -> None:
    endless = Answer(text=" ".join(["word"] * 40_000), between=0.001)

    async def run(server: ScriptedServer) -> None:
        async with _model(server, "openai-chat") as model:
            stream = model.stream(Request(model="m", messages=ASKED))
            async for _ in stream:
                break
            await stream.aclose()
        while not server.cancelled:
            await asyncio.sleep(0.001)

    with ScriptedServer(lambda asked: endless) as server:
        asyncio.run(asyncio.wait_for(run(server), 20))
        assert server.cancelled == 1


def test_nobody_at_the_address_is_one_clear_failure() -> None:
    async def run() -> list[Reply]:
        patience = Patience(connect=0.5, attempts=1, pause=0.0)
        async with HttpModel(Endpoint(url="http://127.0.0.1:9/v1"), patience=patience) as model:
            return [reply async for reply in model.stream(Request(model="m", messages=ASKED))]

    (failed,) = asyncio.run(run())
    assert isinstance(failed, Failed)
    assert "cannot be reached" in str(failed.error)


def test_a_served_window_is_asked_for_once() -> None:
    async def run(server: ScriptedServer) -> list[int | None]:
        async with _model(server, "openai-chat") as model:
            return [await model.served_window("scripted"), await model.served_window("scripted")]

    with ScriptedServer(window=Window(5_000, told=True)) as server:
        assert asyncio.run(run(server)) == [5_000, 5_000]


def test_a_tool_call_without_arguments_is_an_empty_object() -> None:
    replies, _ = _ask(lambda asked: Answer(calls=(("now", "{}"),)), "anthropic")
    last = replies[-1]
    assert isinstance(last, Finished)
    assert last.message.parts == (ToolCall(last.message.calls[0].id, "now", "{}"),)
    assert not any(isinstance(part, Text) for part in last.message.parts)
