"""Anthropic's SDK for Vertex and for Bedrock with another address, and what else clients ask of these clouds."""

import json
from base64 import b64decode
from collections.abc import Iterator
from typing import Any
from urllib.request import urlopen

import anthropic
import pytest

from everlong.llm import Answer, ReceivedRequest, ScriptedServer, Window, echo, reads_files
from everlong.llm.scripted.script import Raw
from everlong.wire import AWS_FRAMES, SseReader, problems
from everlong.wire.aws_frames import FrameReader, frame_bytes
from tests.engine.authors import both, is_asked_to_summarise
from tests.engine.talking import pages
from tests.gateway.raw_upstream import Talk, response
from tests.gateway.resending import post
from tests.gateway.running import RunningGateway
from tests.gateway.talking import RawClient, talk_through
from tests.sdk_clients import closed_later

TURNS = 9
TOOLS: Any = [
    {
        "name": "read_file",
        "description": "Reads a file.",
        "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    }
]
ON_VERTEX = "claude-opus-4-5@20251101"
ON_BEDROCK = "us.anthropic.claude-opus-4-5-20251101-v1:0"
PROFILE = "arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.anthropic.claude-opus-4-5-20251101-v1:0"
PROJECT = "projects/p-1/locations/us-east5"
SAID: Any = [{"role": "user", "content": "Say fish."}]
BODY = {"anthropic_version": "bedrock-2023-05-31", "max_tokens": 100, "messages": SAID}
SIGNED = {
    "authorization": "AWS4-HMAC-SHA256 Credential=AKIAEXAMPLE/20261116/us-east-1/bedrock/aws4_request, "
    "SignedHeaders=accept;accept-encoding;host;x-amz-date, Signature=0f00ba",
    "x-amz-date": "20261116T050000Z",
    "x-amz-security-token": "session-token-1",
    "accept-encoding": "gzip, deflate",
}
#: Clients, and the model's name in each.
CLIENTS = ("vertex", "bedrock")


def client_of(kind: str, gateway: RunningGateway) -> tuple[Any, str]:
    if kind == "vertex":
        vertex = closed_later(
            anthropic.AnthropicVertex(
                base_url=gateway.url, access_token="token-1", region="us-east5", project_id="p-1", max_retries=0
            )
        )
        return vertex, ON_VERTEX
    bedrock = closed_later(
        anthropic.AnthropicBedrock(base_url=gateway.address, api_key="token-1", aws_region="us-east-1", max_retries=0)
    )
    return bedrock, ON_BEDROCK


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer(both(reads_files(2)), window=Window(16_000)) as server:
        yield server


@pytest.mark.parametrize("kind", CLIENTS)
def test_a_conversation_outgrows_its_window(kind: str, server: ScriptedServer) -> None:
    with RunningGateway(upstream=server.address, summaries="on") as gateway:
        client, model = client_of(kind, gateway)
        said = talk(client, model, streamed=kind == "vertex")
        client.close()
    asked = [each for each in server.requests if not is_asked_to_summarise(each)]
    accepted = [each for each in asked if each.tokens + (each.max_tokens or 0) <= 16_000]
    assert len(accepted) == said
    assert len(asked) - len(accepted) == 1, "one refusal teaches the window"
    for each in asked:
        assert problems("anthropic", {**json.loads(each.body), "model": each.model}) == []
    assert {each.model for each in asked} == {model}
    assert {each.headers["authorization"] for each in asked} == {"Bearer token-1"}
    assert len(asked[-1].messages) < 4 * TURNS, "much was left out at the end"
    summaries = [each for each in server.requests if is_asked_to_summarise(each)]
    assert summaries, "the gateway's own calls go the same way"
    for each in summaries:
        body = json.loads(each.body)
        assert body["anthropic_version"] == json.loads(asked[0].body)["anthropic_version"]
        assert "model" not in body
        assert (each.model, each.headers["authorization"]) == (model, "Bearer token-1")
        assert "x-api-key" not in each.headers


def talk(client: Any, model: str, *, streamed: bool) -> int:
    messages: list[Any] = []
    said = 0
    for turn in range(TURNS):
        messages.append({"role": "user", "content": f"Question {turn}: what does file {turn} say?"})
        while True:
            options = {"model": model, "max_tokens": 1_000, "messages": messages, "tools": TOOLS}
            if streamed:
                with client.messages.stream(**options) as stream:
                    message = stream.get_final_message()
            else:
                message = client.messages.create(**options)
            said += 1
            messages.append({"role": "assistant", "content": message.content})
            calls = [block for block in message.content if block.type == "tool_use"]
            if not calls:
                break
            messages.append(
                {
                    "role": "user",
                    "content": [
                        {"type": "tool_result", "tool_use_id": call.id, "content": pages(sum(map(ord, call.id)), 110)}
                        for call in calls
                    ],
                }
            )
        assert message.content[0].text.startswith("Done")
    return said


@pytest.mark.parametrize("verb", ["generateContent", "streamGenerateContent?alt=sse", "streamGenerateContent"])
@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_gemini_on_vertex(version: str, verb: str) -> None:
    path = f"/{version}/{PROJECT}/publishers/google/models/gemini-2.5-pro:{verb}"
    body = {"contents": [{"role": "user", "parts": [{"text": "Say fish."}]}]}
    with ScriptedServer(echo) as server, RunningGateway(upstream=server.address) as gateway:
        status, headers, answer = post(gateway, path, json.dumps(body).encode(), {"authorization": "Bearer t"})
    assert status == 200
    assert headers["x-everlong-managed"] == "yes"
    assert b"fish" in answer
    assert [(each.fmt, each.model) for each in server.requests] == [("gemini", "gemini-2.5-pro")]


def test_tokens_are_counted_for_a_client_of_vertex() -> None:
    with ScriptedServer() as server, RunningGateway(upstream=server.address) as gateway:
        client, model = client_of("vertex", gateway)
        assert client.messages.count_tokens(model=model, messages=SAID).input_tokens > 0
        client.close()
        assert server.requests == []


# --- the model's window is known by its name there -------------------------------------------------


ARN = PROFILE.replace(":", "%3A").replace("/", "%2F")
#: Paths, the model that is asked, and its window.
NAMED = {
    "a region": (f"/model/{ON_BEDROCK}/invoke", ON_BEDROCK, 200_000),
    "as boto3 writes it": (f"/model/{ON_BEDROCK.replace(':', '%3A')}/invoke", ON_BEDROCK, 200_000),
    "no region": ("/model/anthropic.claude-opus-4-6-v1/invoke", "anthropic.claude-opus-4-6-v1", 1_000_000),
    "a profile": (f"/model/{ARN}/invoke", PROFILE, 200_000),
    "a version": (f"/v1/{PROJECT}/publishers/anthropic/models/{ON_VERTEX}:rawPredict", ON_VERTEX, 200_000),
    "without /v1": (f"/{PROJECT}/publishers/anthropic/models/{ON_VERTEX}:rawPredict", ON_VERTEX, 200_000),
    "another API": (f"/v1beta1/{PROJECT}/publishers/anthropic/models/{ON_VERTEX}:rawPredict", ON_VERTEX, 200_000),
    "OpenAI on Vertex": (f"/v1/{PROJECT}/endpoints/openapi/chat/completions", "google/gemini-2.5-pro", 1_048_576),
    "a deployment": ("/openai/deployments/prod-gpt-4.1-eu/chat/completions", "prod-gpt-4.1-eu", 1_047_576),
}


@pytest.mark.parametrize("name", NAMED)
def test_a_model_of_a_cloud_has_its_window_without_configuration(name: str) -> None:
    path, model, window = NAMED[name]
    body = {**BODY, "model": model} if "openapi" in path else BODY
    with ScriptedServer(echo) as server, RunningGateway(upstream=server.address) as gateway:
        status, headers, _ = post(gateway, path, json.dumps(body).encode())
        assert status == 200
        assert headers["x-everlong-managed"] == "yes"
        with urlopen(f"{gateway.address}/everlong/requests/{headers['x-everlong-request']}") as told:
            assert json.load(told)["window"]["tokens"] == window
    assert [each.model for each in server.requests] == [model]


# --- streams of Bedrock ----------------------------------------------------------------------------


def frames_of(gateway: RunningGateway, headers: dict[str, str] | None = None, **fields: Any) -> tuple[Any, bytes]:
    path = f"/model/{ON_BEDROCK}/invoke-with-response-stream"
    status, told, body = post(gateway, path, json.dumps({**BODY, **fields}).encode(), headers)
    assert status == 200
    assert told["content-type"] == "application/vnd.amazon.eventstream"
    return told, body


def events_in(frames: bytes) -> list[Any]:
    return [json.loads(b64decode(json.loads(frame.payload)["bytes"])) for frame in FrameReader().feed(frames)]


def test_a_stream_of_bedrock_is_one_again() -> None:
    with ScriptedServer(echo) as server, RunningGateway(upstream=server.address) as gateway:
        headers, body = frames_of(gateway)
    assert headers["x-everlong-managed"] == "yes"
    events = events_in(body)
    assert (events[0]["type"], events[-1]["type"]) == ("message_start", "message_stop")
    assert "fish" in "".join(event["delta"].get("text", "") for event in events if "delta" in event)


TOO_LONG = frame_bytes(
    {":exception-type": "validationException", ":content-type": "application/json", ":message-type": "exception"},
    b'{"message":"Input is too long for requested model."}',
)


def test_an_overflow_inside_a_stream_is_recovered_before_the_first_byte() -> None:
    """As Bedrock does: status 200, and an exception where the first event should be."""
    refused: list[ReceivedRequest] = []
    long = [{"role": "user", "content": pages(1, 700)}, {"role": "assistant", "content": "Yes."}, *SAID]

    def script(asked: ReceivedRequest) -> Any:
        if asked.tokens > 6_000:
            refused.append(asked)
            return Raw(chunk=TOO_LONG, content_type="application/vnd.amazon.eventstream")
        return Answer(text="fish")

    with ScriptedServer(script) as server, RunningGateway(upstream=server.address) as gateway:
        _, body = frames_of(gateway, messages=long)
    assert refused
    assert events_in(body)[-1]["type"] == "message_stop"


def test_with_management_off_the_frames_are_passed_on_byte_for_byte() -> None:
    with ScriptedServer(echo) as server, RunningGateway(upstream=server.address) as gateway:
        headers, body = frames_of(gateway, {"x-everlong-mode": "off"})
    assert headers["x-everlong-managed"].startswith("no; ")
    events = AWS_FRAMES.decoder().feed(body)
    assert [event.name for event in SseReader().feed(events)][-1] == b"message_stop"


# --- what is forwarded as it came, and told --------------------------------------------------------

CONVERSE = {"messages": [{"role": "user", "content": [{"text": "hi"}]}]}
LLAMA = {"prompt": "hi", "max_gen_len": 10}
PASSED = {
    "converse": (f"/model/{ON_BEDROCK}/converse", CONVERSE),
    "converse as a stream": (f"/model/{ON_BEDROCK}/converse-stream", CONVERSE),
    "a model of another maker": ("/model/meta.llama3-8b-instruct-v1:0/invoke", LLAMA),
    "the same as a stream": ("/model/meta.llama3-8b-instruct-v1:0/invoke-with-response-stream", LLAMA),
    "another publisher": (
        "/v1/projects/p/locations/us-central1/publishers/mistralai/models/codestral:rawPredict",
        {"model": "codestral", "messages": []},
    ),
}


FRAME = AWS_FRAMES.comment


def forwarded(path: str, raw: bytes, headers: dict[str, str]) -> tuple[bytes, bytes, dict[str, str], bytes]:
    """What reaches a server of frames, head and body, and what its client gets."""
    asked: list[tuple[bytes, bytes]] = []

    async def script(talk: Talk, head: bytes, body: bytes) -> None:
        asked.append((head, body))
        await talk.say(response(FRAME, more=("content-type: application/vnd.amazon.eventstream",)))

    async def ask(gateway: RunningGateway) -> tuple[int, dict[str, str], bytes]:
        async with RawClient(gateway.port) as client:
            client.ask(path, raw, headers)
            return await client.answer()

    status, told, answer = talk_through(script, ask)
    assert status == 200
    [(head, body)] = asked
    return head, body, told, answer


@pytest.mark.parametrize("name", PASSED)
def test_other_formats_are_forwarded_as_they_came_and_told(name: str) -> None:
    path, body = PASSED[name]
    raw = json.dumps(body, indent=1).encode()
    head, sent, headers, answer = forwarded(f"{path}?a=b", raw, {"authorization": "Bearer k"})
    assert head.startswith(f"POST {path}?a=b HTTP/1.1".encode())
    assert sent == raw
    assert answer == FRAME
    assert headers["content-type"] == "application/vnd.amazon.eventstream"
    assert headers["x-everlong-managed"].startswith("no; ")


def test_a_signed_request_is_forwarded_as_it_came_with_its_signature() -> None:
    raw = json.dumps(BODY, indent=1).encode()
    head, sent, headers, _ = forwarded(f"/model/{ON_BEDROCK}/invoke", raw, SIGNED)
    assert headers["x-everlong-managed"] == "no; the client signed the request, so it cannot be changed"
    assert sent == raw
    lines = head.decode().lower().split("\r\n")
    for name, value in SIGNED.items():
        assert f"{name}: {value}".lower() in lines


def test_with_a_key_of_the_gateway_a_signed_request_is_managed_and_the_signature_stays_here() -> None:
    raw = json.dumps(BODY).encode()
    with ScriptedServer(echo) as server:
        upstreams = [{"url": server.address, "key": "bearer-2"}]
        with RunningGateway(upstreams=upstreams) as gateway:
            status, headers, _ = post(gateway, f"/model/{ON_BEDROCK}/invoke", raw, SIGNED)
    assert status == 200
    assert headers["x-everlong-managed"] == "yes"
    [asked] = server.requests
    assert asked.headers["authorization"] == "Bearer bearer-2"
    assert not any(name.startswith("x-amz-") for name in asked.headers)


def test_a_signature_is_no_key_of_the_gateway() -> None:
    keys = [{"name": "a", "hash": "ab" * 32}]
    with ScriptedServer(echo) as server:
        with RunningGateway(upstreams=[{"url": server.address, "key": "k"}], keys=keys) as gateway:
            status, _, answer = post(gateway, f"/model/{ON_BEDROCK}/invoke", json.dumps(BODY).encode(), SIGNED)
        assert server.requests == []
    assert status == 401
    assert b"AKIA" not in answer
