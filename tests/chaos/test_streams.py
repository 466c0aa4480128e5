"""Streams over two replicas while one of them is replaced: each comes to its end, byte for byte.

A hundred in the usual run, five hundred with EVERLONG_SOAK.
"""

import asyncio
import json
import os
from collections import defaultdict
from pathlib import Path

from tests.chaos.cluster import Cluster, Run
from tests.chaos.log import Log
from tests.gateway.raw_upstream import CHUNKED, RawUpstream, Talk, chunk, response
from tests.gateway.talking import CLIENTS, PATHS, RawClient, body_of
from tests.store.postgres_server import database_url, drop_database

STREAMS = 500 if os.environ.get("EVERLONG_SOAK") else 100
PATIENCE = 300  # seconds; only a failing test waits so long
LAST = 3  # pieces after the first


def piece(name: str, number: int) -> bytes:
    """One event of a stream, which no other stream has."""
    delta = {"index": 0, "delta": {"content": f"{name}.{number} "}, "finish_reason": None}
    return b"data: " + json.dumps({"id": name, "choices": [delta]}).encode() + b"\n\n"


def whole(name: str) -> bytes:
    return b"".join(piece(name, number) for number in range(LAST + 1)) + b"data: [DONE]\n\n"


class Upstream:
    """Says one piece of every stream, and the next one when it is told to go on."""

    def __init__(self) -> None:
        self._said: dict[int, int] = defaultdict(int)
        self._upto = 0
        self._moved = asyncio.Condition()

    async def __call__(self, talk: Talk) -> None:
        while True:
            head, body = await talk.request()
            if CLIENTS.encode() not in head.lower():  # the gateway looks for the model's window
                await talk.say(response(status="404 Not Found"))
                continue
            name = json.loads(body)["messages"][0]["content"]
            await talk.say(CHUNKED)
            for number in range(LAST + 1):
                async with self._moved:
                    while self._upto < number:
                        await self._moved.wait()
                await talk.say(chunk(piece(name, number)))
                async with self._moved:
                    self._said[number] += 1
                    self._moved.notify_all()
            await talk.say(chunk(b"data: [DONE]\n\n") + chunk(b""))

    async def say(self, number: int, streams: int) -> None:
        """Let all say the pieces up to this one, and wait until so many have."""
        async with self._moved:
            self._upto = number
            self._moved.notify_all()
            await self._moved.wait_for(lambda: self._said[number] >= streams)


async def streamed(run: Run, name: str) -> bytes:
    """A whole stream through that replica."""
    async with RawClient(run.port) as client:
        said = [{"role": "user", "content": name}]
        client.ask(PATHS["openai-chat"], body_of("openai-chat", said, stream=True), {"x-api-key": f"key-{name[-1]}"})
        status, _, body = await client.answer()
        assert status == 200, body
        return body


async def replaced(folder: Path, store: str) -> None:
    upstream, log = Upstream(), Log()
    settings = folder / "everlong.toml"
    settings.write_text(f"grace = {PATIENCE}\n", encoding="utf-8")
    async with RawUpstream(upstream) as server, Cluster(folder, log) as cluster:
        address = f"http://127.0.0.1:{server.port}/v1"
        await cluster.serve(2, "--config", str(settings), "--upstream", address, "--store", store, "--no-app")
        runs = [member.run for member in cluster.replicas]
        streams = {
            name: asyncio.create_task(streamed(runs[number % 2], name))
            for number, name in enumerate(f"s{number}" for number in range(STREAMS))
        }
        await upstream.say(0, STREAMS)
        cluster.replace(cluster.replicas[0])
        await upstream.say(1, STREAMS)  # while the old one goes
        await cluster.all_up()
        assert cluster.replicas[0].run.port != runs[0].port
        late = {f"late{number}": cluster.replicas[0].run for number in range(STREAMS // 10)}
        streams |= {name: asyncio.create_task(streamed(run, name)) for name, run in late.items()}
        await upstream.say(2, STREAMS + len(late))  # while the new one serves beside it
        await upstream.say(LAST, STREAMS + len(late))
        for name, stream in streams.items():
            assert await stream == whole(name), log.tail()
        assert await asyncio.to_thread(runs[0].process.wait, PATIENCE) == 0, runs[0].said()[-3000:]


def test_no_stream_breaks_when_a_replica_is_replaced(tmp_path: Path) -> None:
    store = database_url()
    try:
        asyncio.run(asyncio.wait_for(replaced(tmp_path, store), PATIENCE))
    finally:
        drop_database(store)
