"""Many streams at once through one gateway: each in order, none in another's, memory bounded, nothing left behind.

Forty in the usual run, five hundred with EVERLONG_SOAK.
"""

import asyncio
import json
import os
import re
from contextlib import suppress
from pathlib import Path
from urllib.request import urlopen

from tests.gateway.processes import ServingProcess
from tests.gateway.raw_upstream import CHUNKED, RawUpstream, Talk, chunk, response
from tests.gateway.talking import CLIENTS, PATHS, RawClient, body_of

STREAMS = 500 if os.environ.get("EVERLONG_SOAK") else 40
PIECES = 20
MEGABYTE = 1024 * 1024
MOST_EACH = MEGABYTE // 2  # bytes of memory for one stream under way, generously


def memory_of(process: int) -> int:
    """Bytes that a process holds."""
    return int(re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{process}/status").read_text())[1]) * 1024  # type: ignore[index]


def connections_of(process: int) -> int:
    """Sockets that a process holds."""
    found = 0
    for link in Path(f"/proc/{process}/fd").iterdir():
        with suppress(FileNotFoundError):  # closed meanwhile
            found += str(link.readlink()).startswith("socket:")
    return found


def piece(name: str, number: int) -> bytes:
    delta = {"index": 0, "delta": {"content": f"{name}.{number} "}, "finish_reason": None}
    return b"data: " + json.dumps({"id": name, "choices": [delta]}).encode() + b"\n\n"


class Upstream:
    """Says nothing more until all streams are open: then all of them are under way at the same time."""

    def __init__(self) -> None:
        self.open = 0
        self.all_open = asyncio.Event()

    async def __call__(self, talk: Talk) -> None:
        while True:
            head, body = await talk.request()
            if CLIENTS.encode() not in head.lower():
                await talk.say(response(status="404 Not Found"))
                continue
            name = json.loads(body)["messages"][0]["content"]
            await talk.say(CHUNKED + chunk(piece(name, 0)))
            self.open += 1
            if self.open == STREAMS:
                self.all_open.set()
            await self.all_open.wait()
            for number in range(1, PIECES):
                await talk.say(chunk(piece(name, number)))
                await asyncio.sleep(0)
            await talk.say(chunk(b"data: [DONE]\n\n") + chunk(b""))


async def streamed(port: int, name: str) -> tuple[str, bytes]:
    async with RawClient(port) as client:
        said = [{"role": "user", "content": name}]
        client.ask(PATHS["openai-chat"], body_of("openai-chat", said, stream=True), {"x-api-key": f"key-{name[-1]}"})
        status, _, body = await client.answer()
        assert status == 200, body
        return name, body


def test_many_streams_at_once_stay_apart_and_leave_nothing_behind(tmp_path: Path) -> None:
    async def both() -> None:
        upstream = Upstream()
        async with RawUpstream(upstream) as server:
            address = f"http://127.0.0.1:{server.port}/v1"
            options = ("--upstream", address, "--store", "memory:", "--no-access-log", "--no-app")
            gateway = await asyncio.to_thread(ServingProcess(*options, folder=tmp_path).__enter__)
            try:
                await check(gateway, upstream)
            finally:
                await asyncio.to_thread(gateway.__exit__, None, None, None)
        assert gateway.errors == []

    async def check(gateway: ServingProcess, upstream: Upstream) -> None:
        health = await asyncio.to_thread(lambda: urlopen(f"{gateway.address}/health").status)
        assert health == 200
        before = memory_of(gateway.process.pid)
        most = 0

        async def watch() -> None:
            nonlocal most
            await upstream.all_open.wait()
            most = memory_of(gateway.process.pid)

        watching = asyncio.create_task(watch())
        answers = await asyncio.gather(*(streamed(gateway.port, f"s{number}") for number in range(STREAMS)))
        await watching
        for name, body in answers:
            assert body == b"".join(piece(name, number) for number in range(PIECES)) + b"data: [DONE]\n\n"
        after = memory_of(gateway.process.pid)
        assert max(most, after) - before < 60 * MEGABYTE + STREAMS * MOST_EACH
        # Connections to the upstream may be kept for the next; those of clients are gone.
        while connections_of(gateway.process.pid) > STREAMS + 20:
            await asyncio.sleep(0)
        metrics = ""
        told = re.compile(rf'everlong_requests_total{{[^}}]*status="200"[^}}]*}} {STREAMS}\.0')
        while not told.search(metrics):  # told of right after the answers
            metrics = await asyncio.to_thread(lambda: urlopen(f"{gateway.address}/metrics").read().decode())
        assert "everlong_clients_gone_total 0.0" in metrics

    asyncio.run(asyncio.wait_for(both(), 300))
