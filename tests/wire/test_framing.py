"""Events out of bytes, however they are cut and whatever stands between them."""

import json
from itertools import chain, pairwise

import pytest
from hypothesis import given, settings, strategies as st

from everlong.core import JsonObject
from everlong.errors import ProviderError
from everlong.wire.framing import JsonEvents

STREAMS = {
    "plain": b'data: {"n": 1}\n\ndata: {"n": 2}\n\n',
    "carriage return and line feed": b'data: {"n": 1}\r\n\r\ndata: {"n": 2}\r\n\r\n',
    "carriage return alone": b'data: {"n": 1}\r\rdata: {"n": 2}\r\r',
    "no space": b'data:{"n": 1}\n\ndata:{"n": 2}\n\n',
    "byte order mark": b'\xef\xbb\xbfdata: {"n": 1}\n\ndata: {"n": 2}\n\n',
    "comments": b': ping\n\n: OPENROUTER PROCESSING\ndata: {"n": 1}\n: x\n\ndata: {"n": 2}\n\n',
    "other fields": b'id: 7\nretry: 10\nevent: delta\ndata: {"n": 1}\n\ndata: {"n": 2}\n\n',
    "several lines of data": b'data: {"n":\ndata: 1}\n\ndata: {"n": 2}\n\n',
    "no blank line at the end": b'data: {"n": 1}\n\ndata: {"n": 2}',
    "one line end at the end": b'data: {"n": 1}\n\ndata: {"n": 2}\n',
    "empty events between": b'\n\ndata:\n\ndata: {"n": 1}\n\n\n\ndata: {"n": 2}\n\n',
    "no objects between": b'data: 7\n\ndata: null\n\ndata: {"n": 1}\n\ndata: []\n\ndata: {"n": 2}\n\n',
}


def _events(stream: bytes, cuts: list[int]) -> tuple[list[JsonObject], bool]:
    events = JsonEvents()
    ends = sorted({min(cut, len(stream)) for cut in cuts} | {0, len(stream)})
    found = [event for at, end in pairwise(ends) for event in events.feed(stream[at:end])]
    return [*found, *events.close()], events.done


@pytest.mark.parametrize("stream", STREAMS.values(), ids=STREAMS)
@pytest.mark.parametrize("size", [1, 2, 3, 7, 1_000])
def test_any_split_gives_the_same_events(stream: bytes, size: int) -> None:
    found, done = _events(stream, list(range(0, len(stream), size)))
    assert found == [{"n": 1}, {"n": 2}]
    assert not done


@settings(max_examples=60, deadline=None)
@given(
    words=st.lists(st.sampled_from(["hello", "你好", "🙂", "\u2028", "a\nb\r\nc"]), max_size=6),
    cuts=st.lists(st.integers(0, 400), max_size=12),
    end=st.sampled_from([b"\n\n", b"\r\n\r\n", b"\r\r"]),
)
def test_characters_of_several_bytes_survive_any_split(words: list[str], cuts: list[int], end: bytes) -> None:
    stream = b"".join(b"data: " + json.dumps({"w": word}, ensure_ascii=False).encode() + end for word in words)
    found, done = _events(stream + b"data: [DONE]" + end, cuts)
    assert [event["w"] for event in found] == words
    assert done


def test_an_event_named_error_is_an_error() -> None:
    found, _ = _events(b'event: error\ndata: {"code": 400, "message": "too long"}\n\ndata: {"n": 1}\n\n', [])
    assert found == [{"error": {"code": 400, "message": "too long"}}, {"n": 1}]


@pytest.mark.parametrize(
    "chunk",
    [b" " * 100, b"data: " + b"x" * 100, b"data:\n" * 100, b"data: 12345678\n" * 12],
    ids=["no line end", "one long line", "empty lines of data", "many lines of data"],
)
def test_an_event_without_end_is_bounded(chunk: bytes) -> None:
    events = JsonEvents(longest=1_000)
    with pytest.raises(ProviderError, match="more than 1,000 bytes"):
        list(chain.from_iterable(events.feed(chunk) for _ in range(100)))


def test_a_stream_may_be_as_long_as_it_likes() -> None:
    events = JsonEvents(longest=1_000)
    assert sum(1 for _ in range(2_000) for _ in events.feed(b': keep alive\n\ndata: {"n": 1}\n\n')) == 2_000


@pytest.mark.parametrize("data", [b"oops", b"{'a': 1}", b"[" * 100_000], ids=["words", "python", "nested"])
def test_what_is_no_json_is_one_clear_error(data: bytes) -> None:
    with pytest.raises(ProviderError, match="not JSON"):
        list(JsonEvents().feed(b"data: " + data + b"\n\n"))
