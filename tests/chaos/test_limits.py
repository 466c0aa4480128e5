"""One key's limit over three replicas: fifty clients at once exceed it by at most one request a replica."""

import asyncio
import json
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from time import monotonic

from everlong.gateway import hashed
from everlong.llm import Answer, ReceivedRequest, ScriptedServer
from tests.chaos.cluster import Cluster
from tests.chaos.log import Log
from tests.gateway.talking import CLIENTS, PATHS, RawClient, body_of
from tests.store.postgres_server import database_url, drop_database

CLIENTS_AT_ONCE = 50
REQUESTS_EACH = 4
LIMIT = 20
REPLICAS = 3
MINUTE = 60.0
KEY = "el-harbour"


class Upstream:
    """Notes when requests came in."""

    def __init__(self) -> None:
        self.times: list[float] = []

    def __call__(self, asked: ReceivedRequest) -> Answer:
        if CLIENTS in asked.headers:
            self.times.append(monotonic())
        return Answer(text="Three boats.")

    def most_in_a_minute(self) -> int:
        """The most requests of any minute, wherever it begins."""
        return max(sum(begin <= time < begin + MINUTE for time in self.times) for begin in self.times)


@dataclass
class Seen:
    """What the clients saw: the answers, and how many requests died with a replica."""

    answers: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    died: int = 0


async def crowd(cluster: Cluster, chance: Random) -> Seen:
    """Every client asks some times, any replica; a replica dies in the middle."""
    seen = Seen()
    answers = seen.answers

    async def client(number: int) -> None:
        for turn in range(REQUESTS_EACH):
            said = [{"role": "user", "content": f"Client {number} asks {turn}."}]
            while True:
                run = await cluster.pick(chance)
                try:
                    async with RawClient(run.port) as connection:
                        connection.ask(PATHS["openai-chat"], body_of("openai-chat", said), {"x-api-key": KEY})
                        status, headers, body = await connection.answer()
                        assert status in (200, 429), body
                        answers.append((status, headers))
                        break
                except (ConnectionError, asyncio.IncompleteReadError):
                    assert run.ending, f"{run.name} lives, and its connection died"
                    seen.died += 1
            if len(answers) == CLIENTS_AT_ONCE:
                cluster.kill(cluster.replicas[0])

    await asyncio.gather(*(client(number) for number in range(CLIENTS_AT_ONCE)))
    return seen


def test_one_key_over_three_replicas_stays_within_its_limit(tmp_path: Path) -> None:
    upstream, store = Upstream(), database_url()
    table = {"name": "harbour", "hash": hashed(KEY)}
    lines = ["[[keys]]", *(f"{name} = {json.dumps(value)}" for name, value in table.items())]
    settings = tmp_path / "everlong.toml"
    settings.write_text("\n".join([*lines, f"limits = {{ requests_per_minute = {LIMIT} }}", ""]), encoding="utf-8")

    async def run(url: str) -> Seen:
        async with Cluster(tmp_path, Log()) as cluster:
            await cluster.serve(REPLICAS, "--config", str(settings), "--upstream", url, "--store", store, "--no-app")
            return await crowd(cluster, Random(50))

    try:
        with ScriptedServer(upstream) as server:
            seen = asyncio.run(run(server.url))
    finally:
        drop_database(store)
    refused = [headers for status, headers in seen.answers if status == 429]
    # What a replica had admitted when it died may not have reached the provider.
    assert LIMIT - seen.died <= upstream.most_in_a_minute() <= LIMIT + REPLICAS
    assert len(refused) + len(upstream.times) >= CLIENTS_AT_ONCE * REQUESTS_EACH
    assert all(1 <= int(headers["retry-after"]) <= MINUTE for headers in refused)
