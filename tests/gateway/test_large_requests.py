"""Requests that were made to be heavy: read in bounded pieces, a few at a time, while all others are answered."""

import json
from collections.abc import Callable
from dataclasses import replace
from http.client import HTTPConnection
from threading import Event, Thread
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from everlong.core import Json
from everlong.engine import counter_for, forget_counts
from everlong.errors import Refused
from everlong.gateway import request as requests
from everlong.gateway.conversations.canonical import unit_of
from everlong.gateway.operations.services import HEAVY, HEAVY_AT_ONCE
from everlong.gateway.request import decoded, encoded, parse_request
from everlong.gateway.surfaces import FORMATS, SURFACES, Address
from everlong.llm import ScriptedServer
from everlong.tokens import Counter
from tests.gateway.resending import post
from tests.gateway.running import RunningGateway

CHAT = FORMATS["openai-chat"]
PATIENCE = 60  # seconds; only a failing test waits so long

TEXTS = st.text(st.one_of(st.sampled_from('a"\\/u\n\x00é日😀\ud83d\ude00'), st.characters()), max_size=80)
MESSAGES = st.fixed_dictionaries(
    {"role": st.just("user"), "content": st.lists(st.fixed_dictionaries({"type": st.just("text"), "text": TEXTS}))}
)


@given(value=MESSAGES, large=st.integers(12, 60), escaped=st.booleans())
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_read_and_written_in_pieces_is_the_same(
    value: dict[str, Any], large: int, escaped: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = json.dumps(value, ensure_ascii=escaped).encode("utf-8", "replace")
    whole, unit = json.loads(raw), unit_of(CHAT, [value])
    monkeypatch.setattr(requests, "LARGE", large)
    monkeypatch.setattr("everlong.core.json_pieces.LARGE", large)
    assert decoded(raw) == whole
    assert encoded(value, large=True) == encoded(value)
    assert unit_of(CHAT, [value], large=True) == unit


class WatchedText:
    """A decoder of texts that records the longest piece it was given."""

    def __init__(self) -> None:
        self.longest = self.pieces = 0

    def decode(self, data: bytes) -> str:
        self.longest, self.pieces = max(self.longest, len(data)), self.pieces + 1
        return msgspec.json.decode(data, type=str)


@pytest.mark.parametrize("sample", ["a", "\n", '"', "\\", "日", "😀", "\x00", "a\n"])
def test_no_text_is_read_in_long_pieces(sample: str, monkeypatch: pytest.MonkeyPatch) -> None:
    work = []
    for length in (400_000, 800_000):
        watched = WatchedText()
        monkeypatch.setattr(requests, "_text", watched)
        value: Json = {"role": "user", "content": sample * length}
        assert decoded(json.dumps(value).encode()) == value
        assert watched.longest <= 262_144 + 2
        work.append(watched.pieces)
    assert work[1] <= 2 * work[0] + 1


@pytest.mark.parametrize(
    "raw", [b'{"a": "' + b"x" * 5_000_000 + b"\\q" + b'"}', b"[" * 5_000_000, b'{"a": NaN, "b": "' + b"x" * 5_000_000]
)
def test_large_bodies_that_are_no_json_are_refused(raw: bytes) -> None:
    with pytest.raises(Refused, match="not JSON"):
        decoded(raw)


def test_a_request_with_endless_messages_is_refused_before_any_is_read() -> None:
    messages = b",".join([b'{"role":"user","content":"x"}'] * 100_001)
    with pytest.raises(Refused, match="more than 100,000") as refused:
        parse_request(Address(surface=SURFACES[0]), b'{"model":"m","messages":[%b]}' % messages)
    assert refused.value.status == 413


# --- through the gateway -------------------------------------------------------------------------


def hostile(sample: str, model: str = "gpt-4o") -> dict[str, Any]:
    text = sample * (HEAVY // (len(json.dumps(sample)) - 2) + 1_000)
    return {"model": model, "messages": [{"role": "user", "content": text}]}


class Held:
    """A counter that stops in the middle of a text until it may go on: a request is then known to be under way."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, model: str = "gpt-4o") -> None:
        self.begun, self.go_on = Event(), Event()
        self.under_way = 0
        self.most_under_way = 0
        forget_counts()  # what another test counted would not be counted again
        counter, plain = counter_for(model), Counter.text

        def text(which: Counter, text: str) -> int:
            if which is counter and len(text) > 200_000:
                self.under_way += 1
                self.most_under_way = max(self.most_under_way, self.under_way)
                self.begun.set()
                assert self.go_on.wait(PATIENCE)
                self.under_way -= 1
            return plain(which, text)

        monkeypatch.setattr(Counter, "text", text)


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Held:
    return Held(monkeypatch)


def asked(gateway: RunningGateway, body: dict[str, Any]) -> int:
    return post(gateway, "/v1/chat/completions", json.dumps(body).encode())[0]


def health(gateway: RunningGateway) -> int:
    connection = HTTPConnection("127.0.0.1", gateway.port, timeout=PATIENCE)
    try:
        connection.request("GET", "/health")
        return connection.getresponse().status
    finally:
        connection.close()


def sent(gateway: RunningGateway, body: dict[str, Any], answers: list[int | str]) -> Thread:
    """Ask in a thread. It waits as long as everything else in the test together, and says what went wrong."""

    def ask() -> None:
        connection = HTTPConnection("127.0.0.1", gateway.port, timeout=4 * PATIENCE)
        try:
            connection.request("POST", "/v1/chat/completions", json.dumps(body), {"content-type": "application/json"})
            answers.append(connection.getresponse().status)
        except OSError as error:
            answers.append(repr(error))
        finally:
            connection.close()

    thread = Thread(target=ask)
    thread.start()
    return thread


def test_others_are_answered_while_a_heavy_request_is_counted(held: Held) -> None:
    answers: list[int | str] = []
    with ScriptedServer() as server, RunningGateway(upstream=server.url) as gateway:
        heavy = sent(gateway, hostile("a"), answers)
        assert held.begun.wait(PATIENCE)
        for _ in range(50):
            assert health(gateway) == 200
        small = {"model": "gpt-4o", "messages": [{"role": "user", "content": "hi"}]}
        assert asked(gateway, small) == 200
        assert answers == [], "the heavy one is still under way"
        held.go_on.set()
        heavy.join(PATIENCE)
    assert answers == [400], "it is larger than the window"


def test_heavy_requests_take_turns_and_small_ones_pass_by(held: Held) -> None:
    answers: list[int | str] = []
    with ScriptedServer() as server, RunningGateway(upstream=server.url) as gateway:
        heavy = [sent(gateway, hostile(sample), answers) for sample in "abcdefgh"]
        assert held.begun.wait(PATIENCE)
        small = {"model": "gpt-4o", "messages": [{"role": "user", "content": "hi"}]}
        assert asked(gateway, small) == 200
        assert answers == []
        held.go_on.set()
        for thread in heavy:
            thread.join(PATIENCE)
    assert answers == [400] * 8, "each is larger than the window"
    assert 1 <= held.most_under_way <= HEAVY_AT_ONCE


@pytest.mark.parametrize("sample", ["a", " ", "\n", "😀", "7", "日", "[", "\u0301", "QUJD"])
@pytest.mark.parametrize("model", ["gpt-4o", "gemini-2.5-pro", "claude-opus-4-5"])
def test_a_hostile_text_is_counted_in_pieces_and_nothing_of_it_is_kept(
    model: str, sample: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lengths: list[int] = []
    _watch_pieces(monkeypatch, lengths)
    with ScriptedServer() as server, RunningGateway(upstream=server.url) as gateway:
        body = {"model": model, "messages": [{"role": "user", "content": sample * (400_000 // len(sample))}]}
        asked(gateway, body)
    assert 0 < max(lengths) <= 65_536
    assert all(type(key) is int and type(known) is int for key, known in counter_for(model)._known.items())


def _watch_pieces(monkeypatch: pytest.MonkeyPatch, lengths: list[int]) -> None:
    from everlong.tokens import estimates, exact, pieces  # noqa: PLC0415 - what is watched, in one place

    def watched(plain: Callable[[str], bytes]) -> Callable[[str], bytes]:
        def codes(text: str) -> bytes:
            lengths.append(len(text))
            return plain(text)

        return codes

    def encoding_of(name: str) -> pieces.Encoding:
        own = exact.encoding_of.__wrapped__(name)

        def pack(text: str, begins: bool) -> bytes:
            lengths.append(len(text))
            return own.pack(text, begins)

        return replace(own, pack=pack)

    encoding_of.__wrapped__ = exact.encoding_of.__wrapped__  # type: ignore[attr-defined]
    monkeypatch.setattr(estimates, "class_codes", watched(estimates.class_codes))
    monkeypatch.setattr(exact, "encoding_of", encoding_of)
