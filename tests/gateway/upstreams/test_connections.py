"""What crosses over between a client and its upstream, and what does not."""

import asyncio
import gzip
import json
import socket
import zlib
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import TypeVar

import pytest

from everlong.errors import ProviderError, Refused
from everlong.gateway.clients import Client
from everlong.gateway.upstreams.connections import UpstreamConnections, UpstreamRequest, UpstreamResponse
from everlong.gateway.upstreams.headers import headers_for
from everlong.gateway.upstreams.routing import Upstream
from everlong.llm import Answer, Endpoint, Refusal, ScriptedServer, in_turn
from tests.gateway.raw_upstream import CHUNKED, PATIENCE, RawUpstream, Talk, chunk, response

T = TypeVar("T")
KEY = "sk-upstream-secret-0123456789"
CLIENT = Client(scope="s", key="sk-client-secret-0123456789")
ASK = UpstreamRequest("POST", "/chat/completions", headers=[(b"content-type", b"application/json")], body=b"{}")
EVENT = b'data: {"choices":[{"delta":{"content":"Hi."}}]}\n\n'


def upstream(
    url: str = "http://127.0.0.1:1/v1", *, key: str = "", fmt: str = "openai-chat", provider: str = ""
) -> Upstream:
    return Upstream(name="near", endpoint=Endpoint(url=url, key=key, fmt=fmt, provider=provider))


def run(
    serve: Callable[[Talk], Awaitable[None]], do: Callable[[UpstreamConnections, Upstream, RawUpstream], Awaitable[T]]
) -> T:
    async def both() -> T:
        async with RawUpstream(serve) as server:
            forwarding = UpstreamConnections(connect=5.0, silence=5.0)
            try:
                return await do(forwarding, upstream(f"http://127.0.0.1:{server.port}/v1"), server)
            finally:
                await forwarding.close()

    return asyncio.run(asyncio.wait_for(both(), PATIENCE))


async def _whole(forwarding: UpstreamConnections, to: Upstream, _: RawUpstream) -> tuple[UpstreamResponse, bytes]:
    answered = await forwarding.send(to, CLIENT, ASK)
    return answered, await answered.whole(1_000_000)


def says(data: bytes) -> Callable[[Talk], Awaitable[None]]:
    async def serve(talk: Talk) -> None:
        while True:
            await talk.request()
            await talk.say(data)

    return serve


# --- headers -------------------------------------------------------------------------------------

NOT_SENT = [
    "accept-encoding",
    "access-control-request-method",
    "cf-connecting-ip",
    "connection",
    "cookie",
    "expect",
    "forwarded",
    "host",
    "keep-alive",
    "origin",
    "proxy-authorization",
    "referer",
    "sec-ch-ua",
    "sec-fetch-site",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "via",
    "x-everlong-mode",
    "x-forwarded-for",
    "x-real-ip",
    "x-named",
]


@pytest.mark.parametrize("name", NOT_SENT)
def test_a_header_between_neighbours_or_about_the_client_is_not_sent(name: str) -> None:
    sent = [(b"Connection", b"close, X-Named"), (name.title().encode(), b"value"), (b"anthropic-beta", b"x")]
    headers = headers_for(upstream(), CLIENT, sent)
    assert headers.get(name) in (None, "identity")
    assert headers["anthropic-beta"] == "x"


def test_unknown_headers_cross_in_order_repeated_ones_too() -> None:
    sent = [(b"x-new", b"1"), (b"user-agent", b"claude-cli/2"), (b"x-new", b"2"), (b"x-name", "名".encode())]
    headers = headers_for(upstream(), CLIENT, sent)
    assert headers.getall("x-new") == ["1", "2"]
    assert headers["user-agent"] == "claude-cli/2"
    assert headers["x-name"] == "名"


@pytest.mark.parametrize(
    ("used", "fmt", "provider", "expected"),
    [
        ("authorization", "openai-chat", "", ("authorization", f"Bearer {KEY}")),
        ("x-api-key", "openai-chat", "", ("x-api-key", KEY)),
        ("authorization", "anthropic", "", ("authorization", f"Bearer {KEY}")),
        ("authorization", "anthropic", "anthropic", ("x-api-key", KEY)),
        ("x-api-key", "openai-chat", "openai", ("authorization", f"Bearer {KEY}")),
        ("", "anthropic", "", ("x-api-key", KEY)),
        ("", "openai-responses", "", ("authorization", f"Bearer {KEY}")),
        ("api-key", "openai-chat", "", ("api-key", KEY)),
    ],
)
def test_an_upstreams_own_key_takes_the_place_of_the_clients(
    used: str, fmt: str, provider: str, expected: tuple[str, str]
) -> None:
    sent = [(used.encode(), b"Bearer " + CLIENT.key.encode())] if used else []
    headers = headers_for(upstream(key=KEY, fmt=fmt, provider=provider), CLIENT, sent)
    assert [(name.lower(), value) for name, value in headers.items() if name != "accept-encoding"] == [expected]


def test_without_a_key_of_its_own_the_upstream_gets_the_clients() -> None:
    sent = [(b"X-Api-Key", CLIENT.key.encode())]
    assert headers_for(upstream(), CLIENT, sent)["x-api-key"] == CLIENT.key


def test_a_key_that_is_only_the_gateways_goes_to_no_upstream() -> None:
    sent = [(b"authorization", b"Bearer everlong-key")]
    assert "authorization" not in headers_for(upstream(), Client(scope="s"), sent)


def test_headers_of_the_endpoint_come_last() -> None:
    to = Upstream(name="near", endpoint=Endpoint(url="http://a", headers=(("x-title", "ours"),)))
    assert headers_for(to, CLIENT, [(b"X-Title", b"theirs")]).getall("x-title") == ["ours"]


@pytest.mark.parametrize(
    "header",
    [(b"x", b"a\r\nhost: evil"), (b"x", b"a\nb"), (b"x", b"a\x00"), (b"x\r\ny", b"a"), (b"x y", b"a"), (b"", b"a")],
)
def test_a_header_that_would_break_the_request_is_refused(header: tuple[bytes, bytes]) -> None:
    with pytest.raises(Refused) as refused:
        headers_for(upstream(), CLIENT, [header])
    assert refused.value.status == 400


@pytest.mark.parametrize(
    "sent",
    [
        UpstreamRequest("POST", "@evil.example/v1"),
        UpstreamRequest("POST", ":1/v1"),
        UpstreamRequest("POST", "/a b"),
        UpstreamRequest("POST", "/a#b"),
        UpstreamRequest("POST", "/a\r\nhost: evil"),
        UpstreamRequest("POST", "/a", "q=\r\n"),
        UpstreamRequest("POST", ""),
    ],
    ids=lambda sent: repr(sent.path + sent.query),
)
def test_no_path_leads_out_of_the_upstreams_address(sent: UpstreamRequest) -> None:
    async def send() -> None:
        await UpstreamConnections().send(upstream(), CLIENT, sent)

    with pytest.raises(Refused):
        asyncio.run(send())


@pytest.mark.parametrize("encoding", ["compress", "br", "zstd", "gzip, gzip", "gzip, identity, deflate", '"gzip'])
def test_an_answer_that_is_packed_in_another_way_is_an_error(encoding: str) -> None:
    with pytest.raises(ProviderError, match="has a content encoding that was not requested") as raised:
        run(says(response(b"x", more=(f"content-encoding: {encoding}",))), _whole)
    assert raised.value.status == 502


def test_the_request_arrives_as_it_was_sent() -> None:
    seen: list[tuple[bytes, bytes]] = []

    async def serve(talk: Talk) -> None:
        seen.append(await talk.request())
        await talk.say(response())

    async def do(forwarding: UpstreamConnections, to: Upstream, _: RawUpstream) -> int:
        sent = UpstreamRequest("POST", "/messages", "beta=true&x=%2F", [(b"X-Own", b"1")], b'{"a": 1.50}')
        return (await forwarding.send(to, CLIENT, sent)).status

    assert run(serve, do) == 200
    head, body = seen[0]
    assert head.startswith(b"POST /v1/messages?beta=true&x=%2F HTTP/1.1\r\n")
    assert body == b'{"a": 1.50}'
    names = {line.partition(b":")[0].lower() for line in head.split(b"\r\n")[1:] if line}
    assert names == {b"host", b"x-own", b"accept-encoding", b"content-length"}


def test_a_large_body_is_sent_whole() -> None:
    seen: list[bytes] = []

    async def serve(talk: Talk) -> None:
        seen.append((await talk.request())[1])
        await talk.say(response())

    async def do(forwarding: UpstreamConnections, to: Upstream, _: RawUpstream) -> None:
        await forwarding.send(to, CLIENT, UpstreamRequest("POST", "/x", body=bytes(range(256)) * 12_000))

    run(serve, do)
    assert seen == [bytes(range(256)) * 12_000]


# --- answers -------------------------------------------------------------------------------------


@pytest.mark.parametrize("packed", [False, True])
def test_each_chunk_is_there_before_the_next_is_sent(packed: bool) -> None:
    heard = [asyncio.Event() for _ in range(3)]
    packing = zlib.compressobj(wbits=31)

    def sent(data: bytes) -> bytes:
        return packing.compress(data) + packing.flush(zlib.Z_SYNC_FLUSH) if packed else data

    async def serve(talk: Talk) -> None:
        await talk.request()
        await talk.say(CHUNKED.replace(b"\r\n\r\n", b"\r\ncontent-encoding: gzip\r\n\r\n") if packed else CHUNKED)
        for number, event in enumerate(heard):
            await talk.say(chunk(sent(b"data: %d\n\n" % number)))
            await event.wait()
        if packed:
            await talk.say(chunk(packing.flush()))
        await talk.say(chunk(b""))

    async def do(forwarding: UpstreamConnections, to: Upstream, _: RawUpstream) -> list[bytes]:
        answered = await forwarding.send(to, CLIENT, ASK)
        assert answered.streamed
        got = []
        async for data in answered.chunks():
            heard[len(got)].set()
            got.append(data)
        return got

    assert run(serve, do) == [b"data: 0\n\n", b"data: 1\n\n", b"data: 2\n\n"]


@pytest.mark.parametrize(
    ("encoding", "body"),
    [("gzip", gzip.compress(EVENT)), ("deflate", zlib.compress(EVENT)), ("GZIP", gzip.compress(EVENT))],
    ids=["gzip", "deflate", "capitals"],
)
def test_what_an_upstream_packs_unasked_is_unpacked(encoding: str, body: bytes) -> None:
    more = (f"content-encoding: {encoding}", "content-type: text/event-stream; charset=utf-8")
    answered, whole = run(says(response(body, more=more)), _whole)
    assert whole == EVENT
    assert answered.headers == [(b"content-type", b"text/event-stream; charset=utf-8")]
    assert answered.streamed


@pytest.mark.parametrize("status", ["400 Bad Request", "401 Unauthorized", "429 Too Many", "500 Oops", "529 Busy"])
def test_an_upstreams_errors_arrive_as_they_are(status: str) -> None:
    answered, body = run(says(response(b'{"error":{}}', status=status, more=("retry-after: 3",))), _whole)
    assert (answered.status, body) == (int(status[:3]), b'{"error":{}}')
    assert (b"retry-after", b"3") in answered.headers
    assert not answered.streamed


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent"])
def test_a_redirect_is_neither_followed_nor_handed_on(status: str) -> None:
    async def do() -> tuple[ProviderError, int]:
        async with RawUpstream(says(response())) as other:
            moved = response(b"", status=status, more=(f"location: http://127.0.0.1:{other.port}/{KEY}",))
            async with RawUpstream(says(moved)) as server:
                forwarding = UpstreamConnections()
                with pytest.raises(ProviderError) as raised:
                    await forwarding.send(upstream(f"http://127.0.0.1:{server.port}"), CLIENT, ASK)
                await forwarding.close()
                return raised.value, other.connections

    error, connections = asyncio.run(do())
    assert (error.status, connections) == (502, 0)
    assert "redirects are not followed" in str(error)
    assert KEY not in str(error)


def test_a_cookie_of_one_clients_answer_goes_out_with_nobodys_request() -> None:
    heads: list[bytes] = []

    async def serve(talk: Talk) -> None:
        while True:
            heads.append((await talk.request())[0])
            await talk.say(response(more=("set-cookie: session=1; path=/",)))

    async def do(forwarding: UpstreamConnections, _: Upstream, server: RawUpstream) -> None:
        named = upstream(f"http://localhost:{server.port}/v1")
        for _ in range(3):
            await (await forwarding.send(named, CLIENT, ASK)).whole(100)

    run(serve, do)
    assert len(heads) == 3
    assert not any(b"cookie" in head.lower() for head in heads)


def test_an_answer_larger_than_wanted_is_an_error_not_a_part() -> None:
    async def do(forwarding: UpstreamConnections, to: Upstream, _: RawUpstream) -> None:
        answered = await forwarding.send(to, CLIENT, ASK)
        await answered.whole(10)

    with pytest.raises(ProviderError, match="more than 10 bytes"):
        run(says(response(b"x" * 11)), do)


def test_a_line_of_ten_megabytes_passes_in_pieces() -> None:
    async def serve(talk: Talk) -> None:
        await talk.request()
        await talk.say(CHUNKED)
        for _ in range(160):
            await talk.say(chunk(b"x" * 65_536))
        await talk.say(chunk(b""))

    async def do(forwarding: UpstreamConnections, to: Upstream, _: RawUpstream) -> list[int]:
        answered = await forwarding.send(to, CLIENT, ASK)
        return [len(data) async for data in answered.chunks()]

    sizes = run(serve, do)
    assert sum(sizes) == 160 * 65_536
    assert max(sizes) <= 1024 * 1024


def test_a_slow_reader_slows_the_upstream_down() -> None:
    talks: list[Talk] = []
    size = 48 * 1024 * 1024  # more than sockets hold between them

    async def serve(talk: Talk) -> None:
        await talk.request()
        talks.append(talk)
        talk.say_all(response(b"x" * size))
        await talk.left()

    async def do(forwarding: UpstreamConnections, to: Upstream, _: RawUpstream) -> int:
        answered = await forwarding.send(to, CLIENT, ASK)
        async with aclosing(answered.chunks()) as chunks:
            await anext(chunks)
            for _ in range(2_000):  # turns of the loop in which all of it could have been read
                await asyncio.sleep(0)
            return talks[0].unsent

    assert run(serve, do) > size // 2


# --- connections ---------------------------------------------------------------------------------


def test_closing_an_answer_cancels_the_upstream() -> None:
    left = asyncio.Event()

    async def serve(talk: Talk) -> None:
        await talk.request()
        await talk.say(CHUNKED + chunk(EVENT))
        await talk.left()
        left.set()

    async def do(forwarding: UpstreamConnections, to: Upstream, _: RawUpstream) -> bytes:
        answered = await forwarding.send(to, CLIENT, ASK)
        async with aclosing(answered.chunks()) as chunks:
            first = await anext(chunks)
        await left.wait()
        return first

    assert run(serve, do) == EVENT


def test_cancelling_before_the_first_byte_cancels_the_upstream() -> None:
    asked, left = asyncio.Event(), asyncio.Event()

    async def serve(talk: Talk) -> None:
        await talk.request()
        asked.set()
        await talk.left()
        left.set()

    async def do(forwarding: UpstreamConnections, to: Upstream, _: RawUpstream) -> None:
        task = asyncio.ensure_future(forwarding.send(to, CLIENT, ASK))
        await asked.wait()
        task.cancel()
        await left.wait()
        await asyncio.wait((task,))
        assert task.cancelled()

    run(serve, do)


def test_a_kept_connection_serves_again() -> None:
    async def do(forwarding: UpstreamConnections, to: Upstream, server: RawUpstream) -> int:
        for _ in range(3):
            await _whole(forwarding, to, server)
        return server.connections

    assert run(says(response()), do) == 1


def _dies(first_answers: int, then: bytes = b"") -> Callable[[Talk], Awaitable[None]]:
    """Each connection answers so many requests, reads one more and hangs up."""

    async def serve(talk: Talk) -> None:
        for _ in range(first_answers):
            await talk.request()
            await talk.say(response())
        await talk.request()
        await talk.say(then)
        talk.hang_up()

    return serve


def test_a_kept_connection_that_died_is_replaced_once() -> None:
    async def do(forwarding: UpstreamConnections, to: Upstream, server: RawUpstream) -> tuple[int, bytes]:
        await _whole(forwarding, to, server)
        _, body = await _whole(forwarding, to, server)
        return server.connections, body

    assert run(_dies(1), do) == (2, b"{}")


@pytest.mark.parametrize(
    ("answers", "then", "connections"),
    [(0, b"", 1), (1, b"HTTP/1.1 200 OK\r\ncontent-le", 1), (1, b"HTTP/1.1 200 OK\r\n", 1)],
    ids=["a new connection", "half a head came back", "a line came back"],
)
def test_nothing_else_is_asked_twice(answers: int, then: bytes, connections: int) -> None:
    async def do(forwarding: UpstreamConnections, to: Upstream, server: RawUpstream) -> int:
        for _ in range(answers):
            await _whole(forwarding, to, server)
        with pytest.raises(ProviderError) as raised:
            await forwarding.send(to, CLIENT, ASK)
        assert raised.value.status == 502
        return server.connections

    assert run(_dies(answers, then), do) == connections


@pytest.mark.parametrize("half", [False, True], ids=["closed", "half-closed"])
def test_an_answer_that_breaks_off_says_so(half: bool) -> None:
    async def serve(talk: Talk) -> None:
        await talk.request()
        await talk.say(CHUNKED + chunk(EVENT))
        if half:
            talk.say_no_more()
            await talk.left()

    async def do(forwarding: UpstreamConnections, to: Upstream, _: RawUpstream) -> bytes:
        answered = await forwarding.send(to, CLIENT, ASK)
        chunks = answered.chunks()
        got = await anext(chunks)
        with pytest.raises(ProviderError, match="near broke off") as raised:
            await anext(chunks)
        assert raised.value.status == 502
        return got

    assert run(serve, do) == EVENT


def test_a_silent_upstream_is_a_timeout() -> None:
    async def serve(talk: Talk) -> None:
        await talk.request()
        await talk.left()

    async def do() -> ProviderError:
        async with RawUpstream(serve) as server:
            forwarding = UpstreamConnections(silence=0.01)
            with pytest.raises(ProviderError) as raised:
                await forwarding.send(upstream(f"http://127.0.0.1:{server.port}", key=KEY), CLIENT, ASK)
            await forwarding.close()
            return raised.value

    error = asyncio.run(do())
    assert (error.status, str(error)) == (504, "near cannot be reached: the answer timed out")


def test_an_upstream_that_is_not_there_is_told_without_keys_and_addresses() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]

        async def send() -> None:
            forwarding = UpstreamConnections()
            try:
                await forwarding.send(upstream(f"http://127.0.0.1:{port}", key=KEY), CLIENT, ASK)
            finally:
                await forwarding.close()

        with pytest.raises(ProviderError) as raised:
            asyncio.run(send())
    assert raised.value.status == 502
    assert str(raised.value).startswith("near cannot be reached: ")
    assert str(port) not in str(raised.value)


def test_what_is_no_http_is_an_error_of_one_line() -> None:
    async def serve(talk: Talk) -> None:
        await talk.request()
        await talk.say(b"SSH-2.0-OpenSSH\r\n\r\n")

    with pytest.raises(ProviderError) as raised:
        run(serve, _whole)
    assert raised.value.status == 502
    assert "\n" not in str(raised.value)


def test_the_scripted_models_answers_and_refusals_pass_unchanged() -> None:
    refusal = Refusal(429, '{"error":{"message":"slow down"}}', (("retry-after", "7"),))
    body = json.dumps({"model": "m", "stream": True, "messages": [{"role": "user", "content": "hi"}]}).encode()

    async def ask(url: str) -> list[tuple[int, bool, bytes]]:
        forwarding = UpstreamConnections()
        got = []
        for _ in range(2):
            answered = await forwarding.send(
                upstream(url), CLIENT, UpstreamRequest("POST", "/chat/completions", body=body)
            )
            got.append((answered.status, answered.streamed, await answered.whole(100_000)))
        await forwarding.close()
        return got

    with ScriptedServer(in_turn([Answer(text="Hello there."), refusal])) as server:
        answered, refused = asyncio.run(ask(server.url))
    assert answered[:2] == (200, True)
    assert answered[2].endswith(b"data: [DONE]\n\n")
    assert refused == (429, False, refusal.body.encode())
