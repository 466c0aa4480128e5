"""The figures a client is told, and every other byte as it came."""

import json
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings, strategies as st

from everlong.core import JsonObject
from everlong.gateway.exchange.usage import LONGEST_LAST, LONGEST_LINE, PromptSizes, UsageRewriter, rewritten_body
from everlong.wire import format_named

FMTS = ("anthropic", "openai-chat", "openai-responses")
GROWN = PromptSizes(added=40_000, window=128_000, prompt=20_000)
DONE = b"data: [DONE]\n\n"


def dumped(value: JsonObject) -> bytes:
    return json.dumps(value).encode()


def fed(fmt: str, figures: PromptSizes, chunks: Sequence[bytes]) -> bytes:
    rewriting = UsageRewriter(format_named(fmt).server.usage, figures)
    return b"".join([*map(rewriting.feed, chunks), rewriting.close()])


def split(data: bytes, cuts: Sequence[int]) -> list[bytes]:
    at = [0, *sorted({cut % (len(data) + 1) for cut in cuts}), len(data)]
    return [data[start:end] for start, end in pairwise(at)]


def usage_in(fmt: str, usage: JsonObject) -> tuple[bytes, bytes]:
    """A whole answer with this usage, and the event of a stream."""
    match fmt:
        case "openai-chat":
            return (
                dumped({"object": "chat.completion", "choices": [{"index": 0}], "usage": usage}),
                b"data: " + dumped({"object": "chat.completion.chunk", "choices": [], "usage": usage}) + b"\n\n",
            )
        case "openai-responses":
            body: JsonObject = {"object": "response", "status": "completed", "output": [], "usage": usage}
            event: JsonObject = {"type": "response.completed", "sequence_number": 9, "response": body}
            return dumped(body), b"event: response.completed\ndata: " + dumped(event) + b"\n\n"
        case _:
            body = {"type": "message", "role": "assistant", "content": [], "usage": usage}
            return dumped(body), b"event: message_start\ndata: " + dumped(
                {"type": "message_start", "message": body}
            ) + b"\n\n"


def told(fmt: str, usage: JsonObject, figures: PromptSizes) -> JsonObject:
    """The usage that comes out, the same from a body and from a stream."""
    body, event = usage_in(fmt, usage)
    whole = json.loads(rewritten_body(format_named(fmt).server.usage, body, figures))["usage"]
    data = json.loads(fed(fmt, figures, [event]).partition(b"data: ")[2])
    inner = data.get("response") or data.get("message") or data
    assert inner["usage"] == whole
    assert isinstance(whole, dict)
    return whole


CASES: list[tuple[str, str, PromptSizes, JsonObject, JsonObject]] = [
    (
        "the client's own size",
        "openai-chat",
        GROWN,
        {"prompt_tokens": 21_000, "completion_tokens": 50, "total_tokens": 21_050},
        {"prompt_tokens": 61_000, "completion_tokens": 50, "total_tokens": 61_050},
    ),
    (
        "never above the window",
        "openai-chat",
        PromptSizes(added=400_000, window=128_000, prompt=20_000),
        {"prompt_tokens": 21_000, "completion_tokens": 50, "total_tokens": 21_050},
        {"prompt_tokens": 128_000, "completion_tokens": 50, "total_tokens": 128_050},
    ),
    (
        "never below nothing",
        "openai-responses",
        PromptSizes(added=-400, window=128_000, prompt=300),
        {"input_tokens": 300, "output_tokens": 5, "total_tokens": 305, "input_tokens_details": {"cached_tokens": 128}},
        {"input_tokens": 0, "output_tokens": 5, "total_tokens": 5, "input_tokens_details": {"cached_tokens": 0}},
    ),
    (
        "a total that counts more keeps it",
        "openai-chat",
        GROWN,
        {"prompt_tokens": 21_000, "completion_tokens": 50, "total_tokens": 21_090},
        {"prompt_tokens": 61_000, "completion_tokens": 50, "total_tokens": 61_090},
    ),
    (
        "fields nobody knows stay",
        "openai-chat",
        GROWN,
        {"prompt_tokens": 21_000, "cost": 0.00012, "x": {"y": [1, None]}},
        {"prompt_tokens": 61_000, "cost": 0.00012, "x": {"y": [1, None]}},
    ),
    (
        "cached tokens stand beside the input",
        "anthropic",
        GROWN,
        {"input_tokens": 10, "cache_read_input_tokens": 20_000, "cache_creation_input_tokens": 990, "output_tokens": 1},
        {
            "input_tokens": 40_010,
            "cache_read_input_tokens": 20_000,
            "cache_creation_input_tokens": 990,
            "output_tokens": 1,
        },
    ),
    (
        "with the cached ones never above the window",
        "anthropic",
        PromptSizes(added=40_000, window=50_000, prompt=20_000),
        {"input_tokens": 10, "cache_read_input_tokens": 20_000, "output_tokens": 1},
        {"input_tokens": 30_000, "cache_read_input_tokens": 20_000, "output_tokens": 1},
    ),
    (
        "smaller than sent takes nothing from the cached",
        "anthropic",
        PromptSizes(added=-500, window=50_000, prompt=20_000),
        {"input_tokens": 10, "cache_read_input_tokens": 20_000, "output_tokens": 1},
        {"input_tokens": 0, "cache_read_input_tokens": 20_000, "output_tokens": 1},
    ),
    (
        "absurd cached figures go with the absurd whole",
        "anthropic",
        PromptSizes(window=200_000, prompt=20_000),
        {"input_tokens": 7, "cache_read_input_tokens": 675_947_905, "output_tokens": 1},
        {"input_tokens": 20_000, "cache_read_input_tokens": 0, "output_tokens": 1},
    ),
    (
        "an absurd output is none",
        "openai-chat",
        PromptSizes(window=128_000, prompt=20_000),
        {"prompt_tokens": 21_000, "completion_tokens": -1, "total_tokens": 20_999},
        {"prompt_tokens": 21_000, "completion_tokens": 0, "total_tokens": 21_000},
    ),
    (
        "figures with a point are figures",
        "anthropic",
        GROWN,
        {"input_tokens": 21_000.0, "output_tokens": 1},
        {"input_tokens": 61_000, "output_tokens": 1},
    ),
]


@pytest.mark.parametrize(
    ("fmt", "figures", "said", "expected"), [case[1:] for case in CASES], ids=[c[0] for c in CASES]
)
def test_told(fmt: str, figures: PromptSizes, said: JsonObject, expected: JsonObject) -> None:
    assert told(fmt, said, figures) == expected


@pytest.mark.parametrize("fmt", FMTS)
def test_bytes_around_the_usage_stay(fmt: str) -> None:
    body, event = usage_in(fmt, {"prompt_tokens": 21_000, "input_tokens": 21_000, "output_tokens": 1})
    odd = b'"n": 1.500, "s": "\\u00e9 \xc3\xa9", "big": 12345678901234567890123'
    for raw, written in (
        (
            body.replace(b'"usage"', odd + b', "usage"'),
            lambda data: rewritten_body(format_named(fmt).server.usage, data, GROWN),
        ),
        (event.replace(b'"usage"', odd + b', "usage"'), lambda data: fed(fmt, GROWN, [data])),
    ):
        out = written(raw)
        assert b"61000" in out
        for piece in (b"1.500", b'"\\u00e9 \xc3\xa9"', b"12345678901234567890123"):
            assert piece in out


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("fmt", FMTS)
def test_splits_and_line_ends_make_no_difference(fmt: str, end: bytes) -> None:
    event = usage_in(fmt, {"prompt_tokens": 21_000, "input_tokens": 21_000, "output_tokens": 1})[1]
    stream = (b": ping\n\n" + event + b'data: {"x": 1}\n\n').replace(b"\n", end)
    expected = fed(fmt, GROWN, [stream])
    assert b"61000" in expected
    for size in (1, 2, 3, 50):
        assert fed(fmt, GROWN, [stream[at : at + size] for at in range(0, len(stream), size)]) == expected


def test_a_message_delta_that_repeats_the_input_says_the_same() -> None:
    start = usage_in("anthropic", {"input_tokens": 21_000, "output_tokens": 1})[1]
    delta = b'data: {"type":"message_delta","delta":{},"usage":{"input_tokens":21000,"output_tokens":9}}\n\n'
    bare = b'data: {"type":"message_delta","delta":{},"usage":{"output_tokens":9}}\n\n'
    out = fed("anthropic", GROWN, [start, delta, bare])
    assert out.count(b'"input_tokens":61000') == 2
    assert out.endswith(bare)


FRAME = b'"id":"c1","created":5,"model":"m","object":"chat.completion.chunk"'
PIECE = b"data: {" + FRAME + b',"choices":[{"delta":{"content":"a"}}]}\n\n'


@pytest.mark.parametrize("size", [1, 10, 10_000])
def test_a_chat_whose_upstream_reports_nothing_ends_with_an_estimate(size: int) -> None:
    stream = PIECE * 3 + DONE
    figures = PromptSizes(added=1_000, window=128_000, prompt=20_000, wants=True)
    out = fed("openai-chat", figures, [stream[at : at + size] for at in range(0, len(stream), size)])
    assert out.startswith(PIECE * 3)
    assert out.endswith(DONE)
    added = json.loads(out.removeprefix(PIECE * 3).removesuffix(DONE).removeprefix(b"data: "))
    assert added == {
        "id": "c1",
        "created": 5,
        "model": "m",
        "object": "chat.completion.chunk",
        "choices": [],
        "usage": {"prompt_tokens": 21_000, "completion_tokens": 3, "total_tokens": 21_003},
    }


@pytest.mark.parametrize(
    ("figures", "stream"),
    [
        (PromptSizes(window=128_000, prompt=20_000), PIECE + DONE),
        (PromptSizes(window=128_000, wants=True), PIECE + DONE),
        (PromptSizes(window=128_000, prompt=20_000, wants=True), PIECE),
        (
            PromptSizes(window=128_000, prompt=20_000, wants=True),
            PIECE + b'data: {"choices":[],"usage":{"prompt_tokens":20100}}\n\n' + DONE,
        ),
        (
            PromptSizes(window=128_000, prompt=20_000, wants=True),
            PIECE + b'data: {"choices":[],"usage":{"prompt_tokens":20100}}\n\n' + PIECE + DONE,
        ),
    ],
    ids=["not asked for", "no estimate", "broken off", "reported", "reported before the end"],
)
def test_nothing_is_added_otherwise(figures: PromptSizes, stream: bytes) -> None:
    assert fed("openai-chat", figures, [stream]) == stream


def test_nothing_is_added_to_an_answer_that_goes_on_or_is_an_error() -> None:
    asked = PromptSizes(window=128_000, prompt=20_000, wants=True)
    created = b'data: {"type":"response.created","response":{"status":"in_progress","usage":null}}\n\n'
    failed = b'data: {"type":"response.failed","response":{"status":"failed","usage":null}}\n\n'
    assert fed("openai-responses", asked, [created + failed]) == created + failed
    for fmt in FMTS:
        error = b'{"type":"error","error":{"message":"no usage"}}'
        assert rewritten_body(format_named(fmt).server.usage, error, asked) == error


def test_a_line_is_held_back_no_longer_than_needed() -> None:
    rewriting = UsageRewriter(format_named("openai-chat").server.usage, GROWN)
    assert rewriting.feed(PIECE[:-2]) == b""
    assert rewriting.feed(b"\n\n" + PIECE + b"da") == PIECE[:-2] + b"\n\n" + PIECE
    assert rewriting.feed(b"ta: x") == b""
    assert rewriting.close() == b"data: x"


@pytest.mark.parametrize("fmt", FMTS)
def test_a_line_without_end_is_handed_on_and_not_kept(fmt: str) -> None:
    rewriting = UsageRewriter(format_named(fmt).server.usage, GROWN)
    given, got = 6, len(rewriting.feed(b"data: "))
    for _ in range(200):
        given += 50_000
        got += len(rewriting.feed(b"x" * 50_000))
        assert given - got <= LONGEST_LINE
    usage = usage_in(fmt, {"prompt_tokens": 21_000, "input_tokens": 21_000, "output_tokens": 1})[1]
    assert b"61000" in rewriting.feed(b"\n\n" + usage)


@pytest.mark.parametrize("named", [True, False], ids=["known by its name", "known by its type"])
def test_a_response_that_repeats_a_long_answer_still_has_its_figures(named: bool) -> None:
    usage: JsonObject = {"input_tokens": 21_000, "output_tokens": 1}
    kind: JsonObject = {"type": "response.completed"}
    response: JsonObject = {"response": {"status": "completed", "output": ["x" * 500_000], "usage": usage}}
    event = dumped({**response, **kind} if named else {**kind, **response})
    stream = (b"event: response.completed\n" if named else b"") + b"data: " + event + b"\n\n"
    out = fed("openai-responses", GROWN, [stream[at : at + 16_384] for at in range(0, len(stream), 16_384)])
    assert b'"input_tokens":61000' in out
    endless = b"event: response.completed\ndata: " + b"x" * (LONGEST_LAST + 10)
    assert fed("openai-responses", GROWN, split(endless, range(0, LONGEST_LAST, 65_536))) == endless


@settings(max_examples=200)
@given(
    fmt=st.sampled_from(FMTS),
    data=st.lists(
        st.binary(max_size=12)
        | st.sampled_from(
            [b"data: ", b'"usage"', b"\n", b"\r\n", b"\n\n", b"[DONE]", b"{}", b"message_start", b'{"usage":{}}']
        )
    ).map(b"".join),
    cuts=st.lists(st.integers(0, 200), max_size=8),
    figures=st.sampled_from([PromptSizes(), PromptSizes(window=128_000), GROWN]),
)
def test_bytes_without_figures_are_never_changed(fmt: str, data: bytes, cuts: list[int], figures: PromptSizes) -> None:
    assert fed(fmt, figures, split(data, cuts)) == data
    assert rewritten_body(format_named(fmt).server.usage, data, figures) == data


@given(
    fmt=st.sampled_from(FMTS),
    prompt=st.integers(1, 100_000),
    output=st.integers(0, 50_000),
    cuts=st.lists(st.integers(0, 300), max_size=5),
)
def test_figures_that_are_right_are_never_changed(fmt: str, prompt: int, output: int, cuts: list[int]) -> None:
    names = ("prompt_tokens", "completion_tokens") if fmt == "openai-chat" else ("input_tokens", "output_tokens")
    body, event = usage_in(fmt, {names[0]: prompt, names[1]: output, "total_tokens": prompt + output})
    right = PromptSizes(window=100_000, prompt=prompt, wants=True)
    assert rewritten_body(format_named(fmt).server.usage, body, right) == body
    assert fed(fmt, right, split(event, cuts)) == event


@given(
    fmt=st.sampled_from(FMTS),
    counts=st.lists(st.integers(-(10**20), 10**20) | st.integers(0, 10**6) | st.none(), min_size=4, max_size=4),
    added=st.integers(-(10**6), 10**6),
    prompt=st.integers(0, 128_000),
    asked=st.booleans(),
)
def test_what_is_told_lies_between_nothing_and_the_window(
    fmt: str, counts: list[int | None], added: int, prompt: int, asked: bool
) -> None:
    chat = fmt == "openai-chat"
    names = ["prompt_tokens", "completion_tokens"] if chat else ["input_tokens", "output_tokens"]
    beside = ["cache_read_input_tokens", "cache_creation_input_tokens"] if fmt == "anthropic" else []
    usage: JsonObject = dict(zip(names + beside, counts, strict=False))
    figures = PromptSizes(added=added, window=128_000, prompt=prompt, wants=asked)
    out = told(fmt, usage, figures)
    parts = [out[name] or 0 for name in [names[0], *beside]]
    assert all(isinstance(part, int) and part >= 0 for part in parts)
    assert sum(part for part in parts if isinstance(part, int)) <= 128_000


NAMES = "prompt_tokens completion_tokens total_tokens input_tokens output_tokens prompt_tokens_details cached_tokens"
hostile = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 10**6) | st.just("x") | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["", *NAMES.split()]), inner),
    max_leaves=8,
)


@given(fmt=st.sampled_from(FMTS), usage=hostile, figures=st.sampled_from([GROWN, PromptSizes(window=9, wants=True)]))
def test_usage_of_any_shape_passes_without_a_failure(fmt: str, usage: JsonObject, figures: PromptSizes) -> None:
    body, event = usage_in(fmt, usage)
    assert isinstance(json.loads(rewritten_body(format_named(fmt).server.usage, body, figures)), dict)
    assert fed(fmt, figures, [event]).endswith(b"\n\n")
