"""Streams in every framing: the same events whatever way they are written, however they are cut."""

import json
from itertools import pairwise

import pytest
from hypothesis import given, settings, strategies as st

from everlong.core import Json, JsonObject
from everlong.errors import ProviderError
from everlong.wire import NDJSON, SSE, Framing, SseReader, framing_of, sse_bytes
from everlong.wire.framings import JSON_ARRAY

FRAMINGS = (SSE, NDJSON, JSON_ARRAY)
#: What Google sends without alt=sse, line ends and all.
GOOGLE = (
    b'[{\n  "candidates": [\n    {\n      "content": {"parts": [{"text": "a \\"]}\\\\"}]}\n    }\n  ]\n}\n,\r\n'
    b'{\n  "candidates": [{"finishReason": "STOP"}]\n}\n]\n'
)

VALUES: st.SearchStrategy[Json] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.lists(st.dictionaries(st.sampled_from(["a", '"', "}", "[\\"]), VALUES, min_size=1, max_size=3), max_size=5)
CUTS = st.lists(st.integers(0, 600), max_size=12)


def _pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    ends = sorted({min(cut, len(data)) for cut in cuts} | {0, len(data)})
    return [data[at:end] for at, end in pairwise(ends)]


def _encoded(framing: Framing, events: bytes, cuts: list[int]) -> bytes:
    encoder = framing.encoder()
    return b"".join([*map(encoder.feed, _pieces(events, cuts)), encoder.close()])


def _decoded(framing: Framing, data: bytes, cuts: list[int]) -> bytes:
    decoder = framing.decoder()
    return b"".join([*map(decoder.feed, _pieces(data, cuts)), decoder.close()])


def _objects(events: bytes) -> list[JsonObject]:
    return [json.loads(event.data or b"") for event in SseReader().feed(events)]


@settings(max_examples=150, deadline=None)
@given(framing=st.sampled_from(FRAMINGS), objects=OBJECTS, out=CUTS, back=CUTS)
def test_what_is_written_in_a_framing_is_read_again(
    framing: Framing, objects: list[JsonObject], out: list[int], back: list[int]
) -> None:
    events = b"".join(sse_bytes("", each) for each in objects)
    written = _encoded(framing, events, out)
    assert written == _encoded(framing, events, [])
    assert _decoded(framing, written, back) == events


@settings(max_examples=100, deadline=None)
@given(objects=OBJECTS, cuts=CUTS, indent=st.sampled_from([None, 1, 2]), end=st.sampled_from(["\n", "\r\n"]))
def test_an_array_is_read_however_it_is_written(
    objects: list[JsonObject], cuts: list[int], indent: int | None, end: str
) -> None:
    text = json.dumps(objects, indent=indent, ensure_ascii=False).replace("\n", end)
    events = _decoded(JSON_ARRAY, text.encode(), cuts)
    assert _objects(events) == objects
    assert events == _decoded(JSON_ARRAY, text.encode(), [])


@settings(max_examples=100, deadline=None)
@given(objects=OBJECTS, cuts=CUTS, end=st.sampled_from(["\n", "\r\n", "\n\n", "\n \n"]))
def test_lines_lose_nothing(objects: list[JsonObject], cuts: list[int], end: str) -> None:
    lines = [json.dumps(each, ensure_ascii=False) for each in objects]
    events = _decoded(NDJSON, end.join(lines).encode(), cuts)
    assert _objects(events) == objects
    assert _encoded(NDJSON, events, cuts) == "".join(f"{line}\n" for line in lines).encode()


@settings(max_examples=60, deadline=None)
@given(objects=OBJECTS, cuts=CUTS)
def test_a_client_reads_an_array_of_all_events(objects: list[JsonObject], cuts: list[int]) -> None:
    events = b": a comment\n\n" + b"".join(sse_bytes("delta", each) for each in objects) + b"data: [DONE]\n\n"
    assert json.loads(JSON_ARRAY.comment * 3 + _encoded(JSON_ARRAY, events, cuts)) == objects


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1_000])
def test_the_array_of_google_becomes_events(size: int) -> None:
    events = _decoded(JSON_ARRAY, GOOGLE, list(range(0, len(GOOGLE), size)))
    first, last = _objects(events)
    assert first == {"candidates": [{"content": {"parts": [{"text": 'a "]}\\'}]}}]}
    assert last == {"candidates": [{"finishReason": "STOP"}]}


def test_an_object_instead_of_an_array_is_one_event() -> None:
    assert _objects(_decoded(JSON_ARRAY, b'{"error": {"code": 400}}', [5])) == [{"error": {"code": 400}}]


def test_half_an_event_is_never_written() -> None:
    for framing in (NDJSON, JSON_ARRAY):
        encoder = framing.encoder()
        written = encoder.feed(b'data: {"n": 1}\n\ndata: {"n": ')
        encoder.cut()
        written += encoder.feed(b'data: {"error": 2}\n\n') + encoder.close()
        assert _objects(_decoded(framing, written, [])) == [{"n": 1}, {"error": 2}]


@pytest.mark.parametrize("framing", [NDJSON, JSON_ARRAY], ids=lambda each: each.name)
def test_an_event_without_end_is_bounded_and_what_was_whole_is_written(framing: Framing) -> None:
    encoder = type(framing.encoder())(longest=1_000)  # type: ignore[call-arg]
    written = encoder.feed(b'data: {"n": 1}\n\ndata: ' + b"x" * 2_000)
    assert b'{"n": 1}' in written
    for more in (b"x" * 2_000, b"\n\n", b'data: {"n": 2}\n\n'):
        with pytest.raises(ProviderError, match="more than 1,000 bytes"):
            encoder.feed(more)
    with pytest.raises(ProviderError):
        encoder.close()


@pytest.mark.parametrize("framing", FRAMINGS, ids=lambda each: each.name)
def test_a_decoder_holds_nothing_back(framing: Framing) -> None:
    """The bytes of an object that goes on are given at once: a picture is not waited for."""
    decoder = framing.decoder()
    start = {"sse": b'data: {"a": "', "ndjson": b'{"a": "', "json-array": b'[{"a": "'}[framing.name]
    given = decoder.feed(start) + b"".join(decoder.feed(b"x" * 1_000) for _ in range(50))
    assert given == b'data: {"a": "' + b"x" * 50_000


def test_a_cut_line_is_ended_before_an_error() -> None:
    assert SSE.gap_after(b'"ha') == b"\n\n"
    assert NDJSON.gap_after(b'"ha') == b"\n"
    assert [SSE.gap_after(b"}\n\n"), SSE.gap_after(b"\r\n\r\n"), NDJSON.gap_after(b"{}\n"), SSE.gap_after(b"")] == [
        b""
    ] * 4


def test_a_framing_is_known_by_its_type() -> None:
    assert framing_of(b"Text/Event-Stream; charset=utf-8") is SSE
    assert framing_of(b"application/x-ndjson") is NDJSON
    assert framing_of(b"application/json") is None
    assert framing_of(b"application/json", JSON_ARRAY) is JSON_ARRAY
