"""Processes are replaced while answers stream: they say that they are not ready, and break nothing."""

import asyncio
import json
import os
import re
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from http.client import HTTPConnection
from pathlib import Path

from tests.gateway.processes import ServingProcess
from tests.gateway.raw_upstream import CHUNKED, RawUpstream, Talk, chunk, response
from tests.gateway.talking import CLIENTS, PATHS, RawClient, body_of, events_of

STREAMS = 6
EVENTS = events_of("openai-chat")
PATIENCE = 120  # seconds; only a failing test waits so long


class HeldUpstream:
    """Streams the first event, and the rest when it is let go."""

    def __init__(self) -> None:
        self.let_go = asyncio.Event()

    async def __call__(self, talk: Talk) -> None:
        while True:
            head, _ = await talk.request()
            if CLIENTS.encode() not in head.lower():
                await talk.say(response(status="404 Not Found"))
                continue
            await talk.say(CHUNKED + chunk(EVENTS[0]))
            await self.let_go.wait()
            await talk.say(chunk(b"".join(EVENTS[1:])) + chunk(b""))


@asynccontextmanager
async def serving(folder: Path, *options: str) -> AsyncIterator[tuple[ServingProcess, HeldUpstream]]:
    held = HeldUpstream()
    async with RawUpstream(held) as upstream:
        url = f"http://127.0.0.1:{upstream.port}/v1"
        given = ("--upstream", url, "--store", str(folder / "threads.db"), "--no-app", *options)
        gateway = await asyncio.to_thread(ServingProcess(*given, folder=folder).__enter__)
        try:
            yield gateway, held
        finally:
            held.let_go.set()
            for _ in range(2):  # the second ends the wait of the first
                if gateway.process.poll() is None:
                    gateway.tell(signal.SIGTERM)
            await asyncio.to_thread(gateway.ended)


async def begun(stack: AsyncExitStack, gateway: ServingProcess) -> RawClient:
    """A client whose answer has begun."""
    client = await stack.enter_async_context(RawClient(gateway.port))
    client.ask(PATHS["openai-chat"], body_of("openai-chat", stream=True))
    assert (await client.head())[0] == 200
    assert await client.chunk() == EVENTS[0]
    return client


def get(port: int, path: str) -> tuple[int, str | None, str]:
    """Status, the header `connection`, and the body."""
    connection = HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    connection.request("GET", path)
    answer = connection.getresponse()
    found = answer.status, answer.getheader("connection"), answer.read().decode()
    connection.close()
    return found


def test_after_sigterm_it_is_not_ready_first_and_every_stream_ends_by_itself(tmp_path: Path) -> None:
    (tmp_path / "everlong.toml").write_text("drain_delay = 3600\n")

    async def restart() -> list[bytes]:
        async with serving(tmp_path, "--config", "everlong.toml") as (gateway, held), AsyncExitStack() as stack:
            clients = [await begun(stack, gateway) for _ in range(STREAMS)]
            status, kept, body = await asyncio.to_thread(get, gateway.port, "/health/ready")
            assert (status, kept, json.loads(body)["status"]) == (200, None, "ready")
            gateway.tell(signal.SIGTERM)
            while (told := await asyncio.to_thread(get, gateway.port, "/health/ready"))[0] == 200:
                pass
            assert told == (503, "close", '{"status":"draining"}')
            assert (await asyncio.to_thread(get, gateway.port, "/health/live"))[:2] == (200, "close")
            late = await begun(stack, gateway)  # whoever has not heard of it yet is served
            _, _, metrics = await asyncio.to_thread(get, gateway.port, "/metrics")
            assert f"everlong_requests_in_flight {STREAMS + 1}.0" in metrics
            gateway.tell(signal.SIGTERM)
            while await asyncio.to_thread(gateway.takes_connections):
                pass
            held.let_go.set()
            said = [await client.body() for client in (*clients, late)]
            assert await asyncio.to_thread(gateway.ended) == 0
            assert gateway.errors == []
            return said

    assert asyncio.run(asyncio.wait_for(restart(), PATIENCE)) == [b"".join(EVENTS[1:])] * (STREAMS + 1)


def test_a_client_that_connected_before_the_end_is_answered(tmp_path: Path) -> None:
    async def restart() -> bytes:
        async with serving(tmp_path) as (gateway, held), RawClient(gateway.port) as client:
            # Connections are taken in order: after this answer the one before it is the server's.
            assert (await asyncio.to_thread(get, gateway.port, "/health/live"))[0] == 200
            gateway.tell(signal.SIGTERM)
            while await asyncio.to_thread(gateway.takes_connections):
                pass
            client.ask(PATHS["openai-chat"], body_of("openai-chat", stream=True))
            assert (await client.head())[0] == 200
            assert await client.chunk() == EVENTS[0]
            held.let_go.set()
            said = await client.body()
            assert await asyncio.to_thread(gateway.ended) == 0
            return said

    assert asyncio.run(asyncio.wait_for(restart(), PATIENCE)) == b"".join(EVENTS[1:])


def workers_of(process: int) -> set[int]:
    """The processes that serve, by their numbers."""
    listed = subprocess.run(
        ["ps", "-ww", "-o", "pid=,args=", "--ppid", str(process)], capture_output=True, text=True, check=False
    ).stdout
    return {int(line.split()[0]) for line in listed.splitlines() if "spawn_main" in line}


def test_sighup_replaces_the_workers_and_breaks_no_stream(tmp_path: Path) -> None:
    async def restart() -> list[bytes]:
        async with serving(tmp_path, "--workers", "2") as (gateway, held), AsyncExitStack() as stack:
            clients = [await begun(stack, gateway) for _ in range(STREAMS)]
            before = workers_of(gateway.process.pid)
            assert len(before) == 2
            gateway.tell(signal.SIGHUP)
            # A successor is there, and its predecessor ends with the streams that it has.
            while not workers_of(gateway.process.pid) - before:
                status, _, _ = await asyncio.to_thread(get, gateway.port, "/health/ready")
                assert status == 200, "others take its requests, so nobody has to be sent elsewhere"
            held.let_go.set()
            said = [await client.body() for client in clients]
            while before & workers_of(gateway.process.pid):
                assert (await asyncio.to_thread(get, gateway.port, "/health/live"))[0] == 200
            assert len(workers_of(gateway.process.pid)) == 2
            return said

    assert asyncio.run(asyncio.wait_for(restart(), PATIENCE)) == [b"".join(EVENTS[1:])] * STREAMS


def test_a_killed_worker_has_no_requests_under_way(tmp_path: Path) -> None:
    def under_way(port: int) -> str:
        found = re.search(r"(?m)^everlong_requests_in_flight (\S+)", get(port, "/metrics")[2])
        return found[1] if found else ""

    async def kill() -> None:
        async with serving(tmp_path, "--workers", "2") as (gateway, _), AsyncExitStack() as stack:
            for _ in range(STREAMS):
                await begun(stack, gateway)
            assert await asyncio.to_thread(under_way, gateway.port) == f"{STREAMS}.0"
            for worker in workers_of(gateway.process.pid):
                os.kill(worker, signal.SIGKILL)
            while await asyncio.to_thread(under_way, gateway.port) != "0.0":
                pass

    asyncio.run(asyncio.wait_for(kill(), PATIENCE))
