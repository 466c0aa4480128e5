"""Refusals in the client's own format, read by the SDKs that clients use."""

import json
from typing import Any

import anthropic
import httpx2
import openai
import pytest
from hypothesis import given, strategies as st
from openai.types.responses import ResponseFailedEvent

from everlong.errors import (
    BudgetImpossible,
    ContextOverflow,
    EverlongError,
    InputError,
    NotRecovered,
    ProviderError,
    RateLimited,
    Refused,
    StoreBusy,
    WireError,
)
from everlong.gateway.exchange.response import OVERFLOW, error_events, status_of as answer_to
from everlong.gateway.surfaces import FORMATS as SERVED
from everlong.wire import classify, json_bytes
from everlong.wire.formats.anthropic.server import ERROR_TYPES as ANTHROPIC_TYPES
from everlong.wire.formats.openai_errors import ERROR_TYPES as OPENAI_TYPES
from everlong.wire.refusals.signs import Kind

CHAT, RESPONSES, ANTHROPIC = "openai-chat", "openai-responses", "anthropic"
FORMATS = tuple(SERVED)
WITH_SDK = (CHAT, RESPONSES, ANTHROPIC)


def refusal_body(fmt: str, status: int, kind: str, message: str) -> bytes:
    return json_bytes(SERVED[fmt].server.errors.body(status, kind, message))


def refusal_event(fmt: str, kind: str, message: str, status: int = 500, sequence: int = 0) -> bytes:
    return error_events(SERVED[fmt].server.errors, status, kind, message, sequence)


def status_of(error: EverlongError, fmt: str) -> tuple[int, str, str]:
    return answer_to(error, SERVED[fmt].server.errors)


def answering(status: int, body: bytes, kind: str) -> httpx2.Client:
    """A connection on which this comes back, whatever is asked."""
    answer = httpx2.Response(status, content=body, headers={"content-type": kind})
    return httpx2.Client(transport=httpx2.MockTransport(lambda _: answer))


def ask(fmt: str, status: int, body: bytes, *, stream: bool) -> list[Any]:
    """What the SDK of a format makes of an answer."""
    http = answering(status, body, "text/event-stream" if stream else "application/json")
    said: Any = [{"role": "user", "content": "hi"}]
    with http:
        if fmt == ANTHROPIC:
            client = anthropic.Anthropic(api_key="k", http_client=http, max_retries=0)
            got: Any = client.messages.create(model="m", max_tokens=5, messages=said, stream=stream)
        else:
            sdk = openai.OpenAI(api_key="k", http_client=http, max_retries=0)
            if fmt == CHAT:
                got = sdk.chat.completions.create(model="m", messages=said, stream=stream)
            else:
                got = sdk.responses.create(model="m", input=said, stream=stream)
        return list(got)


# --- bodies ------------------------------------------------------------------------------------

RAISED = [
    (400, openai.BadRequestError, anthropic.BadRequestError),
    (401, openai.AuthenticationError, anthropic.AuthenticationError),
    (403, openai.PermissionDeniedError, anthropic.PermissionDeniedError),
    (404, openai.NotFoundError, anthropic.NotFoundError),
    (413, openai.APIStatusError, anthropic.APIStatusError),
    (429, openai.RateLimitError, anthropic.RateLimitError),
    (500, openai.InternalServerError, anthropic.InternalServerError),
    (502, openai.InternalServerError, anthropic.InternalServerError),
    (503, openai.InternalServerError, anthropic.InternalServerError),
    (529, openai.InternalServerError, anthropic.InternalServerError),
]


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "streaming"])
@pytest.mark.parametrize(("status", "by_openai", "by_anthropic"), RAISED, ids=[str(row[0]) for row in RAISED])
def test_the_sdks_raise_what_they_raise_for_the_provider(
    status: int, by_openai: type[openai.APIStatusError], by_anthropic: type[anthropic.APIStatusError], stream: bool
) -> None:
    for fmt in (CHAT, RESPONSES):
        with pytest.raises(by_openai, match="some reason") as raised:
            ask(fmt, status, refusal_body(fmt, status, "some_kind", "some reason"), stream=stream)
        assert (raised.value.type, raised.value.status_code) == (OPENAI_TYPES[status], status)
        assert raised.value.code
    with pytest.raises(by_anthropic, match="some reason") as told:
        ask(ANTHROPIC, status, refusal_body(ANTHROPIC, status, "some_kind", "some reason"), stream=stream)
    assert (told.value.type, told.value.status_code) == (ANTHROPIC_TYPES[status], status)


BODIES = [
    (CHAT, 400, "bad_path", "invalid_request_error", "bad_path"),
    (CHAT, 401, "invalid_key", "authentication_error", "invalid_api_key"),
    (CHAT, 404, "unknown_model", "not_found_error", "model_not_found"),
    (RESPONSES, 429, "too_many_requests", "rate_limit_error", "rate_limit_exceeded"),
    (RESPONSES, 400, OVERFLOW, "invalid_request_error", "context_length_exceeded"),
    (CHAT, 502, "upstream_error", "server_error", "server_error"),
    (CHAT, 503, "storage", "server_error", "server_is_overloaded"),
    (CHAT, 418, "", "invalid_request_error", "invalid_request"),
    (CHAT, 599, "odd", "server_error", "server_error"),
]


@pytest.mark.parametrize(("fmt", "status", "kind", "named", "code"), BODIES, ids=[f"{r[1]}-{r[2]}" for r in BODIES])
def test_openai_bodies(fmt: str, status: int, kind: str, named: str, code: str) -> None:
    body = json.loads(refusal_body(fmt, status, kind, "no"))
    assert body == {"error": {"message": "no", "type": named, "param": None, "code": code}}


@pytest.mark.parametrize(
    ("status", "named"),
    [(400, "invalid_request_error"), (413, "request_too_large"), (429, "rate_limit_error"), (529, "overloaded_error"),
     (502, "api_error"), (418, "invalid_request_error"), (599, "api_error")],
)  # fmt: skip
def test_anthropic_bodies(status: int, named: str) -> None:
    body = json.loads(refusal_body(ANTHROPIC, status, "any", "no"))
    assert body == {"type": "error", "error": {"type": named, "message": "no"}}


# --- events ------------------------------------------------------------------------------------

BEGUN: dict[str, bytes] = {
    CHAT: b'data: {"id":"1","object":"chat.completion.chunk","created":1,"model":"m","choices":'
    b'[{"index":0,"delta":{"content":"Hel"}}]}\n\n',
    RESPONSES: b'event: response.output_text.delta\ndata: {"type":"response.output_text.delta","sequence_number":0,'
    b'"item_id":"1","output_index":0,"content_index":0,"delta":"Hel","logprobs":[]}\n\n',
    ANTHROPIC: b'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":'
    b'{"type":"text_delta","text":"Hel"}}\n\n',
}
KEPT_ALIVE = b": keep-alive\n\n"


@pytest.mark.parametrize("before", ["", "comments", "text"])
@pytest.mark.parametrize("fmt", WITH_SDK)
def test_the_sdks_raise_on_an_event_in_a_stream(fmt: str, before: str) -> None:
    begun = {"": b"", "comments": KEPT_ALIVE * 2, "text": BEGUN[fmt]}[before]
    stream = begun + refusal_event(fmt, "upstream_error", "the upstream is gone", status=502)
    with pytest.raises((openai.APIError, anthropic.APIError), match="the upstream is gone"):
        ask(fmt, 200, stream, stream=True)


@pytest.mark.parametrize("fmt", [CHAT, RESPONSES])
def test_the_code_of_an_event_reaches_programs(fmt: str) -> None:
    with pytest.raises(openai.APIError) as raised:
        ask(fmt, 200, refusal_event(fmt, OVERFLOW, "too long", status=400), stream=True)
    assert (raised.value.code, raised.value.type) == ("context_length_exceeded", "invalid_request_error")


def test_the_type_of_an_event_reaches_programs() -> None:
    with pytest.raises(anthropic.APIStatusError) as raised:
        ask(ANTHROPIC, 200, refusal_event(ANTHROPIC, "storage", "busy", status=529), stream=True)
    assert raised.value.type == "overloaded_error"


def test_a_responses_stream_ends_with_a_failed_response() -> None:
    events = refusal_event(RESPONSES, OVERFLOW, "too long", status=400, sequence=7).decode().split("\n\n")
    assert [event.partition("\n")[0] for event in events] == ["event: error", "event: response.failed", ""]
    first, last = (json.loads(event.partition("data: ")[2]) for event in events[:2])
    assert (first["sequence_number"], last["sequence_number"]) == (7, 8)
    assert (first["code"], first["error"]["code"]) == (OVERFLOW, OVERFLOW)
    assert last["response"]["error"] == {"code": OVERFLOW, "message": "too long"}
    last["response"]["error"]["code"] = "server_error"  # the SDK's list of codes is shorter than OpenAI's own
    assert ResponseFailedEvent.model_validate(last).response.status == "failed"


def test_a_chat_stream_ends_as_chat_streams_end() -> None:
    assert refusal_event(CHAT, "", "no").endswith(b"\n\ndata: [DONE]\n\n")


@given(st.sampled_from(FORMATS), st.text(max_size=40), st.integers(400, 599))
def test_no_message_breaks_out_of_its_event(fmt: str, message: str, status: int) -> None:
    events = refusal_event(fmt, "k", message, status=status)
    for line in events.removesuffix(b"data: [DONE]\n\n").split(b"\n"):
        name, _, value = line.partition(b": ")
        assert name in (b"", b"event", b"data")
        if name == b"data":
            json.loads(value)


@pytest.mark.parametrize("fmt", FORMATS)
def test_half_a_character_is_written_all_the_same(fmt: str) -> None:
    for written in (refusal_body(fmt, 400, "k", "half \ud83d"), refusal_event(fmt, "k", "half \ud83d")):
        assert b"half ?" in written


# --- errors ------------------------------------------------------------------------------------

CASES: list[tuple[str, EverlongError, int, str, str]] = [
    ("refused", Refused("no key", status=401, kind="missing_key"), 401, "missing_key", "no key"),
    (
        "wire",
        WireError("no list", fmt="anthropic", where="messages"),
        400,
        "invalid_request",
        "anthropic: no list (at ",
    ),
    ("input", InputError("no such thread"), 400, "invalid_request", "no such thread"),
    ("store", StoreBusy("/home/me/threads.db is locked"), 503, "storage", "the gateway's store"),
    ("provider", ProviderError("bad gateway", status=503), 503, "upstream_error", "bad gateway"),
    ("provider without a status", ProviderError("gone"), 502, "upstream_error", "gone"),
    ("provider that said 200", ProviderError("gone", status=200), 502, "upstream_error", "gone"),
    ("provider that said nonsense", ProviderError("gone", status=999), 502, "upstream_error", "gone"),
    ("rate", RateLimited("slow down"), 429, "too_many_requests", "slow down"),
    ("overloaded", RateLimited("slow down", status=529), 529, "too_many_requests", "slow down"),
    ("ceiling", ContextOverflow("TPM", ceiling=True, status=429), 429, "too_many_requests", "TPM"),
    ("anything else", EverlongError("at 0x7f: secret"), 500, "internal_error", "internal error in the gateway"),
]


@pytest.mark.parametrize(("error", "status", "kind", "message"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_what_is_answered_for_an_error(error: EverlongError, status: int, kind: str, message: str) -> None:
    for fmt in FORMATS:
        told = status_of(error, fmt)
        assert told[:2] == (status, kind)
        assert told[2].startswith(message)


OVERFLOWS: list[tuple[str, EverlongError]] = [
    ("ours", BudgetImpossible(8_000, [("system", 5_000), ("last user message", 4_500)])),
    ("upstream's", ContextOverflow("the prompt is long", limit=8_000, requested=9_500, status=422)),
    ("not recovered", NotRecovered("start a new conversation", limit=8_000, requested=9_500)),
]


@pytest.mark.parametrize("error", [case[1] for case in OVERFLOWS], ids=[case[0] for case in OVERFLOWS])
@pytest.mark.parametrize("fmt", FORMATS)
def test_what_does_not_fit_is_told_as_the_provider_tells_it(fmt: str, error: EverlongError) -> None:
    status, kind, message = status_of(error, fmt)
    assert (status, kind) == (400, OVERFLOW)
    assert str(error) in message
    words = {
        ANTHROPIC: "prompt is too long: 9500 tokens > 8000 maximum",
        "ollama": "the input length exceeds the context length",
        "gemini": "The input token count (9500) exceeds the maximum number of tokens allowed (8000).",
    }
    assert words.get(fmt, "maximum context length is 8000 tokens") in message
    refusal = classify(json.loads(refusal_body(fmt, status, kind, message)), status=status)
    assert (refusal.kind, refusal.limit, refusal.requested) == (Kind.OVERFLOW, 8_000, 9_500)
    if fmt not in WITH_SDK:
        return
    with pytest.raises((openai.BadRequestError, anthropic.BadRequestError), match="8000"):
        ask(fmt, status, refusal_body(fmt, status, kind, message), stream=False)


@pytest.mark.parametrize("fmt", FORMATS)
@pytest.mark.parametrize("limit", [None, 8_000])
def test_an_overflow_without_figures_is_one_all_the_same(fmt: str, limit: int | None) -> None:
    status, kind, message = status_of(ContextOverflow("no", limit=limit), fmt)
    assert "None" not in message
    refusal = classify(json.loads(refusal_body(fmt, status, kind, message)), status=status)
    assert refusal.kind is Kind.OVERFLOW


def test_the_providers_own_words_are_not_said_twice() -> None:
    said = "prompt is too long: 9500 tokens > 8000 maximum."
    assert status_of(ContextOverflow(said, limit=8_000, requested=9_500), ANTHROPIC)[2] == said
