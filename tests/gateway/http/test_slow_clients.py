"""Clients that are slow, silent or too many: each is closed in time, and everyone else is served."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from time import monotonic
from typing import Any

from tests.gateway.processes import ServingProcess
from tests.gateway.raw_upstream import CHUNKED, PATIENCE, Talk, chunk
from tests.gateway.running import RunningGateway
from tests.gateway.talking import PATHS, RawClient, body_of, events_of, talk_through

PIECES = events_of("openai-chat")
PATH = PATHS["openai-chat"]
TIMEOUT = 0.4  # seconds: a client on a busy machine is quicker
HALF = b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nx-half: "


async def _answers(talk: Talk, head: bytes, body: bytes) -> None:
    await talk.say(CHUNKED + chunk(b"".join(PIECES)) + chunk(b""))


def through(do: Callable[[RunningGateway], Awaitable[Any]], **options: Any) -> Any:
    return talk_through(_answers, do, **options)


@asynccontextmanager
async def _clients(count: int, port: int, said: bytes = b"") -> AsyncIterator[list[RawClient]]:
    """So many connections, which have said this much."""
    async with AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(RawClient(port)) for _ in range(count)]
        for client in clients:
            client.write(said)
        yield clients
        for client in clients:
            client.hang_up()


async def _health(port: int) -> int:
    async with RawClient(port) as client:
        client.ask("/health", method="GET")
        return (await client.answer())[0]


def _closed(gateway: RunningGateway) -> dict[str, int]:
    """Connections that were closed early, by reason, as the metrics have them."""
    lines = gateway.services.metrics.written()[0].decode().splitlines()
    found = [line for line in lines if line.startswith("everlong_connections_closed_total{")]
    return {line.split('"')[1]: int(float(line.rpartition(" ")[2])) for line in found}


# --- half of a request -----------------------------------------------------------------------------


def test_eleven_hundred_half_open_connections_keep_nobody_out() -> None:
    async def do(gateway: RunningGateway) -> None:
        async with _clients(1_100, gateway.port, HALF):
            assert [await _health(gateway.port) for _ in range(20)] == [200] * 20
            assert _closed(gateway)["crowded_out"] >= 1_100 - 512

    through(do)


def test_a_connection_that_says_nothing_is_closed() -> None:
    async def do(gateway: RunningGateway) -> bytes:
        async with RawClient(gateway.port) as client:
            return await client.rest()

    assert through(do, header_timeout=0.05) == b""


def test_a_byte_now_and_then_does_not_keep_the_head_of_a_request_open() -> None:
    async def do(gateway: RunningGateway) -> tuple[bytes, dict[str, int]]:
        async with RawClient(gateway.port) as client:
            client.write(HALF)
            return await client.drip(), _closed(gateway)

    said, closed = through(do, header_timeout=TIMEOUT)
    assert said.startswith(b"HTTP/1.1 408 ")
    assert closed == {"slow_head": 1}


def test_the_second_head_of_a_connection_has_its_deadline_too() -> None:
    async def do(gateway: RunningGateway) -> int:
        async with RawClient(gateway.port) as client:
            client.ask("/health", method="GET")
            status = (await client.answer())[0]
            client.write(HALF)
            await client.drip()
            return status

    assert through(do, header_timeout=TIMEOUT) == 200


def test_a_head_without_an_end_is_refused() -> None:
    async def do(gateway: RunningGateway) -> bytes:
        async with RawClient(gateway.port) as client:
            client.write(HALF + b"x" * 200_000)
            return await client.drip(b"x" * 1_000)

    assert through(do)[:13] in (b"HTTP/1.1 431 ", b"")  # what was on its way may take the answer with it


def test_a_body_that_drips_is_refused_and_its_connection_is_closed() -> None:
    async def do(gateway: RunningGateway) -> bytes:
        async with RawClient(gateway.port) as client:
            client.write(b"POST %s HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100000\r\n\r\n{" % PATH.encode())
            return await client.drip()

    said = through(do, body_timeout=0.1, header_timeout=TIMEOUT)
    assert said.startswith(b"HTTP/1.1 408 ")
    assert b"too_slow" in said


def test_a_body_that_drips_to_an_endpoint_that_reads_none_ends_too() -> None:
    async def do(gateway: RunningGateway) -> bytes:
        async with RawClient(gateway.port) as client:
            client.write(b"POST /nowhere HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100000\r\n\r\n{")
            return await client.drip()

    assert through(do, body_timeout=0.1, header_timeout=TIMEOUT).startswith(b"HTTP/1.1 404 ")


def test_an_idle_connection_is_closed_after_its_answer() -> None:
    async def do(gateway: RunningGateway) -> bytes:
        async with RawClient(gateway.port) as client:
            client.ask("/health", method="GET")
            await client.answer()
            return await client.rest()

    assert through(do, idle_timeout=0.05) == b""


# --- readers ---------------------------------------------------------------------------------------


def test_a_reader_that_stops_is_closed_and_its_upstream_too() -> None:
    left = asyncio.Event()

    async def talks_on(talk: Talk, head: bytes, body: bytes) -> None:
        await talk.say(CHUNKED)
        talk.say_all(chunk(PIECES[0]) + chunk(b": %s\n\n" % (b"x" * 65_536)) * 2_000)
        await talk.left()
        left.set()

    async def do(gateway: RunningGateway) -> dict[str, int]:
        async with RawClient(gateway.port, limit=1_024) as client:
            client.ask(PATH, body_of("openai-chat", stream=True))
            await client.head()
            await left.wait()
            return _closed(gateway)

    assert talk_through(talks_on, do, write_timeout=0.1) == {"slow_reader": 1}


def test_a_long_stream_that_is_read_outlives_every_timeout() -> None:
    read = asyncio.Semaphore(0)

    async def talks_on(talk: Talk, head: bytes, body: bytes) -> None:
        until = monotonic() + 3 * TIMEOUT
        await talk.say(CHUNKED + chunk(PIECES[0]))
        while monotonic() < until:
            await talk.say(chunk(b": more\n\n"))
            await read.acquire()
        await talk.say(chunk(b"".join(PIECES[1:])) + chunk(b""))

    async def do(gateway: RunningGateway) -> bytes:
        async with RawClient(gateway.port) as client:
            client.ask(PATH, body_of("openai-chat", stream=True))
            await client.head()
            said = b""
            while data := await client.chunk():
                for _ in range(data.count(b": more\n\n")):
                    read.release()
                said = (said + data)[-100:]
            return said

    names = ("header_timeout", "body_timeout", "idle_timeout", "write_timeout")
    assert talk_through(talks_on, do, **dict.fromkeys(names, TIMEOUT)).endswith(b"data: [DONE]\n\n")


# --- too many --------------------------------------------------------------------------------------


def test_connections_beyond_the_limit_of_an_address_are_closed_the_oldest_first() -> None:
    async def do(gateway: RunningGateway) -> dict[str, int]:
        async with _clients(20, gateway.port, HALF) as held:
            assert [await client.rest() for client in held[:12]] == [b""] * 12
            assert await _health(gateway.port) == 200
            return _closed(gateway)

    assert through(do, connections_per_address=8) == {"crowded_out": 13}


def test_where_every_connection_has_a_request_a_new_one_is_told_to_come_later() -> None:
    asked, go = asyncio.Queue[int](), asyncio.Event()

    async def waits(talk: Talk, head: bytes, body: bytes) -> None:
        asked.put_nowait(1)
        await go.wait()
        await talk.say(CHUNKED + chunk(b"".join(PIECES)) + chunk(b""))

    async def do(gateway: RunningGateway) -> tuple[bytes, list[int]]:
        async with _clients(2, gateway.port) as clients:
            for client in clients:
                client.ask(PATH, body_of("openai-chat", stream=True), {"x-everlong-mode": "off"})
                await asked.get()
            async with RawClient(gateway.port) as third:
                refused = await third.rest()
            go.set()
            return refused, [(await client.answer())[0] for client in clients]

    refused, served = talk_through(waits, do, connections_per_address=2)
    assert refused.startswith(b"HTTP/1.1 503 ")
    assert served == [200, 200]


def test_a_proxy_that_is_trusted_may_have_as_many_as_the_server() -> None:
    async def do(gateway: RunningGateway) -> dict[str, int]:
        async with _clients(20, gateway.port):
            assert await _health(gateway.port) == 200
            return _closed(gateway)

    assert through(do, connections_per_address=2, trusted_proxies=["127.0.0.0/8"]) == {}


# --- other -----------------------------------------------------------------------------------------


def test_nothing_is_upgraded_to_a_websocket() -> None:
    async def do(gateway: RunningGateway) -> int:
        async with RawClient(gateway.port) as client:
            asked = {"connection": "Upgrade", "upgrade": "websocket", "sec-websocket-version": "13"}
            client.ask("/health", headers={**asked, "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ=="}, method="GET")
            return (await client.head())[0]

    assert through(do) == 200


def test_every_process_of_the_command_closes_what_is_half_open(tmp_path: Path) -> None:
    (tmp_path / "g.toml").write_text("header_timeout = 2.0\napp = false\n", encoding="utf-8")
    options = ("--config", "g.toml", "--upstream", "http://127.0.0.1:9/v1", "--store", "memory:")

    async def do(port: int) -> None:
        async with _clients(8, port, HALF) as clients:
            said = await asyncio.gather(*(client.rest() for client in clients))
        assert all(each.startswith(b"HTTP/1.1 408 ") for each in said)
        assert await _health(port) == 200

    with ServingProcess(*options, "--workers", "2", folder=tmp_path) as gateway:
        asyncio.run(asyncio.wait_for(do(gateway.port), PATIENCE))
