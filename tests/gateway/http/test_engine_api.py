"""The engine over HTTP: a program that calls its model itself goes past the window; threads belong to a key."""

import json
import re
import subprocess
from collections.abc import Iterator, Mapping
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from everlong import count, fit
from everlong.gateway.keys.records import hashed
from everlong.llm import ScriptedServer
from everlong.testing import Window
from tests.gateway.running import RunningGateway

ONE, OTHER = "el-" + "a" * 40, "el-" + "b" * 40
WINDOW = 8_000
TASK = {"role": "user", "content": "Keep the log of all files. The code word is heron-41."}
REFUSAL = {"error": {"message": "This model's maximum context length is 5000 tokens, you sent 7000."}}


def asked(
    gateway: RunningGateway, path: str, body: Any = None, *, key: str = "", method: str = "", raw: bytes | None = None
) -> tuple[int, Any]:
    """The status and the answer; a body is sent as JSON, or as it is."""
    data = raw if raw is not None else None if body is None else json.dumps(body).encode()
    headers = {"content-type": "application/json"} | ({"authorization": f"Bearer {key}"} if key else {})
    connection = HTTPConnection("127.0.0.1", gateway.port, timeout=60)
    connection.request(method or ("GET" if data is None else "POST"), path, data, headers)
    answer = connection.getresponse()
    status, told = answer.status, answer.read()
    connection.close()
    return status, json.loads(told)


def fitted(gateway: RunningGateway, body: Mapping[str, Any], key: str = "") -> Any:
    status, told = asked(gateway, "/everlong/fit", body, key=key)
    assert status == 200, told
    return told


def refused(gateway: RunningGateway, path: str, body: Any, key: str = "") -> tuple[int, str]:
    status, told = asked(gateway, path, body, key=key)
    assert status >= 400
    return status, told["error"]["message"]


def call(number: int) -> dict[str, Any]:
    function = {"name": "read", "arguments": json.dumps({"file": number})}
    return {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"id": f"c{number}", "type": "function", "function": function}],
    }


def result(number: int) -> dict[str, Any]:
    text = f"file {number} holds {number * 7} barrels. " + f"Line of file {number}. " * 120
    return {"role": "tool", "tool_call_id": f"c{number}", "content": text}


def work(steps: int) -> list[dict[str, Any]]:
    return [TASK, *(said for number in range(steps) for said in (call(number), result(number)))]


def blocks(steps: int) -> list[dict[str, Any]]:
    """The same in Anthropic's format, two calls at once, with a word behind the results."""
    messages: list[dict[str, Any]] = [TASK]
    for number in range(steps):
        names = [f"c{number}a", f"c{number}b"]
        uses = [{"type": "tool_use", "id": name, "name": "read", "input": {"file": name}} for name in names]
        text = f"file {number}. " + f"Line of file {number}. " * 60
        results = [{"type": "tool_result", "tool_use_id": name, "content": text} for name in names]
        messages += [
            {"role": "assistant", "content": uses},
            {"role": "user", "content": [*results, {"type": "text", "text": "go on"}]},
        ]
    return messages


@pytest.fixture(scope="module")
def gateway() -> Iterator[RunningGateway]:
    with ScriptedServer() as upstream, RunningGateway(upstream=upstream.url) as gateway:
        yield gateway


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningGateway]:
    file: Path = tmp_path_factory.mktemp("config") / "everlong.toml"
    with ScriptedServer() as upstream:
        file.write_text(
            f'[[upstreams]]\nurl = "{upstream.url}"\n'
            f'[[keys]]\nname = "one"\nhash = "{hashed(ONE)}"\n'
            f'[[keys]]\nname = "other"\nhash = "{hashed(OTHER)}"\nlimits = {{requests_per_minute = 1_000}}\n'
        )
        with RunningGateway(file=file, largest_body=2_000_000) as gateway:
            yield gateway


# --- a program that calls its model itself --------------------------------------------------------------------


def test_a_program_in_any_language_goes_on_for_three_windows(gateway: RunningGateway) -> None:
    """It holds its own list, asks for what to send, and sends that to its provider, which refuses what is too long."""
    messages, sent, breaks, usage = [TASK], [], 0, None
    with ScriptedServer(window=Window(WINDOW)) as provider:
        for number in range(40):
            messages += [call(number), result(number)]
            body = {"messages": messages, "model": "gpt-4o", "window": WINDOW, "thread": "a task", "usage": usage}
            told = fitted(gateway, body)
            breaks += bool(sent) and told["messages"][: len(sent)] != sent
            sent = told["messages"]
            connection = HTTPConnection("127.0.0.1", provider.port, timeout=60)
            request = json.dumps({"model": "gpt-4o", "messages": sent})
            connection.request("POST", "/v1/chat/completions", request, {"content-type": "application/json"})
            answer = connection.getresponse()
            answered = json.loads(answer.read())
            connection.close()
            assert answer.status == 200
            usage = answered["usage"]
            assert usage["prompt_tokens"] <= told["tokens"] <= WINDOW
    said = count(messages, model="gpt-4o")
    assert said > 3 * WINDOW
    assert breaks == told["compactions"] <= said / (0.4 * told["budget"])  # so much is new before the next one
    assert TASK in sent
    recalled = asked(gateway, "/everlong/recall", {"thread": "a task", "what": "file 3 barrels"})[1]
    assert "file 3 holds 21 barrels" in recalled["text"]
    assert recalled["hits"]


def test_without_a_thread_it_is_the_librarys_fit(gateway: RunningGateway) -> None:
    messages = work(20)
    told = fitted(gateway, {"messages": messages, "model": "gpt-4o", "budget": 4_000})
    here = fit(messages, model="gpt-4o", budget=4_000)
    assert told["messages"] == here.messages
    assert (told["tokens"], told["budget"], told["compactions"]) == (here.tokens, 4_000, 1)
    assert told["edits"][0]["message"] == here.edits[0].at
    assert fitted(gateway, {"messages": messages, "model": "gpt-4o", "budget": 4_000}) == told


def test_what_was_not_touched_comes_back_byte_for_byte_with_its_place(gateway: RunningGateway) -> None:
    odd = b'[{"content" : "h\\u00e9llo", "role":"user","extra": 1.50}, {"role":"assistant","content":"b"}]'
    connection = HTTPConnection("127.0.0.1", gateway.port, timeout=60)
    connection.request("POST", "/everlong/fit", b'{"thread": "odd", "messages": %b}' % odd, {})
    answer = connection.getresponse().read()
    connection.close()
    assert b'{"content" : "h\\u00e9llo", "role":"user","extra": 1.50},{"role":"assistant","content":"b"}]' in answer
    assert json.loads(answer)["from"] == [0, 1]


@pytest.mark.parametrize("thread", [{}, {"thread": "places"}])
@pytest.mark.parametrize("made", [work, blocks])
def test_places_tell_which_message_is_the_programs_own(gateway: RunningGateway, thread: Any, made: Any) -> None:
    messages = made(30)
    told = fitted(gateway, {"messages": messages, "model": "gpt-4o", "window": WINDOW, **thread})
    own = [(at, said) for at, said in zip(told["from"], told["messages"], strict=True) if at is not None]
    assert 0 < len(own) < len(messages)
    assert all(messages[at] == said for at, said in own)
    assert [at for at, _ in own] == sorted({at for at, _ in own})
    assert own[-1][0] == len(messages) - 1
    changed = {edit["message"] for edit in told["edits"]}
    assert changed
    assert changed.isdisjoint(at for at, _ in own)


def test_a_whole_body_and_its_fields(gateway: RunningGateway) -> None:
    tools = [{"name": "read", "input_schema": {"type": "object"}}]
    body = {
        "model": "claude-sonnet-4-5",
        "max_tokens": 500,
        "system": "Be brief.",
        "messages": blocks(20),
        "tools": tools,
    }
    told = fitted(gateway, {"messages": body, "window": WINDOW, "thread": "whole"})
    assert told["format"] == "anthropic"
    assert told["fields"] == {}
    assert told["tokens"] + 500 <= WINDOW
    status, counted = asked(gateway, "/everlong/count", {"messages": {**body, "messages": told["messages"]}})
    assert status == 200
    assert counted["tokens"] <= told["tokens"]


def test_system_text_goes_along_and_is_in_no_list(gateway: RunningGateway) -> None:
    for more in ({}, {"thread": "headed"}):
        told = fitted(
            gateway, {"messages": work(20), "system": "Be brief.", "budget": 4_000, "model": "gpt-4o", **more}
        )
        assert all(said["role"] != "system" for said in told["messages"])
        assert next(at for at in told["from"] if at is not None) == 0  # behind what code tells of the work, if it does
        assert told["from"][-1] == 40
        assert min(edit["message"] for edit in told["edits"]) == 1


def test_pins_stay(gateway: RunningGateway) -> None:
    told = fitted(gateway, {"messages": work(20), "model": "gpt-4o", "budget": 4_000, "pins": [4]})
    assert 4 in told["from"]
    status, pinned = asked(gateway, "/everlong/pin", {"thread": "pins", "text": "Never promise a date."})
    assert status == 200
    body = {
        "messages": work(30),
        "model": "gpt-4o",
        "window": WINDOW,
        "thread": "pins",
        "pins": ["Write in French.", 8],
    }
    told = fitted(gateway, body)
    texts = [said["content"] for said in told["messages"]]
    assert "Never promise a date." in texts
    assert "Write in French." in texts
    assert result(3)["content"] in texts
    left = asked(gateway, "/everlong/unpin", {"thread": "pins", "pin": pinned["pin"]})[1]
    assert [pin["text"] for pin in left["pins"]] == ["Write in French."]
    assert asked(gateway, "/everlong/pins?thread=pins")[1] == left
    texts = [said["content"] for said in fitted(gateway, {**body, "pins": None})["messages"]]
    assert "Never promise a date." not in texts
    assert refused(gateway, "/everlong/unpin", {"thread": "pins", "pin": "gone"})[1].startswith("there is no pin")


def test_after_a_refusal_there_is_something_smaller_to_send(gateway: RunningGateway) -> None:
    body = {"messages": work(12), "model": "gpt-4o", "window": 2 * WINDOW, "thread": "refused"}
    first = fitted(gateway, body)
    second = fitted(gateway, {**body, "refused": {"status": 400, "body": REFUSAL}})
    assert second["tokens"] < 5_000 < first["tokens"]
    assert second["window"] == 5_000
    assert second["compactions"] == first["compactions"] + 1
    third = fitted(gateway, {**body, "refused": {"status": 400, "body": REFUSAL}})
    assert third["tokens"] < second["tokens"]
    status, line = refused(gateway, "/everlong/fit", {**body, "refused": {"status": 400, "body": REFUSAL}})
    assert status == 422
    assert "Start a new thread" in line
    assert fitted(gateway, body)["window"] == 5_000
    unknown = {**body, "thread": "new", "refused": {"status": 401, "body": "no such key"}}
    assert refused(gateway, "/everlong/fit", unknown) == (422, "no such key")


def test_usage_teaches_how_the_provider_counts(gateway: RunningGateway) -> None:
    body = {"messages": work(6), "model": "made-up-model", "window": 100_000, "thread": "usage"}
    before = fitted(gateway, body)["tokens"]
    for _ in range(3):
        told = fitted(gateway, {**body, "usage": {"prompt": 2 * before, "output": 9}})
    assert told["tokens"] > 1.8 * before
    silent = fitted(gateway, {**body, "usage": {"prompt_tokens": 2_048}})
    assert "silently dropped the rest" in silent["warning"]


# --- other clients, limits, what is wrong -----------------------------------------------------------------------


def test_no_key_sees_the_threads_of_another(locked: RunningGateway) -> None:
    body = {"messages": work(12), "model": "gpt-4o", "window": WINDOW, "thread": "mine"}
    fitted(locked, body, ONE)
    assert "barrels" in asked(locked, "/everlong/recall", {"thread": "mine", "what": "barrels"}, key=ONE)[1]["text"]
    asked(locked, "/everlong/pin", {"thread": "mine", "text": "my secret"}, key=ONE)
    told = refused(locked, "/everlong/recall", {"thread": "mine", "what": "barrels"}, OTHER)
    assert told == (404, "this thread is not in memory: send its messages to /everlong/fit first")
    assert asked(locked, "/everlong/pins?thread=mine", key=OTHER)[1]["pins"] == []
    assert "my secret" not in json.dumps(fitted(locked, body, OTHER))


def test_what_one_key_tells_of_a_model_counts_for_it_alone(locked: RunningGateway) -> None:
    body = {"messages": work(12), "model": "gpt-4o", "thread": "window"}
    fitted(locked, body, ONE)
    assert fitted(locked, {**body, "refused": {"status": 400, "body": REFUSAL}}, ONE)["window"] == 5_000
    assert fitted(locked, body, OTHER)["window"] == 128_000


@pytest.mark.parametrize("path", ["fit", "count", "recall", "pin", "unpin"])
def test_a_key_is_needed_and_a_body_is_bounded(locked: RunningGateway, path: str) -> None:
    assert refused(locked, f"/everlong/{path}", {"messages": [TASK]})[0] == 401
    large = {"messages": [{"role": "user", "content": "x" * 2_000_000}]}
    assert refused(locked, f"/everlong/{path}", large, ONE)[0] == 413


def test_the_list_of_endpoints_needs_a_key_too(locked: RunningGateway) -> None:
    assert asked(locked, "/everlong")[0] == asked(locked, "/everlong/pins?thread=a")[0] == 401
    assert "POST /everlong/fit" in asked(locked, "/everlong", key=ONE)[1]["endpoints"]


def test_limits_count_for_the_engine_as_for_models(tmp_path: Path) -> None:
    file = tmp_path / "everlong.toml"
    with ScriptedServer() as upstream:
        file.write_text(
            f'[[upstreams]]\nurl = "{upstream.url}"\n[[keys]]\nname = "one"\nhash = "{hashed(ONE)}"\n'
            "limits = {requests_per_minute = 2}\n"
        )
        with RunningGateway(file=file) as gateway:
            statuses = [asked(gateway, "/everlong/count", {"messages": [TASK]}, key=ONE)[0] for _ in range(3)]
    assert statuses == [200, 200, 429]


WRONG: Mapping[str, tuple[Any, str]] = {
    "no messages": ({}, "messages is missing"),
    "a number": ({"messages": 3}, "messages must be a list of messages"),
    "numbers": ({"messages": [1]}, "not a conversation: a list of int"),
    "none": ({"messages": [], "thread": "x"}, "messages is empty"),
    "misspelt": ({"messages": [TASK], "modle": "x"}, "unknown field: 'modle' (did you mean model?)"),
    "no name": ({"messages": [TASK], "thread": " "}, "thread must be a name of at most 200 printable characters"),
    "a line break": ({"messages": [TASK], "thread": "a\nb"}, "thread must be a name"),
    "usage alone": ({"messages": [TASK], "usage": {"prompt": 1}}, "usage needs a thread"),
    "odd usage": ({"messages": [TASK], "thread": "x", "usage": {"a": 1}}, "usage has no tokens"),
    "no preset": ({"messages": [TASK], "preset": "x"}, "unknown preset 'x'; the presets are auto"),
    "no preset in a thread": ({"messages": [TASK], "preset": "x", "thread": "x"}, "unknown preset 'x'"),
    "below zero": ({"messages": [TASK], "budget": -1}, "budget must be a number of tokens"),
    "too small": ({"messages": work(3), "budget": 30}, "tokens, but the limit is 30"),
    "a pin too far": ({"messages": [TASK], "pins": [1]}, "there is no message 1"),
    "a text without a thread": ({"messages": [TASK], "pins": ["x"]}, "pinning a text needs a thread"),
    "no format": ({"messages": [TASK], "format": "x"}, "format must be one of anthropic"),
    "held elsewhere": ({"messages": {"model": "m", "input": "hi", "previous_response_id": "r"}}, "send all messages"),
    "two system texts": ({"messages": {"model": "m", "messages": [TASK]}, "system": "x"}, "has its own system text"),
    "no refusal": ({"messages": [TASK], "thread": "x", "refused": 4}, "refused must be what the provider answered"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_told_in_one_line(gateway: RunningGateway, name: str) -> None:
    body, line = WRONG[name]
    status, told = refused(gateway, "/everlong/fit", body)
    assert status == 400
    assert line in told
    assert "\n" not in told


def test_a_thread_can_be_dropped_to_save_memory_and_goes_on() -> None:
    """The compactions of a conversation that left memory are found again: its prefix stays as it was."""
    body = {"messages": work(20), "model": "gpt-4o", "window": WINDOW, "thread": "first"}
    with ScriptedServer() as upstream, RunningGateway(upstream=upstream.url, memory=200_000) as gateway:
        first = fitted(gateway, body)
        for number in range(6):
            fitted(
                gateway, {**body, "thread": f"other {number}", "messages": [*work(20), call(number), result(number)]}
            )
        assert asked(gateway, "/everlong/recall", {"thread": "first", "what": "barrels"})[0] == 404
        gateway.services.state_store.flush()
        again = fitted(gateway, {**body, "messages": [*work(20), call(20), result(20)]})
    assert again["messages"][: len(first["messages"])] == first["messages"]


@settings(max_examples=25, deadline=None)
@given(st.lists(st.text(min_size=1, max_size=400), min_size=1, max_size=12), st.integers(300, 3_000))
def test_the_answer_fits_and_is_the_programs_own_where_it_says_so(
    gateway: RunningGateway, texts: list[str], budget: int
) -> None:
    messages = [{"role": ("user", "assistant")[at % 2], "content": text} for at, text in enumerate(texts)]
    status, told = asked(gateway, "/everlong/fit", {"messages": messages, "budget": budget, "model": "gpt-4o"})
    if status == 200:
        assert told["tokens"] <= budget
        assert all(
            messages[at] == said for at, said in zip(told["from"], told["messages"], strict=True) if at is not None
        )
    else:
        assert "tokens, but the limit is" in told["error"]["message"]


# --- the page -----------------------------------------------------------------------------------------------------

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "http-api.md"
BLOCKS = re.findall(r"^```sh\n(.*?)^```\n\n```json\n(.*?)^```\n", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)


def test_the_commands_of_the_page_print_what_it_shows() -> None:
    """In order, in one shell each, at this gateway in place of the usual one."""
    assert len(BLOCKS) == 4
    with ScriptedServer() as upstream, RunningGateway(upstream=upstream.url) as gateway:
        for commands, shown in BLOCKS:
            lines = re.sub(r"^everlong serve .*&\n", "", commands).replace("127.0.0.1:8333", gateway.address[7:])
            lines = lines.strip().replace("\ncurl", "; echo\ncurl")
            printed = subprocess.run(["sh", "-c", lines], capture_output=True, text=True, timeout=60, check=True).stdout
            wanted = shown.strip().replace("\n ", "").split("\n")
            for line, pattern in zip(printed.strip().split("\n"), wanted, strict=True):
                assert re.fullmatch(".*".join(map(re.escape, pattern.split("…"))), line), line
