"""Ollama clients: the window is the one that Ollama really gives, and nothing is ever cut without a word."""

import json
import os
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.client import HTTPConnection
from queue import Queue
from typing import Any

import pytest

from everlong.llm import Answer, ReceivedRequest, ScriptedOllama, ScriptedServer
from everlong.wire import problems
from tests.gateway.resending import post
from tests.gateway.running import RunningGateway

CONVERSATIONS = 500 if os.environ.get("EVERLONG_SOAK") else 12
MODEL = "llama3.2"
Said = dict[str, Any]


def ask(gateway: RunningGateway, messages: list[Said], path: str = "/api/chat", **fields: Any) -> list[Said]:
    """One request; the lines or the one object that come back."""
    status, headers, body = post(gateway, path, json.dumps({"model": MODEL, "messages": messages, **fields}).encode())
    assert status == 200, body
    assert headers["x-everlong-managed"] == "yes"
    return [json.loads(line) for line in body.splitlines()]


def reply_to(lines: list[Said]) -> Said:
    """The message that a client puts together."""
    calls = [call for line in lines for call in line["message"].get("tool_calls", ())]
    said = {"role": "assistant", "content": "".join(line["message"].get("content", "") for line in lines)}
    return said | ({"tool_calls": calls} if calls else {})


def windows_of(gateway: RunningGateway) -> "Queue[int]":
    """The windows that are reported, request by request."""
    windows: Queue[int] = Queue()
    gateway.services.recent.observers.append(lambda _, report: windows.put(report.window))
    return windows


@pytest.fixture
def served() -> Iterator[tuple[RunningGateway, ScriptedServer, ScriptedOllama]]:
    ollama = ScriptedOllama()
    with ScriptedServer(ollama=ollama) as server, RunningGateway(upstream=server.address) as gateway:
        yield gateway, server, ollama


def test_a_conversation_of_three_windows_reaches_ollama_whole_within_num_ctx(
    served: tuple[RunningGateway, ScriptedServer, ScriptedOllama],
) -> None:
    gateway, server, ollama = served
    messages: list[Said] = [{"role": "system", "content": "Be brief."}]
    while sum(len(message["content"]) for message in messages) < 3 * 4 * ollama.default:
        messages.append({"role": "user", "content": f"Boat {len(messages)}: " + "the pier has boats and ropes. " * 40})
        lines = ask(gateway, messages)
        assert [line["done"] for line in lines] == [False] * (len(lines) - 1) + [True]
        assert lines[-1]["done_reason"] == "stop"
        messages.append(reply_to(lines))
    assert (ollama.truncated, ollama.shifted, ollama.loads) == ([], [], 1)
    for asked in server.requests:
        body = json.loads(asked.body)
        assert body["options"]["num_ctx"] == ollama.default
        assert asked.tokens + body["options"]["num_predict"] <= ollama.default
        assert body["truncate"] is False
        assert not problems("ollama", body)
    assert len(server.requests[-1].messages) < len(messages)


# --- which window it is ------------------------------------------------------------------------------

LONG = [{"role": "user", "content": "Hello."}]


@dataclass(frozen=True, kw_only=True)
class Case:
    """Who says what, and the num_ctx that is asked for."""

    ollama: ScriptedOllama = field(default_factory=ScriptedOllama)
    options: Mapping[str, Any] = field(default_factory=dict)
    config: Mapping[str, Any] = field(default_factory=dict)
    expected: int
    loads: int = 1


CASES: dict[str, Case] = {
    "the request": Case(options={"num_ctx": 8_192}, expected=8_192),
    "the request, but the model takes less": Case(
        ollama=ScriptedOllama(most=6_000), options={"num_ctx": 8_192}, expected=6_000
    ),
    "the model's file": Case(ollama=ScriptedOllama(file=16_384), expected=16_384),
    "the request before the model's file": Case(
        ollama=ScriptedOllama(file=16_384), options={"num_ctx": 8_192}, expected=8_192
    ),
    "the server's default": Case(ollama=ScriptedOllama(default=32_768), expected=32_768),
    "a default above what the model takes": Case(ollama=ScriptedOllama(default=262_144, most=40_960), expected=40_960),
    "loaded by another client with a window of its own": Case(
        ollama=ScriptedOllama(loaded={MODEL: 65_536}), expected=4_096
    ),
    "a server too old to tell": Case(ollama=ScriptedOllama(default=2_048, tells=False), expected=4_096, loads=2),
    "raised by the operator": Case(config={"ollama_num_ctx": 32_768}, expected=32_768, loads=2),
    "raised, within what the model takes": Case(
        ollama=ScriptedOllama(most=20_000), config={"ollama_num_ctx": 32_768}, expected=20_000, loads=2
    ),
    "raised above what the request asks for": Case(
        options={"num_ctx": 2_048}, config={"ollama_num_ctx": 32_768}, expected=32_768
    ),
    "not lowered by the operator's limit": Case(
        options={"num_ctx": 65_536}, config={"ollama_num_ctx": 32_768}, expected=65_536
    ),
    "set by the operator for every model": Case(config={"window": 12_000}, expected=12_000, loads=2),
}


@pytest.mark.parametrize("name", CASES)
def test_the_window_is_what_ollama_gives(name: str) -> None:
    case = CASES[name]
    with (
        ScriptedServer(ollama=case.ollama) as server,
        RunningGateway(upstream=server.address, **case.config) as gateway,
    ):
        reported = windows_of(gateway)
        for _ in range(3):
            ask(gateway, LONG, options=dict(case.options))
        told = {reported.get(timeout=20) for _ in range(3)}
    assert [json.loads(asked.body)["options"]["num_ctx"] for asked in server.requests] == [case.expected] * 3
    assert case.ollama.loaded == {MODEL: case.expected}
    assert (case.ollama.loads, told) == (case.loads, {case.expected})


@pytest.mark.parametrize(
    ("ollama", "expected"),
    [
        (ScriptedOllama(file=16_384), 16_384),
        (ScriptedOllama(default=8_192), 8_192),
        (ScriptedOllama(loaded={MODEL: 65_536}), 4_096),
        (ScriptedOllama(default=2_048, tells=False), 2_048),
    ],
    ids=["the model's file", "the default", "loaded by another client", "too old to tell"],
)
def test_openai_clients_of_an_ollama_have_the_same_window(ollama: ScriptedOllama, expected: int) -> None:
    """Their API cannot set it."""
    with ScriptedServer(ollama=ollama) as server, RunningGateway(upstream=server.url) as gateway:
        reported = windows_of(gateway)
        status, _, body = post(gateway, "/v1/chat/completions", json.dumps({"model": MODEL, "messages": LONG}).encode())
        assert (status, reported.get(timeout=20)) == (200, expected), body


def test_settings_of_the_client_stay() -> None:
    ollama = ScriptedOllama()
    with ScriptedServer(ollama=ollama) as server, RunningGateway(upstream=server.address) as gateway:
        ask(gateway, LONG, options={"num_predict": 77, "seed": 5}, keep_alive="1h", truncate=True, think=False)
    body = json.loads(server.requests[0].body)
    assert body["options"] == {"num_predict": 77, "seed": 5, "num_ctx": 4_096}
    assert (body["keep_alive"], body["truncate"], body["think"]) == ("1h", True, False)


# --- other paths ---------------------------------------------------------------------------------------


def test_a_single_prompt_is_told_as_not_managed_and_never_cut() -> None:
    ollama = ScriptedOllama()
    prompts: list[Said] = [
        {"prompt": "Why?"},
        {"prompt": "Why?", "context": [1, 2, 3]},
        {"prompt": "Why?", "raw": True},
        {"prompt": "def f(", "suffix": ")"},
    ]
    with ScriptedServer(ollama=ollama) as server, RunningGateway(upstream=server.address) as gateway:
        for prompt in prompts:
            status, headers, body = post(gateway, "/api/generate", json.dumps({"model": MODEL, **prompt}).encode())
            assert (status, json.loads(body)["response"]) == (200, prompt["prompt"])
            assert headers["x-everlong-managed"].startswith("no; a single prompt")
    assert ollama.prompts == [{"model": MODEL, **prompt, "truncate": False} for prompt in prompts]


def test_models_are_loaded_shown_and_listed_as_without_the_gateway() -> None:
    ollama = ScriptedOllama()
    server = ScriptedServer(ollama=ollama, models=(MODEL,))
    with server, RunningGateway(upstream=server.address) as gateway:
        assert post(gateway, "/api/show", json.dumps({"model": MODEL}).encode())[0] == 200
        status, _, body = post(gateway, "/api/generate", json.dumps({"model": MODEL}).encode())
        assert (status, json.loads(body)["done_reason"]) == (200, "load")
        for path, name in (("/api/tags", "models"), ("/api/ps", "models"), ("/api/version", "version")):
            connection = HTTPConnection("127.0.0.1", gateway.port, timeout=20)
            connection.request("GET", path)
            assert json.loads(connection.getresponse().read())[name]
            connection.close()


def test_an_error_has_ollamas_form() -> None:
    with ScriptedServer(ollama=ScriptedOllama()) as server, RunningGateway(upstream=server.address) as gateway:
        huge = [{"role": "user", "content": "boats and ropes " * 9_000}]
        status, _, body = post(gateway, "/api/chat", json.dumps({"model": MODEL, "messages": huge}).encode())
    assert (status, set(json.loads(body))) == (400, {"error"})
    assert json.loads(body)["error"].startswith("the input length exceeds the context length")


# --- calls and results without ids -----------------------------------------------------------------------


def test_parallel_calls_without_ids_keep_their_results() -> None:
    """A client of old sends results that name nothing, or only the tool."""

    def script(asked: ReceivedRequest) -> Answer:
        call = ("read", json.dumps({"n": asked.number}))
        return Answer(calls=(call, call)) if len(asked.messages) % 4 == 1 else Answer(text="Done. " * 60)

    ollama = ScriptedOllama()
    with ScriptedServer(script, ollama=ollama) as server, RunningGateway(upstream=server.address) as gateway:
        messages: list[Said] = []
        for turn in range(24):
            messages.append({"role": "user", "content": f"Read {turn}. " + "Carefully. " * 30})
            for _ in range(2):
                said = reply_to(ask(gateway, messages, tools=[TOOL]))
                messages.append(said)
                if "tool_calls" not in said:
                    break
                results = [{"role": "tool", "content": f"{turn}/{at}: " + "line of text " * 30} for at in range(2)]
                messages += [result | ({"tool_name": "read"} if turn % 2 else {}) for result in results]
    for asked in server.requests:
        assert not problems("ollama", json.loads(asked.body))
    assert (ollama.truncated, ollama.shifted) == ([], [])
    last = json.loads(server.requests[-1].body)["messages"]
    assert messages[-4:-1] == last[-3:] or messages[-1] in last or last[-1]["role"] == "tool"


TOOL = {
    "type": "function",
    "function": {"name": "read", "description": "Reads.", "parameters": {"type": "object", "properties": {}}},
}

# --- random conversations --------------------------------------------------------------------------------

TEXTS = (
    "The pier has boats and ropes. ",
    "请把配置文件里的端口改成 8080，然后重启服务。",
    "def f(x):\n    return {'a': [x ** 2 for _ in range(10)]}\n",
    "0x7f3a 9c41 e8b2 \\u00e9 ",
    "日本語のテキストです。🇨🇳 👩‍👩‍👧‍👦 ",
)


class Talk:
    """A client with a conversation drawn by dice, at an Ollama drawn by dice."""

    def __init__(self, number: int) -> None:
        self.dice = random.Random(number)
        dice = self.dice
        self.ollama = ScriptedOllama(
            default=dice.choice((4_096, 8_192, 16_384)),
            most=dice.choice((8_192, 40_960, 131_072)),
            file=dice.choice((None, None, 6_000)),
            tells=dice.random() < 0.7,
            refuses=dice.random() < 0.5,
        )
        self.options = dice.choice(({}, {}, {"num_ctx": dice.choice((3_000, 5_000, 12_000))}))
        self.path = dice.choice(("/api/chat", "/api/chat", "/v1/chat/completions"))
        self.requests = dice.randint(4, 14)

    def words(self, most: int) -> str:
        return self.dice.choice(TEXTS) * self.dice.randint(1, most)

    def script(self, asked: ReceivedRequest) -> Answer:
        if self.dice.random() < 0.4 and asked.tools:
            return Answer(calls=(("read", json.dumps({"path": f"a{asked.number}.py"})),) * self.dice.randint(1, 2))
        return Answer(text=self.words(30))

    def run(self) -> None:
        native = self.path == "/api/chat"
        fields: Said = {"stream": self.dice.random() < 0.5, "tools": [TOOL] if native else []}
        fields |= {"options": dict(self.options)} if native and self.options else {}
        server = ScriptedServer(self.script, ollama=self.ollama)
        with server, RunningGateway(upstream=server.address) as gateway:
            messages: list[Said] = [{"role": "system", "content": self.words(3)}]
            for _ in range(self.requests):
                for call in messages[-1].get("tool_calls", ()):
                    name = {"tool_name": call["function"]["name"]} if self.dice.random() < 0.5 else {}
                    messages.append({"role": "tool", "content": self.words(60), **name})
                if messages[-1]["role"] != "tool":
                    messages.append({"role": "user", "content": self.words(25)})
                messages.append(self.answer(gateway, messages, fields, native=native))

    def answer(self, gateway: RunningGateway, messages: list[Said], fields: Said, *, native: bool) -> Said:
        if native:
            return reply_to(ask(gateway, messages, **fields))
        body = json.dumps({"model": MODEL, "messages": messages}).encode()
        status, _, answer = post(gateway, self.path, body)
        assert status == 200, answer
        return {"role": "assistant", "content": json.loads(answer)["choices"][0]["message"]["content"]}


def test_no_ollama_cuts_anything_in_random_conversations() -> None:
    cut = []
    for number in range(CONVERSATIONS):
        talk = Talk(number)
        talk.run()
        if talk.ollama.truncated or (talk.path == "/api/chat" and talk.ollama.shifted):
            cut.append((number, talk.path, talk.ollama))
    assert not cut
