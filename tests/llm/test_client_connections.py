"""What goes wrong between a client and a server, and what is left behind: nothing."""

import asyncio
import gc
import gzip
import json
import logging
import os
import sys
import warnings
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest

from everlong.engine import Failed, Finished, Reply, Request, Said
from everlong.errors import ContextOverflow, InputError, ProviderError
from everlong.llm.client import HttpModel, Patience
from everlong.llm.endpoints import Endpoint, endpoint_at
from everlong.llm.scripted.script import Answer
from everlong.llm.scripted.server import ScriptedServer
from tests.core.build import user
from tests.llm.raw_server import RawServer, Says, response

ASK = Request(model="m", messages=(user("hello"),))
HASTY = Patience(connect=5.0, silence=5.0, attempts=2, pause=0.0)
KEY = "sk-very-secret-0123456789"
ANSWER = b'data: {"choices":[{"delta":{"content":"Hi."},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
OVERFLOW = b'{"error":{"message":"prompt is too long: 900000 tokens > 200000 maximum"}}'
T = TypeVar("T")


async def _with(
    says: Says,
    run: Callable[[HttpModel, RawServer], Awaitable[T]],
    fmt: str = "openai-chat",
    patience: Patience = HASTY,
) -> T:
    async with RawServer(says) as server:
        endpoint = Endpoint(url=f"{server.address}/v1", fmt=fmt, key=KEY)
        async with HttpModel(endpoint, patience=patience) as model:
            return await run(model, server)


async def _asked(model: HttpModel, _: RawServer) -> list[Reply]:
    return [reply async for reply in model.stream(ASK)]


def _replies(said: bytes, fmt: str = "openai-chat") -> list[Reply]:
    return asyncio.run(_with(lambda head, body: said, _asked, fmt))


def _failure(said: bytes) -> ProviderError:
    (failed,) = _replies(said)
    assert isinstance(failed, Failed)
    assert not failed.begun
    return failed.error


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent"])
@pytest.mark.parametrize("fmt", ["anthropic", "gemini", "ollama", "openai-chat", "openai-responses"])
def test_neither_key_nor_conversation_follows_a_redirect(fmt: str, status: str) -> None:
    async def run() -> tuple[list[Reply], list[bytes]]:
        async with RawServer(lambda head, body: response(ANSWER)) as other:
            moved = response(b"", status=status, more=(f"location: {other.address}/elsewhere",))
            return await _with(lambda head, body: moved, _asked, fmt), other.heads

    (failed,), heads = asyncio.run(run())
    assert not heads
    assert isinstance(failed, Failed)
    assert "elsewhere" in str(failed.error)


def test_an_answer_that_comes_in_many_packets_is_read_whole() -> None:
    words = "word " * 60_000
    body = json.dumps({"choices": [{"message": {"content": words}, "finish_reason": "stop"}]}).encode()
    last = _replies(response(body, kind="application/json"))[-1]
    assert isinstance(last, Finished)
    assert last.message.text == words


def test_an_error_that_comes_in_many_packets_is_read_whole() -> None:
    body = b'{"prompt":"' + b"x" * 40_000 + b'","error":{"message":"prompt is too long: 900 tokens > 200 maximum"}}'
    assert isinstance(_failure(response(body, status="400 Bad Request", kind="application/json")), ContextOverflow)


def test_packed_answers_are_unpacked() -> None:
    packed = response(gzip.compress(ANSWER), more=("content-encoding: gzip",))
    assert _replies(packed)[0] == Said("Hi.")


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("application/json", OVERFLOW),
        ("text/plain", OVERFLOW),
        ("text/event-stream", OVERFLOW),
        ("text/event-stream", b"data: " + OVERFLOW + b"\n\n"),
        ("text/event-stream", b'event: error\ndata: {"message":"prompt is too long"}\n\n'),
        (
            "text/event-stream",
            b'data: {"object":"error","message":"This model\'s maximum context length is 4096 tokens","code":400}\n\n',
        ),
        ("application/json", b'{"object":"error","message":"prompt is too long","code":400}'),
    ],
    ids=["json", "text", "no event", "event", "named event", "bare event", "bare json"],
)
def test_a_success_that_holds_an_error_is_that_error(kind: str, body: bytes) -> None:
    assert isinstance(_failure(response(body, kind=kind)), ContextOverflow)


@pytest.mark.parametrize("kind", ["text/html", "text/event-stream", "application/json"])
def test_a_page_instead_of_an_answer_is_told_as_such(kind: str) -> None:
    page = b"<!doctype html><html><head><title>Sign in to continue</title></head><body>x</body></html>"
    assert "Sign in to continue" in str(_failure(response(page, kind=kind)))


def test_an_error_in_the_middle_ends_the_answer() -> None:
    stream = b'data: {"choices":[{"delta":{"content":"Hi"}}]}\n\ndata: {"error":{"message":"upstream is gone"}}\n\n'
    said, failed = _replies(response(stream + ANSWER))
    assert said == Said("Hi")
    assert isinstance(failed, Failed)
    assert failed.begun
    assert "upstream is gone" in str(failed.error)


def test_an_answer_that_is_whole_counts_though_the_connection_breaks_after_it() -> None:
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 9999\r\nconnection: close\r\n\r\n"

    async def run() -> list[Reply]:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(head + ANSWER)
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with server, HttpModel(Endpoint(url=f"http://127.0.0.1:{port}/v1"), patience=HASTY) as model:
            return [reply async for reply in model.stream(ASK)]

    assert isinstance(asyncio.run(run())[-1], Finished)


@pytest.mark.parametrize(
    "key", ["kéy-密", "a\nb", "a\r\nx-other: b", "a\x00b"], ids=["words", "line", "header", "null"]
)
def test_a_key_that_no_header_can_hold_is_a_failure_that_does_not_show_it(key: str) -> None:
    async def run() -> list[Reply]:
        async with RawServer(lambda head, body: response(ANSWER)) as server:
            endpoint = Endpoint(url=server.address, key=key)
            async with HttpModel(endpoint, patience=HASTY) as model:
                return [reply async for reply in model.stream(ASK)]

    last = asyncio.run(run())[-1]
    if isinstance(last, Failed):
        assert key not in str(last.error)
    else:
        assert key.isprintable()


def test_white_space_around_a_key_is_not_part_of_it() -> None:
    endpoint = endpoint_at("openai", environment={"OPENAI_API_KEY": f" {KEY}\n"})
    assert endpoint.key == KEY
    assert Endpoint(url="http://a", key=f"{KEY}\r\n").key == KEY


@pytest.mark.parametrize("status", ["401 Unauthorized", "400 Bad Request", "429 Too Many", "500 Oops", "200 OK"])
def test_a_key_that_a_server_repeats_is_in_no_error_and_no_log(status: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    body = json.dumps({"error": {"message": f"Incorrect API key provided: {KEY}."}}).encode()
    error = _failure(response(body, status=status, kind="application/json"))
    assert "Incorrect API key" in str(error)
    assert KEY not in str(error) + repr(error) + caplog.text


def test_an_address_with_a_query_is_refused() -> None:
    with pytest.raises(InputError, match="query") as told:
        Endpoint(url=f"https://host/v1?key={KEY}")
    assert KEY not in str(told.value)
    with pytest.raises(InputError) as told:
        Endpoint(url=f"https://user:{KEY}@host/v1")
    assert KEY not in str(told.value)
    with pytest.raises(InputError) as told:
        Endpoint(url=f"ftp://user:{KEY}@host/v1")
    assert KEY not in str(told.value)


WAITS: dict[str, bytes | None] = {
    "before the head": None,
    "in the head": b"HTTP/1.1 200 OK\r\n",
    "before the first event": b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 9\r\n\r\n",
    "in an event": response(b"")[:-21] + b"content-length: 99\r\n\r\ndata: {",
    "in an error": b"HTTP/1.1 400 Bad\r\ncontent-type: text/plain\r\ncontent-length: 99\r\n\r\nprompt",
    "in a whole answer": b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n{",
}


@pytest.mark.parametrize("said", WAITS.values(), ids=WAITS)
def test_a_call_that_is_cancelled_leaves_no_connection(said: bytes | None) -> None:
    async def run(model: HttpModel, server: RawServer) -> None:
        task = asyncio.ensure_future(_asked(model, server))
        await server.until(lambda it: len(it.heads) == 1)
        for _ in range(20):  # whatever was said has been read
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await server.until(lambda it: it.open == 0)

    asyncio.run(_with(lambda head, body: said, run))


def test_a_stream_that_is_left_leaves_no_connection() -> None:
    first = b'data: {"choices":[{"delta":{"content":"Hi."}}]}\n\n'
    said = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 9999\r\n\r\n" + first

    async def run(model: HttpModel, server: RawServer) -> None:
        stream = model.stream(ASK)
        assert await anext(stream) == Said("Hi.")
        await stream.aclose()
        await server.until(lambda it: it.open == 0)

    asyncio.run(_with(lambda head, body: said, run))


def test_a_silent_server_is_a_failure_and_leaves_no_connection() -> None:
    async def run(model: HttpModel, server: RawServer) -> list[Reply]:
        replies = await _asked(model, server)
        await server.until(lambda it: it.open == 0)
        return replies

    patience = Patience(connect=5.0, silence=0.05, attempts=2, pause=0.0)
    (failed,) = asyncio.run(_with(lambda head, body: None, run, patience=patience))
    assert isinstance(failed, Failed)


def test_a_model_may_be_closed_twice_and_used_again() -> None:
    async def run(model: HttpModel, server: RawServer) -> None:
        await model.close()
        await model.close()
        assert isinstance((await _asked(model, server))[-1], Finished)
        await model.close()
        await server.until(lambda it: it.open == 0)

    asyncio.run(_with(lambda head, body: response(ANSWER), run))


def test_a_model_may_be_used_from_one_event_loop_after_the_other() -> None:
    async def ask(model: HttpModel) -> Reply:
        assert await model.served_window("scripted") is None
        return [reply async for reply in model.stream(ASK)][-1]

    with ScriptedServer(lambda asked: Answer(text="ok")) as server, warnings.catch_warnings():
        warnings.simplefilter("error")
        model = HttpModel(Endpoint(url=server.url), patience=HASTY)
        for _ in range(3):
            assert isinstance(asyncio.run(ask(model)), Finished)
        asyncio.run(model.close())
        del model
        gc.collect()
        assert len(server.requests) == 3


ELSEWHERE = """
import asyncio, sys
from everlong.engine.contracts import Finished, Request
from everlong.llm.client import HttpModel
from everlong.llm.endpoints import Endpoint
async def main():
    async with HttpModel(Endpoint(url="http://model.example/v1", key="sk-very-secret-0123456789")) as model:
        last = [reply async for reply in model.stream(Request(model="m", messages=()))][-1]
        print(type(last).__name__, getattr(last, "error", ""))
asyncio.run(main())
"""


def test_a_proxy_is_taken_from_the_environment_and_a_password_for_the_host_is_not(tmp_path: Path) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("default login somebody password something\n")
    netrc.chmod(0o600)

    async def run() -> tuple[bytes, bytes]:
        async with RawServer(lambda head, body: response(ANSWER)) as proxy:
            there = {"http_proxy": proxy.address, "NETRC": str(netrc)}
            clean = {name: value for name, value in os.environ.items() if name.lower() != "no_proxy"}
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-c", ELSEWHERE, env=clean | there, stdout=asyncio.subprocess.PIPE
            )
            told, _ = await process.communicate()
            return told, proxy.heads[0] if proxy.heads else b""

    told, head = asyncio.run(run())
    assert told.split()[0] == b"Finished", told
    assert b"http://model.example/v1/chat/completions" in head
    assert b"Bearer sk-very-secret" in head


def test_the_key_is_in_no_representation() -> None:
    endpoint = Endpoint(url="http://a/v1", key=KEY, headers=(("x-extra", KEY),))
    model = HttpModel(endpoint)
    assert KEY not in repr(endpoint) + str(endpoint) + repr(model) + str(vars(model))
