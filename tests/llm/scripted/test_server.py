"""The scripted server under many clients, broken connections and an end in the middle of it all."""

import asyncio
import http.client
import json
import threading
from contextlib import closing

import anthropic
import openai
import pytest

from everlong.engine import Failed, Finished, Reply, Request
from everlong.errors import InputError
from everlong.llm.client import HttpModel, Patience
from everlong.llm.endpoints import Endpoint
from everlong.llm.scripted.script import Answer, Broken, ReceivedRequest, Refusal, Step
from everlong.llm.scripted.server import ScriptedServer
from tests.core.build import user

HASTY = Patience(connect=5.0, silence=10.0, attempts=1, pause=0.0)
ENDLESS = Answer(text=" ".join(["word"] * 40_000), between=0.001)


def _ask(text: str) -> Request:
    return Request(model="m", messages=(user(text),))


async def _last(model: HttpModel, text: str) -> Reply:
    return [reply async for reply in model.stream(_ask(text))][-1]


def test_many_streams_at_once_are_kept_apart() -> None:
    def script(asked: ReceivedRequest) -> Step:
        said = asked.messages[-1].text
        return Broken(Answer(text=said), 2) if said.startswith("break") else Answer(text=said * 5)

    async def run(server: ScriptedServer) -> list[Reply]:
        async with HttpModel(Endpoint(url=server.url), patience=HASTY) as model:
            texts = [f"{'break' if n % 3 == 0 else 'word'} {n} " for n in range(60)]
            return list(await asyncio.gather(*(_last(model, text) for text in texts)))

    with ScriptedServer(script) as server:
        last = asyncio.run(run(server))
    assert len(server.requests) == 60
    assert [asked.number for asked in server.requests] == list(range(60))
    for n, reply in enumerate(last):
        assert isinstance(reply, Failed if n % 3 == 0 else Finished)
        if isinstance(reply, Finished):
            assert reply.message.text == f"word {n} " * 5


def test_it_ends_though_streams_are_open() -> None:
    async def run() -> Reply:
        with ScriptedServer(lambda asked: ENDLESS) as server:
            model = HttpModel(Endpoint(url=server.url), patience=HASTY)
            stream = model.stream(_ask("go"))
            await anext(stream)
        replies = [reply async for reply in stream]
        await model.close()
        return replies[-1]

    assert isinstance(asyncio.run(asyncio.wait_for(run(), 30)), Failed)


def test_servers_do_not_share_a_port_nor_leave_a_thread() -> None:
    before = threading.active_count()
    with ScriptedServer() as one, ScriptedServer() as two:
        assert one.port != two.port
        assert threading.active_count() == before + 2
    assert threading.active_count() == before


def test_a_synchronous_program_can_use_it() -> None:
    with ScriptedServer(lambda asked: Answer(text="ok")) as server:
        for streamed in (False, True):
            body = json.dumps({"model": "m", "stream": streamed, "messages": [{"role": "user", "content": "hi"}]})
            there = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
            there.request("POST", "/v1/chat/completions", body, {"content-type": "application/json"})
            answer = there.getresponse()
            assert answer.status == 200
            assert b"ok" in answer.read()
            there.close()
    assert len(server.requests) == 2
    assert [asked.headers["content-type"] for asked in server.requests] == ["application/json"] * 2


def test_a_server_that_was_not_entered_leaves_nothing_and_one_that_was_can_be_entered_again() -> None:
    server = ScriptedServer(lambda asked: Answer(text="ok"))
    for expected in (1, 2):
        with server:

            async def run() -> Reply:
                async with HttpModel(Endpoint(url=server.url), patience=HASTY) as model:
                    return await _last(model, "hi")

            assert isinstance(asyncio.run(run()), Finished)
        assert len(server.requests) == expected


@pytest.mark.parametrize("body", [b"", b"nonsense", b"[]", b'{"messages": 7}', b'{"messages": [{"role": "x"}]}'])
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages", "/v1/messages/count_tokens", "/v1/responses"])
def test_a_body_that_cannot_be_read_is_refused_and_the_server_goes_on(path: str, body: bytes) -> None:
    with ScriptedServer() as server:
        there = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
        there.request("POST", path, body, {"content-type": "application/json"})
        answer = there.getresponse()
        answer.read()
        assert answer.status == 400 or (path == "/v1/responses" and answer.status == 200)
        there.request("GET", "/v1/models")
        assert there.getresponse().status == 200
        there.close()


def test_a_script_that_raises_is_told_to_who_wrote_it() -> None:
    def script(asked: ReceivedRequest) -> Step:
        raise InputError("no more answers in the script")

    async def run(server: ScriptedServer) -> Reply:
        async with HttpModel(Endpoint(url=server.url), patience=HASTY) as model:
            return await _last(model, "hi")

    with ScriptedServer(script) as server:
        last = asyncio.run(run(server))
    assert isinstance(last, Failed)
    assert "no more answers in the script" in str(last.error)


def test_each_sdk_reaches_it_at_the_address_for_its_client() -> None:
    with ScriptedServer(lambda asked: Answer(text=f"in {asked.fmt}")) as server:
        with openai.OpenAI(base_url=server.url, api_key="key") as client:
            said = client.chat.completions.create(model="m", messages=[{"role": "user", "content": "hi"}])
        with anthropic.Anthropic(base_url=server.address, api_key="key") as other:
            answer = other.messages.create(model="m", max_tokens=50, messages=[{"role": "user", "content": "hi"}])
    assert said.choices[0].message.content == "in openai-chat"
    assert answer.content[0].model_dump()["text"] == "in anthropic"


def test_headers_of_a_refusal_arrive() -> None:
    with ScriptedServer(lambda asked: Refusal(429, "{}", (("retry-after", "7"),))) as server:
        there = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
        there.request("POST", "/v1/chat/completions", b'{"messages": []}')
        answer = there.getresponse()
        assert (answer.status, answer.headers["retry-after"]) == (429, "7")
        there.close()


def test_gemini_streams_an_array_unless_it_is_asked_for_events() -> None:
    def streamed(query: str) -> tuple[str, bytes]:
        with closing(http.client.HTTPConnection("127.0.0.1", server.port)) as connection:
            body = json.dumps({"contents": [{"parts": [{"text": "hello"}]}]})
            connection.request("POST", f"/v1beta/models/m:streamGenerateContent{query}", body)
            answer = connection.getresponse()
            return answer.headers.get_content_type(), answer.read()

    with ScriptedServer(lambda _: Answer(text="two words")) as server:
        kind, array = streamed("")
        assert (kind, json.loads(array)[-1]["candidates"][0]["finishReason"]) == ("application/json", "STOP")
        kind, events = streamed("?alt=sse&x=1")
        assert (kind, events.startswith(b"data: {")) == ("text/event-stream", True)
