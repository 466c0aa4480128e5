"""Streams and answers as clients get them: bounded memory, the upstream's own errors, whatever else passes."""

import asyncio
import json
from collections.abc import Mapping, MutableMapping
from queue import Queue
from typing import Any

import pytest

from everlong.gateway import Report
from everlong.gateway.exchange.response import ResponseWriter
from everlong.wire import SSE, format_named
from tests.gateway.raw_upstream import CHUNKED, PATIENCE, Talk, chunk, response
from tests.gateway.running import RunningGateway
from tests.gateway.talking import (
    FORMATS,
    PATHS,
    STREAMS,
    RawClient,
    body_of,
    events_of,
    head_of,
    talk_through,
    whole_of,
)

MODES = ("off", "auto")
MEGABYTE = 1024 * 1024

# --- memory --------------------------------------------------------------------------------------


def test_a_slow_reader_slows_the_upstream_down() -> None:
    """What is read ahead is bounded by the buffers on the way, not by what the upstream has to say."""
    piece, total = b"data: " + b"x" * 65_000 + b"\n\n", 0
    enough, most_ahead = asyncio.Event(), 0

    async def script(talk: Talk, _head: bytes, _body: bytes) -> None:
        nonlocal total
        await talk.say(CHUNKED + chunk(events_of("openai-chat")[0]))
        while not enough.is_set():
            await talk.say(chunk(piece))
            total += len(piece)
            await asyncio.sleep(0)
        talk.hang_up()

    async def client(gateway: RunningGateway) -> None:
        nonlocal most_ahead
        read = 0
        async with RawClient(gateway.port, limit=4_096) as client:
            client.ask(PATHS["openai-chat"], body_of("openai-chat", stream=True))
            for _ in range(1_000):
                read += len(await client.some(4_096))
                most_ahead = max(most_ahead, total - read)
                await asyncio.sleep(0)
            enough.set()
            client.hang_up()

    talk_through(script, client)
    assert most_ahead < 24 * MEGABYTE  # kernel buffers of two connections; without a bound it is all that was said


# --- connections half closed -----------------------------------------------------------------------


def test_a_client_that_closes_its_side_is_gone() -> None:
    waiting, broken = asyncio.Event(), asyncio.Event()

    async def script(talk: Talk, _head: bytes, _body: bytes) -> None:
        waiting.set()
        await talk.left()
        broken.set()

    async def client(gateway: RunningGateway) -> bytes:
        async with RawClient(gateway.port) as client:
            client.ask(PATHS["openai-chat"], body_of("openai-chat", stream=True))
            await waiting.wait()
            client.say_no_more()
            await broken.wait()
            return await client.some(1)

    assert talk_through(script, client) == b""


@pytest.mark.parametrize("fmt", FORMATS)
def test_an_upstream_that_closes_its_side_ends_in_an_error_event(fmt: str) -> None:
    async def script(talk: Talk, _head: bytes, _body: bytes) -> None:
        await talk.say(head_of(fmt) + chunk(events_of(fmt)[0]))
        talk.say_no_more()
        await talk.left()

    async def client(gateway: RunningGateway) -> bytes:
        async with RawClient(gateway.port) as client:
            client.ask(STREAMS[fmt], body_of(fmt, stream=True))
            return (await client.answer())[2]

    told = talk_through(script, client)
    assert told.startswith(events_of(fmt)[0])
    assert b"broke off" in told.removeprefix(events_of(fmt)[0])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("fmt", FORMATS)
def test_an_error_after_half_an_event_is_an_event_of_its_own(fmt: str, mode: str) -> None:
    first, second = events_of(fmt)[:2]

    async def script(talk: Talk, _head: bytes, _body: bytes) -> None:
        await talk.say(head_of(fmt) + chunk(first + second[:-9]))
        talk.hang_up()

    async def client(gateway: RunningGateway) -> bytes:
        async with RawClient(gateway.port) as client:
            client.ask(STREAMS[fmt], body_of(fmt, stream=True), {"x-everlong-mode": mode})
            return (await client.answer())[2]

    told = [one for one in talk_through(script, client).split(b"\n") if b"broke off" in one]
    assert told
    for line in told:
        assert b"broke off" in json.dumps(json.loads(line.removeprefix(b"data: "))).encode()


@pytest.mark.parametrize(("sent", "told"), [(b"half", 502), (b"x" * 200_000, 0)], ids=["at its beginning", "later"])
def test_an_upstream_that_breaks_off_is_not_told_as_a_client_that_left(sent: bytes, told: int) -> None:
    async def script(talk: Talk, _head: bytes, _body: bytes) -> None:
        await talk.say(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n" + sent)
        talk.hang_up()

    async def client(gateway: RunningGateway) -> tuple[list[int], list[tuple[int, str]]]:
        got, reports = [], Queue[Report]()
        gateway.services.recent.observers.append(lambda _, report: reports.put(report))
        for path, mode in (("/v1/embeddings", "auto"), (PATHS["openai-chat"], "off")):
            async with RawClient(gateway.port) as client:
                client.ask(path, body_of("openai-chat"), {"x-everlong-mode": mode})
                try:
                    got.append((await client.answer())[0])
                except asyncio.IncompleteReadError:
                    got.append(0)
        told_of = [await asyncio.to_thread(reports.get, timeout=PATIENCE) for _ in got]
        return got, [(one.status, one.ended_by) for one in told_of]

    assert talk_through(script, client) == ([told, told], [(502, "upstream")] * 2)


@pytest.mark.parametrize("mode", MODES)
def test_half_a_plain_answer_does_not_pass_for_a_whole_one(mode: str) -> None:
    body = whole_of("openai-chat")

    async def script(talk: Talk, _head: bytes, _body: bytes) -> None:
        await talk.say(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body) + body[:-20])
        talk.hang_up()

    async def client(gateway: RunningGateway) -> int:
        async with RawClient(gateway.port) as client:
            client.ask(PATHS["openai-chat"], body_of("openai-chat"), {"x-everlong-mode": mode})
            return (await client.answer())[0]

    assert talk_through(script, client) == 502


# --- the upstream's own errors -----------------------------------------------------------------------

ERRORS = {
    "429": ("429 Too Many Requests", b'{"error":{"message":"slow down","type":"rate_limit_error"}}', "17"),
    "500 as a page": ("500 Internal Server Error", b"<html><h1>It broke</h1></html>", ""),
    "401": ("401 Unauthorized", b'{"error": {"message":"Incorrect API key","code":"invalid_api_key"}}', ""),
    "529": ("529 Overloaded", b'{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}', ""),
    "an empty 503": ("503 Service Unavailable", b"", "3"),
    "400 that is no overflow": ("400 Bad Request", b'{"error":{"message":"temperature is too high"}}', ""),
}


@pytest.mark.parametrize("name", ERRORS)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("fmt", FORMATS)
def test_an_error_of_the_upstream_arrives_as_it_is(fmt: str, mode: str, name: str) -> None:
    status, body, after = ERRORS[name]
    kind = "text/html" if body.startswith(b"<") else "application/json"
    more = (f"content-type: {kind}", "x-request-id: req_7", *((f"retry-after: {after}",) if after else ()))

    async def script(talk: Talk, _head: bytes, _body: bytes) -> None:
        await talk.say(response(body, status=status, more=more))

    async def client(gateway: RunningGateway) -> tuple[int, dict[str, str], bytes]:
        async with RawClient(gateway.port) as client:
            client.ask(STREAMS[fmt], body_of(fmt, stream=True), {"x-everlong-mode": mode})
            return await client.answer()

    told, headers, got = talk_through(script, client)
    assert (told, got) == (int(status[:3]), body)
    shown = "text/plain; charset=utf-8" if kind == "text/html" else kind  # no page of theirs opens at our address
    assert (headers["content-type"], headers["x-request-id"], headers.get("retry-after", "")) == (shown, "req_7", after)
    assert "x-everlong-added-ms" in headers


TOO_LONG = (
    "This model's maximum context length is 2000 tokens. However, your messages resulted in 2600 tokens. "
    "Please reduce the length of the messages."
)
OVERFLOW_EVENTS = {
    "openai-chat": b'data: {"error":{"message":"%s","code":"context_length_exceeded"}}\n\ndata: [DONE]\n\n',
    "openai-responses": b'event: error\ndata: {"type":"error","code":"context_length_exceeded","message":"%s"}\n\n',
    "gemini": b'data: {"error":{"code":400,"message":"%s","status":"INVALID_ARGUMENT"}}\n\n',
    "anthropic": b'event: error\ndata: {"type":"error","error":{"type":"invalid_request_error","message":"%s"}}\n\n',
    "ollama": b'{"error":"%s"}\n',
}


@pytest.mark.parametrize("fmt", FORMATS)
def test_an_overflow_that_comes_as_the_first_event_is_recovered(fmt: str) -> None:
    said = [
        {"role": role, "content": f"{number}: " + f"the pier has {number} boats and {number + 2} ropes. " * 15}
        for number in range(16)
        for role in ("user", "assistant")
    ]
    bodies: list[bytes] = []

    async def script(talk: Talk, _head: bytes, body: bytes) -> None:
        bodies.append(body)
        events = [OVERFLOW_EVENTS[fmt] % TOO_LONG.encode()] if len(bodies) == 1 else events_of(fmt)
        await talk.say(head_of(fmt) + chunk(b"".join(events)) + chunk(b""))

    async def client(gateway: RunningGateway) -> tuple[int, dict[str, str], bytes]:
        async with RawClient(gateway.port) as client:
            client.ask(STREAMS[fmt], body_of(fmt, [*said, {"role": "user", "content": "How many?"}], stream=True))
            return await client.answer()

    status, headers, got = talk_through(script, client)
    assert (status, headers["x-everlong-recovered"]) == (200, "1")
    assert b"maximum context" not in got
    sign = b"data:" if b"data:" in events_of(fmt)[0] else b"\n"  # one an event
    assert got.count(sign) == len(events_of(fmt))
    assert len(bodies[1]) < len(bodies[0])


# --- whatever else passes ----------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_comments_and_ids_of_the_upstreams_events_pass(mode: str) -> None:
    events = events_of("openai-chat")
    odd = b": ping\n\nid: 7\nretry: 300\n" + events[0] + b":\n\n" + b"x-unknown: 1\n" + b"".join(events[1:])

    async def script(talk: Talk, _head: bytes, _body: bytes) -> None:
        await talk.say(CHUNKED + chunk(odd) + chunk(b""))

    async def client(gateway: RunningGateway) -> bytes:
        async with RawClient(gateway.port) as client:
            client.ask(PATHS["openai-chat"], body_of("openai-chat", stream=True), {"x-everlong-mode": mode})
            return (await client.answer())[2]

    assert talk_through(script, client) == odd


class Echoed:
    """An upstream that says what it was asked."""

    def __init__(self) -> None:
        self.line, self.headers, self.body = "", dict[str, str](), b""

    async def __call__(self, talk: Talk, head: bytes, body: bytes) -> None:
        lines = head.decode("latin-1").split("\r\n")
        self.line, self.body = lines[0], body
        self.headers = {line.partition(":")[0].lower(): line.partition(":")[2].strip() for line in lines[1:] if line}
        await talk.say(response(b'{"ok": true}', status="202 Accepted", more=("content-type: x/y", "openai-own: 1")))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("fmt", FORMATS)
def test_unknown_fields_headers_and_the_query_pass(fmt: str, mode: str) -> None:
    upstream = Echoed()
    sent = {"anthropic-beta": "one,two", "x-stainless-lang": "python", "openai-organization": "org", "X-Odd": "ä"}
    fields: dict[str, Any] = {"x_unknown": {"b": 1.50, "a": [None]}, "seed": 18446744073709551616}

    async def client(gateway: RunningGateway) -> tuple[int, Mapping[str, str], bytes]:
        async with RawClient(gateway.port) as client:
            client.ask(PATHS[fmt] + "?beta=true&x=%2F", body_of(fmt, **fields), {**sent, "x-everlong-mode": mode})
            return await client.answer()

    status, headers, _ = talk_through(upstream, client)
    assert upstream.line == f"POST {PATHS[fmt]}?beta=true&x=%2F HTTP/1.1"
    assert {name: upstream.headers[name.lower()] for name in sent} | {"X-Odd": "ä"} == sent
    body = json.loads(upstream.body)
    assert {name: body[name] for name in fields} == fields
    assert (status, headers["openai-own"]) == (202, "1")


MULTIPART = b'--b\r\ncontent-disposition: form-data; name="file"; filename="a"\r\n\r\n\x00\xff\r\n--b--\r\n'
OTHERS = {
    "embeddings": ("POST", "/v1/embeddings", b'{"model": "gpt-4o", "input": "x"}', "application/json"),
    "a file": ("POST", "/v1/files", MULTIPART, "multipart/form-data; boundary=b"),
    "one model": ("GET", "/v1/models/gpt-4o", b"", ""),
    "a response": ("GET", "/v1/responses/resp_1", b"", ""),
    "a response away": ("DELETE", "/v1/responses/resp_1", b"", ""),
    "items of a response": ("GET", "/v1/responses/resp_1/input_items?limit=2", b"", ""),
    "batches": ("POST", "/v1/messages/batches", b'{"requests": []}', "application/json"),
    "a list of batches": ("GET", "/v1/messages/batches", b"", ""),
    "stored chats": ("GET", "/v1/chat/completions", b"", ""),
    "changed": ("PATCH", "/v1/assistants/a", b"{}", "application/json"),
    "put": ("PUT", "/v1/uploads/a/parts", b"\x00\x01", "application/octet-stream"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_endpoints_that_are_not_known_pass(name: str) -> None:
    method, path, body, kind = OTHERS[name]
    upstream = Echoed()
    headers = {"content-type": kind} if kind else {}

    async def client(gateway: RunningGateway) -> tuple[int, Mapping[str, str], bytes]:
        async with RawClient(gateway.port) as client:
            client.ask(path, body, headers, method)
            return await client.answer()

    status, told, got = talk_through(upstream, client)
    assert (upstream.line, upstream.body) == (f"{method} {path} HTTP/1.1", body)
    assert upstream.headers.get("content-type", "") == kind
    # A type that nobody knows is bytes.
    assert (status, told["content-type"], told["openai-own"]) == (202, "application/octet-stream", "1")
    assert got == b'{"ok": true}'
    assert float(told["x-everlong-added-ms"]) >= 0


def test_a_packed_body_passes_where_nobody_reads_it() -> None:
    upstream = Echoed()

    async def client(gateway: RunningGateway) -> int:
        async with RawClient(gateway.port) as client:
            client.ask("/v1/embeddings", b"\x1f\x8b\x08\x00", {"content-encoding": "gzip"})
            return (await client.answer())[0]

    assert talk_through(upstream, client) == 202
    assert (upstream.headers["content-encoding"], upstream.body) == ("gzip", b"\x1f\x8b\x08\x00")


# --- signs of life -----------------------------------------------------------------------------------


def test_no_comment_stands_within_an_answer() -> None:
    told: list[MutableMapping[str, Any]] = []

    async def send(message: MutableMapping[str, Any]) -> None:
        told.append(message)

    async def speak() -> bytes:
        writer = ResponseWriter(
            send, format_named("openai-chat").server.errors, lambda: [(b"x-everlong-request", b"7")]
        )
        await writer.send_comment()
        await writer.send_comment()
        await writer.begin(200, [])
        await writer.write(b'data: {"ha')
        await writer.send_comment()  # a recovery that goes on while its answer comes
        await writer.write(b'lf": 1}\n\n')
        await writer.end()
        return b"".join(message.get("body", b"") for message in told)

    assert asyncio.run(speak()) == SSE.comment * 2 + b'data: {"half": 1}\n\n'
    assert (b"x-everlong-request", b"7") in told[0]["headers"]


#: A conversation with a name of its client's is held whole, however short it is.
HELD_WHOLE = {"x-everlong-thread": "boats"}


def test_a_client_gone_while_its_request_is_prepared_leaves_nothing_busy() -> None:
    """The work in its thread cannot be stopped; when it is done, its conversation is free again."""

    async def script(talk: Talk, _head: bytes, _body: bytes) -> None:
        await talk.say(response(whole_of("openai-chat"), more=("content-type: application/json",)))

    async def client(gateway: RunningGateway) -> None:
        async with RawClient(gateway.port) as client:
            client.ask(PATHS["openai-chat"], body_of("openai-chat"), HELD_WHOLE)
            await client.answer()
            conversation = gateway.services.conversations.all()[0]
            while conversation.busy:
                await asyncio.sleep(0)
            conversation.quiet = 0  # as if there were much to do: off the event loop
            with conversation.lock:
                client.ask(PATHS["openai-chat"], body_of("openai-chat"), HELD_WHOLE)
                while not conversation.busy:
                    await asyncio.sleep(0)
                client.hang_up()
            while conversation.busy:  # for ever, if nobody gives it back
                await asyncio.sleep(0)

    talk_through(script, client)


def test_nobody_waits_for_a_conversation_that_another_request_works_on() -> None:
    """The first byte goes out while the conversation is held elsewhere, and the event loop answers others."""
    asked, answered = asyncio.Event(), asyncio.Event()

    async def script(talk: Talk, _head: bytes, _body: bytes) -> None:
        asked.set()
        await answered.wait()
        await talk.say(response(whole_of("openai-chat"), more=("content-type: application/json",)))

    async def client(gateway: RunningGateway) -> int:
        async with RawClient(gateway.port) as client:
            client.ask(PATHS["openai-chat"], body_of("openai-chat"), HELD_WHOLE)
            await asked.wait()
            conversation = gateway.services.conversations.all()[0]
            with conversation.lock:
                answered.set()
                return (await asyncio.wait_for(client.answer(), 5))[0]

    assert talk_through(script, client) == 200


@pytest.mark.parametrize("messages", [[{"role": "user", "content": "Hello."}, 7], []], ids=["unreadable", "none"])
def test_what_is_passed_on_unread_is_offered_no_tool_that_nobody_would_answer(messages: list[Any]) -> None:
    body = json.dumps({"model": "gpt-4o", "messages": messages}).encode()
    got: list[bytes] = []

    async def script(talk: Talk, _head: bytes, said: bytes) -> None:
        got.append(said)
        await talk.say(response(whole_of("openai-chat"), more=("content-type: application/json",)))

    async def client(gateway: RunningGateway) -> int:
        async with RawClient(gateway.port) as client:
            client.ask(PATHS["openai-chat"], body)
            return (await client.answer())[0]

    assert talk_through(script, client, recall_tool=True) == 200
    assert got == [body]
