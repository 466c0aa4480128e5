"""A response in the client's own framing: waiting, events, errors and the end, as its readers take them."""

import asyncio
import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import pytest

from everlong.core import Json
from everlong.gateway.exchange.response import ResponseWriter
from everlong.wire import NDJSON, SSE, Framing, SseReader, format_named
from everlong.wire.framings import JSON_ARRAY

EVENTS = b'data: {"n": 1}\n\ndata: {"n": 2}\n\n'


def _sse(body: bytes) -> list[Json]:
    return [json.loads(event.data) for event in SseReader().feed(body) if event.data and event.data != b"[DONE]"]


def _lines(body: bytes) -> list[Json]:
    return [json.loads(line) for line in body.splitlines()]  # as the clients of Ollama do: a blank line is an error


READERS: dict[str, Callable[[bytes], list[Json]]] = {"sse": _sse, "ndjson": _lines, "json-array": json.loads}


def _written(framing: Framing, speak: Callable[[ResponseWriter], Awaitable[None]]) -> tuple[dict[bytes, bytes], bytes]:
    told: list[MutableMapping[str, Any]] = []

    async def send(message: MutableMapping[str, Any]) -> None:
        told.append(message)

    async def scene() -> None:
        await speak(ResponseWriter(send, format_named("openai-chat").server.errors, framing=framing))

    asyncio.run(scene())
    assert [message.get("more_body") for message in told][-1] is False
    return dict(told[0]["headers"]), b"".join(message.get("body", b"") for message in told)


@pytest.mark.parametrize("framing", [SSE, NDJSON, JSON_ARRAY], ids=lambda each: each.name)
@pytest.mark.parametrize("waits", [0, 1, 3])
def test_a_client_that_waited_reads_every_event(framing: Framing, waits: int) -> None:
    async def speak(writer: ResponseWriter) -> None:
        for _ in range(waits):
            await writer.send_comment()
        await writer.begin(200, [(b"content-type", framing.content_type)])
        await writer.write_events(EVENTS[:20])
        await writer.send_comment()  # the answer has begun
        await writer.write_events(EVENTS[20:])
        await writer.end()
        await writer.end()

    headers, body = _written(framing, speak)
    assert headers[b"content-type"] == framing.content_type
    assert READERS[framing.name](body) == [{"n": 1}, {"n": 2}]


@pytest.mark.parametrize("framing", [SSE, NDJSON, JSON_ARRAY], ids=lambda each: each.name)
@pytest.mark.parametrize("cut", [0, 16, 25])
def test_an_error_in_the_middle_is_the_last_event(framing: Framing, cut: int) -> None:
    async def speak(writer: ResponseWriter) -> None:
        await writer.send_comment()
        await writer.write_events(EVENTS[:cut] if framing is not SSE else EVENTS[: cut // 16 * 16])
        await writer.send_error(502, "upstream_broke_off", "it broke off")

    events = READERS[framing.name](_written(framing, speak)[1])
    assert len(events) == (1 if cut < 16 else 2)
    last = events[-1]
    assert isinstance(last, dict)
    assert "it broke off" in json.dumps(last["error"])


def test_lines_that_were_forwarded_as_they_are_are_ended_before_an_error() -> None:
    async def speak(writer: ResponseWriter) -> None:
        await writer.begin(200, [])
        await writer.write(b'{"n": 1}\n{"n"')
        await writer.send_error(502, "upstream_broke_off", "it broke off")

    whole, half, error = _written(NDJSON, speak)[1].splitlines()
    assert (whole, half) == (b'{"n": 1}', b'{"n"')
    assert "error" in json.loads(error)


def test_an_error_instead_of_an_array_is_in_one_too() -> None:
    async def speak(writer: ResponseWriter) -> None:
        await writer.send_error(400, "invalid_body", "contents is missing")

    headers, body = _written(JSON_ARRAY, speak)
    assert headers[b"content-type"] == b"application/json"
    assert json.loads(body)[0]["error"]["message"] == "contents is missing"
