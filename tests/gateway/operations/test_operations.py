"""Running the gateway: what is logged, limited, measured and documented; and that counting holds nobody up."""

import asyncio
import json
import logging
import re
from dataclasses import MISSING, fields
from itertools import pairwise
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from everlong.gateway.config import GatewayConfig, KeyTable, UpstreamTable
from everlong.gateway.keys.records import hashed
from everlong.gateway.operations.services import services_for
from everlong.gateway.upstreams.providers import routes_from
from everlong.llm import ScriptedServer, Window
from everlong.store import MemoryThreads
from tests.gateway.raw_upstream import Talk, response
from tests.gateway.resending import Resending, of_clients, post
from tests.gateway.running import RunningGateway
from tests.gateway.talking import FORMATS, PATHS, RawClient, body_of, talk_through, told_error, whole_of

DOCS = Path(__file__).parents[3] / "docs"
GATEWAY = "\n".join(page.read_text(encoding="utf-8") for page in sorted((DOCS / "gateway").glob("*.md")))
KEY = "el-" + "k" * 40
SECRET = "a-thing-that-was-said"


def lines_of(caplog: pytest.LogCaptureFixture) -> list[dict[str, object]]:
    return [json.loads(one.getMessage()) for one in caplog.records if one.name == "everlong.access"]


def test_the_access_log_is_json_without_contents(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="everlong.access")
    with ScriptedServer() as upstream, RunningGateway(upstream=upstream.url) as gateway:
        for fmt in FORMATS:
            body = body_of(fmt, [{"role": "user", "content": SECRET}])
            post(gateway, PATHS[fmt] + f"?q={SECRET}", body, {"authorization": f"Bearer {KEY}"})
        post(gateway, "/v1/embeddings", json.dumps({"model": "m", "input": SECRET}).encode())
        post(gateway, "/v1/messages/count_tokens", body_of("anthropic", [{"role": "user", "content": SECRET}]))
    lines = lines_of(caplog)
    assert [line["path"] for line in lines] == [*PATHS.values(), "/v1/embeddings", "/v1/messages/count_tokens"]
    assert {line["status"] for line in lines[: len(FORMATS)]} == {200}
    assert all(
        {"time", "request", "client", "upstream", "added_ms", "seconds", "bytes_in"} <= set(one) for one in lines
    )
    for private in (SECRET, KEY):
        assert private not in caplog.text


@pytest.mark.parametrize("fmt", FORMATS)
def test_limits_of_a_key_are_told_with_the_seconds_to_wait(fmt: str, tmp_path: Path) -> None:
    with ScriptedServer() as upstream:
        file = tmp_path / "everlong.toml"
        file.write_text(
            f'[[upstreams]]\nurl = "{upstream.url}"\nkey = "sk-u"\nformats = {json.dumps(FORMATS)}\n'
            f'[[keys]]\nname = "team"\nhash = "{hashed(KEY)}"\nlimits = {{ requests_per_minute = 2 }}\n'
        )
        with RunningGateway(file=file) as gateway:
            sent = {"authorization": f"Bearer {KEY}"}
            answers = [post(gateway, PATHS[fmt], body_of(fmt), sent) for _ in range(3)]
        metrics = gateway.services.metrics.written()[0].decode()
    assert [status for status, _, _ in answers] == [200, 200, 429]
    assert 1 <= int(answers[2][1]["retry-after"]) <= 60
    assert "2 requests per minute" in told_error(fmt, answers[2][2])
    assert 'everlong_refusals_total{kind="too_many_requests"} 1.0' in metrics


def test_tokens_are_limited_at_every_endpoint(tmp_path: Path) -> None:
    with ScriptedServer() as upstream:
        file = tmp_path / "everlong.toml"
        file.write_text(
            f'[[upstreams]]\nurl = "{upstream.url}"\nkey = "sk-u"\nformats = {json.dumps(FORMATS)}\n'
            f'[[keys]]\nname = "team"\nhash = "{hashed(KEY)}"\nlimits = {{ tokens_per_minute = 500 }}\n'
        )
        body = json.dumps({"model": "m", "input": "boats and ropes " * 90}).encode()
        with RunningGateway(file=file) as gateway:
            sent = {"authorization": f"Bearer {KEY}"}
            statuses = [post(gateway, "/v1/embeddings", body, sent)[0] for _ in range(2)]
    assert statuses == [404, 429]


def test_metrics_tell_of_requests_overflows_and_what_was_saved() -> None:
    told = [{"role": "user", "content": f"{n}: " + f"pier {n} has boats. " * 120} for n in range(14)]
    said = [one for note in told for one in (note, {"role": "assistant", "content": "Noted."})]
    with ScriptedServer(window=Window(4_000)) as upstream, RunningGateway(upstream=upstream.url) as gateway:
        status, headers, _ = post(gateway, PATHS["openai-chat"], body_of("openai-chat", [*said, told[0]]))
    figures = gateway.services.metrics.written()[0].decode()  # when all is told of
    assert (status, headers["x-everlong-recovered"]) == (200, "1")

    def figure(name: str) -> float:
        return sum(float(line.rsplit(" ", 1)[1]) for line in figures.splitlines() if re.match(rf"{name}[{{ ]", line))

    assert figure("everlong_requests_total") == 1
    assert figure("everlong_overflows_total") == figure("everlong_recoveries_total") == 1
    assert figure("everlong_overflows_lost_total") == 0
    assert figure('everlong_tokens_total{what="saved"}') > 0
    assert figure("everlong_conversation_messages_count") == 1


@pytest.mark.parametrize("mode", ["auto", "trim"])
def test_a_request_tells_of_the_compactions_since_the_one_before(mode: str) -> None:
    client = Resending("openai-chat")
    told: list[int] = []
    behind: list[int] = []
    with (
        ScriptedServer(window=Window(8_000, told=True)) as upstream,
        RunningGateway(upstream=upstream.url, mode=mode) as gateway,
    ):
        for turn in range(24):
            client.messages.append({"role": "user", "content": f"{turn}: " + f"pier {turn} has boats. " * 120})
            status, headers, _ = client.tried(gateway)
            assert status == 200
            told.append(int(headers["x-everlong-compactions"]))
            behind.append(int(headers["x-everlong-compactions-behind"]))
            client.messages.append({"role": "assistant", "content": "Noted."})
            client.settle(gateway)
    sent = [request.messages for request in of_clients(upstream)]
    broke = [later[: len(earlier)] != earlier for earlier, later in pairwise(sent)]
    assert broke == [made > 0 for made in told[1:]]
    assert sum(broke) > 1
    assert all(few <= all_ for few, all_ in zip(behind, told, strict=True))
    assert (sum(behind) > 0) is (mode == "auto"), "a summary is written behind an answer"


# --- what is documented ------------------------------------------------------------------------------


@pytest.mark.parametrize("table", [KeyTable, UpstreamTable])
def test_tables_of_the_file_are_shown(table: type[KeyTable] | type[UpstreamTable]) -> None:
    needed = [field.name for field in fields(table) if field.default is MISSING and field.default_factory is MISSING]
    assert [name for name in needed if not re.search(rf"^\s*{name} = ", GATEWAY, re.MULTILINE)] == []


# --- counting holds nobody up ------------------------------------------------------------------------


def notes(size: int) -> list[dict[str, str]]:
    """A conversation of about so many bytes, whose last question is short."""
    told = [{"role": "user", "content": f"{n}: " + "boats and ropes " * 4_000} for n in range(size // 64_000)]
    said = [one for note in told for one in (note, {"role": "assistant", "content": "Noted."})]
    return [*said, {"role": "user", "content": "How many boats?"}]


async def answers(talk: Talk, _head: bytes, _body: bytes) -> None:
    await talk.say(response(whole_of("openai-chat"), more=("content-type: application/json",)))


def test_I2_others_are_answered_while_five_megabytes_are_counted() -> None:
    """The work stands still in its thread; the event loop answers whoever else asks."""
    said = notes(5_200_000)

    async def client(gateway: RunningGateway) -> list[int]:
        async with RawClient(gateway.port) as busy:
            named = {"x-everlong-thread": "notes"}  # held whole from the beginning
            busy.ask(PATHS["openai-chat"], body_of("openai-chat", said[:1]), named)
            await busy.answer()
            conversation = gateway.services.conversations.all()[0]
            while conversation.busy:
                await asyncio.sleep(0)
            statuses = []
            with conversation.lock:
                busy.ask(PATHS["openai-chat"], body_of("openai-chat", said), named)
                while not conversation.busy:  # it has found its conversation and waits for it
                    await asyncio.sleep(0)
                for _ in range(20):
                    async with RawClient(gateway.port) as other:
                        other.ask("/health", method="GET")
                        statuses.append((await other.answer())[0])
            return [*statuses, (await busy.answer())[0]]

    assert talk_through(answers, client) == [200] * 21


class Waiting(MemoryThreads):
    """A store that does not answer for facts of one kind until it may."""

    def __init__(self, what: str) -> None:
        super().__init__()
        self._what = f"gateway/{what}/"
        self.asked, self.may = Event(), Event()

    def fact(self, kind: str, key: str) -> str | None:
        if kind.startswith(self._what):
            self.asked.set()
            self.may.wait()
        return super().fact(kind, key)


def test_I2_others_are_answered_while_a_store_far_away_is_asked_what_was_recalled() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    said: list[Any] = [
        {"role": "user", "content": "Look."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "Seen."},
    ]
    assert others_meanwhile("opaque", PATHS["openai-chat"], body_of("openai-chat", said)) == [200, 200]


def test_I2_others_are_answered_while_a_store_far_away_is_asked_for_an_explanation() -> None:
    assert others_meanwhile("requests", "/everlong/requests/1234", b"", method="GET") == [200, 404]


def others_meanwhile(what: str, path: str, body: bytes, method: str = "POST") -> list[int]:
    """The status of another request while the store is asked for something, and then of the one it is asked for."""
    store = Waiting(what)

    async def client(gateway: RunningGateway) -> list[int]:
        gateway.services.state_store.store, gateway.services.state_store.near = store, False
        try:
            async with RawClient(gateway.port) as busy, RawClient(gateway.port) as other:
                busy.ask(path, body, method=method)
                await asyncio.to_thread(store.asked.wait)
                other.ask("/health", method="GET")
                status = (await asyncio.wait_for(other.answer(), 5))[0]
                store.may.set()
                return [status, (await busy.answer())[0]]
        finally:
            store.may.set()

    return talk_through(answers, client, recall_tool=True)


def test_the_end_waits_for_summaries_as_long_as_for_answers() -> None:
    async def closed() -> None:
        config = GatewayConfig(store="memory:", upstream="http://127.0.0.1:9/v1", grace=0.01)
        services = services_for(config, routes_from(config, {}), {})
        services.jobs.here("summary", "thread", asyncio.Event().wait)  # a model that does not answer
        await asyncio.wait_for(services.close(), 5)

    asyncio.run(closed())


ENDPOINTS = {**PATHS, "models": "/v1/models", "embeddings": "/v1/embeddings", "count": "/v1/messages/count_tokens"}


@pytest.mark.parametrize("name", ENDPOINTS)
def test_J4_every_endpoint_tells_the_time_it_added(name: str) -> None:
    async def client(gateway: RunningGateway) -> dict[str, str]:
        async with RawClient(gateway.port) as client:
            fmt = name if name in PATHS else "anthropic"
            client.ask(
                ENDPOINTS[name], body_of(fmt) if name != "models" else b"", method="GET" if name == "models" else "POST"
            )
            return (await client.answer())[1]

    assert float(talk_through(answers, client)["x-everlong-added-ms"]) >= 0
