"""Clients of Gemini through the gateway: every path, both ways to stream, keys in a query, calls without ids."""

import asyncio
import json
import logging
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from everlong.core import History
from everlong.gateway.clients import without_key
from everlong.gateway.keys.records import hashed
from everlong.gateway.request import parse_request
from everlong.gateway.surfaces import SURFACES, Address
from everlong.llm import Answer, ScriptedServer, Window
from everlong.llm.scripted.script import Broken
from everlong.wire import format_named, problems
from tests.gateway.raw_upstream import RawUpstream, Talk, response
from tests.gateway.resending import post
from tests.gateway.running import RunningGateway
from tests.gateway.talking import RawClient, serving, talk_through

MODEL = "gemini-2.5-flash"
PLAIN, STREAM = f"/v1beta/models/{MODEL}:generateContent", f"/v1beta/models/{MODEL}:streamGenerateContent"
COUNT = f"/v1beta/models/{MODEL}:countTokens"
KEY = "el-a-key-of-the-gateways"
Value = dict[str, Any]


def user(text: str) -> Value:
    return {"role": "user", "parts": [{"text": text}]}


def model(*parts: Value) -> Value:
    return {"role": "model", "parts": list(parts)}


def sent(gateway: RunningGateway, path: str, contents: list[Value], **fields: Any) -> tuple[int, Any, bytes]:
    return post(gateway, path, json.dumps({"contents": contents, **fields}).encode(), {"x-goog-api-key": "k"})


def valid(server: ScriptedServer) -> None:
    for asked in server.requests:
        assert problems("gemini", json.loads(asked.body)) == [], asked.number


def text_in(path: str, body: bytes) -> str:
    """What a client reads, however it asked."""
    if ":generateContent" in path:
        chunks = [json.loads(body)]
    elif "alt=sse" in path:
        chunks = [json.loads(line.removeprefix(b"data: ")) for line in body.splitlines() if line.startswith(b"data: ")]
    else:
        chunks = json.loads(body)
    parts = [part for chunk in chunks for part in chunk["candidates"][0]["content"]["parts"]]
    assert chunks[-1]["candidates"][0]["finishReason"] == "STOP"
    assert chunks[-1]["usageMetadata"]["promptTokenCount"] > 0
    return "".join(part["text"] for part in parts)


PATHS = (
    PLAIN,
    STREAM,
    f"{STREAM}?alt=sse",
    PLAIN.replace("v1beta", "v1"),
    f"/v1alpha/models/{MODEL}:streamGenerateContent",
    f"/v1/v1beta/models/{MODEL}:streamGenerateContent?alt=sse",
    "/v1beta/tunedModels/mine:generateContent",
)


@pytest.mark.parametrize("path", [PLAIN, STREAM, f"{STREAM}?alt=sse"])
def test_a_conversation_goes_on_past_the_window(path: str) -> None:
    script = [Answer(text=f"answer {number}") for number in range(40)]
    with (
        ScriptedServer(lambda asked: script[asked.number % 40], window=Window(8_000)) as server,
        RunningGateway(upstream=server.url) as gateway,
    ):
        contents: list[Value] = []
        for number in range(18):
            contents.append(user(f"Note {number}: " + f"pier {number} has {number + 3} boats. " * 90))
            status, headers, body = sent(gateway, path, contents, systemInstruction={"parts": [{"text": "Be brief."}]})
            assert status == 200, body
            contents.append(model({"text": text_in(path, body)}))
        accepted = [asked for asked in server.requests if asked.tokens <= 8_000]
        assert int(headers["x-everlong-tokens-before"]) > 14_000
        assert headers["x-everlong-managed"] == "yes"
        assert len(accepted) >= 18
        valid(server)


@pytest.mark.parametrize("path", PATHS)
def test_every_path_is_managed_and_answered_as_google_does(path: str) -> None:
    lines: list[str] = []

    async def script(talk: Talk, head: bytes, _body: bytes) -> None:
        lines.append(head.split(b"\r\n")[0].decode())
        await talk.say(response(b'{"candidates": []}', more=("content-type: application/json",)))

    async def client(gateway: RunningGateway) -> dict[str, str]:
        async with RawClient(gateway.port) as client:
            client.ask(path, json.dumps({"contents": [user("How many?")]}).encode())
            return (await client.answer())[1]

    assert talk_through(script, client)["x-everlong-managed"] == "yes"
    below = path.replace("/v1/v1beta", "/v1beta").replace("/v1/", "/v1beta/")
    assert lines == [f"POST {below} HTTP/1.1"]


def test_an_answer_that_breaks_off_ends_the_array_with_an_error() -> None:
    with (
        ScriptedServer(lambda _: Broken(Answer(text="one two three four five six"), 1)) as server,
        RunningGateway(upstream=server.url) as gateway,
    ):
        status, _, body = sent(gateway, STREAM, [user("How many?")])
        *said, error = json.loads(body)
        assert (status, bool(said)) == (200, True)
        assert (error["error"]["code"], error["error"]["status"]) == (502, "UNAVAILABLE")


def test_errors_are_written_as_google_writes_them() -> None:
    with ScriptedServer() as server, RunningGateway(upstream=server.url) as gateway:
        for path in (PLAIN, f"{STREAM}?alt=sse", STREAM):
            status, _, body = post(gateway, path, b'{"contents": 7}')
            told = json.loads(body)
            error = (told[0] if path == STREAM else told)["error"]
            assert (status, error["code"], error["status"]) == (400, 400, "INVALID_ARGUMENT")
            assert "contents must be a list" in error["message"]


# --- calls, with ids and without ---------------------------------------------------------------------

DECLARED = [{"functionDeclarations": [{"name": "read_file", "parametersJsonSchema": {"type": "object"}}]}]


@pytest.mark.parametrize("ids", ["both", "none", "results only"])
def test_calls_and_results_stay_pairs_however_a_client_names_them(ids: str) -> None:
    """Some clients make up an id for a call that came without one, and send it with the result alone."""
    with (
        ScriptedServer(lambda _: Answer(text="read"), window=Window(8_000)) as server,
        RunningGateway(upstream=server.url) as gateway,
    ):
        contents: list[Value] = [user("Read all files.")]
        for number in range(14):
            calls, results = [], []
            for side in ("left", "right"):
                call: Value = {"name": "read_file", "args": {"path": f"{side}{number}.py", "a": 1}}
                result: Value = {"name": "read_file", "response": {"output": f"{side} {number} boats\n" * 40}}
                calls.append({"functionCall": call | ({"id": f"{side}-{number}"} if ids == "both" else {})})
                results.append({"functionResponse": result | ({"id": f"{side}-{number}"} if ids != "none" else {})})
            contents += [model(*calls), {"role": "user", "parts": results}]
            status, _, body = sent(gateway, PLAIN, contents, tools=DECLARED)
            assert status == 200, body
        valid(server)
        shown = json.loads(server.requests[-1].body)["contents"]
        kept = [part for content in shown for part in content["parts"] if "functionResponse" in part]
        assert kept[-1]["functionResponse"]["response"]["output"].startswith("right 13 boats")
        assert ("id" in kept[-1]["functionResponse"]) is (ids != "none")
        assert any(int(asked.tokens) < 8_000 for asked in server.requests)


@settings(max_examples=40, deadline=None)
@given(
    steps=st.lists(st.lists(st.sampled_from(["read", "write"]), min_size=1, max_size=3), min_size=1, max_size=6),
    named=st.booleans(),
    apart=st.booleans(),
)
def test_results_find_their_calls_in_messages_read_one_by_one(steps: list[list[str]], named: bool, apart: bool) -> None:
    format_ = format_named("gemini")
    pair = format_.server.canonical.pair
    assert pair is not None
    units: list[History] = []
    for step in steps:
        calls = [{"functionCall": {"name": name, "args": {}}} for name in step]
        answers = [
            {"functionResponse": {"name": name, "response": {"output": str(at)}} | ({"id": f"x{at}"} if named else {})}
            for at, name in enumerate(step)
        ]
        contents = [model(each) for each in calls] if apart else [model(*calls)]
        for content in (*contents, {"role": "user", "parts": answers}):
            units += pair(units, [format_.read_messages([content])])
    made = [call.id for unit in units for message in unit for call in message.calls]
    answered = [result.call for unit in units for message in unit for result in message.results]
    assert len(set(made)) == len(made), "no id is used again"
    assert sorted(answered) == sorted(made)
    written = [part for unit in units for content in format_.write_message(unit[0]) for part in content["parts"]]
    assert all("id" not in part["functionCall"] for part in written if "functionCall" in part)


def test_a_signature_that_a_client_drops_or_makes_up_is_put_back() -> None:
    script = [Answer(calls=(("read_file", '{"path":"a.py"}'),)), Answer(text="done"), Answer(text="again")]
    with (
        ScriptedServer(lambda asked: script[min(asked.number, 2)]) as server,
        RunningGateway(upstream=server.url) as gateway,
    ):
        contents = [user("Read a.py")]
        answer = json.loads(sent(gateway, PLAIN, contents, tools=DECLARED)[2])["candidates"][0]["content"]
        (call,) = answer["parts"]
        assert call["thoughtSignature"]
        result = {
            "functionResponse": {"name": "read_file", "id": call["functionCall"]["id"], "response": {"output": "1"}}
        }
        for lacking in ({}, {"thoughtSignature": "skip_thought_signature_validator"}):
            resent = model({"functionCall": call["functionCall"]} | lacking)
            sent(gateway, PLAIN, [*contents, resent, {"role": "user", "parts": [result]}], tools=DECLARED)
            seen = json.loads(server.requests[-1].body)["contents"][1]["parts"][0]
            assert seen["thoughtSignature"] == call["thoughtSignature"]


def test_a_made_up_signature_does_not_make_another_conversation() -> None:
    """Some clients put one on the calls of the running turn and take it away when the turn is over."""
    call: Value = {"functionCall": {"name": "read_file", "args": {}}}
    result = {"role": "user", "parts": [{"functionResponse": {"name": "read_file", "response": {"output": "1"}}}]}
    made_up = call | {"thoughtSignature": "skip_thought_signature_validator"}
    with ScriptedServer() as server, RunningGateway(upstream=server.url) as gateway:
        sent(gateway, PLAIN, [user("Read"), model(made_up), result], tools=DECLARED)
        sent(gateway, PLAIN, [user("Read"), model(call), result, model({"text": "ok"}), user("Go on")], tools=DECLARED)
        assert len(gateway.services.conversations) == 1


# --- keys --------------------------------------------------------------------------------------------


def test_a_key_in_the_query_is_a_key_and_goes_nowhere(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    lines: list[bytes] = []

    async def script(talk: Talk, head: bytes, _body: bytes) -> None:
        lines.append(head)
        await talk.say(response(b'{"candidates": []}', more=("content-type: application/json",)))

    async def client(gateway: RunningGateway) -> list[bytes]:
        got = []
        for query in (f"?key={KEY}", f"?alt=json&%6bey={KEY}&x=1", "?key=el-wrong", "", f"?key={KEY}&key=other"):
            async with RawClient(gateway.port) as client:
                client.ask(PLAIN + query, json.dumps({"contents": [user("Hello")]}).encode())
                status, _, body = await client.answer()
                got.append(b"%d " % status + body)
        async with RawClient(gateway.port) as client:
            client.ask("/everlong/requests", headers={"authorization": f"Bearer {KEY}"}, method="GET")
            got.append((await client.answer())[2])
        return got

    async def both() -> list[bytes]:
        async with RawUpstream(serving(script)) as upstream:
            file = tmp_path / "everlong.toml"
            file.write_text(
                f'[[upstreams]]\nurl = "http://127.0.0.1:{upstream.port}/v1"\nkey = "sk-own"\nformats = ["gemini"]\n'
                f'[[keys]]\nname = "team"\nhash = "{hashed(KEY)}"\n'
            )
            with RunningGateway(file=file) as gateway:
                return await client(gateway)

    got = asyncio.run(asyncio.wait_for(both(), 30))
    assert [one[:3] for one in got[:5]] == [b"200", b"200", b"401", b"401", b"400"]
    assert [line.split(b" ")[1] for line in lines] == [PLAIN.encode(), PLAIN.encode() + b"?alt=json&x=1"]
    assert all(b"x-goog-api-key: sk-own" in line.lower() for line in lines)
    assert KEY.encode() not in b"".join([*lines, *got])
    assert KEY not in caplog.text


def test_without_keys_the_clients_own_goes_along_as_it_came() -> None:
    lines: list[bytes] = []

    async def script(talk: Talk, head: bytes, _body: bytes) -> None:
        lines.append(head)
        await talk.say(response(b'{"candidates": []}', more=("content-type: application/json",)))

    async def client(gateway: RunningGateway) -> None:
        for query, headers in (("?key=AIza-1", {}), ("", {"x-goog-api-key": "AIza-1"})):
            async with RawClient(gateway.port) as client:
                client.ask(PLAIN + query, json.dumps({"contents": [user("Hello")]}).encode(), headers)
                await client.answer()
        sketches = gateway.services.conversations.sketches._all.values()
        assert len({one.scope for one in sketches}) == 1, "one key is one client"

    talk_through(script, client)
    assert [line.split(b" ")[1] for line in lines] == [PLAIN.encode() + b"?key=AIza-1", PLAIN.encode()]


@given(st.lists(st.tuples(st.sampled_from(["key", "KEY", "k%65y", "alt", "", "keys"]), st.text("aZ9%=", max_size=4))))
def test_no_key_is_left_in_a_query_and_all_else_stays(pairs: list[tuple[str, str]]) -> None:
    parts = [f"{name}={value}" for name, value in pairs]
    others = [part for part, (name, _) in zip(parts, pairs, strict=True) if name in ("alt", "", "keys")]
    assert without_key("&".join(parts)) == "&".join(others)


# --- counting, what is held elsewhere, spellings -----------------------------------------------------


def test_tokens_are_counted_in_both_forms_of_the_request() -> None:
    with ScriptedServer() as server, RunningGateway(upstream=server.url) as gateway:
        contents = [user("How many boats are at the pier? " * 50)]
        for body in (
            {"contents": contents},
            {"generateContentRequest": {"model": f"models/{MODEL}", "contents": contents}},
        ):
            status, _, told = post(gateway, COUNT, json.dumps(body).encode())
            assert (status, 300 < json.loads(told)["totalTokens"] < 600) == (200, True)
        assert not server.requests


def test_a_cached_content_is_left_alone_and_told() -> None:
    with ScriptedServer() as server, RunningGateway(upstream=server.url) as gateway:
        body = json.dumps({"cachedContent": "cachedContents/7", "contents": [user("How many?")], "x": 1.50}).encode()
        _, headers, _ = post(gateway, PLAIN, body)
        assert headers["x-everlong-managed"].startswith("no; the provider stores")
        assert server.requests[-1].body == body


CAMEL = {
    "contents": [{"parts": [{"text": "How many?"}]}],
    "systemInstruction": {"parts": [{"text": "Be brief."}]},
    "generationConfig": {"maxOutputTokens": 700, "thinkingConfig": {"thinkingBudget": 300}},
    "tools": [{"functionDeclarations": [{"name": "read"}]}],
}
SNAKE = {
    "contents": {"parts": {"text": "How many?"}},
    "system_instruction": {"parts": {"text": "Be brief."}},
    "generation_config": {"max_output_tokens": 700, "thinking_config": {"thinking_budget": 300}},
    "tools": {"function_declarations": [{"name": "read"}]},
}


@pytest.mark.parametrize("body", [CAMEL, SNAKE], ids=["camelCase", "snake_case"])
def test_both_spellings_are_read(body: Value) -> None:
    surface = next(each for each in SURFACES if each.format.name == "gemini")
    address = surface.address(PLAIN)
    assert isinstance(address, Address)
    request = parse_request(address, json.dumps(body).encode())
    assert (request.model, request.max_tokens, request.thinking) == (MODEL, 700, 300)
    assert (len(request.messages), len(request.tools)) == (1, 1)
    length = json.loads(request.changed({request.length_field: 50})["generationConfig"])
    assert 50 in length.values()
    assert (len(length), 700 in length.values()) == (2, False)


def test_the_same_conversation_in_both_spellings_is_one() -> None:
    with ScriptedServer() as server, RunningGateway(upstream=server.url) as gateway:
        for body in (CAMEL, SNAKE):
            assert post(gateway, PLAIN, json.dumps(body).encode())[0] == 200
        # Compactions are found by the root.
        assert len({one.root for one in gateway.services.conversations.sketches._all.values()}) == 1


def test_usage_of_the_clients_own_size_adds_up() -> None:
    with (
        ScriptedServer(lambda _: Answer(text="ok"), window=Window(8_000)) as server,
        RunningGateway(upstream=server.url, usage="original") as gateway,
    ):
        contents: list[Value] = []
        for number in range(14):
            contents.append(user(f"Note {number}: " + f"pier {number} has {number + 3} boats. " * 90))
            told = json.loads(sent(gateway, PLAIN, contents)[2])["usageMetadata"]
            contents.append(model({"text": "ok"}))
        total = told["promptTokenCount"] + told["candidatesTokenCount"] + told["thoughtsTokenCount"]
        assert told["totalTokenCount"] == total
        assert told["promptTokenCount"] > server.requests[-1].tokens
