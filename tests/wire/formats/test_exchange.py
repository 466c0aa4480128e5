"""Answers in all the shapes that servers send, event by event: what is handed on, and the message in the end."""

import json
from dataclasses import dataclass
from typing import Any

import pytest

from everlong.core import Opaque, Reasoning, Role, Text
from everlong.engine import CallGrew, Finished, Reply, Request, Said, Thought
from everlong.wire import FORMATS, Usage
from tests.core.build import user

Event = dict[str, Any]


@dataclass(frozen=True)
class Heard:
    """What came of the events."""

    pieces: list[Reply]
    last: Finished
    complete: bool

    @property
    def calls(self) -> list[tuple[str, str, Any]]:
        """The calls of the message, arguments decoded."""
        return [(call.id, call.name, json.loads(call.arguments or "null")) for call in self.last.message.calls]

    @property
    def grown(self) -> list[tuple[str, str, Any]]:
        """The calls as whoever only listens puts them together."""
        whole: dict[int, list[str]] = {}
        for piece in self.pieces:
            if isinstance(piece, CallGrew):
                parts = whole.setdefault(piece.number, ["", "", ""])
                parts[:] = [parts[0] + piece.id, parts[1] + piece.name, parts[2] + piece.arguments]
        assert sorted(whole) == list(range(len(whole)))
        return [(*whole[n][:2], json.loads(whole[n][2] or "null")) for n in sorted(whole)]  # type: ignore[misc]

    @property
    def said(self) -> str:
        return "".join(piece.text for piece in self.pieces if isinstance(piece, Said))

    @property
    def thought(self) -> str:
        return "".join(piece.text for piece in self.pieces if isinstance(piece, Thought))


def _heard(fmt: str, *events: Event) -> Heard:
    answer = FORMATS[fmt].reader()
    pieces = [piece for event in events for piece in answer.take(event)]
    return Heard(pieces, answer.finished(), answer.complete)


# --- OpenAI Chat Completions ---------------------------------------------------------------------


def _delta(finish: str | None = None, **delta: Any) -> Event:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def _call(name: str | None = None, arguments: Any = None, **more: Any) -> Event:
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    return {**more, "function": function}


TWO = [("a", "read", {"path": "x"}), ("b", "list", {})]
CALLS: dict[str, list[Event]] = {
    "as OpenAI sends them": [
        _delta(tool_calls=[_call("read", "", index=0, id="a", type="function")]),
        _delta(tool_calls=[_call(None, '{"path"', index=0)]),
        _delta(tool_calls=[_call(None, ': "x"}', index=0)]),
        _delta(tool_calls=[_call("list", "{}", index=1, id="b", type="function")]),
    ],
    "interleaved": [
        _delta(tool_calls=[_call("read", "", index=0, id="a"), _call("list", "", index=1, id="b")]),
        _delta(tool_calls=[_call(None, '{"path"', index=0), _call(None, "{", index=1)]),
        _delta(tool_calls=[_call(None, "}", index=1), _call(None, ': "x"}', index=0)]),
    ],
    "no index, one after the other": [
        _delta(tool_calls=[_call("read", '{"path": "x"}', id="a")]),
        _delta(tool_calls=[_call("list", "{}", id="b")]),
    ],
    "no index, together": [
        _delta(tool_calls=[_call("read", '{"path": "x"}', id="a"), _call("list", "{}", id="b")]),
    ],
    "no index, in pieces, the id only at first": [
        _delta(tool_calls=[_call("read", '{"path"', id="a")]),
        _delta(tool_calls=[_call(None, ': "x"}')]),
        _delta(tool_calls=[_call("list", "{", id="b")]),
        _delta(tool_calls=[_call(None, "}")]),
    ],
    "no index, interleaved by id": [
        _delta(tool_calls=[_call("read", '{"path"', id="a"), _call("list", "{", id="b")]),
        _delta(tool_calls=[_call(None, "}", id="b"), _call(None, ': "x"}', id="a")]),
    ],
    "all of them number 0": [
        _delta(tool_calls=[_call("read", '{"path": "x"}', index=0, id="a")]),
        _delta(tool_calls=[_call("list", "{}", index=0, id="b")]),
    ],
    "numbers from 1 on": [
        _delta(tool_calls=[_call("read", '{"path": "x"}', index=1, id="a")]),
        _delta(tool_calls=[_call("list", "{}", index=2, id="b")]),
    ],
    "id and name in every piece": [
        _delta(tool_calls=[_call("read", "", index=0, id="a")]),
        _delta(tool_calls=[_call("read", '{"path"', index=0, id="a")]),
        _delta(tool_calls=[_call("read", ': "x"}', index=0, id="a")]),
        _delta(tool_calls=[_call("list", "{}", index=1, id="b")]),
    ],
    "names in pieces": [
        _delta(tool_calls=[_call("re", "", index=0, id="a")]),
        _delta(tool_calls=[_call("ad", '{"path": "x"}', index=0)]),
        _delta(tool_calls=[_call("list", "{}", index=1, id="b")]),
    ],
    "empty and null where nothing is new": [
        _delta(tool_calls=[_call("read", "", index=0, id="a")]),
        _delta(tool_calls=[{"index": 0, "id": "", "function": {"name": "", "arguments": '{"path": "x"}'}}]),
        _delta(tool_calls=[{"index": 0, "id": None, "type": None, "function": {"name": None, "arguments": None}}]),
        _delta(tool_calls=[_call("list", "{}", index=1, id="b")]),
    ],
    "arguments as objects": [
        _delta(tool_calls=[_call("read", {"path": "x"}, index=0, id="a"), _call("list", {}, index=1, id="b")]),
    ],
    "a whole message": [
        {
            "choices": [
                {
                    "message": {
                        "role": "assistant",
                        "tool_calls": [_call("read", '{"path": "x"}', id="a"), _call("list", "{}", id="b")],
                    }
                }
            ]
        },
    ],
}


@pytest.mark.parametrize("events", CALLS.values(), ids=CALLS)
def test_chat_calls_come_in_many_shapes(events: list[Event]) -> None:
    heard = _heard("openai-chat", *events, _delta("tool_calls"))
    assert heard.calls == TWO
    assert heard.grown == TWO
    assert heard.last.stop == "calls"


def test_chat_ids_that_are_missing_stay_apart() -> None:
    heard = _heard(
        "openai-chat",
        _delta(tool_calls=[_call("read", "{}", index=0), _call("list", "{}", index=1)]),
        _delta("tool_calls"),
    )
    assert [name for _, name, _ in heard.calls] == ["read", "list"]


def test_chat_what_stands_beside_a_call_is_kept() -> None:
    signed = {"google": {"thought_signature": "c2lnbmVk"}}
    heard = _heard(
        "openai-chat", _delta("tool_calls", tool_calls=[_call("read", "{}", index=0, id="a", extra_content=signed)])
    )
    (sent,) = FORMATS["openai-chat"].ask(_request(heard), "").body["messages"]  # type: ignore[misc]
    assert sent["tool_calls"][0]["extra_content"] == signed  # type: ignore[index, call-overload]


def _request(heard: Heard, **more: Any) -> Request:
    return Request(model="m", messages=(heard.last.message,), **more)


def test_chat_content_in_blocks_is_words_and_thoughts() -> None:
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}
    heard = _heard(
        "openai-chat",
        _delta(content=[thinking]),
        _delta(content=[{"type": "text", "text": "Hel"}]),
        _delta("stop", content="lo"),
    )
    assert (heard.said, heard.thought, heard.last.message.text) == ("Hello", "Hm.", "Hello")


def test_chat_signed_thinking_can_be_sent_again() -> None:
    heard = _heard(
        "openai-chat",
        _delta(reasoning="Let", reasoning_details=[{"type": "reasoning.text", "text": "Let", "index": 0}]),
        _delta(reasoning=" me.", reasoning_details=[{"type": "reasoning.text", "text": " me.", "index": 0}]),
        _delta(reasoning_details=[{"type": "reasoning.text", "signature": "abc", "index": 0}]),
        _delta(reasoning_details=[{"type": "reasoning.encrypted", "data": "xyz", "index": 1}]),
        _delta("stop", content="Hi."),
    )
    assert heard.thought == "Let me."
    (sent,) = FORMATS["openai-chat"].ask(_request(heard), "").body["messages"]  # type: ignore[misc]
    assert sent["reasoning_details"] == [  # type: ignore[index, call-overload]
        {"type": "reasoning.text", "text": "Let me.", "index": 0, "signature": "abc"},
        {"type": "reasoning.encrypted", "data": "xyz", "index": 1},
    ]


def _usage(prompt: int, output: int) -> Event:
    return {"usage": {"prompt_tokens": prompt, "completion_tokens": output}}


USAGES: dict[str, tuple[list[Event], Usage | None]] = {
    "last chunk": ([_delta(content="a"), _delta("stop"), {"choices": [], **_usage(9, 2)}], Usage(prompt=9, output=2)),
    "every chunk": (
        [{**_delta(content="a"), **_usage(9, 1)}, {**_delta("stop"), **_usage(9, 2)}],
        Usage(prompt=9, output=2),
    ),
    "null until the last": (
        [{**_delta(content="a"), "usage": None}, {**_delta("stop"), **_usage(9, 2)}],
        Usage(prompt=9, output=2),
    ),
    "inside the choice": (
        [_delta(content="a"), {"choices": [{"delta": {}, "finish_reason": "stop", **_usage(9, 2)}]}],
        Usage(prompt=9, output=2),
    ),
    "never": ([_delta(content="a"), _delta("stop")], None),
}


@pytest.mark.parametrize(("events", "usage"), USAGES.values(), ids=USAGES)
def test_chat_usage_wherever_it_stands(events: list[Event], usage: Usage | None) -> None:
    assert _heard("openai-chat", *events).last.usage == usage


@pytest.mark.parametrize("finish", ["stop", "tool_calls", "function_call", None])
def test_an_answer_with_calls_ended_for_them_whatever_it_says(finish: str | None) -> None:
    heard = _heard("openai-chat", _delta(finish, tool_calls=[_call("read", "{}", index=0, id="a")]))
    assert heard.last.stop == "calls"


@pytest.mark.parametrize(
    "event",
    [{}, {"choices": None}, {"choices": []}, {"choices": [None]}, {"choices": [{"delta": None}]}, {"choices": 7},
     {"choices": [{"delta": {"content": 7, "tool_calls": [None, 7, {}], "reasoning": []}}]}],
)  # fmt: skip
def test_chat_odd_chunks_say_nothing(event: Event) -> None:
    heard = _heard("openai-chat", event, _delta("stop", content="ok"))
    assert heard.said == "ok"


# --- Anthropic Messages --------------------------------------------------------------------------


def _started(index: int, **block: Any) -> Event:
    return {"type": "content_block_start", "index": index, "content_block": block}


def _grew(index: int, kind: str, **delta: Any) -> Event:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **delta}}


ENDED = (
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 7}},
    {"type": "message_stop"},
)


def test_anthropic_thinking_signature_and_sealed_thinking_stay_whole_and_pings_are_nothing() -> None:
    heard = _heard(
        "anthropic",
        {"type": "message_start", "message": {"usage": {"input_tokens": 20, "output_tokens": 1}}},
        {"type": "ping"},
        _started(0, type="thinking", thinking="", signature=""),
        _grew(0, "thinking_delta", thinking="Let "),
        {"type": "ping"},
        _grew(0, "thinking_delta", thinking="me."),
        _grew(0, "signature_delta", signature="c2ln"),
        _started(1, type="redacted_thinking", data="c2VhbGVk"),
        _started(2, type="text", text=""),
        _grew(2, "text_delta", text="Hi."),
        {"type": "content_block_stop", "index": 2},
        *ENDED,
    )
    assert (heard.thought, heard.said, heard.complete) == ("Let me.", "Hi.", True)
    assert heard.last.usage == Usage(prompt=20, output=7)
    body = FORMATS["anthropic"].ask(_request(heard), "").body
    assert body["messages"][0]["content"] == [  # type: ignore[index, call-overload]
        {"type": "thinking", "thinking": "Let me.", "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "c2VhbGVk"},
        {"type": "text", "text": "Hi."},
    ]


def test_anthropic_tools_of_the_server_are_not_calls_of_ours() -> None:
    heard = _heard(
        "anthropic",
        _started(0, type="server_tool_use", id="s", name="web_search", input={}),
        _grew(0, "input_json_delta", partial_json='{"query": "x"}'),
        _started(1, type="web_search_tool_result", tool_use_id="s", content=[]),
        _started(2, type="tool_use", id="a", name="read", input={}),
        _grew(2, "input_json_delta", partial_json='{"path": "x"}'),
        *ENDED,
    )
    assert heard.grown == [("a", "read", {"path": "x"})]
    assert [call.id for call in heard.last.message.calls] == ["a"]
    sealed = [part for part in heard.last.message.parts if isinstance(part, Opaque)]
    assert json.loads(sealed[0].body)["input"] == {"query": "x"}


@pytest.mark.parametrize(
    ("begun", "pieces", "arguments"),
    [
        ({}, ['{"pa', 'th": "x"}'], {"path": "x"}),
        ({}, [], {}),
        ({}, [""], {}),
        ({"path": "x"}, [], {"path": "x"}),
        ({}, ['{"pa'], {}),
        ({}, ["[1]"], {}),
    ],
    ids=["pieces", "none", "an empty piece", "at once", "cut off", "no object"],
)
def test_anthropic_arguments(begun: Event, pieces: list[str], arguments: Event) -> None:
    grown = [_grew(0, "input_json_delta", partial_json=piece) for piece in pieces]
    heard = _heard("anthropic", _started(0, type="tool_use", id="a", name="read", input=begun), *grown, *ENDED)
    assert heard.calls == [("a", "read", arguments)]
    if begun:
        assert heard.grown == heard.calls


def test_anthropic_words_without_a_beginning_are_kept() -> None:
    heard = _heard("anthropic", _grew(0, "text_delta", text="Hi"), _grew(0, "text_delta", text="."), *ENDED)
    assert (heard.said, heard.last.message.text) == ("Hi.", "Hi.")


def test_anthropic_whole_message() -> None:
    blocks = [
        {"type": "thinking", "thinking": "Hm.", "signature": "s"},
        {"type": "text", "text": "Hi."},
        {"type": "tool_use", "id": "a", "name": "read", "input": {"path": "x"}},
    ]
    usage = {"input_tokens": 9, "output_tokens": 2}
    heard = _heard(
        "anthropic",
        {"type": "message", "role": "assistant", "content": blocks, "stop_reason": "tool_use", "usage": usage},
    )
    assert (heard.said, heard.thought, heard.complete) == ("Hi.", "Hm.", True)
    assert heard.grown == heard.calls == [("a", "read", {"path": "x"})]
    assert (heard.last.stop, heard.last.usage) == ("calls", Usage(prompt=9, output=2))


# --- OpenAI Responses ----------------------------------------------------------------------------

REASONING = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAA"}
SPOKEN = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "content": [{"type": "output_text", "text": "Hi.", "annotations": []}],
}
CALLED = {"type": "function_call", "id": "fc_1", "call_id": "a", "name": "read", "arguments": '{"path": "x"}'}


def _done(index: int, item: Event) -> Event:
    return {"type": "response.output_item.done", "output_index": index, "item": item}


def _completed(*output: Event) -> Event:
    usage = {"input_tokens": 9, "output_tokens": 2, "input_tokens_details": {"cached_tokens": 0}}
    return {"type": "response.completed", "response": {"status": "completed", "output": [*output], "usage": usage}}


RESPONSES: dict[str, list[Event]] = {
    "items and output": [
        _done(0, REASONING),
        _done(1, SPOKEN),
        _done(2, CALLED),
        _completed(REASONING, SPOKEN, CALLED),
    ],
    "items alone": [_done(0, REASONING), _done(1, SPOKEN), _done(2, CALLED), _completed()],
    "output alone": [_completed(REASONING, SPOKEN, CALLED)],
    "not streamed": [{"object": "response", "error": None, **_completed(REASONING, SPOKEN, CALLED)["response"]}],
}


@pytest.mark.parametrize("events", RESPONSES.values(), ids=RESPONSES)
def test_responses_sealed_reasoning_words_and_calls(events: list[Event]) -> None:
    heard = _heard("openai-responses", *events)
    assert heard.complete
    assert heard.last.message.role is Role.ASSISTANT
    assert heard.last.message.text == "Hi."
    assert heard.calls == [("a", "read", {"path": "x"})]
    assert heard.last.stop == "calls"
    assert heard.last.usage == Usage(prompt=9, output=2)
    items = FORMATS["openai-responses"].ask(_request(heard), "").body["input"]
    assert REASONING in items  # type: ignore[operator]


def test_responses_that_is_not_streamed_is_handed_on_too() -> None:
    heard = _heard("openai-responses", *RESPONSES["not streamed"])
    assert (heard.said, heard.grown) == ("Hi.", heard.calls)


def test_responses_words_without_items_are_kept() -> None:
    words = [{"type": "response.output_text.delta", "output_index": 0, "delta": word} for word in ("H", "i.")]
    heard = _heard("openai-responses", *words, _completed())
    assert (heard.said, heard.last.message.text) == ("Hi.", "Hi.")


def test_responses_reasoning_that_nobody_keeps_is_not_referred_to() -> None:
    """With `store` false an id alone leads nowhere: the provider refuses it as not found."""
    unsealed = {"type": "reasoning", "id": "rs_9", "summary": [{"type": "summary_text", "text": "Hm."}]}
    heard = _heard("openai-responses", _completed(unsealed, SPOKEN, REASONING, CALLED))
    asking = FORMATS["openai-responses"].ask
    assert unsealed not in asking(_request(heard), "").body["input"]  # type: ignore[operator]
    assert REASONING in asking(_request(heard), "").body["input"]  # type: ignore[operator]
    assert unsealed in asking(_request(heard, extra='{"store": true}'), "").body["input"]  # type: ignore[operator]


def test_responses_sealed_reasoning_is_asked_for_where_reasoning_is() -> None:
    asking = FORMATS["openai-responses"].ask
    ask = Request(model="m", messages=(user("hi"),))
    assert "include" not in asking(ask, "").body
    thinks = Request(model="m", messages=(user("hi"),), extra='{"reasoning": {"effort": "low"}}')
    assert asking(thinks, "").body["include"] == ["reasoning.encrypted_content"]
    own = Request(model="m", messages=(user("hi"),), extra='{"reasoning": {}, "include": ["x"]}')
    assert asking(own, "").body["include"] == ["x", "reasoning.encrypted_content"]
    stored = Request(model="m", messages=(user("hi"),), extra='{"reasoning": {}, "store": true}')
    assert "include" not in asking(stored, "").body


# --- Gemini --------------------------------------------------------------------------------------


def _parts(*parts: Event, finish: str = "") -> Event:
    candidate: Event = {"content": {"role": "model", "parts": [*parts]}}
    return {"candidates": [candidate | ({"finishReason": finish} if finish else {})]}


def _sent_parts(heard: Heard) -> list[Event]:
    contents = FORMATS["gemini"].ask(_request(heard), "").body["contents"]
    return contents[0]["parts"]  # type: ignore[index, return-value, call-overload]


def test_gemini_signed_parts_stay_apart() -> None:
    heard = _heard(
        "gemini",
        _parts({"text": "Hm", "thought": True}),
        _parts({"text": ".", "thought": True}),
        _parts({"text": "Hel"}),
        _parts({"text": "lo"}),
        _parts({"text": "", "thoughtSignature": "c2ln"}, finish="STOP"),
    )
    assert (heard.thought, heard.said, heard.last.stop) == ("Hm.", "Hello", "stop")
    assert _sent_parts(heard)[-2:] == [{"text": "Hello"}, {"text": "", "thoughtSignature": "c2ln"}]


def test_gemini_a_signature_stays_with_its_call() -> None:
    call = {"functionCall": {"name": "read", "args": {"path": "x"}}, "thoughtSignature": "c2ln"}
    heard = _heard("gemini", _parts({"text": "Reading."}), _parts(call, finish="STOP"))
    assert heard.last.stop == "calls"
    assert heard.last.message.calls[0].name == "read"
    assert _sent_parts(heard)[-1]["thoughtSignature"] == "c2ln"


def test_gemini_a_prompt_that_is_blocked_is_a_refusal() -> None:
    heard = _heard("gemini", {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}})
    assert heard.complete
    assert heard.last.stop == "refusal"
    assert not heard.last.message.text


def test_gemini_a_model_may_be_named_as_its_listing_does() -> None:
    ask = Request(model="models/gemini-2.5-pro", messages=(user("hi"),))
    assert FORMATS["gemini"].ask(ask, "").path == "/models/gemini-2.5-pro:streamGenerateContent?alt=sse"


def test_words_and_thoughts_are_parts() -> None:
    heard = _heard("openai-chat", _delta(reasoning_content="Hm."), _delta("stop", content="Hi."))
    assert [type(part) for part in heard.last.message.parts] == [Reasoning, Text]
