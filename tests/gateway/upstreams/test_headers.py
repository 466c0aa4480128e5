"""Which headers of an upstream reach a client, and what a browser may make of the type."""

import re

import pytest
from hypothesis import given, strategies as st

from everlong.gateway.upstreams.headers import headers_from, safe_type, stream_framing
from everlong.wire import NDJSON, SSE
from everlong.wire.framings import JSON_ARRAY


def test_only_what_programs_read_passes() -> None:
    raw = [
        (b"Content-Type", b"application/json"),
        (b"Content-Length", b"2"),
        (b"Transfer-Encoding", b"chunked"),
        (b"Connection", b"keep-alive, x-request-id"),
        (b"X-Request-Id", b"named by connection"),
        (b"Set-Cookie", b"a=b"),
        (b"Date", b"today"),
        (b"Content-Encoding", b"gzip"),
        (b"Content-Disposition", b"inline"),
        (b"X-Ratelimit-Remaining", b" 9 "),
        (b"Retry-After", b"2"),
        (b"Anthropic-Organization-Id", b"o"),
        (b"Content-Disposition", b'attachment; filename="a.jsonl"'),
        (b"X-Everlong-Request", b"mine"),
    ]
    assert headers_from(raw) == [
        (b"content-type", b"application/json"),
        (b"x-ratelimit-remaining", b"9"),
        (b"retry-after", b"2"),
        (b"anthropic-organization-id", b"o"),
        (b"content-disposition", b'attachment; filename="a.jsonl"'),
    ]


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("application/json", "application/json"),
        ("Application/JSON; charset=utf-8", "application/json; charset=utf-8"),
        ("application/problem+json", "application/problem+json"),
        ("text/event-stream;charset=UTF-8", "text/event-stream;charset=UTF-8"),
        ("application/x-ndjson", "application/x-ndjson"),
        ("audio/mpeg", "audio/mpeg"),
        ("audio/pcm; rate=24000", "audio/pcm; rate=24000"),
        ("image/png", "image/png"),
        ("text/csv", "text/csv"),
        ("text/plain; charset=utf-7", "text/plain"),
        ("text/html", "text/plain; charset=utf-8"),
        ("text/html, application/json", "text/plain; charset=utf-8"),
        ("application/json, text/html", "application/octet-stream"),
        ("text/javascript", "text/plain; charset=utf-8"),
        ("text/css", "text/plain; charset=utf-8"),
        ("text/xml", "text/plain; charset=utf-8"),
        ("image/svg+xml", "application/octet-stream"),
        ("application/xhtml+xml", "application/octet-stream"),
        ("application/javascript", "application/octet-stream"),
        ("application/wasm", "application/octet-stream"),
        ("application/pdf", "application/octet-stream"),
        ("multipart/x-mixed-replace; boundary=a", "application/octet-stream"),
        ("audio/mpeg\x00", "application/octet-stream"),
        ("", "application/octet-stream"),
        ("json", "application/octet-stream"),
    ],
)
def test_a_type_that_a_browser_would_run_is_text_or_bytes(said: str, told: str) -> None:
    assert safe_type(said.encode()).decode() == told


RUN = re.compile(rb"html|xml|script|css|wasm|multipart|pdf")


@given(st.binary(max_size=60) | st.sampled_from([b"text/html", b"image/svg+xml"]).map(lambda each: each + b";a=b"))
def test_no_type_is_ever_one_that_runs(said: bytes) -> None:
    told = safe_type(said)
    assert not RUN.search(told.partition(b";")[0]) or told.startswith(b"audio/")
    assert not re.search(rb"[\x00-\x1f\x7f,]", told)
    assert safe_type(told) == told


@given(st.lists(st.tuples(st.binary(max_size=12), st.binary(max_size=20)), max_size=100))
def test_what_passes_can_be_written(raw: list[tuple[bytes, bytes]]) -> None:
    headers = headers_from([*raw, (b"x-ratelimit-x", b"1")])
    assert len(headers) <= 64
    assert all(re.fullmatch(rb"[a-z0-9!#$%&'*+.^_`|~-]+", name) for name, _ in headers)
    assert not any(re.search(rb"[\x00-\x08\x0a-\x1f\x7f]", value) for _, value in headers)


def test_a_stream_is_known_by_its_first_type() -> None:
    assert stream_framing([(b"Content-Type", b"text/event-stream; charset=utf-8")]) is SSE
    assert stream_framing([(b"content-type", b"application/x-ndjson")]) is NDJSON
    assert stream_framing([(b"content-type", b"application/json"), (b"content-type", b"text/event-stream")]) is None
    assert stream_framing([]) is None


def test_json_is_a_stream_where_an_array_was_asked_for() -> None:
    kind = [(b"content-type", b"application/json; charset=UTF-8")]
    assert stream_framing(kind, JSON_ARRAY) is JSON_ARRAY
    assert stream_framing(kind, NDJSON) is None
    assert stream_framing([(b"content-type", b"text/event-stream")], JSON_ARRAY) is SSE
