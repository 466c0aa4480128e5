"""What clients get wrong: told in their own format, in one line, as the right class of their SDK; nothing is logged."""

import asyncio
import json
import logging
from collections.abc import Iterator, Mapping
from http.client import HTTPConnection
from pathlib import Path
from time import monotonic
from typing import Any

import anthropic
import openai
import pytest

from everlong.gateway.keys.records import hashed
from everlong.llm import ScriptedServer
from everlong.wire import format_named
from tests.gateway.running import RunningGateway
from tests.gateway.talking import FORMATS, PATHS, RawClient, body_of, told_error
from tests.sdk_clients import closed_later

FIELD = {fmt: format_named(fmt).api.messages for fmt in FORMATS}
WITH_SDK = ("openai-chat", "openai-responses", "anthropic")
SECRET = "the-quick-secret-7f3a"  # stands in every body: no log may repeat it
KEY = "el-" + "k" * 40
DEEP = b"[" * 100_000 + b"]" * 100_000
LARGEST = 1_000_000


@pytest.fixture(scope="module")
def upstream() -> Iterator[ScriptedServer]:
    with ScriptedServer() as server:
        yield server


@pytest.fixture(scope="module")
def gateway(upstream: ScriptedServer) -> Iterator[RunningGateway]:
    with RunningGateway(upstream=upstream.url, largest_body=LARGEST, body_timeout=0.2) as gateway:
        yield gateway


@pytest.fixture(scope="module")
def locked(upstream: ScriptedServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningGateway]:
    """A gateway that asks for a key and has one upstream for some models only."""
    file: Path = tmp_path_factory.mktemp("config") / "everlong.toml"
    file.write_text(
        f'[[upstreams]]\nurl = "{upstream.url}"\nkey = "sk-upstream-secret"\nmodels = ["gpt-*", "claude-*"]\n'
        f"formats = {json.dumps(FORMATS)}\n"
        f'[[keys]]\nname = "team"\nhash = "{hashed(KEY)}"\n'
    )
    with RunningGateway(file=file) as gateway:
        yield gateway


class Lines(logging.Handler):
    """Everything that is logged, as text."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> Iterator[list[str]]:
    """What is logged while a test runs, access lines too; the line of a request comes right after its answer."""
    for name in ("everlong", "everlong.access", "uvicorn", "uvicorn.error", "asyncio"):
        caplog.set_level(logging.INFO, logger=name)
    handler = Lines()
    logging.getLogger().addHandler(handler)
    yield handler.lines
    until = monotonic() + 60
    while not any('"path": "/' in line for line in list(handler.lines)):
        assert monotonic() < until, "no line of the request was logged"
    logging.getLogger().removeHandler(handler)
    assert not [line for line in handler.lines if SECRET in line or KEY in line or "Traceback" in line]


def asked(gateway: RunningGateway, path: str, body: bytes, headers: Mapping[str, str]) -> tuple[int, bytes]:
    connection = HTTPConnection("127.0.0.1", gateway.port, timeout=20)
    try:
        connection.request("POST", path, body, {"x-api-key": SECRET, **headers})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def told(fmt: str, body: bytes) -> str:
    """The message of an error, which has the form of the client's format."""
    value, message = json.loads(body), told_error(fmt, body)
    if fmt == "anthropic":
        assert (value["type"], set(value["error"])) == ("error", {"type", "message"})
    elif fmt in WITH_SDK:
        assert set(value["error"]) == {"message", "type", "param", "code"}
    elif fmt == "gemini":
        assert set(value["error"]) == {"message", "code", "status"}
    assert "\n" not in message
    assert "Traceback" not in message
    assert 'File "' not in message
    assert SECRET not in message
    return message


def whole(fmt: str, **fields: Any) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(body_of(fmt, [{"role": "user", "content": SECRET}]))
    return {name: value for name, value in (body | fields).items() if value is not ...}


def wrong(fmt: str) -> Iterator[tuple[str, bytes, int]]:
    """Name, body and status of what nobody could answer."""
    field = FIELD[fmt]
    yield "not JSON", SECRET.encode(), 400
    yield "empty", b"", 400
    yield "half", body_of(fmt)[:-3], 400
    for name, value in (("a list", [SECRET]), ("text", SECRET), ("a number", 7), ("null", None)):
        yield f"a body that is {name}", json.dumps(value).encode(), 400
    api = format_named(fmt).api
    for name, value in (("a number", 7), ("true", True)):
        yield f"messages that are {name}", json.dumps(whole(fmt, **{field: value})).encode(), 400
    if not api.loads:
        yield "no messages at all", json.dumps(whole(fmt, **{field: ...})).encode(), 400
        yield "messages that are null", json.dumps(whole(fmt, **{field: None})).encode(), 400
    if not api.lone:
        yield "messages that are an object", json.dumps(whole(fmt, **{field: {"a": SECRET}})).encode(), 400
        yield "tools that are an object", json.dumps(whole(fmt, tools={SECRET: 1})).encode(), 400
    if "{model}" not in api.path:
        yield "no model", json.dumps(whole(fmt, model=...)).encode(), 400
        yield "a model's name without end", json.dumps(whole(fmt, model="gpt-" * 1_000)).encode(), 404
        yield "a model that is a number", json.dumps(whole(fmt, model=7)).encode(), 400
        yield "a model without a name", json.dumps(whole(fmt, model=" ")).encode(), 400
        yield "no UTF-8 in a name", body_of(fmt).replace(b'"model"', b'"\xff"'), 400
    yield "nested for ever", body_of(fmt)[:-1] + b', "x": ' + DEEP + b"}", 400
    yield "messages nested for ever", json.dumps(whole(fmt, **{field: "@"})).encode().replace(b'"@"', DEEP), 400
    yield "too large", json.dumps(whole(fmt, x="x" * LARGEST)).encode(), 413


WRONG = [(fmt, *row) for fmt in FORMATS for row in wrong(fmt)]


@pytest.mark.parametrize("mode", ["off", "auto"])
@pytest.mark.parametrize(("fmt", "name", "body", "status"), WRONG, ids=[f"{row[0]} {row[1]}" for row in WRONG])
def test_what_nobody_could_answer_is_refused_in_the_clients_own_words(
    gateway: RunningGateway, logged: list[str], fmt: str, name: str, body: bytes, status: int, mode: str
) -> None:
    got, answer = asked(gateway, PATHS[fmt], body, {"x-everlong-mode": mode})
    assert got == status
    assert told(fmt, answer), name
    assert len(answer) < 1_000


def odd(fmt: str) -> Iterator[tuple[str, bytes]]:
    """What a provider may take: it is not for the gateway to refuse."""
    field = FIELD[fmt]
    yield "half a surrogate pair", json.dumps(whole(fmt, **{field: [{"role": "user", "content": "a\ud800"}]})).encode()
    yield "NaN", json.dumps(whole(fmt, temperature=float("nan"))).encode()
    yield "a number of 400 digits", json.dumps(whole(fmt, seed=10**399)).encode()
    yield "a field twice", body_of(fmt)[:-1] + b', "x": 1, "x": 2}'
    yield "nested 900 deep", body_of(fmt)[:-1] + b', "x": ' + b"[" * 900 + b"]" * 900 + b"}"
    yield "no messages", json.dumps(whole(fmt, **{field: []})).encode()
    block = [{"type": "hologram", "of": "a boat"}]
    odd = {"content": "a boat", "hologram": block} if fmt == "ollama" else {"content": block}  # its content is text
    yield "an unknown block", json.dumps(whole(fmt, **{field: [{"role": "user", **odd}]})).encode()
    yield "a byte order mark", b"\xef\xbb\xbf" + body_of(fmt)
    yield "tools without names", json.dumps(whole(fmt, tools=[{}])).encode()


ODD = [(fmt, *row) for fmt in FORMATS for row in odd(fmt)]


@pytest.mark.parametrize("mode", ["off", "auto"])
@pytest.mark.parametrize(("fmt", "name", "body"), ODD, ids=[f"{row[0]} {row[1]}" for row in ODD])
def test_what_a_provider_may_take_is_passed_on(
    gateway: RunningGateway, upstream: ScriptedServer, fmt: str, name: str, body: bytes, mode: str
) -> None:
    before = len(upstream.requests)
    status, answer = asked(gateway, PATHS[fmt], body, {"x-everlong-mode": mode})
    assert (status, len(upstream.requests)) == (200, before + 1), (name, answer)
    if mode == "off":
        assert upstream.requests[-1].body == body


# --- who asks --------------------------------------------------------------------------------------

KEYS = {
    "no key": ({}, 401),
    "a wrong key": ({"authorization": f"Bearer {SECRET}"}, 401),
    "two different keys": ({"authorization": f"Bearer {KEY}", "x-api-key": SECRET}, 400),
    "an unknown mode": ({"authorization": f"Bearer {KEY}", "x-everlong-mode": "fast"}, 400),
    "a name too long": ({"authorization": f"Bearer {KEY}", "x-everlong-thread": "n" * 201}, 400),
    "packed": ({"authorization": f"Bearer {KEY}", "content-encoding": "gzip"}, 415),
}


@pytest.mark.parametrize("name", KEYS)
@pytest.mark.parametrize("fmt", FORMATS)
def test_headers_that_are_wrong_are_told_so(locked: RunningGateway, logged: list[str], fmt: str, name: str) -> None:
    headers, status = KEYS[name]
    connection = HTTPConnection("127.0.0.1", locked.port, timeout=20)
    connection.request("POST", PATHS[fmt], json.dumps(whole(fmt)), headers)
    answer = connection.getresponse()
    assert answer.status == status
    assert KEY not in told(fmt, answer.read())
    connection.close()


@pytest.mark.parametrize("fmt", FORMATS)
def test_a_model_that_nobody_has_is_404(locked: RunningGateway, logged: list[str], fmt: str) -> None:
    body = json.dumps(whole(fmt, model="mistral-" + "x" * 5_000)).encode()
    connection = HTTPConnection("127.0.0.1", locked.port, timeout=20)
    path = PATHS[fmt].replace("gpt-4o", "mistral-" + "x" * 900)
    connection.request("POST", path, body, {"authorization": f"Bearer {KEY}"})
    answer = connection.getresponse()
    assert answer.status == 404
    message = told(fmt, answer.read())
    assert "mistral-" in message
    assert len(message) < 400
    connection.close()


# --- what the SDKs make of it ------------------------------------------------------------------------

SDK_ERRORS: list[tuple[str, Any, str]] = [
    ("wrong type", {"messages": 7, "input": 7}, "BadRequestError"),
    ("unknown model", {"model": "mistral-large"}, "NotFoundError"),
    ("no model", {"model": None}, "BadRequestError"),
]


@pytest.mark.parametrize(("name", "fields", "error"), SDK_ERRORS, ids=[row[0] for row in SDK_ERRORS])
@pytest.mark.parametrize("fmt", WITH_SDK)
def test_the_sdk_raises_its_own_class(locked: RunningGateway, fmt: str, name: str, fields: Any, error: str) -> None:
    with pytest.raises((openai.APIStatusError, anthropic.APIStatusError)) as raised:
        sdk(fmt, locked, KEY).post(sdk_path(fmt), body=whole(fmt) | fields, cast_to=object)
    assert type(raised.value).__name__ == error, name
    assert raised.value.body


@pytest.mark.parametrize("fmt", WITH_SDK)
def test_the_sdk_raises_its_own_class_for_a_wrong_key_and_a_body_too_large(
    locked: RunningGateway, gateway: RunningGateway, fmt: str
) -> None:
    with pytest.raises((openai.AuthenticationError, anthropic.AuthenticationError)):
        sdk(fmt, locked, "el-wrong").post(sdk_path(fmt), body=whole(fmt), cast_to=object)
    with pytest.raises((openai.APIStatusError, anthropic.APIStatusError)) as raised:
        sdk(fmt, gateway, "k").post(sdk_path(fmt), body=whole(fmt, x="x" * 20_000_000), cast_to=object)
    assert raised.value.status_code == 413


def sdk(fmt: str, gateway: RunningGateway, key: str) -> Any:
    if fmt == "anthropic":
        return closed_later(anthropic.Anthropic(base_url=gateway.address, api_key=key, max_retries=0))
    return closed_later(openai.OpenAI(base_url=gateway.url, api_key=key, max_retries=0))


def sdk_path(fmt: str) -> str:
    return PATHS[fmt] if fmt == "anthropic" else PATHS[fmt].removeprefix("/v1")


# --- lengths that lie --------------------------------------------------------------------------------


def talked(gateway: RunningGateway, data: bytes) -> tuple[int, bytes]:
    async def talk() -> tuple[int, bytes]:
        async with RawClient(gateway.port) as client:
            client.write(data)
            status, _, body = await client.answer()
            return status, body

    return asyncio.run(asyncio.wait_for(talk(), 20))


HEAD = b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\n"


def test_a_body_shorter_than_it_says_is_not_waited_for_long(gateway: RunningGateway) -> None:
    status, body = talked(gateway, HEAD + b"content-length: 900\r\n\r\n" + body_of("openai-chat"))
    assert status == 408
    assert "did not arrive" in told("openai-chat", body)


def test_a_body_that_never_says_its_length_is_stopped_at_the_limit(gateway: RunningGateway) -> None:
    piece = b"10000\r\n" + b"x" * 65_536 + b"\r\n"
    status, body = talked(gateway, HEAD + b"transfer-encoding: chunked\r\n\r\n" + piece * 16)
    assert status == 413
    assert "at most 1,000,000 bytes" in told("openai-chat", body)


def test_a_length_of_100_megabytes_is_refused_before_it_is_sent(gateway: RunningGateway) -> None:
    status, body = talked(gateway, HEAD + b"expect: 100-continue\r\ncontent-length: 100000000\r\n\r\n")
    assert status == 413
    assert told("openai-chat", body)


def test_what_follows_a_body_that_is_longer_than_it_says_is_no_part_of_it(gateway: RunningGateway) -> None:
    status, body = talked(gateway, HEAD + b"content-length: 2\r\n\r\n{}" + b'"model": "gpt-4o"}')
    assert status == 400
    assert body == b"Invalid HTTP request received." or "model is missing" in told("openai-chat", body)
