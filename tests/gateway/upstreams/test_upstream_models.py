"""The gateway's own calls: whose client makes them, and what becomes of one that there is no room for."""

import asyncio
import json

from everlong.gateway.clients import Client
from everlong.gateway.upstreams.connections import MAX_MODELS, UpstreamModels
from everlong.gateway.upstreams.routing import Upstream
from everlong.llm import Endpoint
from tests.gateway.raw_upstream import PATIENCE, RawUpstream, Talk, response

FMT = "openai-chat"


def client(number: int) -> Client:
    return Client(scope=f"s{number}", key=f"k{number}")


def test_upstreams_that_differ_in_a_header_alone_have_clients_of_their_own() -> None:
    one, other = (
        Upstream(name=name, endpoint=Endpoint(url="http://house/v1", headers=(("x-team", name),))) for name in "ab"
    )
    models = UpstreamModels()
    assert models.of(one, client(0), FMT) is models.of(one, client(0), FMT)
    assert models.of(one, client(0), FMT) is not models.of(other, client(0), FMT)
    assert models.of(one, client(0), FMT) is not models.of(one, client(1), FMT)


def test_who_waits_for_a_window_gets_it_however_many_others_come() -> None:
    asked, may = asyncio.Event(), asyncio.Event()

    async def serve(talk: Talk) -> None:
        await talk.request()
        asked.set()
        await may.wait()
        await talk.say(response(json.dumps({"data": [{"id": "m", "max_model_len": 4_096}]}).encode()))

    async def waited() -> int | None:
        async with RawUpstream(serve) as server:
            upstream = Upstream(name="u", endpoint=Endpoint(url=f"http://127.0.0.1:{server.port}/v1"))
            models = UpstreamModels()
            first = asyncio.create_task(models.served(upstream, client(0), FMT, "m"))
            await asked.wait()
            for number in range(MAX_MODELS + 2):
                models.of(upstream, client(1 + number), FMT)
            await asyncio.sleep(0)
            may.set()
            try:
                return await first
            finally:
                await models.close()

    assert asyncio.run(asyncio.wait_for(waited(), PATIENCE)) == 4_096
