"""Servers on this machine, the scripted model's above all: slow and silent connections are closed there too."""

import asyncio
import json

from everlong.llm import ArrivalLimits, ScriptedServer
from tests.gateway.raw_upstream import PATIENCE
from tests.gateway.talking import RawClient, body_of

LIMITS = ArrivalLimits(header=0.4, body=0.2, idle=0.8, write=0.2, per_address=4)
HALF = b"POST /v1/chat/completions HTTP/1.1\r\nhost: model\r\n"


async def _drips(port: int, said: bytes) -> bytes:
    async with RawClient(port) as client:
        client.write(said)
        return await client.drip()


async def _asks(port: int) -> tuple[int, bytes, bytes]:
    async with RawClient(port) as client:
        client.ask("/v1/chat/completions", body_of("openai-chat"))
        status, _, body = await client.answer()
        return status, body, await client.rest()


def test_a_head_and_a_body_that_drip_are_closed_and_others_are_answered() -> None:
    async def do(port: int) -> None:
        slow = HALF + b"content-length: 100000\r\n\r\n{"
        head, body, asked = await asyncio.gather(_drips(port, HALF), _drips(port, slow), _asks(port))
        assert head.startswith(b"HTTP/1.1 408 ")
        assert body.startswith(b"HTTP/1.1 408 ")
        assert asked[0] == 200
        assert json.loads(asked[1])["choices"]
        assert asked[2] == b""  # idle, and closed

    with ScriptedServer(limits=LIMITS) as server:
        asyncio.run(asyncio.wait_for(do(server.port), PATIENCE))
        assert len(server.requests) == 1


def test_connections_beyond_the_limit_make_room() -> None:
    async def do(port: int) -> int:
        held = [RawClient(port) for _ in range(12)]
        for client in held:
            await client.__aenter__()
        status = (await _asks(port))[0]
        assert [await client.rest() for client in held[:8]] == [b""] * 8
        for client in held:
            await client.__aexit__(None, None, None)
        return status

    with ScriptedServer(limits=LIMITS) as server:
        assert asyncio.run(asyncio.wait_for(do(server.port), PATIENCE)) == 200
