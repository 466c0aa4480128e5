"""Streams in which our tool is called: what the client gets is one answer without it."""

import json

import pytest
from hypothesis import given, settings, strategies as st

from everlong.gateway.recall.stream import RecallFilter
from everlong.gateway.recall.tool import NAME
from everlong.llm import Answer
from everlong.wire import format_named
from tests.gateway.recall_streams import (
    FIRST,
    FMTS,
    READ,
    RECALL,
    SECOND,
    end_of,
    events,
    message,
    read_by_sdk,
    text_and_calls,
    through,
    tokens_of,
)

LOOKS = Answer(text="Let me look that up, one moment please. ", calls=(RECALL,), usage=FIRST)
THINKS = Answer(thinking="It was named much earlier.", text="One moment. ", calls=(RECALL,), usage=FIRST)
SILENT = Answer(calls=(RECALL,), usage=FIRST)
SAYS = Answer(text="The port is 8443, as you said at the very start. 端口是 8443。", usage=SECOND)
READS = Answer(thinking="Now the file.", text="Now the file. ", calls=(READ, READ), usage=SECOND)
ENDS = {"openai-chat": "stop", "anthropic": "end_turn", "openai-responses": "completed"}
CALLED = {"openai-chat": "tool_calls", "anthropic": "tool_use", "openai-responses": "completed"}

UNTOUCHED = {
    "words": SAYS,
    "thoughts and words": Answer(thinking="Hm, let me see now.", text="Yes.", usage=FIRST),
    "calls of the client's": READS,
    "our name in words": Answer(text=f"I could call {NAME} or tool_calls or content_block_start.", usage=FIRST),
    "nothing at all": Answer(usage=FIRST),
}


@pytest.mark.parametrize("answer", UNTOUCHED.values(), ids=UNTOUCHED)
@pytest.mark.parametrize("fmt", FMTS)
def test_without_our_tool_each_event_passes_unchanged_at_once(fmt: str, answer: Answer) -> None:
    hiding = RecallFilter(format_named(fmt).server.tool)
    for event in events(fmt, answer):
        assert hiding.feed(event) == event
    assert (hiding.close(), hiding.called, hiding.alone) == (b"", False, False)


@settings(deadline=None, max_examples=60)
@given(
    st.sampled_from(FMTS),
    st.sampled_from(list(UNTOUCHED.values())),
    st.sampled_from([b"\n", b"\r\n", b"\r"]),
    st.lists(st.integers(1, 90), min_size=1, max_size=20),
)
def test_without_our_tool_the_bytes_are_the_same_however_they_are_split(
    fmt: str, answer: Answer, end: bytes, sizes: list[int]
) -> None:
    whole = b": keep-alive\n\n".join(events(fmt, answer)).replace(b"\n", end)
    hiding, out, at, turn = RecallFilter(format_named(fmt).server.tool), b"", 0, 0
    while at < len(whole):
        chunk = whole[at : at + sizes[turn % len(sizes)]]
        at, turn = at + len(chunk), turn + 1
        out += hiding.feed(chunk)
        held = whole[len(out) : at]
        assert whole.startswith(out)
        assert end + end not in held.removesuffix(b"\r").removesuffix(b"\n")  # a whole event never waits
    assert out + hiding.close() == whole


@pytest.mark.parametrize("fmt", FMTS)
@pytest.mark.parametrize("first", [LOOKS, THINKS, SILENT], ids=["words", "thoughts", "the call alone"])
def test_called_alone_the_client_sees_the_words_and_no_end(fmt: str, first: Answer) -> None:
    out, (hiding,) = through(fmt, first)
    assert hiding.alone
    assert NAME.encode() not in b"".join(out)
    said = [event for event in events(fmt, first) if event in out]
    assert said == out
    assert message(fmt, out).text == first.text


@pytest.mark.parametrize("fmt", FMTS)
@pytest.mark.parametrize("second", [SAYS, READS], ids=["says", "calls the client's tools"])
@pytest.mark.parametrize("first", [LOOKS, THINKS, SILENT], ids=["words", "thoughts", "the call alone"])
def test_two_streams_are_one_answer_to_the_real_client(fmt: str, first: Answer, second: Answer) -> None:
    out, hidings = through(fmt, first, second)
    assert [hiding.alone for hiding in hidings] == [True, False]
    seen = read_by_sdk(fmt, b"".join(out))
    names = [name for name, _ in second.calls]
    assert text_and_calls(fmt, seen) == (first.text + second.text, names)
    assert end_of(fmt, seen) == (CALLED if names else ENDS)[fmt]
    assert tokens_of(fmt, seen) == (250, 30)


@pytest.mark.parametrize("fmt", FMTS)
def test_our_tool_may_be_called_again_and_again(fmt: str) -> None:
    out, hidings = through(fmt, LOOKS, SILENT, THINKS, SAYS)
    assert [hiding.alone for hiding in hidings] == [True, True, True, False]
    seen = read_by_sdk(fmt, b"".join(out))
    assert text_and_calls(fmt, seen) == (LOOKS.text + THINKS.text + SAYS.text, [])
    assert tokens_of(fmt, seen) == (450, 50)


@pytest.mark.parametrize("fmt", FMTS)
@pytest.mark.parametrize(
    "calls",
    [(RECALL, READ), (READ, RECALL), (READ, RECALL, READ), (RECALL, RECALL, READ)],
    ids=["before", "after", "between", "twice"],
)
def test_beside_the_clients_own_calls_ours_is_hidden_and_the_answer_ends(
    fmt: str, calls: tuple[tuple[str, str], ...]
) -> None:
    answer = Answer(text="Both at once. ", calls=calls, usage=FIRST)
    out, (hiding,) = through(fmt, answer)
    assert (hiding.called, hiding.alone) == (True, False)
    seen = read_by_sdk(fmt, b"".join(out))
    assert text_and_calls(fmt, seen) == (answer.text, [name for name, _ in calls if name != NAME])
    assert end_of(fmt, seen) == CALLED[fmt]
    assert _numbers(fmt, out) == list(range(len(_numbers(fmt, out))))


@pytest.mark.parametrize("fmt", FMTS)
@pytest.mark.parametrize("first", [LOOKS, SILENT], ids=["words", "the call alone"])
def test_an_answer_without_continuation_can_be_ended(fmt: str, first: Answer) -> None:
    out, hidings = through(fmt, LOOKS, first)
    seen = read_by_sdk(fmt, b"".join([*out, hidings[-1].ending()]))
    assert text_and_calls(fmt, seen) == (LOOKS.text + first.text, [])
    assert end_of(fmt, seen) == ENDS[fmt]
    assert tokens_of(fmt, seen) == (200, 20)


@pytest.mark.parametrize("size", [1, 7, 10_000])
@pytest.mark.parametrize("end", [b"\r\n", b"\r"], ids=["CRLF", "CR"])
@pytest.mark.parametrize("fmt", FMTS)
def test_other_line_ends_and_splits_give_the_same_answer(fmt: str, end: bytes, size: int) -> None:
    shown, out = None, b""
    for number, answer in enumerate((THINKS, READS), 1):
        hiding = RecallFilter(format_named(fmt).server.tool, shown)
        stream = b"".join(events(fmt, answer, number)).replace(b"\n", end)
        out += b"".join(hiding.feed(stream[at : at + size]) for at in range(0, len(stream), size)) + hiding.close()
        shown = hiding.shown
    assert NAME.encode() not in out
    same = b"".join(through(fmt, THINKS, READS)[0])
    assert out.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split() == same.split()
    names = [line for line in out.splitlines() if line.startswith(b"event:")]
    assert len(names) == (0 if fmt == "openai-chat" else sum(line.startswith(b"data:") for line in out.splitlines()))


def test_what_is_shown_is_numbered_without_gaps() -> None:
    out, _ = through("openai-responses", THINKS, THINKS, READS)
    data = [json.loads(event.partition(b"data: ")[2]) for event in out]
    assert [event["sequence_number"] for event in data] == list(range(len(data)))
    assert _numbers("openai-responses", out) == list(range(8))
    assert [item["type"] for item in data[-1]["response"]["output"]] == [
        *("reasoning", "message") * 3,
        *("function_call",) * 2,
    ]
    blocks, _ = through("anthropic", THINKS, THINKS, READS)
    assert _numbers("anthropic", blocks) == list(range(8))
    assert sum(b"message_start" in event for event in blocks) == 1


def test_chunks_of_both_streams_have_one_id_and_one_role() -> None:
    out, _ = through("openai-chat", LOOKS, SAYS)
    data = [json.loads(event.removeprefix(b"data: ")) for event in out if b"[DONE]" not in event]
    assert {event["id"] for event in data} == {"chatcmpl-1"}
    assert sum("role" in choice["delta"] for event in data for choice in event["choices"]) == 1
    assert sum(b"[DONE]" in event for event in out) == 1


def test_signed_thoughts_of_two_streams_stay_apart() -> None:
    def chunk(**delta: object) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": None}
        return b"data: " + json.dumps({"id": "c", "choices": [choice]}).encode() + b"\n\n"

    thought = {"type": "reasoning.text", "text": "Hm.", "signature": "s", "index": 0}
    call = {"index": 0, "id": "call_1", "type": "function", "function": {"name": NAME, "arguments": "{}"}}
    first = RecallFilter(format_named("openai-chat").server.tool)
    assert first.feed(chunk(reasoning_details=[thought])) == chunk(reasoning_details=[thought])
    assert first.feed(chunk(tool_calls=[call])) == b""
    second = RecallFilter(format_named("openai-chat").server.tool, first.shown)
    passed = json.loads(second.feed(chunk(reasoning_details=[thought])).removeprefix(b"data: "))
    assert passed["choices"][0]["delta"]["reasoning_details"] == [thought | {"index": 1}]


def test_a_call_and_the_end_in_one_chunk_with_words() -> None:
    call = {"index": 0, "id": "call_1", "type": "function", "function": {"name": NAME, "arguments": "{}"}}
    delta = {"role": "assistant", "content": "One moment.", "tool_calls": [call]}
    choice = {"index": 0, "delta": delta, "finish_reason": "tool_calls"}
    hiding = RecallFilter(format_named("openai-chat").server.tool)
    event = json.dumps({"id": "c", "choices": [choice], "usage": {"prompt_tokens": 3}}).encode()
    out = json.loads(hiding.feed(b"data: " + event + b"\n\n").removeprefix(b"data: "))
    assert out["choices"] == [
        {"index": 0, "delta": {"role": "assistant", "content": "One moment."}, "finish_reason": None}
    ]
    assert "usage" not in out
    assert hiding.feed(b"data: [DONE]\n\n") == b""
    assert hiding.alone


def test_usage_inside_the_choice_is_added_there() -> None:
    def last(reason: str, tokens: int) -> bytes:
        choice = {"index": 0, "delta": {}, "finish_reason": reason, "usage": {"prompt_tokens": tokens}}
        return b"data: " + json.dumps({"id": "c", "choices": [choice]}).encode() + b"\n\n"

    call = {"index": 0, "id": "call_1", "type": "function", "function": {"name": NAME, "arguments": "{}"}}
    first = RecallFilter(format_named("openai-chat").server.tool)
    first.feed(b"data: " + json.dumps({"choices": [{"delta": {"tool_calls": [call]}}]}).encode() + b"\n\n")
    assert first.feed(last("tool_calls", 3)) == b""
    out = json.loads(
        RecallFilter(format_named("openai-chat").server.tool, first.shown).feed(last("stop", 4)).removeprefix(b"data: ")
    )
    assert out["choices"][0]["usage"] == {"prompt_tokens": 7}


@pytest.mark.parametrize("fmt", FMTS)
def test_half_a_surrogate_pair_passes_through_an_edited_stream(fmt: str) -> None:
    out, _ = through(fmt, SILENT, Answer(text="x" * 3, usage=SECOND))
    assert out
    hiding = RecallFilter(format_named(fmt).server.tool, through(fmt, SILENT)[1][0].shown)
    stream = b"".join(events(fmt, Answer(text="AZ", usage=SECOND), 2)).replace(b"AZ", b"A\\ud83d")
    assert b"A\\ud83d" in hiding.feed(stream)


def test_a_huge_event_is_not_waited_for() -> None:
    hiding = RecallFilter(format_named("openai-chat").server.tool)
    passed = sum(len(hiding.feed(b"data: " + b"x" * 65_536)) for _ in range(64))
    assert passed > 3_000_000
    rest = hiding.feed(b"\n\ndata: [DONE]\n\n")
    assert passed + len(rest) == 64 * (65_536 + 6) + 16


@pytest.mark.parametrize("fmt", FMTS)
def test_errors_inside_a_continuation_reach_the_client(fmt: str) -> None:
    _, (first,) = through(fmt, LOOKS)
    error = b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"busy"}}\n\n'
    assert RecallFilter(format_named(fmt).server.tool, first.shown).feed(error) == error


def test_a_failed_continuation_is_a_failure_of_the_answer_the_client_knows() -> None:
    _, (first,) = through("openai-responses", LOOKS)
    event = {"type": "response.failed", "sequence_number": 4, "response": {"id": "resp_2", "status": "failed"}}
    out = RecallFilter(format_named("openai-responses").server.tool, first.shown).feed(
        b"data: " + json.dumps(event).encode() + b"\n\n"
    )
    failed = json.loads(out.removeprefix(b"data: "))
    assert (failed["type"], failed["response"]["id"]) == ("response.failed", "resp_1")
    assert failed["sequence_number"] == first.shown.sequence


def _numbers(fmt: str, out: list[bytes]) -> list[int]:
    """The places of calls, blocks or items that the client hears of, in the order they begin."""
    numbers = []
    for event in out:
        text = event.partition(b"data: ")[2]
        data = json.loads(text) if text.startswith(b"{") else {}
        if fmt == "openai-chat":
            for choice in data.get("choices", []):
                numbers += [call["index"] for call in choice["delta"].get("tool_calls", [])]
        elif data.get("type") in ("content_block_start", "response.output_item.added"):
            numbers.append(data.get("index", data.get("output_index")))
    return numbers
