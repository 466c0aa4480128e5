"""What is heard of an answer while it passes: the same as a client hears, whatever the bytes and their splits."""

import json
import tracemalloc
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings, strategies as st

from everlong.core import JsonObject
from everlong.engine import Finished
from everlong.errors import ContextOverflow, ProviderError, RateLimited
from everlong.gateway.exchange.answer import LARGEST_EVENT, AnswerReader
from everlong.llm import Answer, ReceivedRequest
from everlong.llm.scripted.script import reply_of
from everlong.wire import FORMATS, ReplyStream, Usage, format_named

FMTS = ("anthropic", "openai-chat", "openai-responses")
USAGE = Usage(prompt=900, cached=200, output=40)
ANSWERS = {
    "words": Answer(text="Here is a longer answer, said in pieces. 中文也一样。", usage=USAGE),
    "thinking": Answer(text="Yes.", thinking="Let me think about it for a while.", usage=USAGE),
    "calls": Answer(
        text="Reading.", calls=(("read_file", '{"path": "a.py"}'), ("run", '{"command": "ls -la"}')), usage=USAGE
    ),
    "cut": Answer(text="It begins", stop="length", usage=USAGE),
}


def stream_of(fmt: str, answer: Answer) -> bytes:
    asked = ReceivedRequest(number=1, model="m", messages=(), fmt=fmt)
    parts = []
    for name, data in FORMATS[fmt].writer.events(reply_of(asked, answer)):
        text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
        parts.append((f"event: {name}\n" if name else "") + f"data: {text}\n\n")
    return "".join(parts).encode()


def body_of(fmt: str, answer: Answer) -> bytes:
    return json.dumps(
        FORMATS[fmt].writer.whole(reply_of(ReceivedRequest(number=1, model="m", messages=(), fmt=fmt), answer))
    ).encode()


def heard(fmt: str, chunks: Sequence[bytes], *, streamed: bool = True, status: int = 200) -> AnswerReader:
    listening = AnswerReader(format_named(fmt), streamed, status=status)
    for chunk in chunks:
        listening.feed(chunk)
    listening.end()
    return listening


def as_a_client(fmt: str, stream: bytes) -> Finished:
    reader = format_named(fmt).reader()
    replies = ReplyStream(reader)
    list(replies.feed(stream))
    list(replies.close())
    return reader.finished()


def split(data: bytes, cuts: Sequence[int]) -> list[bytes]:
    at = [0, *sorted({cut % (len(data) + 1) for cut in cuts}), len(data)]
    return [data[start:end] for start, end in pairwise(at)]


@pytest.mark.parametrize("fmt", FMTS)
@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.parametrize("size", [1, 7, 64, 100_000])
def test_it_hears_what_a_client_hears(fmt: str, name: str, size: int) -> None:
    stream = stream_of(fmt, ANSWERS[name])
    listening = heard(fmt, [stream[at : at + size] for at in range(0, len(stream), size)])
    assert listening.finished() == as_a_client(fmt, stream)
    assert listening.begun
    assert listening.complete
    assert listening.error is None
    assert listening.events == stream.count(b"\n\n")


@pytest.mark.parametrize("fmt", FMTS)
@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.parametrize("streamed", [True, False])
def test_a_whole_body_is_heard_too_whatever_its_type_says(fmt: str, name: str, streamed: bool) -> None:
    body = body_of(fmt, ANSWERS[name])
    listening = heard(fmt, [body[:10], body[10:]], streamed=streamed)
    assert listening.finished() == as_a_client(fmt, body)
    assert listening.begun


def test_a_stream_that_calls_itself_json_is_heard_as_one() -> None:
    assert heard("anthropic", [stream_of("anthropic", ANSWERS["words"])], streamed=False).finished() is not None


@pytest.mark.parametrize("fmt", FMTS)
def test_before_the_first_content_nothing_has_begun(fmt: str) -> None:
    listening = AnswerReader(format_named(fmt), True)
    events = stream_of(fmt, ANSWERS["words"]).split(b"\n\n")
    for event in events[:1]:
        listening.feed(event + b"\n\n: ping\n\n")
    assert (listening.events, listening.begun, listening.complete) == (1, False, False)


@pytest.mark.parametrize("fmt", FMTS)
def test_a_stream_that_breaks_off_is_not_complete(fmt: str) -> None:
    events = stream_of(fmt, ANSWERS["words"]).split(b"\n\n")
    first = next(number for number, event in enumerate(events) if b"Here" in event)
    listening = heard(fmt, [event + b"\n\n" for event in events[: first + 1]])
    assert listening.begun
    assert not listening.complete
    assert listening.finished() is None


OVERFLOW = "prompt is too long: 213462 tokens > 200000 maximum"


@pytest.mark.parametrize(
    ("fmt", "event"),
    [
        ("anthropic", {"type": "error", "error": {"type": "invalid_request_error", "message": OVERFLOW}}),
        ("openai-chat", {"error": {"message": OVERFLOW, "code": 400}}),
        ("openai-responses", {"type": "error", "message": OVERFLOW}),
        ("openai-responses", {"type": "response.failed", "response": {"error": {"message": OVERFLOW}}}),
    ],
)
@pytest.mark.parametrize("name", ["", "event: error\n"])
def test_an_overflow_that_comes_as_an_event_is_known(fmt: str, event: JsonObject, name: str) -> None:
    listening = heard(fmt, [name.encode() + b"data: " + json.dumps(event).encode() + b"\n\n"])
    assert isinstance(listening.error, ContextOverflow)
    assert listening.error.limit == 200_000
    assert not listening.begun
    assert listening.finished() is None


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (400, json.dumps({"error": {"message": OVERFLOW}}).encode(), ContextOverflow),
        (429, b'{"error":{"message":"slow down"}}', RateLimited),
        (502, b"<html>Bad gateway</html>", ProviderError),
        (413, b"", ContextOverflow),
        (200, b"<html>Sign in</html>", ProviderError),
    ],
)
def test_an_error_body_is_classified_with_its_status(status: int, body: bytes, kind: type[ProviderError]) -> None:
    listening = heard("openai-chat", [body], streamed=False, status=status)
    assert type(listening.error) is kind
    assert listening.finished() is None


def test_a_line_without_end_is_skipped_and_the_next_event_heard() -> None:
    listening = AnswerReader(format_named("openai-chat"), True)
    tracemalloc.start()
    try:
        for _ in range(160):
            listening.feed(b"data: " + b"x" * 65_536)
        kept = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    listening.feed(b'\n\ndata: {"choices":[{"delta":{"content":"Hi."},"finish_reason":"stop"}]}\n\n')
    assert kept < 4 * LARGEST_EVENT
    assert listening.events == 2
    finished = listening.finished()
    assert finished is not None
    assert finished.message.text == "Hi."


def test_many_lines_of_one_event_are_bounded_too() -> None:
    listening = AnswerReader(format_named("openai-chat"), True)
    for _ in range(200):
        listening.feed(b"data: " + b"x" * 10_000 + b"\n")
    listening.feed(b"\n")
    assert (listening.events, listening.begun, listening.error) == (1, False, None)


def test_an_end_too_long_to_look_into_is_still_an_end() -> None:
    listening = AnswerReader(format_named("openai-responses"), True)
    listening.feed(b'event: response.completed\ndata: {"type":"response.completed","x":"')
    for _ in range(20):
        listening.feed(b"y" * 100_000)
    listening.feed(b'"}\n\n')
    assert listening.complete


def test_an_answer_without_end_is_not_kept() -> None:
    listening = AnswerReader(format_named("anthropic"), True)
    event = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "x" * 500_000}}
    data = b"event: content_block_delta\ndata: " + json.dumps(event).encode() + b"\n\n"
    tracemalloc.start()
    try:
        for _ in range(100):
            listening.feed(data)
        kept = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    listening.feed(b'event: message_stop\ndata: {"type":"message_stop"}\n\n')
    assert kept < 40_000_000
    assert listening.complete
    assert listening.finished() is None


@settings(max_examples=60)
@given(
    fmt=st.sampled_from(FMTS),
    name=st.sampled_from(sorted(ANSWERS)),
    cuts=st.lists(st.integers(0, 5_000), max_size=12),
    end=st.sampled_from([b"\n", b"\r\n", b"\r"]),
)
def test_splits_and_line_ends_make_no_difference(fmt: str, name: str, cuts: list[int], end: bytes) -> None:
    stream = stream_of(fmt, ANSWERS[name])
    listening = heard(fmt, split(stream.replace(b"\n", end), cuts))
    assert listening.finished() == as_a_client(fmt, stream)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["", "x", "text_delta", "message", "error"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["id", "index", "type", "name", "text"]), inner)
    ),
    max_leaves=6,
)
FIELDS = "type index delta choices usage message response error item output_index content_block tool_calls function"
KINDS = ["content_block_start", "content_block_delta", "message", "response.completed", "response.output_item.done"]
events = st.dictionaries(st.sampled_from(FIELDS.split()), json_values, max_size=5)
shaped = st.builds(lambda kind, event: {"type": kind, **event}, st.sampled_from(KINDS), events)
deltas = st.dictionaries(st.sampled_from(["content", "tool_calls", "reasoning", "refusal", "role"]), json_values)
chats = st.builds(lambda delta: {"choices": [{"delta": delta}]}, deltas)


@settings(max_examples=100)
@given(
    fmt=st.sampled_from(FMTS),
    said=st.lists(events | shaped | chats | json_values, max_size=4),
    whole=st.booleans(),
)
def test_no_json_makes_it_raise(fmt: str, said: list[object], whole: bool) -> None:
    chunks = [b"data: " + json.dumps(event).encode() + b"\n\n" for event in said]
    listening = heard(fmt, [json.dumps(said[0]).encode()] if whole and said else chunks, streamed=not whole)
    listening.finished()


@given(fmt=st.sampled_from(FMTS), chunks=st.lists(st.binary(max_size=40), max_size=6), streamed=st.booleans())
def test_no_bytes_make_it_raise(fmt: str, chunks: list[bytes], streamed: bool) -> None:
    heard(fmt, chunks, streamed=streamed).finished()


def test_only_the_first_of_several_choices_counts() -> None:
    def chunk(index: int, delta: JsonObject, finish: str | None = None) -> bytes:
        choice = {"index": index, "delta": delta, "finish_reason": finish}
        return b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n"

    listening = heard(
        "openai-chat",
        [
            chunk(0, {"content": "First"}),
            chunk(1, {"content": "Second"}),
            chunk(1, {}, "length"),
            chunk(0, {"content": " one."}),
            chunk(0, {}, "stop"),
        ],
    )
    finished = listening.finished()
    assert finished is not None
    assert (finished.message.text, finished.stop) == ("First one.", "stop")
