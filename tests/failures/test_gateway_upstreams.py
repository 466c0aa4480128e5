"""Failure modes of what upstreams refuse or want back, through the gateway over HTTP: B2, B3, B4, F4, F5, J5."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from everlong.llm import OVERFLOW, Answer, ReceivedRequest, Refusal, ScriptedServer, Step, Window, reads_files
from everlong.llm.scripted.script import Raw, Script
from everlong.tokens import Counter
from everlong.wire import format_named
from tests.gateway.resending import FORMATS, MARK, Resending, accepted, post, valid_upstream
from tests.gateway.running import RunningGateway

Value = dict[str, Any]
every_format = pytest.mark.parametrize("fmt", FORMATS)

# --- F4: overflow in other words -------------------------------------------------------------------

#: What servers say when a request does not fit, and whether they name the window.
WORDINGS: dict[str, tuple[int, str, bool]] = {
    "OpenAI": (400, OVERFLOW, True),
    "Anthropic": (
        400,
        '{"type":"error","error":{"type":"invalid_request_error",'
        '"message":"prompt is too long: {tokens} tokens > {window} maximum"}}',
        True,
    ),
    "llama.cpp": (
        400,
        '{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it",'
        '"type":"exceed_context_size_error","n_prompt_tokens":{tokens},"n_ctx":{window}}}',
        True,
    ),
    "DashScope": (
        400,
        '{"error":{"code":"invalid_parameter_error","message":"Range of input length should be [1, {window}]"}}',
        True,
    ),
    "Bedrock": (400, '{"message":"Input is too long for requested model."}', False),
    "a proxy": (413, "Request Entity Too Large", False),
}


def _long(fmt: str, turns: int = 24, words: int = 700) -> list[Value]:
    filling = " ".join(f"word{number}" for number in range(words))
    kind = "output_text" if fmt == "openai-responses" else "text"
    said: list[Value] = []
    for turn in range(turns):
        said.append({"role": "user", "content": f"Question {turn} {filling}"})
        said.append({"role": "assistant", "content": [{"type": kind, "text": f"Answer {turn}"}]})
    return [*said, {"role": "user", "content": "And now?"}]


@every_format
@pytest.mark.parametrize("stream", [False, True], ids=["plain", "streaming"])
@pytest.mark.parametrize(("status", "body", "named"), WORDINGS.values(), ids=WORDINGS)
def test_F4_an_overflow_in_any_words_is_recovered_before_the_first_byte(
    fmt: str, stream: bool, status: int, body: str, named: bool
) -> None:
    window = Window(16_000, body=body, status=status)
    with (
        ScriptedServer(lambda _: Answer(text="All is well."), window=window) as server,
        RunningGateway(upstream=server.url, summaries="off") as gateway,
    ):
        client = Resending(fmt, fields={"stream": True} if stream else {})
        client.messages = _long(fmt)
        continuation, headers, answer = client.tried(gateway)
        assert (continuation, b"well." in answer, b"error" in answer.replace(b'"error":null', b"")) == (
            200,
            True,
            False,
        )
        assert int(headers["x-everlong-recovered"]) >= 1
        refused = len(server.requests) - len(accepted(server, server.requests))
        assert refused >= 1
        client.messages += [{"role": "assistant", "content": "All is well."}, {"role": "user", "content": "Sure?"}]
        assert client.tried(gateway)[0] == 200
        valid_upstream(server)
        if named:
            assert len(server.requests) - len(accepted(server, server.requests)) == refused, "the window was learned"
            other = Resending(fmt, key="another", fields=client.fields)
            other.messages = _long(fmt)
            assert other.tried(gateway)[1]["x-everlong-recovered"] == "0", "for everyone who asks this model there"


@every_format
def test_F4_what_is_no_overflow_arrives_as_the_upstream_said_it(fmt: str) -> None:
    said = '{"error":{"message":"You exceeded your current quota.","type":"insufficient_quota"}}'
    with (
        ScriptedServer(lambda _: Refusal(429, said)) as server,
        RunningGateway(upstream=server.url) as gateway,
    ):
        client = Resending(fmt)
        client.messages = [{"role": "user", "content": "hi"}]
        status, _, body = client.tried(gateway)
        assert (status, body.decode()) == (429, said)
        assert len(server.requests) == 1


# --- F5: sub-agents ----------------------------------------------------------------------------------

ROUTES = """
[[upstreams]]
url = "{large}"
name = "large"
models = ["parent"]
[[upstreams]]
url = "{small}"
name = "small"
models = ["child"]
"""


@every_format
def test_F5_a_sub_agent_is_cut_by_the_window_of_its_own_model(fmt: str, tmp_path: Path) -> None:
    """The sub-agent starts from its parent's conversation, with the same key, on a much smaller model."""
    file = tmp_path / "everlong.toml"
    with (
        ScriptedServer(reads_files(1), window=Window(1_000_000, told=True), models=("parent",)) as large,
        ScriptedServer(reads_files(40), window=Window(16_000, told=True), models=("child",)) as small,
    ):
        file.write_text(ROUTES.format(large=large.url, small=small.url))
        with RunningGateway(file=file, summaries="off") as gateway:
            parent = Resending(fmt, model="parent", lines=100)
            for turn in range(8):
                parent.ask(gateway, f"Question {turn}")
            child = Resending(fmt, model="child", messages=[_unnamed(item) for item in parent.messages])
            child.ask(gateway, "Now look at all files.", rounds=50)
            parent.ask(gateway, "And what do you say?")
        for server in (large, small):
            valid_upstream(server)
            assert accepted(server, server.requests) == server.requests
        assert len(small.requests) == 41
        sent = json.loads(large.requests[-1].body)[format_named(fmt).api.messages]
        system = 0 if format_named(fmt).api.system else 1
        assert len(sent) == len(parent.messages) - _answer_items(fmt, parent) + system, "nothing of it was left out"


def _unnamed(item: dict[str, Any]) -> dict[str, Any]:
    """An item for another server, which may give its own the same id."""
    return {name: value for name, value in item.items() if name != "id" or item.get("type") != "message"}


def _answer_items(fmt: str, client: Resending) -> int:
    """How many messages came after the last request: its answer."""
    return 1 if fmt != "openai-responses" else sum(item.get("role") == "assistant" for item in client.messages[-1:])


# --- B2, B3, B4: what a client drops ---------------------------------------------------------------


def _assistants(asked: ReceivedRequest, calls: Callable[[Value], bool]) -> list[Value]:
    body = json.loads(asked.body)
    return [one for one in body["messages"] if one["role"] == "assistant" and calls(one)]


def _wanting(missing: Callable[[ReceivedRequest], bool], words: str, script: Script) -> Script:
    """A script that refuses what lacks something of its own."""

    def strict(asked: ReceivedRequest) -> Step:
        return Refusal(400, json.dumps({"error": {"message": words}})) if missing(asked) else script(asked)

    return strict


def _thinking(rounds: int) -> Script:
    reads = reads_files(rounds)

    def script(asked: ReceivedRequest) -> Step:
        answer = reads(asked)
        assert isinstance(answer, Answer)
        return Answer(text=answer.text, calls=answer.calls, thinking=f"Step {asked.number} needs a file.")

    return script


def _without_thinking(_fmt: str, messages: Sequence[Value], _turn: int) -> list[Value]:
    def bare(message: Value) -> Value:
        content = message.get("content")
        if not isinstance(content, list):
            return {name: value for name, value in message.items() if name != "reasoning_content"}
        return message | {"content": [block for block in content if block["type"] != "thinking"]}

    return [bare(message) for message in messages]


def _rounds_with_restart(server: ScriptedServer, client: Resending, store: Path, question: str) -> None:
    """Three tool rounds, and three more in a gateway that knows only the store."""
    for _ in range(2):
        with RunningGateway(upstream=server.url, store=str(store), summaries="off") as gateway:
            client.ask(gateway, question)
    assert len(server.requests) == 8


def test_B2_thinking_that_a_client_dropped_is_sent_whole(tmp_path: Path) -> None:
    def missing(asked: ReceivedRequest) -> bool:
        used = _assistants(asked, lambda one: any(block["type"] == "tool_use" for block in one["content"]))
        return any(one["content"][0]["type"] != "thinking" for one in used)

    words = "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`."
    with ScriptedServer(_wanting(missing, words, _thinking(3))) as server:
        client = Resending("anthropic", model="claude-opus-4-5", disguise=_without_thinking, lines=3)
        _rounds_with_restart(server, client, tmp_path / "kept.db", "Look.")
        signed = _assistants(server.requests[-1], lambda one: one["content"][0]["type"] == "thinking")
        assert [one["content"][0]["signature"] for one in signed][:3] == ["signed-0", "signed-1", "signed-2"]


def test_B3_reasoning_that_a_client_dropped_is_sent_in_tool_turns(tmp_path: Path) -> None:
    def missing(asked: ReceivedRequest) -> bool:
        return any(
            "reasoning_content" not in one for one in _assistants(asked, lambda one: bool(one.get("tool_calls")))
        )

    words = "The reasoning_content in the thinking mode must be passed back to the API."
    with ScriptedServer(_wanting(missing, words, _thinking(3))) as server:
        client = Resending("openai-chat", model="deepseek-reasoner", disguise=_without_thinking, lines=3)
        _rounds_with_restart(server, client, tmp_path / "kept.db", "Look.")


SIGNED = {"extra_content": {"google": {"thought_signature": "c2lnbmVk"}}}


def _signing(*, stream: bool = False) -> Script:
    """A Gemini behind the OpenAI format: every call is signed, and refused when it comes back without."""
    reads = reads_files(3)

    def script(asked: ReceivedRequest) -> Step:
        for one in _assistants(asked, lambda one: bool(one.get("tool_calls"))):
            if any(call.get("extra_content") != SIGNED["extra_content"] for call in one["tool_calls"]):
                return Refusal(400, '{"error":{"message":"Function call is missing a thought_signature"}}')
        answer = reads(asked)
        assert isinstance(answer, Answer)
        message: Value = {"role": "assistant", "content": answer.text}
        if answer.calls:
            function = {"name": answer.calls[0][0], "arguments": answer.calls[0][1]}
            call = {"id": f"call_{asked.number}", "type": "function", "function": function, **SIGNED}
            message["tool_calls"] = [call]
        finish = "tool_calls" if answer.calls else "stop"
        choice: Value = {"index": 0, "delta" if stream else "message": message, "finish_reason": finish}
        body = json.dumps({"id": "x", "object": "chat.completion", "model": asked.model, "choices": [choice]})
        if stream:
            return Raw(chunk=f"data: {body}\n\ndata: [DONE]\n\n".encode())
        return Raw(chunk=body.encode(), content_type="application/json")

    return script


def _unsigned(_fmt: str, messages: Sequence[Value], _turn: int) -> list[Value]:
    """As the SDKs' own types have it: calls with the fields that the format names."""

    def bare(message: Value) -> Value:
        calls = message.get("tool_calls")
        names = ("id", "type", "function")
        return message | {"tool_calls": [{name: call[name] for name in names} for call in calls]} if calls else message

    return [bare(message) for message in messages]


def test_B4_signatures_that_a_client_dropped_come_back_with_their_calls(tmp_path: Path) -> None:
    with ScriptedServer(_signing()) as server:
        client = Resending("openai-chat", model="gemini-3-pro", disguise=_unsigned, lines=3)
        _rounds_with_restart(server, client, tmp_path / "kept.db", "Look.")


class Streaming(Resending):
    """The same client over streams; the next request follows at once."""

    def send(self, gateway: RunningGateway) -> Value:
        status, _, answer = self.tried(gateway)
        assert status == 200, answer
        (event,) = [line[6:] for line in answer.split(b"\n") if line.startswith(b"data: {")]
        value: Value = json.loads(event)
        return {"choices": [{"message": choice["delta"]} for choice in value["choices"]]}


def test_B4_signatures_of_streams_are_there_before_the_client_can_ask_again(tmp_path: Path) -> None:
    with ScriptedServer(_signing(stream=True)) as server:
        client = Streaming("openai-chat", model="gemini-3-pro", disguise=_unsigned, lines=3, fields={"stream": True})
        _rounds_with_restart(server, client, tmp_path / "kept.db", "Look.")


@every_format
def test_J3_a_stream_that_was_read_to_its_end_is_no_client_that_went_away(fmt: str) -> None:
    with ScriptedServer(lambda _: Answer(text="ok")) as server, RunningGateway(upstream=server.url) as gateway:
        client = Resending(fmt, messages=[{"role": "user", "content": "hi"}], fields={"stream": True})
        for _ in range(20):
            assert client.tried(gateway)[0] == 200
    scope = gateway.services.clients.identify([(b"authorization", b"Bearer k")]).scope
    assert [json.loads(said)["status"] for said in gateway.services.recent.of(scope)] == [200] * 20


# --- J5: what nobody knows ---------------------------------------------------------------------------

UNKNOWN: dict[str, list[Value]] = {
    "openai-chat": [
        {"role": "user", "content": [{"type": "x_hologram", "x_hologram": {"b": 1, "a": [None, 0.5]}}]},
        {"role": "assistant", "content": "I see.", "x_audio": {"id": "a1"}, "refusal": None},
        {"role": "user", "content": "And this?", "x_mood": "curious"},
    ],
    "anthropic": [
        {"role": "user", "content": [{"type": "container_upload", "file_id": "f1"}]},
        {
            "role": "assistant",
            "content": [{"type": "x_server_block", "data": {"z": 1}}, {"type": "text", "text": "ok"}],
        },
        {"role": "user", "content": [{"type": "text", "text": "And this?", "x_mood": "curious"}]},
    ],
    "openai-responses": [
        {"type": "message", "role": "user", "content": [{"type": "x_hologram", "data": {"b": 1}}]},
        {"type": "x_server_call", "id": "s1", "status": "completed", "action": {"q": "x"}},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "And this?"}]},
    ],
}


@every_format
def test_J5_fields_and_parts_that_nobody_knows_arrive_as_they_were_sent(fmt: str) -> None:
    fields: Value = {"x_future": {"deep": [1, {"b": None}]}, "metadata": {"user_id": "u"}, "top_p": 0.25}
    with (
        ScriptedServer(lambda _: Answer(text="ok")) as server,
        RunningGateway(upstream=server.url, breakpoints="off") as gateway,
    ):
        client = Resending(fmt, fields=fields, messages=UNKNOWN[fmt])
        client.send(gateway)
        assert json.loads(server.requests[-1].body) == client.body()


@pytest.mark.parametrize("model", ["gpt-4o", "deepseek-chat", "nobody-knows-me"])
def test_J5_tokens_are_counted_for_models_that_are_no_claude(model: str) -> None:
    text = "How many tokens does this take? " * 50
    body = {"model": model, "messages": [{"role": "user", "content": text}], MARK: 1}
    with ScriptedServer() as server, RunningGateway(upstream=server.url) as gateway:
        status, _, answer = post(gateway, "/v1/messages/count_tokens", json.dumps(body).encode(), {"x-api-key": "k"})
        assert status == 200, answer
        expected = Counter(model).text(text)
        assert expected <= json.loads(answer)["input_tokens"] <= expected * 1.3 + 50
