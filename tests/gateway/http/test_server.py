"""The gateway as a process: how it starts, serves with several workers, and ends."""

import asyncio
import json
import re
import signal
from http.client import HTTPConnection
from pathlib import Path
from urllib.request import urlopen

import pytest

from everlong.llm import ScriptedServer
from everlong.store import open_store
from tests.gateway.processes import ServingProcess
from tests.gateway.raw_upstream import CHUNKED, RawUpstream, Talk, chunk, response
from tests.gateway.talking import CLIENTS, PATHS, RawClient, body_of, events_of


def test_a_signal_lets_a_stream_end_and_what_is_left_is_written(tmp_path: Path) -> None:
    """New clients are turned away, the stream under way comes to its end, then the process ends and has kept all."""
    events, closing = events_of("openai-chat"), asyncio.Event()

    async def serve(talk: Talk) -> None:
        while True:
            head, _ = await talk.request()
            if CLIENTS.encode() not in head.lower():
                await talk.say(response(status="404 Not Found"))
                continue
            await talk.say(CHUNKED + chunk(events[0]))
            await closing.wait()
            await talk.say(chunk(b"".join(events[1:])) + chunk(b""))

    async def talk(url: str) -> bytes:
        options = ("--upstream", url, "--store", str(tmp_path / "threads.db"), "--keep", "text", "--no-app")
        gateway = await asyncio.to_thread(ServingProcess(*options, folder=tmp_path).__enter__)
        try:
            async with RawClient(gateway.port) as client:
                client.ask(PATHS["openai-chat"], body_of("openai-chat", stream=True))
                status, _ = await client.head()
                assert status == 200
                first = await client.chunk()
                gateway.tell(signal.SIGTERM)
                while await asyncio.to_thread(gateway.takes_connections):
                    pass
                closing.set()
                said = first + await client.body()
        finally:
            closing.set()
            code = await asyncio.to_thread(gateway.end, signal.SIGTERM)
        assert (code, gateway.errors) == (0, [])
        assert re.match(
            r"Everlong listens at http://127\.0\.0\.1:\d+/v1 \(upstreams: \S+; mode auto\)", gateway.started
        )
        lines = [json.loads(line) for line in gateway.lines]
        assert [line["status"] for line in lines if line["path"] == PATHS["openai-chat"]] == [200]
        return said

    async def both() -> bytes:
        async with RawUpstream(serve) as upstream:
            return await talk(f"http://127.0.0.1:{upstream.port}/v1")

    assert asyncio.run(asyncio.wait_for(both(), 60)) == b"".join(events)
    with open_store(str(tmp_path / "threads.db")) as store:
        kept = [thread for thread in store.threads() if thread.length]
        assert len(kept) == 1


def test_a_second_of_grace_is_all_that_a_stream_without_an_end_gets(tmp_path: Path) -> None:
    config = tmp_path / "everlong.toml"
    config.write_text("grace = 0\n")

    async def serve(talk: Talk) -> None:
        while True:
            head, _ = await talk.request()
            if CLIENTS.encode() not in head.lower():
                await talk.say(response(status="404 Not Found"))
                continue
            await talk.say(CHUNKED + chunk(events_of("openai-chat")[0]))
            await talk.left()

    async def both() -> int:
        async with RawUpstream(serve) as upstream:
            url = f"http://127.0.0.1:{upstream.port}/v1"
            options = ("--upstream", url, "--store", "memory:", "--config", str(config), "--no-access-log")
            gateway = await asyncio.to_thread(ServingProcess(*options, folder=tmp_path).__enter__)
            async with RawClient(gateway.port) as client:
                client.ask(PATHS["openai-chat"], body_of("openai-chat", stream=True))
                await client.head()
                await client.chunk()
                code = await asyncio.to_thread(gateway.end, signal.SIGINT)
                while await client.some(1_000):  # and the client hears that it is over
                    pass
            assert gateway.lines == []
            return code

    assert asyncio.run(asyncio.wait_for(both(), 60)) == 0


def figures(address: str, name: str) -> float:
    """The sum of a metric over all of its labels."""
    text = urlopen(f"{address}/metrics").read().decode()
    return sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if re.match(rf"{name}[{{ ]", line))


@pytest.mark.parametrize("workers", [2])
def test_several_workers_serve_on_one_store_and_their_figures_add_up(tmp_path: Path, workers: int) -> None:
    store = f"sqlite:///{tmp_path / 'threads.db'}"
    with (
        ScriptedServer() as upstream,
        ServingProcess(
            "--upstream", upstream.url, "--store", store, "--workers", str(workers), folder=tmp_path
        ) as gateway,
    ):
        for number in range(12):
            connection = HTTPConnection("127.0.0.1", gateway.port, timeout=30)
            said = [{"role": "user", "content": f"Question {number}."}]
            connection.request("POST", PATHS["openai-chat"], body_of("openai-chat", said), {"x-api-key": f"k{number}"})
            answer = connection.getresponse()
            assert answer.status == 200, answer.read()
            connection.close()
        while figures(gateway.address, "everlong_requests_total") < 12:
            continue  # told of right after the answer
        assert figures(gateway.address, "everlong_requests_total") == 12
        assert figures(gateway.address, "everlong_tokens_total") > 0
    assert gateway.ended() == 0
    assert len([line for line in gateway.lines if json.loads(line)["status"] == 200]) == 12
