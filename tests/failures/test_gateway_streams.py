"""J3 at the gateway: nothing buffered, signs of life, cancellation, and an end that is never mistaken for another."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import anthropic
import openai
import pytest

from everlong.llm import Answer
from everlong.wire import Usage
from tests.gateway.raw_upstream import CHUNKED, Talk, chunk, response
from tests.gateway.running import RunningGateway
from tests.gateway.talking import (
    CLIENTS,
    FORMATS,
    FRAMINGS,
    PATHS,
    STREAMS,
    RawClient,
    body_of,
    events_of,
    head_of,
    talk_through,
    whole_of,
)
from tests.sdk_clients import closed_later

MODES = ("off", "auto")
TOO_LONG = (
    b'{"error":{"message":"This model\'s maximum context length is 2000 tokens. However, your messages resulted in '
    b'2600 tokens.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}'
)
LONG = [
    {"role": role, "content": f"{number}: " + f"the pier has {number} boats and {number + 2} ropes. " * 15}
    for number in range(16)
    for role in ("user", "assistant")
] + [{"role": "user", "content": "How many boats?"}]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("fmt", FORMATS)
def test_J3_each_chunk_is_handed_on_before_the_next_one_comes(fmt: str, mode: str) -> None:
    events = events_of(fmt)
    # Off hands on whatever comes; otherwise a line may be held until it is whole, no more.
    pieces = events if mode == "auto" else [part for event in events for part in (event[:9], event[9:]) if part]
    arrived = asyncio.Queue[None]()

    async def script(talk: Talk, _head: bytes, _body: bytes) -> None:
        await talk.say(head_of(fmt))
        for piece in pieces:
            await talk.say(chunk(piece))
            await arrived.get()  # the client has it: never comes if the gateway waits for more
        await talk.say(chunk(b""))

    async def client(gateway: RunningGateway) -> None:
        async with RawClient(gateway.port) as client:
            client.ask(STREAMS[fmt], body_of(fmt, stream=True), {"x-everlong-mode": mode})
            status, headers = await client.head()
            assert (status, headers["x-accel-buffering"]) == (200, "no")
            assert float(headers["x-everlong-added-ms"]) > 0
            for piece in pieces:
                assert await client.chunk() == piece
                arrived.put_nowait(None)
            assert await client.chunk() == b""

    talk_through(script, client)


@pytest.mark.parametrize("fmt", FORMATS)
def test_J3_pieces_of_tool_calls_pass_byte_for_byte(fmt: str) -> None:
    calls = (("write_file", json.dumps({"path": "ä/\u2028.py", "text": "x" * 900})), ("run", "{}"))
    sent = b"".join(events_of(fmt, Answer(calls=calls, usage=Usage(prompt=9, output=300))))

    async def script(talk: Talk, _head: bytes, _body: bytes) -> None:
        await talk.say(head_of(fmt) + chunk(sent) + chunk(b""))

    async def client(gateway: RunningGateway) -> bytes:
        async with RawClient(gateway.port) as client:
            client.ask(STREAMS[fmt], body_of(fmt, stream=True))
            return (await client.answer())[2]

    assert talk_through(script, client) == sent


def recovering(fmt: str, then: Callable[[Talk], Any]) -> tuple[dict[str, str], list[bytes]]:
    """A stream whose request is refused as too long, then waits until the client saw a sign of life, then `then`."""
    seen, asked = asyncio.Event(), 0

    async def script(talk: Talk, _head: bytes, _body: bytes) -> None:
        nonlocal asked
        asked += 1
        if asked == 1:
            await talk.say(response(TOO_LONG, status="400 Bad Request", more=("content-type: application/json",)))
            return
        await seen.wait()
        await then(talk)

    async def client(gateway: RunningGateway) -> tuple[dict[str, str], list[bytes]]:
        async with RawClient(gateway.port) as client:
            client.ask(STREAMS[fmt], body_of(fmt, LONG, stream=True))
            status, headers = await client.head()
            assert status == 200
            chunks = [await client.chunk()]
            seen.set()
            while one := await client.chunk():
                chunks.append(one)
            return headers, chunks

    return talk_through(script, client, keepalive_after=0.02, keepalive_every=0.02)


@pytest.mark.parametrize("fmt", FORMATS)
def test_J3_comments_keep_a_stream_open_while_a_recovery_takes_long(fmt: str) -> None:
    events = events_of(fmt)

    async def answers(talk: Talk) -> None:
        await talk.say(head_of(fmt) + chunk(b"".join(events)) + chunk(b""))

    headers, chunks = recovering(fmt, answers)
    framing = FRAMINGS[fmt]
    assert headers["content-type"] == framing.content_type.decode()
    assert headers["x-accel-buffering"] == "no"
    assert headers["x-everlong-request"]
    assert headers["x-everlong-managed"] == "yes"
    assert "x-everlong-compactions" not in headers, "it is not known yet"
    assert chunks[0] == framing.comment
    rest = [one for one in chunks if one != framing.comment]
    # The figures of usage may be ours; everything else is the upstream's.
    assert framing.decoder().feed(b"".join(rest)).count(b"data:") == len(events)
    assert chunks.index(rest[0]) == len(chunks) - len(rest), "no comment within the answer"


ERRORS = {"openai-chat": 'data: {"error"', "gemini": 'data: {"error"', "ollama": '{"error"'}


@pytest.mark.parametrize("fmt", FORMATS)
def test_J3_after_a_comment_an_error_is_an_event(fmt: str) -> None:
    async def refuses(talk: Talk) -> None:
        body = b'{"error":{"message":"slow down, please","type":"rate_limit_error"}}'
        await talk.say(response(body, status="429 Too Many Requests", more=("content-type: application/json",)))

    _, chunks = recovering(fmt, refuses)
    last = chunks[-1].decode()
    assert "slow down" in last
    assert "event: error" in last if fmt in ("anthropic", "openai-responses") else last.startswith(ERRORS[fmt])


MOMENTS = ("before the head", "plain", "streaming")


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("fmt", FORMATS)
def test_J3_a_client_that_goes_away_cancels_the_upstream(fmt: str, mode: str, moment: str) -> None:
    waiting, broken = asyncio.Event(), asyncio.Event()

    async def script(talk: Talk, _head: bytes, _body: bytes) -> None:
        if moment == "streaming":
            await talk.say(head_of(fmt) + chunk(events_of(fmt)[0] + events_of(fmt)[1]))
        elif moment == "plain":
            body = whole_of(fmt)
            await talk.say(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body) + body[:20])
        waiting.set()
        await talk.left()
        broken.set()

    async def client(gateway: RunningGateway) -> None:
        async with RawClient(gateway.port) as client:
            stream = moment != "plain"
            client.ask((STREAMS if stream else PATHS)[fmt], body_of(fmt, stream=stream), {"x-everlong-mode": mode})
            if moment == "streaming":
                await client.head()
                await client.chunk()
            await waiting.wait()
            client.hang_up()
            await broken.wait()  # for ever, if the upstream is not let go
        while any(one.busy for one in gateway.services.conversations.all()):
            await asyncio.sleep(0)

    talk_through(script, client)


def openai_chat(gateway: RunningGateway) -> object:
    client = closed_later(
        openai.OpenAI(base_url=gateway.url, api_key="k", max_retries=0, default_headers={CLIENTS: "1"})
    )
    told = [{"role": "user", "content": "Hello."}]
    return list(client.chat.completions.create(model="gpt-4o", messages=told, stream=True))  # type: ignore[call-overload]


def openai_responses(gateway: RunningGateway) -> object:
    client = closed_later(
        openai.OpenAI(base_url=gateway.url, api_key="k", max_retries=0, default_headers={CLIENTS: "1"})
    )
    return list(client.responses.create(model="gpt-4o", input="Hello.", stream=True))


def anthropic_messages(gateway: RunningGateway) -> object:
    client = closed_later(
        anthropic.Anthropic(base_url=gateway.address, api_key="k", max_retries=0, default_headers={CLIENTS: "1"})
    )
    told: Any = [{"role": "user", "content": "Hello."}]
    return list(client.messages.create(model="claude-opus-4-5", max_tokens=100, messages=told, stream=True))


SDKS = {
    "openai-chat": (openai_chat, openai.APIError),
    "openai-responses": (openai_responses, openai.APIError),
    "anthropic": (anthropic_messages, anthropic.APIError),
}


ENDS = {"breaks off": (b"", "broke off"), "just stops": (chunk(b""), "answer is incomplete")}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("fmt", SDKS)
def test_J3_an_upstream_gone_in_the_middle_is_an_error_in_the_clients_sdk(fmt: str, mode: str, end: str) -> None:
    (ask, kind), (last, words) = SDKS[fmt], ENDS[end]

    async def script(talk: Talk, _head: bytes, _body: bytes) -> None:
        await talk.say(CHUNKED + chunk(b"".join(events_of(fmt)[:3])) + last)
        talk.hang_up()

    async def client(gateway: RunningGateway) -> None:
        with pytest.raises(kind, match=words):
            await asyncio.to_thread(ask, gateway)

    talk_through(script, client, mode=mode)


@pytest.mark.parametrize("mode", MODES)
def test_J3_a_line_of_ten_megabytes_is_handed_on_while_it_comes(mode: str) -> None:
    piece, count = b"x" * 65_536, 160
    read, received = asyncio.Condition(), 0

    async def script(talk: Talk, _head: bytes, _body: bytes) -> None:
        await talk.say(CHUNKED + chunk(b'data: {"choices":[{"delta":{"content":"'))
        for number in range(count):
            await talk.say(chunk(piece))
            async with read:  # what is held back anywhere between the two ends stays small
                upto = number * len(piece) - 1_000_000
                await read.wait_for(lambda upto=upto: received >= upto)
        await talk.say(chunk(b'"}}]}\n\ndata: [DONE]\n\n') + chunk(b""))

    async def client(gateway: RunningGateway) -> bytes:
        nonlocal received
        last = b""
        async with RawClient(gateway.port) as client:
            client.ask(PATHS["openai-chat"], body_of("openai-chat", stream=True), {"x-everlong-mode": mode})
            await client.head()
            while one := await client.chunk():
                async with read:
                    received += len(one)
                    read.notify_all()
                last = (last + one)[-40:]
        return last

    assert talk_through(script, client).endswith(b"data: [DONE]\n\n")
    assert received == len(b'data: {"choices":[{"delta":{"content":"') + count * len(piece) + len(
        b'"}}]}\n\ndata: [DONE]\n\n'
    )
