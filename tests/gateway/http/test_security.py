"""Nothing that a client sends chooses another host, smuggles a request, or shows it what is another client's."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest

from everlong.errors import InputError
from everlong.gateway.config import load_config
from everlong.gateway.keys.records import hashed
from everlong.gateway.operations.services import services_for
from everlong.gateway.upstreams.providers import routes_from
from tests.gateway.raw_upstream import RawUpstream, Talk, response
from tests.gateway.running import RunningGateway
from tests.gateway.talking import CLIENTS, FORMATS, PATHS, RawClient, body_of, talk_through, whole_of

ONE, OTHER, UPSTREAM = "el-" + "a" * 40, "el-" + "b" * 40, "sk-upstream-0123456789"
BODY = body_of("openai-chat")
SPOKEN = f"formats = {json.dumps(FORMATS)}\n"


class Witness:
    """An upstream that remembers every request of a client, head and body."""

    def __init__(self, *more: str) -> None:
        self.heads: list[bytes] = []
        self.bodies: list[bytes] = []
        self._answer = response(whole_of("openai-chat"), more=("content-type: application/json", *more))

    async def __call__(self, talk: Talk, head: bytes, body: bytes) -> None:
        self.heads.append(head)
        self.bodies.append(body)
        await talk.say(self._answer)

    def header(self, name: str, at: int = -1) -> str | None:
        lines = self.heads[at].decode("latin-1").split("\r\n")[1:]
        found = [line.partition(":")[2].strip() for line in lines if line.lower().startswith(name + ":")]
        return found[0] if found else None


def raw(port: int, data: bytes) -> bytes:
    """What comes back for these bytes, until the other side closes or the answer is whole."""

    async def talk() -> bytes:
        async with RawClient(port) as client:
            client.write(data)
            client_said = b""
            while b"\r\n\r\n" not in client_said:
                more = await client.some(65_536)
                if not more:
                    break
                client_said += more
            return client_said

    return asyncio.run(asyncio.wait_for(talk(), 20))


# --- which host is asked ---------------------------------------------------------------------------

TARGETS = {
    "an absolute address": "http://{evil}/v1/embeddings",
    "an absolute address of a chat": "http://{evil}/v1/chat/completions",
    "two slashes": "//{evil}/v1/embeddings",
    "two slashes behind the base": "/v1//{evil}/embeddings",
    "dots": "/v1/../../admin",
    "dots in the middle": "/v1/files/../../admin",
    "encoded dots": "/v1/%2e%2e/admin",
    "half-encoded dots": "/v1/.%2E/admin",
    "twice encoded dots": "/v1/%252e%252e/admin",
    "an encoded slash": "/v1/files%2F..%2Fadmin",
    "a backslash": "/v1/..\\admin",
    "an encoded backslash": "/v1/..%5Cadmin",
    "a user": "/v1/@{evil}/x",
    "a user in front": "/v1@{evil}/x",
    "an encoded user": "/v1/%40{evil}/x",
    "a fragment": "/v1/x%23y",
    "a line end": "/v1/x%0d%0aHost:%20{evil}",
    "a null": "/v1/x%00",
    "a semicolon": "/v1/files;x=1/..;/admin",
}


@pytest.mark.parametrize("name", TARGETS)
def test_no_path_leads_to_another_host_or_out_of_the_api(name: str) -> None:
    witness, asked = Witness(), list[bytes]()

    async def evil(talk: Talk) -> None:
        asked.append((await talk.request())[0])

    async def client(gateway: RunningGateway) -> int:
        async with RawUpstream(evil) as elsewhere:
            target = TARGETS[name].replace("{evil}", f"127.0.0.1:{elsewhere.port}")
            async with RawClient(gateway.port) as client:
                client.ask(target, BODY)
                return (await client.answer())[0]

    status = talk_through(witness, client)
    assert asked == []
    lines = [head.split(b"\r\n")[0].decode() for head in witness.heads]
    # An absolute address is a path of ours as any other; whatever else would lead away is refused.
    allowed = re.compile(r"POST /v1/(embeddings|chat/completions) HTTP/1\.1")
    assert all(allowed.fullmatch(line) for line in lines), lines
    assert (status == 200) == bool(lines)
    assert lines or status in (400, 404)


HEADERS = {
    "x-forwarded-host": ("x-forwarded-host", "evil.example"),
    "x-original-url": ("x-original-url", "http://evil.example/"),
    "forwarded": ("forwarded", "host=evil.example"),
    "x-upstream": ("x-everlong-upstream", "http://evil.example"),
}


@pytest.mark.parametrize("name", HEADERS)
def test_no_header_leads_to_another_host(name: str) -> None:
    witness = Witness()

    async def client(gateway: RunningGateway) -> int:
        async with RawClient(gateway.port) as client:
            client.ask(PATHS["openai-chat"], BODY, dict([HEADERS[name]]))
            return (await client.answer())[0]

    assert talk_through(witness, client) == 200
    host = witness.header("host")
    assert host is not None
    assert host.startswith("127.0.0.1:")


@pytest.mark.parametrize("field", ["base_url", "api_base", "url", "model"])
def test_no_field_leads_to_another_host(field: str) -> None:
    witness = Witness()

    async def client(gateway: RunningGateway) -> int:
        async with RawClient(gateway.port) as client:
            client.ask(PATHS["openai-chat"], body_of("openai-chat", **{field: "http://evil.example/v1"}))
            return (await client.answer())[0]

    assert talk_through(witness, client) == 200
    assert len(witness.heads) == 1


# --- smuggling ---------------------------------------------------------------------------------------

START = f"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\n{CLIENTS}: 1\r\n".encode()
HIDDEN = b"GET /v1/hidden HTTP/1.1\r\nhost: localhost\r\n" + f"{CLIENTS}: 1\r\n\r\n".encode()
SMUGGLED = {
    "two lengths": START + b"content-length: %d\r\ncontent-length: 2\r\n\r\n" % len(BODY) + BODY,
    "length and chunks": START + b"content-length: 4\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n" + HIDDEN,
    "chunks, oddly written": START + b"transfer-encoding: xchunked\r\ncontent-length: 2\r\n\r\n{}" + HIDDEN,
    "chunks twice": START + b"transfer-encoding: chunked\r\ntransfer-encoding: identity\r\n\r\n0\r\n\r\n" + HIDDEN,
    "a negative length": START + b"content-length: -5\r\n\r\n" + BODY,
    "a length with a sign": START + b"content-length: +%d\r\n\r\n" % len(BODY) + BODY,
    "a blank before the colon": START + b"content-length : %d\r\n\r\n" % len(BODY) + BODY,
    "a header over two lines": START + b"x-a: 1\r\n b: 2\r\ncontent-length: 0\r\n\r\n",
    "a null in a header": START + b"x-a: 1\x002\r\ncontent-length: 0\r\n\r\n",
    "a bare line end in a header": START + b"x-a: 1\nx-b: 2\rx-c: 3\r\ncontent-length: 0\r\n\r\n",
}


@pytest.mark.parametrize("name", SMUGGLED)
def test_a_request_that_could_be_read_in_two_ways_is_not_passed_on(name: str) -> None:
    witness = Witness()

    async def client(gateway: RunningGateway) -> bytes:
        return await asyncio.to_thread(raw, gateway.port, SMUGGLED[name])

    answer = talk_through(witness, client)
    assert answer.startswith(b"HTTP/1.1 400"), answer
    assert witness.heads == []


def test_headers_between_neighbours_do_not_cross() -> None:
    witness = Witness()
    sent = {
        "connection": "close, x-named, authorization",
        "x-named": "1",
        "te": "trailers",
        "trailer": "x",
        "proxy-authorization": "Basic x",
        "keep-alive": "timeout=5",
        "cookie": "session=1",
        "x-forwarded-for": "10.0.0.9",
        "x-everlong-thread": "mine",
        "authorization": "Bearer sk-own",
    }

    async def client(gateway: RunningGateway) -> int:
        async with RawClient(gateway.port) as client:
            client.ask(PATHS["openai-chat"] + "?x=1", BODY, sent)
            return (await client.answer())[0]

    assert talk_through(witness, client) == 200
    assert [name for name in sent if name != "connection" and witness.header(name) is not None] == []
    assert witness.header("transfer-encoding") is None
    assert witness.header("content-length") == str(len(witness.bodies[0]))


def test_a_line_end_in_the_query_stays_in_the_query() -> None:
    witness = Witness()

    async def client(gateway: RunningGateway) -> int:
        async with RawClient(gateway.port) as client:
            client.ask(PATHS["openai-chat"] + "?a=%0d%0ax-injected:%201", BODY)
            return (await client.answer())[0]

    assert talk_through(witness, client) == 200
    assert witness.header("x-injected") is None
    assert witness.heads[0].split(b"\r\n")[0].endswith(b"?a=%0d%0ax-injected:%201 HTTP/1.1")


# --- one client and another -------------------------------------------------------------------------


def locked(witness: Witness, tmp_path: Path, do: Any) -> Any:
    """`do` with a gateway that has two keys and an upstream with its own."""

    async def both() -> Any:
        async def serve(talk: Talk) -> None:
            while True:
                head, body = await talk.request()
                await (witness(talk, head, body) if CLIENTS.encode() in head else talk.say(response(status="404 No")))

        async with RawUpstream(serve) as upstream:
            file = tmp_path / "everlong.toml"
            url = f"http://127.0.0.1:{upstream.port}/v1"
            keys = "".join(
                f'[[keys]]\nname = "{n}"\nhash = "{hashed(k)}"\n' for n, k in (("one", ONE), ("other", OTHER))
            )
            file.write_text(f'[[upstreams]]\nname = "near"\nurl = "{url}"\nkey = "{UPSTREAM}"\n{SPOKEN}{keys}')
            gateway = RunningGateway(file=file)
            await asyncio.to_thread(gateway.__enter__)
            try:
                return await do(gateway)
            finally:
                await asyncio.to_thread(gateway.__exit__, None, None, None)

    return asyncio.run(asyncio.wait_for(both(), 20))


async def said(gateway: RunningGateway, path: str, key: str, body: bytes = b"", **headers: str) -> tuple[int, bytes]:
    async with RawClient(gateway.port) as client:
        told = {"authorization": f"Bearer {key}"} if key else {}
        client.ask(path, body, told | headers, "POST" if body else "GET")
        status, _, answer = await client.answer()
        return status, answer


@pytest.mark.parametrize("where", ["authorization", "x-api-key"])
@pytest.mark.parametrize("path", [*PATHS.values(), "/v1/embeddings", "/v1/messages/batches"])
def test_a_key_of_the_gateways_never_reaches_an_upstream(tmp_path: Path, path: str, where: str) -> None:
    witness = Witness()

    async def client(gateway: RunningGateway) -> None:
        async with RawClient(gateway.port) as client:
            value = f"Bearer {ONE}" if where == "authorization" else ONE
            client.ask(
                path,
                b'{"model": "m", "messages": [{"role": "user", "content": "x"}], "input": "x", "contents": []}',
                {where: value},
            )
            await client.answer()

    locked(witness, tmp_path, client)
    assert len(witness.heads) == 1
    assert ONE.encode() not in witness.heads[0] + witness.bodies[0]
    assert UPSTREAM.encode() in witness.heads[0]


def test_explanations_are_told_to_the_key_that_asked_and_show_no_text(tmp_path: Path) -> None:
    async def client(gateway: RunningGateway) -> None:
        await said(gateway, PATHS["openai-chat"], ONE, body_of("openai-chat", [{"role": "user", "content": "s3cret"}]))
        status, listed = await said(gateway, "/everlong/requests", ONE)
        rows = json.loads(listed)
        assert (status, len(rows)) == (200, 1)
        path = f"/everlong/requests/{rows[0]['id']}"
        assert (await said(gateway, path, ONE))[0] == 200
        assert (await said(gateway, path, OTHER))[0] == 404
        assert await said(gateway, "/everlong/requests", OTHER) == (200, b"[]")
        assert (await said(gateway, path, ""))[0] == 401
        assert (await said(gateway, path, "el-wrong"))[0] == 401
        for open_to_all in ("/health", "/metrics"):
            status, shown = await said(gateway, open_to_all, "")
            assert status == 200
            for private in (b"s3cret", ONE.encode(), OTHER.encode(), UPSTREAM.encode(), hashed(ONE).encode()):
                assert private not in shown + listed

    locked(Witness(), tmp_path, client)


def test_cookies_of_one_answer_go_to_nobody() -> None:
    witness = Witness("set-cookie: session=one; Path=/")

    async def client(gateway: RunningGateway) -> list[dict[str, str]]:
        heads = []
        for key in ("k1", "k2"):
            async with RawClient(gateway.port) as client:
                client.ask(PATHS["openai-chat"], BODY, {"authorization": f"Bearer {key}"})
                heads.append((await client.answer())[1])
        return heads

    heads = talk_through(witness, client)
    assert [head.get("set-cookie") for head in heads] == [None, None]
    assert [witness.header("cookie", at) for at in (0, 1)] == [None, None]
    assert [witness.header("authorization", at) for at in (0, 1)] == ["Bearer k1", "Bearer k2"]


@pytest.mark.parametrize("fmt", FORMATS)
def test_two_clients_on_one_connection_are_two(fmt: str) -> None:
    """A proxy in front may send many clients' requests over one connection: each is known by its own key.

    Even a name that both give to their conversation does not make it one.
    """
    witness = Witness()

    async def client(gateway: RunningGateway) -> None:
        async with RawClient(gateway.port) as client:
            for key in ("k1", "k2"):
                names = {"authorization": f"Bearer {key}", "x-everlong-thread": "the same"}
                client.ask(PATHS[fmt], body_of(fmt, stream=False), names)
                await client.answer()
        scopes = {one.scope for one in gateway.services.conversations.all()}
        assert len(scopes) == 2

    talk_through(witness, client)


# --- who may listen ----------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.7", "", "example.org"])
def test_nobody_listens_beyond_this_machine_without_keys(host: str) -> None:
    config = load_config(None, {"host": host, "store": "memory:", "upstream": "http://127.0.0.1:9/v1"}, {})
    with pytest.raises(InputError, match="no keys are set: create one with `everlong keys create NAME`"):
        services_for(config, routes_from(config, {}), {})
