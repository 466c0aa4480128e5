"""The format is found by looking, look-alikes are refused, and damage costs no more than what is damaged."""

import gzip
import json

import pytest

from everlong.core import Json, JsonObject, Role
from everlong.errors import InputError
from everlong.wire.documents import document_of, read, read_all
from tests.wire import payloads
from tests.wire.payloads import BODIES, CHAT, PLAIN, SESSIONS, Payload, lines, one
from tests.wire.sessions.samples import CHATBOX, CLAUDE, NANOBOT, PI_3

# --- recognition ---------------------------------------------------------------------------------


@pytest.mark.parametrize("payload", [*BODIES, *SESSIONS], ids=lambda payload: payload.name)
def test_the_format_is_found_by_looking(payload: Payload) -> None:
    document = read(payload.data)
    assert document.fmt == payload.fmt
    assert document.warnings == ()


@pytest.mark.parametrize("payload", [*BODIES, *SESSIONS], ids=lambda payload: payload.name)
def test_a_packed_file_is_the_same_file(payload: Payload) -> None:
    assert read(gzip.compress(payload.data)) == read(payload.data)


ERRAND = {
    "openai-chat": payloads.CHAT_BODY,
    "anthropic": payloads.ANTHROPIC_BODY,
    "openai-responses": payloads.RESPONSES_BODY,
    "gemini": payloads.GEMINI_BODY,
}


@pytest.mark.parametrize("fmt", ERRAND)
def test_the_same_errand_reads_alike_in_every_format(fmt: str) -> None:
    system, asked, called, answered, said = document_of(ERRAND[fmt]).messages
    assert (system.role, system.text) == (Role.SYSTEM, "You are kind.")
    assert (asked.role, asked.text) == (Role.USER, "read a.py 文件")
    assert [json.loads(call.arguments) for call in called.calls] == [{"path": "a.py"}]
    assert [result.call for result in answered.results] == [call.id for call in called.calls]
    assert "hello" in answered.results[0].text
    assert (said.role, said.text) == (Role.ASSISTANT, "It says hello.")


#: Lists that need a second look: (messages, the format that reads them right).
CLOSE_CALLS: dict[str, tuple[list[Json], str]] = {
    "no message yet": ([], "openai-chat"),
    "first tool use after a long chat": ([*PLAIN * 60, *payloads.ANTHROPIC], "anthropic"),
    "first result after a long chat": ([*PLAIN * 60, *CHAT[1:]], "openai-chat"),
    "first item after a long chat": ([*PLAIN * 60, *payloads.RESPONSES], "openai-responses"),
    "thinking blocks in a chat with tool results": (
        [*PLAIN, {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}]}, *CHAT[1:4]],
        "openai-chat",
    ),
    "a reply of Anthropic put in as it came": (
        [PLAIN[0], {"type": "message", "role": "assistant", "content": [], "stop_reason": "end_turn"}],
        "anthropic",
    ),
    "an Anthropic picture": (
        [{"role": "user", "content": [{"type": "image", "source": {"type": "url", "url": "https://example.org"}}]}],
        "anthropic",
    ),
    "a chat picture": (
        [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://example.org"}}]}],
        "openai-chat",
    ),
    "Responses blocks in messages without a type": (
        [{"role": "user", "content": [{"type": "input_text", "text": "hi"}]}],
        "openai-responses",
    ),
    "content with parts beside it": ([{"role": "user", "content": "hi", "parts": [{"text": "hi"}]}], "openai-chat"),
    "a call from the time of functions": (
        [PLAIN[0], {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}}],
        "openai-chat",
    ),
}


@pytest.mark.parametrize(("messages", "fmt"), CLOSE_CALLS.values(), ids=CLOSE_CALLS)
def test_what_only_one_provider_writes_decides(messages: list[Json], fmt: str) -> None:
    assert document_of(messages).fmt == fmt


#: Bodies that need a second look.
CLOSE_BODIES: dict[str, tuple[JsonObject, str]] = {
    "tools of Anthropic": ({"messages": PLAIN, "tools": [{"name": "f", "input_schema": {}}]}, "anthropic"),
    "tools of OpenAI": ({"messages": PLAIN, "tools": [{"type": "function"}]}, "openai-chat"),
    "a data set's system field beside chat results": ({"system": "s", "messages": CHAT}, "openai-chat"),
    "a stored prompt": ({"prompt": {"id": "p"}, "input": "hi"}, "openai-responses"),
    "input and nothing else": ({"input": "hi"}, "openai-responses"),
    "contents and nothing in it": ({"contents": []}, "gemini"),
    "messages and nothing in it": ({"messages": []}, "openai-chat"),
}


@pytest.mark.parametrize(("body", "fmt"), CLOSE_BODIES.values(), ids=CLOSE_BODIES)
def test_a_body_is_told_by_what_stands_beside_its_messages(body: JsonObject, fmt: str) -> None:
    assert document_of(body).fmt == fmt


# --- many conversations in one file --------------------------------------------------------------

ROWS: list[Json] = [{"id": "one", "messages": PLAIN}, {"id": "two", "system": "s", "messages": payloads.ANTHROPIC}]


@pytest.mark.parametrize("data", [lines(ROWS), one(ROWS)], ids=["a row a line", "a list of rows"])
def test_a_data_set_holds_many(data: bytes) -> None:
    assert [document.fmt for document in read_all(data)] == ["openai-chat", "anthropic"]
    assert read(data) == read_all(data)[0]


def test_a_chatbox_export_holds_many() -> None:
    other: JsonObject = {**CHATBOX, "id": "s2", "name": "Other"}
    export: JsonObject = {**payloads.CHATBOX_EXPORT, "session:s2": other}
    assert [document.fmt for document in read_all(one(export))] == ["chatbox", "chatbox"]
    assert [document.fmt for document in read_all(one([CHATBOX, other]))] == ["chatbox", "chatbox"]


def test_a_bad_row_of_a_data_set_costs_itself_alone() -> None:
    rows: list[Json] = [ROWS[0], {"id": "bad", "messages": [{"role": "alien"}]}, {"note": "no messages"}, ROWS[1]]
    first, second = read_all(lines(rows))
    assert (first.messages, second.messages) == (document_of(ROWS[0]).messages, document_of(ROWS[1]).messages)
    assert [warning.split(":")[0] for warning in first.warnings] == ["line 2", "line 3"]
    assert second.warnings == ()


def test_a_data_set_without_a_good_row_is_refused_by_its_first_bad_one() -> None:
    with pytest.raises(InputError, match=r"line 1: openai-chat: unknown role 'alien'"):
        read(lines([{"messages": [{"role": "alien"}]}] * 2))


# --- look-alikes ---------------------------------------------------------------------------------

POINT: JsonObject = {"type": "Feature", "geometry": {"type": "Point", "coordinates": [1, 2]}, "properties": {}}
LOG_LINE: JsonObject = {"level": "info", "message": "started", "timestamp": "2026-01-01T00:00:00Z", "type": "message"}
#: name -> (file, what the one line says)
REFUSED: dict[str, tuple[bytes, str]] = {
    "package.json": (one({"name": "x", "version": "1", "dependencies": {}}), "an object with dependencies, name"),
    "GeoJSON": (one({"type": "FeatureCollection", "features": [POINT]}), "an object with features, type"),
    "GeoJSON, a feature a line": (lines([POINT, POINT]), "lines with geometry, properties, type"),
    "a list of numbers": (b"[1, 2, 3]", "a list of int"),
    "a list of texts": (b'["a"]', "a list of str"),
    "a list of lists": (b"[[]]", "a list of list"),
    "a number": (b"42", "a JSON int"),
    "null": (b"null", "a JSON NoneType"),
    "an empty object": (b"{}", "an object with no fields"),
    "a list of users": (one([{"name": "Ann", "role": "admin"}]), "unknown role 'admin'"),
    "users, one a line": (lines([{"name": "Ann", "role": "admin"}] * 2), "line 1: unknown role 'admin'"),
    "a data set of instructions": (lines([{"instruction": "a", "input": "b", "output": "c"}] * 2), "lines with input"),
    "one row of instructions": (one({"instruction": "a", "input": "b", "output": "c"}), "an object with input"),
    "settings of a bundler": (one({"input": "src/app.js", "output": {"dir": "dist"}}), "an object with input, output"),
    "a list of files": (one({"contents": [{"path": "a"}]}), "an object with contents"),
    "a Slack export": (one([{"type": "message", "user": "U1", "text": "hi"}]), "a list of objects with text"),
    "a Slack channel": (one({"messages": [{"type": "message", "text": "hi"}]}), "messages with text, type and no role"),
    "messages of another program": (
        one({"messages": [{"role": "user", "parts": [{"type": "text", "text": "hi"}]}]}),
        "messages with parts and no content",
    ),
    "a log of objects": (lines([LOG_LINE, LOG_LINE]), "lines with level, message, timestamp, type"),
    "CSV": (b"name,age\nAnn,3\n", "it contains no JSON"),
    "CSV of numbers": (b"1\n2\n3\n", "it contains no JSON"),
    "HTML": (b"<!doctype html>\n<html><body>hi</body></html>\n", "it contains no JSON"),
    "a log file": (b"2026-01-01 INFO started\n2026-01-01 WARN slow\n", "it contains no JSON"),
    "nothing": (b"", "the file is empty"),
    "an export without a session": (one({"__exported_items": ["settings"]}), "it contains no session"),
}


@pytest.mark.parametrize(("data", "said"), REFUSED.values(), ids=REFUSED)
def test_a_look_alike_is_refused_in_one_line(data: bytes, said: str) -> None:
    with pytest.raises(InputError) as caught:
        read(data)
    assert said in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


# --- damage --------------------------------------------------------------------------------------


def test_a_bad_message_line_costs_itself_alone() -> None:
    document = read(lines([*CHAT[:2], {"role": "alien"}, {"note": 1}, *CHAT[2:]]))
    assert document.messages == document_of(CHAT).messages
    assert document.warnings == ("line 3: unknown role 'alien'", "line 4: unknown role null")


@pytest.mark.parametrize("records", [PI_3, CLAUDE, NANOBOT], ids=["pi", "Claude Code", "nanobot"])
def test_a_torn_tail_costs_the_last_record(records: list[JsonObject]) -> None:
    whole = lines([*records])
    document = read(whole[:-9])
    assert document.records == read(lines([*records[:-1]])).records
    assert [warning for warning in document.warnings if warning.startswith(f"line {len(records)}: not JSON")]


def test_a_body_with_a_bad_message_is_refused_with_its_place() -> None:
    with pytest.raises(InputError, match=r"unknown role 'alien' \(at messages\[2\]"):
        document_of({"messages": [*PLAIN, {"role": "alien"}]})
