"""Frames of AWS event streams: what AWS's own reader reads, however they are cut; nothing else passes for one."""

import json
from base64 import b64encode
from itertools import pairwise
from struct import pack
from zlib import crc32

import pytest
from hypothesis import given, settings, strategies as st

from everlong.errors import ProviderError
from everlong.wire import AWS_FRAMES, SseReader, framing_of, sse_bytes
from everlong.wire.aws_frames import AROUND, FrameReader, frame_bytes

#: A frame from the tests of AWS's own SDKs: one header of each type that has a length, and a payload.
FROM_AWS = bytes.fromhex(
    "0000003d00000020"
    "07fd8396"
    "0c636f6e74656e742d747970650700106170706c69636174696f6e2f6a736f6e"
    "7b27666f6f273a27626172277d"
    "8d9c08b1"
)
SIGNS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
HEADERS = st.dictionaries(SIGNS.filter(lambda name: 0 < len(name.encode()) < 256), SIGNS, max_size=4)
FRAMES = st.lists(st.tuples(HEADERS, st.binary(max_size=80)), max_size=5)
CUTS = st.lists(st.integers(0, 600), max_size=12)


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    ends = sorted({min(cut, len(data)) for cut in cuts} | {0, len(data)})
    return [data[at:end] for at, end in pairwise(ends)]


def test_a_frame_of_aws_is_read_and_written() -> None:
    [frame] = FrameReader().feed(FROM_AWS)
    assert frame.headers == {"content-type": "application/json"}
    assert frame.payload == b"{'foo':'bar'}"
    assert frame_bytes(frame.headers, frame.payload) == FROM_AWS


@settings(max_examples=100, deadline=None)
@given(frames=FRAMES, cuts=CUTS)
def test_frames_are_read_however_they_are_cut(frames: list[tuple[dict[str, str], bytes]], cuts: list[int]) -> None:
    written = b"".join(frame_bytes(*each) for each in frames)
    reader = FrameReader()
    found = [frame for piece in pieces(written, cuts) for frame in reader.feed(piece)]
    assert [(dict(frame.headers), frame.payload) for frame in found] == frames
    assert reader.between


@settings(max_examples=150, deadline=None)
@given(at=st.integers(0, len(FROM_AWS) - 1), bit=st.integers(0, 7))
def test_one_wrong_bit_is_noticed(at: int, bit: int) -> None:
    wrong = bytearray(FROM_AWS)
    wrong[at] ^= 1 << bit
    with pytest.raises(ProviderError, match="a frame that cannot be read"):
        FrameReader().feed(bytes(wrong))


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=200))
def test_no_bytes_fail_in_another_way(data: bytes) -> None:
    reader = FrameReader()
    try:
        frames = reader.feed(data)
    except ProviderError:
        return
    assert frames == []


@settings(max_examples=100, deadline=None)
@given(raw=st.binary(max_size=60), payload=st.binary(max_size=20))
def test_headers_of_any_bytes_fail_in_one_way(raw: bytes, payload: bytes) -> None:
    """The check sums are right; what they cover is not."""
    start = pack(">II", AROUND + len(raw) + len(payload), len(raw))
    whole = start + pack(">I", crc32(start)) + raw + payload
    try:
        [frame] = FrameReader().feed(whole + pack(">I", crc32(whole)))
    except ProviderError:
        return
    assert frame.payload == payload


def test_a_frame_that_says_it_is_huge_is_not_waited_for() -> None:
    with pytest.raises(ProviderError):
        FrameReader(longest=1_000).feed(frame_bytes({}, b"x" * 2_000)[:100])


def chunk(event: dict[str, object]) -> bytes:
    """As Bedrock writes one, with letters after it so that its length says nothing."""
    payload = json.dumps({"bytes": b64encode(json.dumps(event).encode()).decode(), "p": "abcdefghi"}).encode()
    headers = {":event-type": "chunk", ":content-type": "application/json", ":message-type": "event"}
    return frame_bytes(headers, payload)


@settings(max_examples=60, deadline=None)
@given(texts=st.lists(SIGNS, max_size=4), cuts=CUTS)
def test_chunks_become_events_and_events_chunks(texts: list[str], cuts: list[int]) -> None:
    events: list[dict[str, object]] = [{"type": "content_block_delta", "delta": {"text": text}} for text in texts]
    decoder, encoder = AWS_FRAMES.decoder(), AWS_FRAMES.encoder()
    frames = b"".join(map(chunk, events))
    told = b"".join([*map(decoder.feed, pieces(frames, cuts)), decoder.close()])
    assert [json.loads(event.data or b"") for event in SseReader().feed(told)] == events
    assert {event.name for event in SseReader().feed(told)} <= {b"content_block_delta"}
    again = b"".join([*map(encoder.feed, pieces(told, cuts)), encoder.close()])
    assert AWS_FRAMES.decoder().feed(again) == told


EXCEPTION = {
    ":exception-type": "throttlingException",
    ":content-type": "application/json",
    ":message-type": "exception",
}
#: What Bedrock sends inside a stream whose status was 200; and what becomes of it, there and back.
ERRORS = {
    "an exception": (EXCEPTION, b'{"message":"Too many tokens"}', "throttlingException", "Too many tokens"),
    "an exception without JSON": (EXCEPTION, b"no", "throttlingException", "no"),
    "an error": (
        {":message-type": "error", ":error-code": "internalFailure", ":error-message": "sorry"},
        b"",
        "internalFailure",
        "sorry",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_an_exception_is_an_error_event(name: str) -> None:
    headers, payload, kind, message = ERRORS[name]
    told = AWS_FRAMES.decoder().feed(frame_bytes(headers, payload))
    assert told == sse_bytes("error", {"type": "error", "error": {"type": kind, "message": message}})


@pytest.mark.parametrize(
    ("kind", "exception"),
    [
        ("invalid_request_error", "validationException"),
        ("rate_limit_error", "throttlingException"),
        ("api_error", "internalServerException"),
        ("modelStreamErrorException", "modelStreamErrorException"),
    ],
)
def test_an_error_event_is_an_exception(kind: str, exception: str) -> None:
    error = sse_bytes("error", {"type": "error", "error": {"type": kind, "message": "m"}})
    [frame] = FrameReader().feed(AWS_FRAMES.encoder().feed(error))
    assert (frame.headers[":message-type"], frame.headers[":exception-type"]) == ("exception", exception)
    assert json.loads(frame.payload) == {"message": "m"}


def test_an_event_that_speaks_of_errors_is_none() -> None:
    said = sse_bytes("", {"type": "content_block_delta", "delta": {"text": 'an "error"'}, "error": {"type": "x"}})
    [frame] = FrameReader().feed(AWS_FRAMES.encoder().feed(said))
    assert frame.headers[":event-type"] == "chunk"


def test_other_frames_say_nothing() -> None:
    decoder = AWS_FRAMES.decoder()
    assert decoder.feed(frame_bytes({":event-type": "initial-response", ":message-type": "event"}, b"{}")) == b""
    assert decoder.feed(frame_bytes({}, b"[1]")) == b""
    with pytest.raises(ProviderError, match="base64"):
        decoder.feed(frame_bytes({}, b'{"bytes":"a"}'))


def test_a_stream_that_ends_inside_a_frame_is_broken() -> None:
    decoder = AWS_FRAMES.decoder()
    decoder.feed(FROM_AWS[:-1])
    with pytest.raises(ProviderError, match="ends inside a frame"):
        decoder.close()


def test_the_comment_is_a_ping() -> None:
    assert AWS_FRAMES.decoder().feed(AWS_FRAMES.comment) == b'event: ping\ndata: {"type":"ping"}\n\n'
    assert framing_of(b"application/vnd.amazon.eventstream") is AWS_FRAMES
