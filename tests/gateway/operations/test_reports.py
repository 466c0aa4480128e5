"""`/everlong/requests`: what was left out of a request and why, in fields that the documentation names."""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from everlong.llm import ScriptedServer, Window
from tests.gateway.resending import Resending, post
from tests.gateway.running import RunningGateway
from tests.gateway.talking import RawClient, body_of

DOCS = (Path(__file__).parents[3] / "docs" / "gateway" / "headers.md").read_text(encoding="utf-8")


async def _get(gateway: RunningGateway, path: str) -> tuple[int, bytes]:
    async with RawClient(gateway.port) as client:
        client.ask(path, headers={"authorization": "Bearer k"}, method="GET")
        status, _, body = await client.answer()
        return status, body


def explained(gateway: RunningGateway, path: str) -> tuple[int, bytes]:
    return asyncio.run(_get(gateway, path))


def told_of(gateway: RunningGateway, headers: Mapping[str, str]) -> str:
    """The id of a request, once it is told of: right after its answer."""
    name = headers["x-everlong-request"]
    while explained(gateway, f"/everlong/requests/{name}")[0] == 404:
        continue
    return name


def cut_request(gateway: RunningGateway) -> str:
    """The id of a request of which something was left out."""
    client = Resending("openai-chat")
    for number in range(12):
        client.messages.append({"role": "user", "content": f"Note {number}: " + f"pier {number} has boats. " * 120})
        _, headers, _ = client.tried(gateway)
        client.messages.append({"role": "assistant", "content": "Noted."})
        if headers.get("x-everlong-edits", "0") != "0":
            return told_of(gateway, headers)
    raise AssertionError("nothing was cut")


def test_a_cut_request_is_explained_edit_by_edit() -> None:
    with ScriptedServer(window=Window(4_000, told=True)) as upstream, RunningGateway(upstream=upstream.url) as gateway:
        name = cut_request(gateway)
        status, body = explained(gateway, f"/everlong/requests/{name}")
        listed = json.loads(explained(gateway, "/everlong/requests")[1])
    told = json.loads(body)
    assert (status, told["id"], told["status"]) == (200, name, 200)
    assert told["tokens"]["before"] > told["tokens"]["after"] > 0
    assert told["window"]["tokens"] == 4_000
    assert told["edits"]
    for edit in told["edits"]:
        assert edit["why"]
        assert edit["before"] >= 0 <= edit["after"]
    assert "has boats" not in body.decode()
    assert listed[0]["id"] == name, "the newest is first"


def test_every_field_of_an_explanation_is_documented() -> None:
    with ScriptedServer(window=Window(4_000, told=True)) as upstream, RunningGateway(upstream=upstream.url) as gateway:
        told = json.loads(explained(gateway, f"/everlong/requests/{cut_request(gateway)}")[1])
    fields = {*told, *told["edits"][0]}
    assert sorted(name for name in fields if f"`{name}`" not in DOCS) == []


def test_a_refused_request_is_explained_too() -> None:
    with RunningGateway(upstream="http://127.0.0.1:9/v1") as gateway:
        status, headers, _ = post(
            gateway, "/v1/chat/completions", body_of("openai-chat", model=""), {"authorization": "Bearer k"}
        )
        told = json.loads(explained(gateway, f"/everlong/requests/{told_of(gateway, headers)}")[1])
    assert (status, told["status"]) == (400, 400)
    assert "model is missing" in told["error"]


def test_an_id_that_is_not_there_is_404_in_one_line() -> None:
    with RunningGateway(upstream="http://127.0.0.1:9/v1") as gateway:
        status, body = explained(gateway, "/everlong/requests/none")
    assert status == 404
    assert "no recent request" in json.loads(body)["error"]["message"]


def test_CB_3_a_window_that_nobody_knows_is_told_as_assumed_with_what_to_do() -> None:
    with ScriptedServer() as upstream, RunningGateway(upstream=upstream.url, preset="chatbox") as gateway:
        body = body_of("openai-chat", model="house-model")
        _, headers, _ = post(gateway, "/v1/chat/completions", body, {"authorization": "Bearer k"})
        told = json.loads(explained(gateway, f"/everlong/requests/{told_of(gateway, headers)}")[1])
    assert (told["window"]["tokens"], told["window"]["assumed"]) == (None, 96_000)
    assert "EVERLONG_WINDOW" in told["window"]["hint"]
    assert "no summary is written automatically" in told["window"]["hint"]


def test_a_prompt_that_leaves_little_to_move_is_logged_once_and_the_answer_is_said_to_be_shorter(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with ScriptedServer(window=Window(8_000, told=True)) as upstream, RunningGateway(upstream=upstream.url) as gateway:
        headers = []
        for number in range(3):
            messages = [
                {"role": "system", "content": f"{number} " + "rule " * 6_400},
                {"role": "user", "content": "Hello"},
            ]
            body = {"model": "gpt-4o", "messages": messages, "max_tokens": 4_000}
            status, answered, _ = post(
                gateway, "/v1/chat/completions", json.dumps(body).encode(), {"authorization": "Bearer k"}
            )
            assert status == 200
            headers.append(answered)
    hints = [record.getMessage() for record in caplog.records if "can free only" in record.getMessage()]
    assert len(hints) == 1
    assert hints[0].startswith("gpt-4o: compaction can free only ")
    assert "system text 6,4" in hints[0]
    sent = [asked.max_tokens for asked in upstream.requests]
    assert [int(answered["x-everlong-max-tokens"]) for answered in headers] == sent
    assert all(1_024 <= (length or 0) < 4_000 for length in sent)
