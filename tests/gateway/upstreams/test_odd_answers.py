"""Whatever an upstream sends, a client gets a clean answer, and the log says who ended the request."""

import gzip
import json
import re
import zlib
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from tests.gateway.odd_upstream import WAYS, Got, Odd, odd_upstream
from tests.gateway.raw_upstream import CHUNKED, chunk, response
from tests.gateway.talking import events_of, whole_of

JSON = "content-type: application/json"
OK = whole_of("openai-chat")
EVENTS = b"".join(events_of("openai-chat"))
PAGE = b"<script>alert(1)</script>"
LENGTH = f"content-length: {len(OK)}"
EVIL = "https://evil.example/"
NO_ANSWER = b"HTTP/1.1 100 Continue\r\n\r\n"
#: What a browser or a proxy would do something with, and what only we say.
FORBIDDEN = (
    "access-control-allow-origin: *",
    "alt-svc: h3=:1",
    "clear-site-data: *",
    "content-security-policy-report-only: x",
    "link: </a>; rel=preload",
    f"location: {EVIL}",
    f"refresh: 0; url={EVIL}",
    "report-to: {}",
    "server: nginx",
    "service-worker-allowed: /",
    "set-cookie: a=b; path=/",
    "sourcemap: /a.map",
    "strict-transport-security: max-age=1",
    "www-authenticate: Basic realm=x",
    "x-everlong-request: mine",
    "x-everlong-tokens-before: 1",
    "x-unheard-of: 1",
)
PASSING = (
    "x-request-id: r",
    "x-ratelimit-remaining: 9",
    "retry-after-ms: 7",
    "openai-model: m",
    "x-should-retry: true",
)


def head(*lines: str) -> bytes:
    return "\r\n".join(["HTTP/1.1 200 OK", *lines, "", ""]).encode("latin-1")


def packed(body: bytes, encoding: str) -> bytes:
    return response(body, more=(JSON, f"content-encoding: {encoding}"))


WHOLE, UPSTREAM = "200 answer", "502 upstream"
#: Where the client of HTTP decides how strict it is, and packets what it sees first: one of both.
EITHER = f"{WHOLE}|{UPSTREAM}"
BROKEN = "200! 502 upstream"  # the head was out already, and the connection breaks
EVENT = "200 502 upstream"  # the head was out already, and an event tells of it
#: An answer, and what comes of it: the status, and what the log has where that differs. One for all ways, or for each.
ANSWERS: dict[str, tuple[bytes, str | tuple[str, str, str, str]]] = {
    "whole": (response(OK, more=(JSON,)), WHOLE),
    "status 999": (response(OK, status="999 Odd"), UPSTREAM),
    "status 600": (response(OK, status="600 Odd"), UPSTREAM),
    "status 099": (response(OK, status="099 Odd"), UPSTREAM),
    "status 000": (response(OK, status="000 Odd"), UPSTREAM),
    "status 1000": (response(OK, status="1000 Odd"), UPSTREAM),
    "a negative status": (response(OK, status="-1 Odd"), UPSTREAM),
    "no status": (b"HTTP/1.1  OK\r\ncontent-length: 0\r\n\r\n", UPSTREAM),
    "another protocol": (b"HTTP/1.1 101 Switching\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n", UPSTREAM),
    "100 and no more": (NO_ANSWER, UPSTREAM),
    "103 before it": (b"HTTP/1.1 103 Early Hints\r\nlink: </a.js>\r\n\r\n" + response(OK, more=(JSON,)), WHOLE),
    "an odd reason": (response(OK, status="200 \x07\xff<script>", more=(JSON,)), EITHER),
    "no reason": (response(OK, status="200", more=(JSON,)), WHOLE),
    "status 599": (response(b"{}", status="599 Odd"), "599 answer"),
    "status 451": (response(b'{"error":{"message":"no"}}', status="451 No", more=(JSON,)), "451 answer"),
    "no content": (response(b"", status="204 No Content"), (UPSTREAM, UPSTREAM, UPSTREAM, "204 answer")),
    "no content, and some": (response(OK, status="204 No Content"), (*(UPSTREAM,) * 3, f"204 answer|{UPSTREAM}")),
    "reset content, and some": (response(OK, status="205 Reset"), (*(UPSTREAM,) * 3, "205 answer")),
    "not modified, and a body": (response(OK, status="304 Same"), (*(UPSTREAM,) * 3, f"304 answer|{UPSTREAM}")),
    "moved": (response(b"", status="301 Moved", more=(f"location: {EVIL}",)), UPSTREAM),
    "several": (response(b"", status="300 Many", more=(f"location: {EVIL}",)), UPSTREAM),
    "HTTP/0.9": (PAGE, UPSTREAM),
    "HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", UPSTREAM),
    "HTTP/9.9": (b"HTTP/9.9 200 OK\r\ncontent-length: 2\r\n\r\n{}", UPSTREAM),
    "HTTP/1.0": (b"HTTP/1.0 200 OK\r\ncontent-type: application/json\r\n\r\n" + OK, WHOLE),
    "nothing": (b"", UPSTREAM),
    "half a head": (b"HTTP/1.1 200 OK\r\ncontent-ty", UPSTREAM),
    "a head alone": (head(JSON, "content-length: 5"), UPSTREAM),
    "another kind of server": (b"SSH-2.0-OpenSSH\r\n\r\n", UPSTREAM),
    "a body too short": (head(JSON, f"content-length: {len(OK) + 9}") + OK, UPSTREAM),
    "a body too long": (head(JSON, LENGTH) + OK + b"more", EITHER),
    "a negative length": (head(JSON, "content-length: -5") + OK, UPSTREAM),
    "two lengths": (head(JSON, LENGTH, "content-length: 3") + OK, UPSTREAM),
    "a length twice": (head(JSON, LENGTH, LENGTH) + OK, EITHER),
    "a length and chunks": (head(JSON, LENGTH, "transfer-encoding: chunked") + chunk(OK) + chunk(b""), EITHER),
    "a broken chunk": (head(JSON, "transfer-encoding: chunked") + b"zz\r\n" + OK, UPSTREAM),
    "a broken chunk at the end": (head(JSON, "transfer-encoding: chunked") + chunk(OK) + b"zz\r\n\r\n", UPSTREAM),
    "no last chunk": (head(JSON, "transfer-encoding: chunked") + chunk(OK), UPSTREAM),
    "a huge chunk": (head(JSON, "transfer-encoding: chunked") + b"ffffffffffffffffff\r\n" + OK, UPSTREAM),
    "trailers": (
        head(JSON, "transfer-encoding: chunked") + chunk(OK) + b"0\r\nset-cookie: a=b\r\nx-everlong-request: 1\r\n\r\n",
        WHOLE,
    ),
    "an unknown transfer": (head(JSON, "transfer-encoding: gzip") + OK, EITHER),
    "a control character": (head(JSON, LENGTH, "x-request-id: a\x01b") + OK, EITHER),
    "a null character": (head(JSON, LENGTH, "x-request-id: a\x00b") + OK, EITHER),
    "a delete character": (head(JSON, LENGTH, "x-request-id: a\x7fb") + OK, EITHER),
    "half a line end": (head(JSON, LENGTH, "x-request-id: a\rset-cookie: a=b") + OK, EITHER),
    "other line ends": (head(JSON, LENGTH).replace(b"\r\n", b"\n") + OK, EITHER),
    "a folded line": (head(JSON, LENGTH, "x-request-id: a", "  set-cookie: b") + OK, EITHER),
    "a name with a blank": (head(JSON, LENGTH, "x request: a") + OK, EITHER),
    "no name": (head(JSON, LENGTH, ": a") + OK, EITHER),
    "no colon": (head(JSON, LENGTH, "justtext") + OK, EITHER),
    "a thousand headers": (head(JSON, LENGTH, *(f"x-ratelimit-{n}: {n}" for n in range(1_000))) + OK, EITHER),
    "a hundred headers": (head(JSON, LENGTH, *(f"x-ratelimit-{n}: {n}" for n in range(100))) + OK, WHOLE),
    "a long header": (head(JSON, LENGTH, "x-request-id: " + "a" * 50_000) + OK, WHOLE),
    "a longer header": (head(JSON, LENGTH, "x-request-id: " + "a" * 500_000) + OK, UPSTREAM),
    "a long head": (head(JSON, LENGTH, *(f"x-{n}: " + "a" * 60_000 for n in range(50))) + OK, UPSTREAM),
    "no type": (head(LENGTH) + OK, WHOLE),
    "two types": (head(JSON, "content-type: text/html", LENGTH) + OK, EITHER),
    "a page": (response(PAGE, more=("content-type: text/html",)), (UPSTREAM, UPSTREAM, WHOLE, WHOLE)),
    "a drawing": (response(b"<svg/>", more=("content-type: image/svg+xml",)), (UPSTREAM, UPSTREAM, WHOLE, WHOLE)),
    "a page that is an answer": (response(OK, more=("content-type: text/html; charset=utf-7",)), WHOLE),
    "an empty answer": (response(b"", more=(JSON,)), (UPSTREAM, UPSTREAM, WHOLE, WHOLE)),
    "a list": (response(b"[1]", more=(JSON,)), (UPSTREAM, UPSTREAM, WHOLE, WHOLE)),
    "headers for browsers": (response(OK, more=(JSON, *FORBIDDEN, *PASSING)), WHOLE),
    "gzip": (packed(gzip.compress(OK), "gzip"), WHOLE),
    "gzip in two parts": (packed(gzip.compress(OK[:9]) + gzip.compress(OK[9:]), "gzip"), WHOLE),
    "gzip in a thousand parts": (packed(gzip.compress(b"") * 1_000, "gzip"), UPSTREAM),
    "half of gzip": (packed(gzip.compress(OK)[:-20], "gzip"), UPSTREAM),
    "no gzip": (packed(OK, "gzip"), UPSTREAM),
    "gzip twice": (packed(gzip.compress(gzip.compress(OK)), "gzip, gzip"), UPSTREAM),
    "brotli": (packed(OK, "br"), UPSTREAM),
    "deflate": (packed(zlib.compress(OK), "deflate"), WHOLE),
    "deflate without its head": (packed(zlib.compress(OK)[2:-4], "deflate"), WHOLE),
    "a stream": (CHUNKED + chunk(EVENTS) + chunk(b""), WHOLE),
    "half a stream": (CHUNKED + chunk(EVENTS[:300]), (EVENT, EVENT, EVENT, BROKEN)),
    "an empty stream": (CHUNKED + chunk(b""), (UPSTREAM, UPSTREAM, EVENT, WHOLE)),
    "a stream without a byte": (CHUNKED, (UPSTREAM, UPSTREAM, EVENT, BROKEN)),
    "a stream of other bytes": (CHUNKED + chunk(b"\x00\xff" * 50) + chunk(b""), (UPSTREAM, UPSTREAM, EVENT, WHOLE)),
    "an error as a stream": (CHUNKED + chunk(b'data: {"error":{"message":"no"}}\n\n') + chunk(b""), WHOLE),
}


@pytest.fixture(scope="module")
def odd() -> Iterator[Odd]:
    with odd_upstream() as running:
        yield running


def outcome(got: Got) -> str:
    """The status and what the log has; of both the status once if it is the same."""
    status = str(got.status) if got.whole else f"{got.status}!"
    return got.logged if got.logged.startswith(f"{status} ") else f"{status} {got.logged}"


SAFE = re.compile(r"application/json|application/octet-stream|text/plain|text/event-stream")


def assert_clean(got: Got) -> None:
    """What holds for every answer, whatever its upstream sent."""
    assert 200 <= got.status <= 599
    assert got.status != 500
    assert SAFE.match(got.headers["content-type"]), got.headers
    names = {name.lower() for name in got.headers}
    assert not names & {line.partition(":")[0] for line in FORBIDDEN if not line.startswith("x-everlong-")}
    assert got.headers["x-everlong-request"] == got.report.id
    assert not re.search(r"[\x00-\x08\x0a-\x1f\x7f]", "".join(got.headers.values()))
    if got.report.ended_by == "upstream" and got.status == 502:
        assert "\n" not in got.error["message"]
        assert got.headers["content-type"] == "application/json"


@pytest.mark.parametrize("name", ANSWERS)
def test_an_odd_answer_becomes_a_clean_one_and_the_log_says_who_ended_it(odd: Odd, name: str) -> None:
    answer, expected = ANSWERS[name]
    for way, come_of_it in zip(WAYS, (expected,) * len(WAYS) if isinstance(expected, str) else expected, strict=True):
        got = odd.ask(way, answer)
        assert outcome(got) in come_of_it.split("|"), way
        assert_clean(got)


def test_headers_that_programs_read_pass_and_no_others(odd: Odd) -> None:
    got = odd.ask("passed", ANSWERS["headers for browsers"][0])
    told = {line.partition(": ")[0]: line.partition(": ")[2] for line in PASSING}
    assert {name: got.headers[name] for name in told} == told
    assert got.headers["x-everlong-tokens-before"] == "0"


def test_what_was_read_as_an_answer_is_told_as_one(odd: Odd) -> None:
    for name in ("no type", "a page that is an answer"):
        got = odd.ask("plain", ANSWERS[name][0])
        assert (got.headers["content-type"], json.loads(got.body)["object"]) == ("application/json", "chat.completion")


def test_metrics_count_who_ended_requests(odd: Odd) -> None:
    def count(by: str) -> float:
        text = odd.gateway.services.metrics.written()[0].decode()
        found = re.search(rf'everlong_requests_ended_total\{{by="{by}"\}} (\S+)', text)
        return float(found[1]) if found else 0.0

    before = {by: count(by) for by in ("answer", "upstream", "client")}
    odd.ask("plain", ANSWERS["whole"][0])
    odd.ask("stream", ANSWERS["half a stream"][0])
    odd.ask("passed", ANSWERS["nothing"][0])
    after = {by: count(by) - before[by] for by in before}
    assert after == {"answer": 1, "upstream": 2, "client": 0}


TOKENS = st.text(st.characters(min_codepoint=0x20, max_codepoint=0xFF), max_size=12)
NAMES = (
    st.sampled_from(
        [
            "content-type",
            "content-length",
            "transfer-encoding",
            "content-encoding",
            "connection",
            "x-request-id",
            "set-cookie",
        ]
    )
    | TOKENS
)
VALUES = st.sampled_from(["chunked", "gzip", "0", "2", "text/event-stream", "application/json", "close"]) | TOKENS
STATUSES = st.integers(-1, 1_100).map(str) | TOKENS
VERSIONS = st.sampled_from(["HTTP/1.1", "HTTP/1.1", "HTTP/1.1", "HTTP/1.0", "HTTP/3", "http/1.1", ""])
BODIES = st.sampled_from([b"", b"{}", OK, EVENTS, chunk(OK) + chunk(b""), chunk(EVENTS), PAGE]) | st.binary(max_size=40)


@given(
    way=st.sampled_from(list(WAYS)),
    line=st.tuples(VERSIONS, STATUSES, TOKENS),
    headers=st.lists(st.tuples(NAMES, VALUES), max_size=6),
    ends=st.sampled_from(["\r\n", "\r\n", "\n", "\r"]),
    body=BODIES,
)
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_head_of_an_upstream_leaves_a_client_without_an_answer(
    odd: Odd, way: str, line: tuple[str, str, str], headers: list[tuple[str, str]], ends: str, body: bytes
) -> None:
    lines = [" ".join(line), *(f"{name}: {value}" for name, value in headers), "", ""]
    got = odd.ask(way, ends.join(lines).encode("latin-1") + body)
    assert_clean(got)
    assert got.report.ended_by in ("answer", "upstream")
    if got.report.ended_by == "upstream":
        assert got.report.status in (502, 504)
