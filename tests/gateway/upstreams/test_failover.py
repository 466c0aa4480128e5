"""One model at two addresses: when one fails, the other answers, and the client sees one whole answer."""

import asyncio
import json
import socket
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from everlong.errors import InputError
from everlong.gateway.config import load_config
from everlong.gateway.request import parse_request
from everlong.gateway.surfaces import SURFACES
from everlong.gateway.upstreams.failover import conversation_key, in_preference
from everlong.gateway.upstreams.providers import routes_from
from everlong.gateway.upstreams.routing import Upstream
from everlong.llm import Answer, Endpoint, Refusal, ScriptedServer
from tests.gateway.chains.harbour import (
    ORDER,
    QUESTION,
    RULE,
    Talk as Chain,
    client_of,
    continues,
    entry,
    keeps_the_log,
)
from tests.gateway.processes import ServingProcess
from tests.gateway.raw_upstream import CHUNKED, PATIENCE, RawUpstream, Talk, chunk, response
from tests.gateway.running import RunningGateway
from tests.gateway.talking import CLIENTS, PATHS, RawClient, body_of, events_of, serving, whole_of

CHAT = "openai-chat"
Serve = Callable[[Talk], Awaitable[None]]


def house(*urls: str, weights: tuple[int, ...] = (), **fields: Any) -> list[dict[str, Any]]:
    """The table of an upstream with several addresses."""
    also = [{"url": url} | ({"weight": weights[at]} if weights else {}) for at, url in enumerate(urls[1:], start=1)]
    first = {"name": "house", "url": urls[0], "also": also, "models": ["*"]} | (
        {"weight": weights[0]} if weights else {}
    )
    return [first | fields]


def ask(port: int, text: str = "How many boats?", **fields: Any) -> tuple[int, dict[str, str], str]:
    """Status, headers and body of an answer."""
    messages = fields.pop("messages", [{"role": "user", "content": text}])
    connection = HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    connection.request("POST", PATHS[CHAT], body_of(CHAT, messages, **fields), {CLIENTS: "1"})
    answer = connection.getresponse()
    found = answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read().decode()
    connection.close()
    return found


def test_a_server_dies_and_its_conversations_go_on_at_the_other(tmp_path: Path) -> None:
    """As an operator runs it: `everlong serve` with two addresses in its file."""
    says = lambda name: lambda asked: Answer(text=f"{name} answers number {asked.number}")  # noqa: E731
    with ScriptedServer(says("second")) as second:
        with ScriptedServer(says("first")) as first:
            config = tmp_path / "everlong.toml"
            config.write_text(
                f'[[upstreams]]\nname = "house"\nmodels = ["*"]\nurl = "{first.url}"\nalso = ["{second.url}"]\n'
            )
            gateway = ServingProcess("--config", str(config), "--store", "memory:", "--no-app", folder=tmp_path)
            gateway.__enter__()
            status, headers, body = ask(gateway.port)
            assert (status, headers["x-everlong-addresses-tried"], "first answers" in body) == (200, "1", True)
        try:
            for _ in range(3):
                status, headers, body = ask(gateway.port)
                assert (status, "second answers" in body) == (200, True)
                assert headers["x-everlong-address"] == second.url.removeprefix("http://").removesuffix("/v1")
                assert headers["x-everlong-addresses-tried"] == "2"
            found = json.loads(_get(gateway.port, f"/everlong/requests/{headers['x-everlong-request']}"))
            assert (found["address"], found["addresses_tried"]) == (headers["x-everlong-address"], 2)
            metrics = _get(gateway.port, "/metrics")
            assert 'everlong_failovers_total{upstream="house"} 3.0' in metrics
        finally:
            gateway.__exit__(None, None, None)
    assert [json.loads(line).get("addresses_tried") for line in gateway.lines if '"model"' in line] == [1, 2, 2, 2]


def _get(port: int, path: str) -> str:
    connection = HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    connection.request("GET", path)
    text = connection.getresponse().read().decode()
    connection.close()
    return text


# --- how an address may fail -----------------------------------------------------------------------


async def _closes(talk: Talk, *_: bytes) -> None:
    talk.hang_up()


def _says(data: bytes) -> Callable[..., Awaitable[None]]:
    async def script(talk: Talk, *_: bytes) -> None:
        await talk.say(data)

    return script


ANSWERS = _says(response(whole_of(CHAT), more=("content-type: application/json",)))
STREAMS = _says(CHUNKED + b"".join(chunk(event) for event in events_of(CHAT)) + chunk(b""))


def through(
    first: Callable[..., Awaitable[None]],
    second: Callable[..., Awaitable[None]],
    *,
    stream: bool = False,
    **options: Any,
) -> tuple[int, dict[str, str], bytes, list[int]]:
    """The answer through two addresses, and how many requests of the client each of them got."""
    counts = [0, 0]

    def counted(at: int, script: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
        async def count(talk: Talk, head: bytes, body: bytes) -> None:
            counts[at] += 1
            await script(talk, head, body)

        return count

    async def both() -> tuple[int, dict[str, str], bytes]:
        async with AsyncExitStack() as stack:
            servers = [
                await stack.enter_async_context(RawUpstream(serving(counted(at, script))))
                for at, script in enumerate((first, second))
            ]
            urls = [f"http://127.0.0.1:{server.port}/v1" for server in servers]
            keys = options.pop("keys", None)
            upstreams = house(*urls)
            if keys:
                upstreams[0]["key"], upstreams[0]["also"][0]["key"] = keys
            gateway = RunningGateway(upstreams=upstreams, **options)
            await asyncio.to_thread(gateway.__enter__)
            try:
                async with RawClient(gateway.port) as client:
                    client.ask(PATHS[CHAT], body_of(CHAT, stream=stream))
                    status, headers = await client.head()
                    return status, headers, await client.body()
            finally:
                await asyncio.to_thread(gateway.__exit__, None, None, None)

    return *asyncio.run(asyncio.wait_for(both(), PATIENCE)), counts


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
@pytest.mark.parametrize(
    "failing",
    [_closes, *(_says(response(b"{}", status=f"{status} Broken")) for status in (500, 502, 503, 504, 529))],
    ids=["closes before a byte", "500", "502", "503", "504", "529"],
)
def test_the_other_address_gives_the_one_answer(failing: Callable[..., Awaitable[None]], stream: bool) -> None:
    status, headers, body, counts = through(failing, STREAMS if stream else ANSWERS, stream=stream)
    assert status == 200
    assert body == (b"".join(events_of(CHAT)) if stream else whole_of(CHAT))
    assert (counts, headers["x-everlong-addresses-tried"]) == ([1, 1], "2")


@contextmanager
def hanging() -> Iterator[int]:
    """A port where connecting takes for ever: its queue is full, and nobody takes from it."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        port = listening.getsockname()[1]
        waiting = [socket.socket() for _ in range(4)]
        for one in waiting:
            one.setblocking(False)
            one.connect_ex(("127.0.0.1", port))
        yield port
        for one in waiting:
            one.close()


def test_an_address_that_takes_no_connection_is_left_after_connect_timeout() -> None:
    with hanging() as port, ScriptedServer() as second:
        upstreams = house(f"http://127.0.0.1:{port}/v1", second.url)
        with RunningGateway(upstreams=upstreams, connect_timeout=0.1) as gateway:
            status, headers, _ = ask(gateway.port)
    assert (status, headers["x-everlong-addresses-tried"]) == (200, "2")


@pytest.mark.parametrize(
    ("failing", "options", "expected"),
    [
        (_says(response(b'{"error": {"message": "no"}}', status="400 Bad")), {}, 400),
        (_says(response(b"{}", status="401 No")), {}, 401),
        (_says(response(b"{}", status="404 Not Found")), {}, 404),
        (_says(response(b"{}", status="501 Not Implemented")), {}, 501),
        (_says(response(b"{}", status="429 Slow", more=("retry-after: 2",))), {"keys": ("a", "b")}, 429),
        (_says(response(b"{}", status="429 Slow")), {"keys": ("a", "b")}, 429),
        (_says(response(b"{}", status="429 Slow", more=("retry-after: 60",))), {"keys": ("a", "a")}, 429),
        (_says(b"this is no HTTP\r\n\r\n"), {}, 502),
        (_says(b""), {"silence_timeout": 0.2}, 504),
    ],
    ids=[
        "400",
        "401",
        "404",
        "501",
        "429 short",
        "429 unsaid",
        "429 same key",
        "not HTTP",
        "silence after the request",
    ],
)
def test_what_is_the_requests_own_or_may_have_been_paid_goes_nowhere_else(
    failing: Callable[..., Awaitable[None]], options: dict[str, Any], expected: int
) -> None:
    status, _, _, counts = through(failing, ANSWERS, **options)
    assert (status, counts) == (expected, [1, 0])


def test_a_long_limit_of_one_key_is_no_limit_of_the_other() -> None:
    limited = _says(response(b"{}", status="429 Slow", more=("retry-after: 60",)))
    status, _, _, counts = through(limited, ANSWERS, keys=("a", "b"))
    assert (status, counts) == (200, [1, 1])


def test_after_the_first_byte_nothing_is_tried_again() -> None:
    async def breaks(talk: Talk, *_: bytes) -> None:
        await talk.say(CHUNKED + b"".join(chunk(event) for event in events_of(CHAT)[:2]))
        talk.hang_up()

    status, headers, body, counts = through(breaks, STREAMS, stream=True)
    assert (status, counts, headers["x-everlong-addresses-tried"]) == (200, [1, 0], "1")
    assert body.startswith(events_of(CHAT)[0])
    assert b"house broke off" in body


def test_if_all_fail_the_client_gets_the_answer_of_the_last_that_gave_one() -> None:
    status, headers, body, counts = through(_says(response(b'{"error": "busy"}', status="503 Busy")), _closes)
    assert (status, json.loads(body), counts) == (503, {"error": "busy"}, [1, 1])
    assert headers["x-everlong-addresses-tried"] == "2"


def test_another_upstream_for_the_same_model_is_never_asked() -> None:
    with ScriptedServer() as other, socket.create_server(("127.0.0.1", 0)) as taken:
        gone = taken.getsockname()[1]
        taken.close()
        upstreams = [
            {"name": "one", "url": f"http://127.0.0.1:{gone}/v1", "models": ["*"]},
            {"name": "two", "url": other.url, "models": ["*"]},
        ]
        with RunningGateway(upstreams=upstreams) as gateway:
            status, headers, body = ask(gateway.port)
        assert (status, other.requests) == (502, [])
        assert "one cannot be reached" in body
        assert "x-everlong-address" not in headers


# --- which address ---------------------------------------------------------------------------------


def _said(text: str, form: int) -> list[dict[str, Any]]:
    """The beginning of a conversation as clients write it: another system text, as a block, with a cache mark."""
    block: dict[str, Any] = {"type": "text", "text": text}
    content: Any = [text, [block], [block | {"cache_control": {"type": "ephemeral"}}]][form % 3]
    return [{"role": "system", "content": f"It is day {form}."}, {"role": "user", "content": content}]


def test_a_conversation_stays_with_one_address_however_its_client_writes_it() -> None:
    with (
        ScriptedServer() as first,
        ScriptedServer() as second,
        RunningGateway(upstreams=house(first.url, second.url, weights=(1, 1))) as gateway,
    ):
        places: dict[int, set[str]] = {}
        for turn in range(4):
            for number in range(16):
                messages = _said(f"Conversation {number}", turn)
                for past in range(turn):
                    messages += [
                        {"role": "assistant", "content": f"{past}"},
                        {"role": "user", "content": f"And {past}?"},
                    ]
                status, headers, _ = ask(gateway.port, messages=messages)
                assert status == 200
                places.setdefault(number, set()).add(headers["x-everlong-address"])
    assert all(len(found) == 1 for found in places.values())
    assert len(set.union(*places.values())) == 2, "and both addresses have some"


def _sites(*weights: int) -> Upstream:
    sites = tuple(
        Upstream(name="house", endpoint=Endpoint(url=f"http://host{at}/v1"), weight=weight, number=at)
        for at, weight in enumerate(weights)
    )
    return Upstream(name="house", endpoint=sites[0].endpoint, weight=weights[0], sites=sites)


@given(st.lists(st.integers(1, 20), min_size=2, max_size=5), st.integers(0, 10**9))
def test_conversations_are_shared_by_weight_and_only_those_of_a_lost_address_move(
    weights: list[int], seed: int
) -> None:
    upstream, several = _sites(*weights), 2_000
    orders = [in_preference(upstream, f"{seed}/{number}") for number in range(several)]
    for at, weight in enumerate(weights):
        share = weight / sum(weights)
        found = sum(order[0].number == at for order in orders)
        assert abs(found - share * several) <= 6 * (several * share * (1 - share)) ** 0.5 + 1
    lost = orders[0][0]
    fewer = [site for site in upstream.sites if site is not lost]
    rest = Upstream(name="house", endpoint=fewer[0].endpoint, weight=fewer[0].weight, sites=tuple(fewer))
    for number, order in enumerate(orders):
        again = in_preference(rest, f"{seed}/{number}")
        assert [site.number for site in again] == [site.number for site in order if site is not lost]


def test_without_weights_the_order_counts() -> None:
    upstream = _sites(0, 0, 0)
    assert [site.number for site in in_preference(upstream, "any conversation")] == [0, 1, 2]


@given(text=st.text(), form=st.integers(0, 5), scope=st.text(max_size=5))
def test_the_key_of_a_conversation_is_that_of_its_first_words(text: str, form: int, scope: str) -> None:
    address = next(found for each in SURFACES if (found := each.address(PATHS[CHAT])) is not None)

    def key(messages: list[dict[str, Any]]) -> str:
        return conversation_key(parse_request(address, body_of(CHAT, messages)), scope)

    assert key(_said(text, form)) == key(_said(text, 0))
    assert key(_said(text, form)) != key(_said(text + "!", form))
    assert conversation_key(parse_request(address, body_of(CHAT)), scope, "named") == f"{scope}/named"


@pytest.mark.parametrize("weights", [(), (1, 1)], ids=["order", "weight"])
def test_answers_are_continued_where_they_are_held_and_whole_elsewhere_when_that_is_gone(
    weights: tuple[int, ...],
) -> None:
    gone: set[int] = set()

    def at(number: int) -> ScriptedServer:
        return ScriptedServer(lambda asked: Refusal(503, "{}") if number in gone else keeps_the_log(asked))

    with at(0) as first, at(1) as second:
        with client_of(second.url) as client:
            for _ in range(20):  # so that no two answers have one name
                client.responses.create(model="gpt-4o", input="before")
        second.requests.clear()
        upstreams = house(first.url, second.url, weights=weights)
        with RunningGateway(upstreams=upstreams) as gateway, client_of(gateway.url) as client:
            chain = Chain(client)
            for turn in range(1, 5):
                chain.say(RULE if turn == 2 else entry(turn))
            assert len({headers["x-everlong-address"] for headers in chain.headers}) == 1
            holding, rest = (first, second) if first.requests else (second, first)
            assert [bool(continues(one)) for one in holding.requests] == [False, True, True, True]
            gone.add(0 if holding is first else 1)
            assert chain.say(QUESTION) == f"It is {ORDER}."
            assert [bool(continues(one)) for one in rest.requests] == [False]
            gone.clear()
            chain.say(entry(9))
            assert len(rest.requests) == 2, "it goes on where the last answer is held"
            assert continues(rest.requests[-1])


# --- what is configured ----------------------------------------------------------------------------

URL = "http://10.0.0.5:8000/v1"


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ({"url": URL, "also": "http://10.0.0.6"}, "upstreams[0].also must be a list"),
        ({"url": URL, "also": [""]}, "upstreams[0].also[0].url is empty"),
        ({"url": URL, "also": [{"weight": 2}]}, "upstreams[0].also[0].url is missing"),
        ({"url": URL, "also": [{"url": URL, "wait": 2}]}, "unknown setting 'upstreams[0].also[0].wait'"),
        ({"url": URL, "also": [URL + "/"]}, "upstreams[0].also[0].url appears twice"),
        ({"url": URL, "also": ["openai"]}, "upstreams[0].also[0].url is an address of openai"),
        ({"url": "openai", "also": ["https://x.openai.azure.com"]}, "upstreams[0].also[0].url is an address of azure"),
        ({"url": "openai", "also": [URL]}, "upstreams[0].also[0].url is an address of another server"),
        ({"url": URL, "weight": 0}, "upstreams[0].weight must be at least 1"),
        ({"url": URL, "weight": 2}, "upstreams[0].weight needs an upstream with several addresses"),
        ({"url": URL, "weight": 2, "also": ["http://b/v1"]}, "upstreams[0].also[0].weight is missing"),
        ({"url": URL, "also": [{"url": "http://b/v1", "weight": 1}]}, "upstreams[0].weight is missing"),
        (
            {"url": URL, "also": [{"url": "http://b/v1", "key_env": "NONE"}]},
            "upstreams[0].also[0]: its key must be in",
        ),
        ({"url": URL, "also": [{"url": "http://b/v1", "key": "a b"}]}, "the key of the upstream"),
    ],
)
def test_a_wrong_table_is_named_by_its_field(table: dict[str, Any], problem: str) -> None:
    with pytest.raises(InputError) as error:
        routes_from(load_config(None, {"upstreams": [table]}, {}), {})
    assert problem in str(error.value)
    assert "\n" not in str(error.value)


def test_each_address_may_have_a_key_and_gets_no_other() -> None:
    with ScriptedServer(lambda _: Refusal(503, "{}")) as first, ScriptedServer() as second:
        upstreams = house(first.url, second.url, key="sk-first")
        upstreams[0]["also"][0]["key_env"] = "SECOND"
        with RunningGateway(upstreams=upstreams, environment={"SECOND": "sk-second"}) as gateway:
            assert ask(gateway.port)[0] == 200
    assert [one.headers["authorization"] for one in (first.requests[-1], second.requests[-1])] == [
        "Bearer sk-first",
        "Bearer sk-second",
    ]
