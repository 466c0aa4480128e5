"""Asking a server for its window: rarely, quickly, and never in the way."""

import asyncio
import json

import pytest

from everlong.llm.client import HttpModel, Patience
from everlong.llm.endpoints import KNOWN, Endpoint, endpoint_at
from everlong.llm.scripted.model import Window
from everlong.llm.scripted.server import ScriptedServer
from tests.llm.raw_server import RawServer, response

LISTING = {"data": [{"id": f"other-{n}", "max_model_len": 1_000, "about": "x" * 900} for n in range(500)]}


def _listed(head: bytes, body: bytes) -> bytes:
    rows = [*LISTING["data"], {"id": "mine", "max_model_len": 5_000}]
    return response(json.dumps({"data": rows}).encode(), kind="application/json")


def _nothing(head: bytes, body: bytes) -> bytes:
    return response(b"{}", status="404 Not Found", kind="application/json")


@pytest.mark.parametrize("name", [name for name in KNOWN if name != "ollama"])
def test_hosted_providers_are_not_asked_by_name_or_by_address(name: str) -> None:
    async def run(endpoint: Endpoint) -> int | None:
        async with HttpModel(endpoint) as model:
            return await model.served_window("m")

    for endpoint in (endpoint_at(name), endpoint_at(KNOWN[name][0] + "/")):
        assert (endpoint.provider, endpoint.fmt) == (name, KNOWN[name][1])
        assert asyncio.run(run(endpoint)) is None


def test_an_address_of_a_known_host_with_another_path_speaks_what_is_usual() -> None:
    endpoint = endpoint_at("https://generativelanguage.googleapis.com/v1beta/openai")
    assert (endpoint.provider, endpoint.fmt) == ("google", "openai-chat")
    assert endpoint_at("http://127.0.0.1:11434/v1").provider == ""
    assert endpoint_at("http://127.0.0.1:8000/v1").provider == ""


def test_a_listing_that_comes_in_many_packets_is_read_whole() -> None:
    async def run() -> int | None:
        async with RawServer(_listed) as server, HttpModel(Endpoint(url=f"{server.address}/v1")) as model:
            return await model.served_window("mine")

    assert asyncio.run(run()) == 5_000


def test_the_listing_is_asked_for_as_the_format_says() -> None:
    async def run(fmt: str) -> bytes:
        async with RawServer(_listed) as server:
            endpoint = Endpoint(url=f"{server.address}/v1", fmt=fmt, key="the-key")
            async with HttpModel(endpoint) as model:
                assert await model.served_window("mine") == 5_000
            return server.heads[0].lower()

    plain, other = asyncio.run(run("openai-chat")), asyncio.run(run("anthropic"))
    assert plain.startswith(b"get /v1/models http")
    assert b"authorization: bearer the-key" in plain
    assert b"x-api-key" not in plain
    assert other.startswith(b"get /v1/models?limit=1000 http")
    assert b"x-api-key: the-key" in other
    assert b"anthropic-version" in other


def test_many_who_ask_at_once_ask_once() -> None:
    async def run() -> tuple[list[int | None], list[str]]:
        async with RawServer(_nothing) as server, HttpModel(Endpoint(url=f"{server.address}/v1")) as model:
            windows = await asyncio.gather(*(model.served_window("m") for _ in range(20)))
            windows.append(await model.served_window("m"))
            return windows, server.paths

    windows, paths = asyncio.run(run())
    assert windows == [None] * 21
    assert paths == ["/v1/models", "/props", "/api/show", "/api/ps"]


def test_who_stops_waiting_leaves_the_others_their_answer() -> None:
    async def run() -> int | None:
        async with RawServer(_listed) as server, HttpModel(Endpoint(url=f"{server.address}/v1")) as model:
            first = asyncio.ensure_future(model.served_window("mine"))
            second = asyncio.ensure_future(model.served_window("mine"))
            await server.until(lambda it: len(it.heads) == 1)
            first.cancel()
            with pytest.raises(asyncio.CancelledError):
                await first
            return await second

    assert asyncio.run(run()) == 5_000


def test_where_nobody_listened_it_is_asked_again() -> None:
    async def run() -> list[int | None]:
        async with RawServer(_listed) as server:
            port = server.port
        async with HttpModel(Endpoint(url=f"http://127.0.0.1:{port}/v1")) as model:
            before = await model.served_window("mine")
            again = await asyncio.start_server(server._serve, "127.0.0.1", port)
            async with again:
                return [before, await model.served_window("mine")]

    assert asyncio.run(run()) == [None, 5_000]


def test_a_server_that_says_nothing_is_asked_for_seconds_not_minutes_and_not_again() -> None:
    async def run() -> tuple[list[int | None], int]:
        async with RawServer(lambda head, body: None) as server:
            endpoint = Endpoint(url=f"{server.address}/v1")
            async with HttpModel(endpoint, patience=Patience(silence=600.0)) as model, asyncio.timeout(60):
                windows = [await model.served_window("m"), await model.served_window("m")]
            await server.until(lambda it: it.open == 0)
            return windows, len(server.heads)

    assert asyncio.run(run()) == ([None, None], 1)


def test_a_key_is_not_taken_along_to_another_host() -> None:
    async def run() -> list[bytes]:
        async with RawServer(_listed) as other:
            moved = response(b"", status="302 Found", more=(f"location: {other.address}/v1/models",))
            server = RawServer(lambda head, body: moved)
            async with server, HttpModel(Endpoint(url=f"{server.address}/v1", key="secret-key")) as model:
                assert await model.served_window("mine") is None
            return other.heads

    assert asyncio.run(run()) == []


@pytest.mark.parametrize("body", [b"<html>", b"[" * 100_000, b"\xff\xfe", b"null", b"7", b'{"data": 7}'])
def test_whatever_it_says_is_a_window_or_none(body: bytes) -> None:
    async def run() -> int | None:
        said = response(body, kind="application/json")
        async with RawServer(lambda head, _: said) as server, HttpModel(Endpoint(url=server.address)) as model:
            return await model.served_window("m")

    assert asyncio.run(run()) is None


def test_each_model_has_its_own() -> None:
    async def run(server: ScriptedServer) -> list[int | None]:
        async with HttpModel(Endpoint(url=server.url)) as model:
            return [await model.served_window(name) for name in ("a", "b", "absent")]

    with ScriptedServer(window=Window(5_000, told=True), models=("a", "b")) as server:
        assert asyncio.run(run(server)) == [5_000, 5_000, None]
