"""The boundary: which requests are answered, and what a browser may do with the answers. Without a browser.

`tests/web/test_other_sites.py` shows the same in one.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st
from starlette.types import Message, Receive, Scope, Send

from everlong.cli.app import chat_app
from everlong.errors import InputError
from everlong.gateway.config import load_config
from everlong.gateway.http.app import gateway_app
from everlong.gateway.http.boundary import HEADERS, POLICY, Boundary
from everlong.gateway.keys.records import hashed
from everlong.gateway.operations.services import services_for
from everlong.gateway.upstreams.providers import routes_from
from tests.gateway.raw_upstream import RawUpstream, Talk, response
from tests.gateway.running import RunningGateway
from tests.gateway.talking import PATHS, RawClient, body_of, talk_through, whole_of

BODY = body_of("openai-chat")
HERE, SITE = "127.0.0.1:8333", "https://app.example"
KEY = "el-" + "k" * 40

Answer = tuple[int, list[tuple[str, str]]]


async def ask(
    app: Callable[[Scope, Receive, Send], Awaitable[None]],
    path: str = "/v1/models",
    method: str = "GET",
    headers: Mapping[str, str] | None = None,
    peer: str = "127.0.0.1",
) -> Answer:
    """Status and headers of an answer. The rest of it is not awaited."""
    sent: asyncio.Queue[Message] = asyncio.Queue()
    body = [{"type": "http.request", "body": b"{}"}]

    async def receive() -> Message:
        if not body:
            await asyncio.get_running_loop().create_future()
        return body.pop()

    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [(name.encode(), value.encode()) for name, value in ({"host": HERE} | dict(headers or {})).items()],
        "client": (peer, 50_000) if peer else None,
        "server": ("127.0.0.1", 8333),
    }
    answering = asyncio.ensure_future(app(scope, receive, sent.put))  # type: ignore[arg-type]
    getting = asyncio.ensure_future(sent.get())
    try:
        await asyncio.wait((answering, getting), timeout=20, return_when=asyncio.FIRST_COMPLETED)
        start = sent.get_nowait() if not getting.done() else getting.result()
        return start["status"], [(name.decode(), value.decode()) for name, value in start["headers"]]
    finally:
        for task in (answering, getting):
            task.cancel()
        await asyncio.gather(answering, getting, return_exceptions=True)


class Inside:
    """An application that counts what comes through to it."""

    def __init__(self) -> None:
        self.asked = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.asked += 1
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})


def passes(path: str = "/v1/models", method: str = "GET", boundary: Any = None, **headers: str) -> bool:
    """Whether a request comes through; a refused one is a 403 and nobody inside hears of it."""
    inside = Inside()
    options = boundary if boundary is not None else {}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    status, _ = asyncio.run(ask(Boundary(app=inside, **options), path, method, named))
    assert (status == 200) == (inside.asked == 1)
    assert status in (200, 403)
    return status == 200


# --- who may talk ------------------------------------------------------------------------------------

#: Headers that a request has, and whether it is answered.
SENDERS: dict[str, tuple[dict[str, str], bool]] = {
    "a program": ({}, True),
    "the own page": ({"origin": f"http://{HERE}", "sec-fetch-site": "same-origin"}, True),
    "the own page behind TLS": ({"origin": f"https://{HERE}", "sec-fetch-site": "same-origin"}, True),
    "somebody who typed the address": ({"sec-fetch-site": "none", "sec-fetch-mode": "navigate"}, True),
    "another site": ({"origin": "https://evil.example"}, False),
    "another site that says it is near": ({"origin": "https://evil.example", "sec-fetch-site": "same-origin"}, False),
    "another port of this machine": ({"origin": "http://127.0.0.1:9"}, False),
    "another name of this machine": ({"origin": "http://localhost:8333"}, False),
    "another port, by its browser": ({"sec-fetch-site": "same-site"}, False),
    "a picture of another site": ({"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"}, False),
    "a link of another site": (
        {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"},
        False,
    ),
    "a frame without an origin": ({"origin": "null"}, False),
    "an extension": ({"origin": "chrome-extension://abcdefgh"}, False),
    "an origin with more": ({"origin": f"http://{HERE}.evil.example"}, False),
    "an origin with a user": ({"origin": f"http://{HERE}@evil.example"}, False),
    "an empty origin": ({"origin": ""}, False),
    "two values": ({"sec-fetch-site": "same-origin, cross-site"}, False),
    "a script of the own page": ({"sec-fetch-site": "same-origin", "sec-fetch-dest": "script"}, False),
    "a worker of the own page": ({"sec-fetch-site": "same-origin", "sec-fetch-dest": "sharedworker"}, False),
    "a frame of the own page": ({"sec-fetch-site": "same-origin", "sec-fetch-dest": "iframe"}, False),
    "a service worker, in an old browser": ({"service-worker": "script"}, False),
    "a request of a script of the own page": ({"sec-fetch-site": "same-origin", "sec-fetch-dest": "empty"}, True),
}
#: What a request without any header of a browser would do.
WORK = {
    "a chat": ("POST", PATHS["openai-chat"], BODY),
    "a chat without its base": ("POST", "/chat/completions", BODY),
    "all else": ("POST", "/v1/embeddings", b'{"model": "m", "input": "x"}'),
    "a deletion": ("DELETE", "/v1/files/f1", b""),
    "the models": ("GET", "/v1/models", b""),
    "explanations": ("GET", "/everlong/requests", b""),
    "health": ("GET", "/health", b""),
    "figures": ("GET", "/metrics", b""),
}


@pytest.mark.parametrize("work", WORK)
def test_requests_of_other_sites_reach_nobody(work: str) -> None:
    method, path, body = WORK[work]
    asked: list[bytes] = []

    async def upstream(talk: Talk, head: bytes, _: bytes) -> None:
        asked.append(head)
        await talk.say(response(whole_of("openai-chat"), more=("content-type: application/json",)))

    async def client(gateway: RunningGateway) -> dict[str, tuple[int, bool]]:
        told = {}
        for name, (headers, _) in SENDERS.items():
            asked.clear()
            async with RawClient(gateway.port) as client:
                client.ask(path, body, {"host": HERE, **headers, "content-type": "text/plain"}, method)
                told[name] = ((await client.answer())[0], bool(asked))
        return told

    told = talk_through(upstream, client)
    for name, (_, answered) in SENDERS.items():
        status, reached = told[name]
        assert (status == 200) is answered, name
        assert answered or (status, reached) == (403, False), name


def test_a_refusal_does_not_wait_for_the_body() -> None:
    async def upstream(talk: Talk, head: bytes, _: bytes) -> None:
        raise AssertionError(head)

    async def client(gateway: RunningGateway) -> tuple[int, bytes]:
        async with RawClient(gateway.port) as client:
            headers = {"origin": "https://evil.example", "content-length": "60000000"}
            client.ask(PATHS["openai-chat"], b"", headers)  # not a byte of it comes
            status, _, body = await client.answer()
            return status, body

    status, body = talk_through(upstream, client)
    assert status == 403
    assert b"origins" in body


NAMES: dict[str, tuple[dict[str, Any], dict[str, bool]]] = {
    "this machine": (
        {},
        {
            "127.0.0.1:8333": True,
            "localhost": True,
            "LOCALHOST:8333": True,
            "[::1]:8333": True,
            "127.9.9.9": True,
            "evil.example": False,
            "evil.example:8333": False,
            "localhost.evil.example": False,
            "127.0.0.1.evil.example": False,
            "10.0.0.8": False,
            "0.0.0.0:8333": False,
            "169.254.169.254": False,
            "": False,
            "[::1": False,
            "localhost:8333:8333": False,
            "evil.example@localhost": False,
            "localhost, evil.example": False,
        },
    ),
    "this machine, with names": (
        {"hosts": ["box.example"]},
        {
            "box.example:8333": True,
            "BOX.example": True,
            "localhost": True,
            "evil.example": False,
            "a.box.example": False,
        },
    ),
    "any name": ({"hosts": ["*"]}, {"evil.example": True, "localhost": True, "a b": False}),
    "everybody, without keys": (
        {"host": "0.0.0.0", "open": True},
        {"192.168.1.7:8333": True, "[fd00::7]:8333": True, "localhost": True, "evil.example": False},
    ),
    "everybody, with a name": (
        {"host": "0.0.0.0", "open": True, "hosts": ["box.example"]},
        {"box.example": True, "192.168.1.7": True, "evil.example": False},
    ),
    "with keys": (
        {"host": "0.0.0.0", "keys": [{"name": "a", "hash": hashed(KEY)}]},
        {"box.example": True, "192.168.1.7": True},
    ),
    "with keys and names": (
        {"host": "0.0.0.0", "keys": [{"name": "a", "hash": hashed(KEY)}], "hosts": "box.example, other.example"},
        {"box.example": True, "other.example": True, "192.168.1.7": True, "evil.example": False},
    ),
    "with keys, on this machine": (
        {"keys": [{"name": "a", "hash": hashed(KEY)}]},
        {"localhost": True, "evil.example": False},
    ),
    "at a name": ({"host": "localhost"}, {"localhost:8333": True, "evil.example": False}),
}


@pytest.mark.parametrize("name", NAMES)
def test_a_server_answers_to_its_own_names_only(name: str) -> None:
    options, hosts = NAMES[name]
    config = load_config(None, options, {})

    async def answered(host: str) -> bool:
        return (await ask(Boundary.around(Inside(), config), headers={"host": host}))[0] == 200

    assert {host: asyncio.run(answered(host)) for host in hosts} == hosts


@given(origin=st.text(st.characters(codec="latin-1", exclude_categories=["Cc"]), max_size=60))
def test_no_origin_but_the_own_one_is_answered(origin: str) -> None:
    own = origin.strip().lower() in (f"http://{HERE}", f"https://{HERE}")
    assert passes(origin=origin) is own
    assert passes("/", origin=origin, sec_fetch_mode="navigate", sec_fetch_dest="document") is own


@given(site=st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), max_size=30))
def test_no_browser_that_names_another_site_is_answered(site: str) -> None:
    assert passes(sec_fetch_site=site) is (site.strip() in ("same-origin", "none"))


#: A link of any site may open the page, and do nothing else.
VISITS: dict[str, tuple[str, str, dict[str, str], bool]] = {
    "a link": ("GET", "/", {}, True),
    "a frame": ("GET", "/", {"sec_fetch_dest": "iframe"}, False),
    "a script": ("GET", "/", {"sec_fetch_dest": "script", "sec_fetch_mode": "no-cors"}, False),
    "a form": ("POST", "/", {"origin": "https://evil.example"}, False),
    "a form without an origin": ("POST", "/", {}, False),
    "elsewhere": ("GET", "/v1/models", {}, False),
    "a file": ("GET", "/assets/app.js", {}, False),
    "the state": ("GET", "/everlong/api/state", {}, False),
}


@pytest.mark.parametrize("name", VISITS)
def test_a_link_of_another_site_opens_the_page_and_nothing_else(name: str) -> None:
    method, path, more, answered = VISITS[name]
    link = {"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate", "sec_fetch_dest": "document"}
    assert passes(path, method, **(link | more)) is answered


def test_no_websocket_is_opened_by_anyone() -> None:
    sent: list[Message] = []
    inside = Inside()

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        return {"type": "websocket.connect"}

    for headers in ([], [(b"origin", f"http://{HERE}".encode())]):
        scope = {"type": "websocket", "path": "/v1/realtime", "headers": [(b"host", HERE.encode()), *headers]}
        asyncio.run(Boundary(app=inside)(scope, receive, send))
    assert [message["type"] for message in sent] == ["websocket.close"] * 2
    assert inside.asked == 0


# --- sites that are allowed --------------------------------------------------------------------------


def test_a_site_that_is_allowed_reads_answers_and_asks_first() -> None:
    inside = Inside()
    boundary = Boundary(app=inside, origins=frozenset({SITE}))
    wanted = {
        "access-control-request-method": "POST",
        "access-control-request-headers": "authorization, content-type, x-stainless-os",
    }

    def told(path: str, method: str, **headers: str) -> tuple[int, dict[str, str]]:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        status, pairs = asyncio.run(ask(boundary, path, method, named))
        return status, {name: value for name, value in pairs if name.startswith("access-control-")}

    assert told("/v1/chat/completions", "POST", origin=SITE, sec_fetch_site="cross-site") == (
        200,
        {"access-control-allow-origin": SITE, "access-control-expose-headers": "*"},
    )
    status, rights = told("/v1/chat/completions", "OPTIONS", origin=SITE, **wanted)
    assert status == 204
    assert rights["access-control-allow-origin"] == SITE
    assert "POST" in rights["access-control-allow-methods"]
    assert rights["access-control-allow-headers"] == wanted["access-control-request-headers"]
    assert "access-control-allow-credentials" not in rights
    assert told("/api/chat", "POST", origin=SITE)[0] == 200  # Ollama's, and so the gateway's
    assert inside.asked == 2
    for origin, path in (
        ("https://evil.example", "/v1/models"),
        (SITE + ".evil", "/v1/models"),
        (SITE, "/everlong/api/state"),
    ):
        for method, more in (("OPTIONS", wanted), ("GET", {})):
            assert told(path, method, origin=origin, sec_fetch_site="cross-site", **more) == (403, {})
    assert told("/v1/models", "GET", sec_fetch_site="cross-site") == (403, {})  # a picture says no origin
    assert told("/v1/models", "GET", origin=SITE, host="evil.example") == (403, {})
    assert inside.asked == 2


WRONG = {
    "hosts": ["box.example:8333", "http://box.example", "", "a b", "*.example", 7],
    "origins": ["*", "null", "app.example", "https://app.example/", "https://app.example/x", "ftp://a", "", 7],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in WRONG.items() for value in values])
def test_names_and_sites_that_cannot_be_meant_are_one_line(name: str, value: object) -> None:
    with pytest.raises(InputError, match=rf"--{name}: {name}\[0\] must be ") as told:
        load_config(None, {name: [value]}, {})
    assert "\n" not in str(told.value)


def test_variables_name_several() -> None:
    variables = {"EVERLONG_GATEWAY_HOSTS": "A.example, b.example", "EVERLONG_GATEWAY_ORIGINS": "https://App.example"}
    config = load_config(None, {}, variables)
    assert (config.hosts, config.origins) == (("a.example", "b.example"), (SITE,))


# --- who may read figures ------------------------------------------------------------------------------

BEYOND = {"host": "0.0.0.0", "keys": [{"name": "a", "hash": hashed(KEY)}]}
#: Options, the other end of the connection, headers; and the status of /metrics.
READERS: dict[str, tuple[dict[str, Any], str, dict[str, str], int]] = {
    "this machine": ({}, "127.0.0.1", {}, 200),
    "this machine, by its other address": ({}, "::1", {}, 200),
    "this machine, with keys": (BEYOND, "127.0.0.1", {}, 200),
    "another, with a key": (BEYOND, "10.0.0.8", {"authorization": f"Bearer {KEY}"}, 200),
    "another, with a wrong key": (BEYOND, "10.0.0.8", {"x-api-key": "el-wrong"}, 401),
    "another, without one": (BEYOND, "10.0.0.8", {}, 401),
    "another that says it is this one": (BEYOND, "10.0.0.8", {"x-forwarded-for": "127.0.0.1"}, 401),
    "another that says so otherwise": (BEYOND, "10.0.0.8", {"forwarded": "for=127.0.0.1", "host": "localhost"}, 401),
    "another, where nobody has a key": ({"host": "0.0.0.0", "open": True}, "10.0.0.8", {}, 403),
    "nobody can say who": ({}, "", {}, 403),
}


@pytest.mark.parametrize("name", READERS)
def test_figures_are_read_on_this_machine_or_with_a_key(name: str) -> None:
    options, peer, headers, status = READERS[name]
    config = load_config(
        None, {"store": "memory:", "upstream": "http://127.0.0.1:9/v1", "access_log": False, **options}, {}
    )
    app = gateway_app(config, lambda: services_for(config, routes_from(config, {}), {}))

    async def read() -> Answer:
        async with app.router.lifespan_context(app):
            return await ask(app, "/metrics", headers=headers, peer=peer)

    assert asyncio.run(read())[0] == status


# --- every answer of every route ---------------------------------------------------------------------

#: What an upstream might say to be trusted with more.
HOSTILE = (
    "content-type: text/html",
    "content-security-policy: default-src *",
    "content-security-policy-report-only: default-src *",
    "access-control-allow-origin: *",
    "access-control-allow-credentials: true",
    "cross-origin-resource-policy: cross-origin",
    "cross-origin-opener-policy: unsafe-none",
    "x-frame-options: ALLOWALL",
    "service-worker-allowed: /",
    "refresh: 0;url=https://evil.example/",
    "link: <https://evil.example/x.js>; rel=preload; as=script",
    "clear-site-data: *",
    "sourcemap: https://evil.example/x.map",
)
REFUSED = ({"host": "evil.example"}, {"origin": "https://evil.example"}, {"sec-fetch-site": "same-site"})


def assert_safe(answer: Answer, where: str) -> None:
    """All headers stand once, and nothing beside them says otherwise."""
    _, pairs = answer
    for name, value in HEADERS.items():
        assert [each for key, each in pairs if key == name] == [value], where
    policies = [value for name, value in pairs if name == "content-security-policy"]
    method, path = where.split()[:2]
    page = path in ("/", "/index.html") and method in ("GET", "HEAD")
    assert len(policies) == 1, where
    never = ("service-worker-allowed", "refresh", "clear-site-data", "link", "sourcemap")
    assert not [name for name, _ in pairs if name in never or name.startswith("access-control-")], where
    if path == "/diagrams.html" and policies != [POLICY]:
        # The frame that draws: it has no origin and loads nothing, and only the app's page may hold it.
        assert policies[0].startswith("sandbox allow-scripts; default-src 'none'; script-src 'sha256-"), where
        assert policies[0].replace("; style-src 'unsafe-inline'", "").count("unsafe") == 0, where
        assert policies[0].endswith("; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"), where
        return
    assert page or policies == [POLICY], where
    assert "default-src 'none'" in policies[0]
    assert "frame-ancestors 'none'" in policies[0]
    assert not re.search(r"unsafe|http|\*|script-src[^;]*'self'|style-src[^;]*'self'", policies[0]), where


@asynccontextmanager
async def _the_product(upstream: int, folder: Path) -> Any:
    """The gateway and the app, as `everlong serve` makes them."""
    options = {"store": "memory:", "upstream": f"http://127.0.0.1:{upstream}/v1", "access_log": False}
    config = load_config(None, options, {})
    app = gateway_app(config, lambda: services_for(config, routes_from(config, {}), {}), partial(chat_app, config))
    async with app.router.lifespan_context(app):
        yield app


def test_every_answer_of_every_route_carries_the_headers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("HOME", "XDG_CONFIG_HOME", "EVERLONG_CACHE"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setenv("EVERLONG_OFFLINE", "1")
    monkeypatch.chdir(tmp_path)

    async def hostile(talk: Talk) -> None:
        while True:
            await talk.request()
            await talk.say(response(b"<script>parent.broken = 1</script>", more=HOSTILE))

    async def walk() -> dict[str, set[int]]:
        told: dict[str, set[int]] = {}
        async with RawUpstream(hostile) as upstream, _the_product(upstream.port, tmp_path) as app:
            places = [
                (route.path, method)
                for route in app.router.routes
                for method in (*(route.methods or ("GET", "POST")), "TRACE")
            ]
            places += [("/nothing/here", "GET"), ("/", "OPTIONS"), ("/v1/models", "OPTIONS")]
            for pattern, method in places:
                path = re.sub(r"\{(\w+)(:int)?(:path)?\}", lambda part: "7" if part[2] else "x", pattern)
                for headers in ({}, *REFUSED):
                    answer = await ask(app, path, method, {"x-everlong": "page", "content-length": "0", **headers})
                    assert_safe(answer, f"{method} {path} {headers} {answer[0]}")
                    told.setdefault(f"{method} {path}", set()).add(answer[0])
        return told

    told = asyncio.run(asyncio.wait_for(walk(), 120))
    assert len(told) > 100
    assert all(403 in statuses for statuses in told.values())
