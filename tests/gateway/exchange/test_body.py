"""Cache marks through the gateway: for clients that send none, and for no others."""

import json
from itertools import pairwise
from typing import Any, cast

import pytest

from everlong.gateway.exchange.body import marked_front, marked_members
from everlong.gateway.request import encoded
from everlong.llm import Answer, ScriptedServer, Window, reads_files
from everlong.wire import ANTHROPIC, CacheMarks
from tests.engine.authors import both, is_asked_to_summarise
from tests.gateway.resending import Resending, of_clients, post, resets, valid_upstream
from tests.gateway.running import RunningGateway
from tests.llm.marked_cache import MarkedCache, marks_of

MARKS = cast(CacheMarks, ANTHROPIC.marks)

Value = dict[str, Any]
MARK: Value = {"type": "ephemeral"}
TOOL: Value = {"name": "read_file", "input_schema": {"type": "object"}}
ASKED: list[Value] = [{"role": "user", "content": "How many boats?"}]
TALK: list[Value] = [*ASKED, {"role": "assistant", "content": "Two."}, {"role": "user", "content": "And piers?"}]


def forwarded(body: Value, headers: dict[str, str] | None = None, **options: Any) -> tuple[Value, bytes, bytes]:
    """What the upstream gets for a request: read, byte for byte, and the bytes that were sent."""
    sent = json.dumps({"model": "gpt-4o", "max_tokens": 100} | body).encode()
    with (
        ScriptedServer(lambda _: Answer(text="ok")) as server,
        RunningGateway(upstream=server.url, **options) as gateway,
    ):
        status, _, answer = post(gateway, "/v1/messages", sent, headers)
        assert status == 200, answer
        (asked,) = server.requests
        valid_upstream(server)
    value: Value = json.loads(asked.body)
    return value, asked.body, sent


#: What a client sends, and where marks are then.
ADDED: dict[str, tuple[Value, list[str]]] = {
    "one question": ({"messages": ASKED, "system": "Be brief."}, ["system"]),
    "one question with tools": ({"messages": ASKED, "system": "Be brief.", "tools": [TOOL]}, ["system", "0"]),
    "a conversation": ({"messages": TALK, "system": [{"type": "text", "text": "Be brief."}]}, ["system", "2"]),
    "tools alone": ({"messages": TALK, "tools": [TOOL, TOOL | {"name": "b"}]}, ["tools", "2"]),
    "nothing in front": ({"messages": TALK}, ["2"]),
    "nothing in front of one question": ({"messages": ASKED}, []),
    "a tool of a strange kind": (
        {"messages": ASKED, "tools": [{"type": "mcp_toolset", "mcp_server_name": "files"}]},
        ["0"],
    ),
    "words about marks": ({"messages": [*TALK[:2], {"role": "user", "content": '{"cache_control": 1}'}]}, ["2"]),
}


@pytest.mark.parametrize(("body", "marks"), ADDED.values(), ids=ADDED)
def test_a_client_that_marks_nothing_gets_marks(body: Value, marks: list[str]) -> None:
    value, _, _ = forwarded(body)
    assert marks_of(value) == marks


OWN: dict[str, Value] = {
    "on a message": {
        "messages": [*TALK[:2], {"role": "user", "content": [{"type": "text", "text": "a", "cache_control": MARK}]}]
    },
    "on the system text": {
        "messages": TALK,
        "system": [{"type": "text", "text": "Be brief.", "cache_control": MARK}, {"type": "text", "text": "Please."}],
    },
    "on a tool": {"messages": TALK, "tools": [TOOL | {"cache_control": MARK}, TOOL | {"name": "b"}]},
    "on all of it": {"messages": TALK, "system": "Be brief.", "cache_control": MARK},
}


@pytest.mark.parametrize("body", OWN.values(), ids=OWN)
def test_a_client_that_marks_anything_is_left_alone(body: Value) -> None:
    value, raw, _ = forwarded(body)
    assert raw.count(b"ephemeral") == 1
    assert {name: value.get(name) for name in ("system", "tools")} == {
        name: body.get(name) for name in ("system", "tools")
    }


def test_off_sets_none() -> None:
    body = {"messages": TALK, "system": "Be brief.", "tools": [TOOL]}
    assert b"cache_control" not in forwarded(body, breakpoints="off")[1]
    for options in ({"mode": "off"}, {"headers": {"x-everlong-mode": "off"}}):
        _, raw, sent = forwarded(body, **options)  # type: ignore[arg-type]
        assert raw == sent


def test_marks_are_all_that_changes() -> None:
    body = {"messages": TALK, "system": [{"type": "text", "text": "Be brief."}], "tools": [TOOL], "x_new": [1, None]}
    plain, marked = forwarded(body, breakpoints="off")[0], forwarded(body)[0]
    assert marked != plain
    assert MARKS.remove(marked) == plain


@pytest.mark.parametrize("fmt", ["openai-chat", "openai-responses"])
def test_other_formats_have_no_marks(fmt: str) -> None:
    with ScriptedServer(reads_files(1)) as server, RunningGateway(upstream=server.url) as gateway:
        Resending(fmt).ask(gateway, "How many boats?")
        assert all(b"cache_control" not in asked.body for asked in server.requests)


def test_D1_a_client_without_marks_pays_for_the_news_alone() -> None:
    client = Resending("anthropic", fields={"tools": [TOOL]})
    with (
        ScriptedServer(both(reads_files(1)), window=Window(16_000, told=True)) as server,
        RunningGateway(upstream=server.url, summaries="off") as gateway,
    ):
        for turn in range(20):
            client.ask(gateway, f"Question {turn}: what does function {turn} do?")
        valid_upstream(server)
    requests = of_clients(server)
    bills = MarkedCache().bills(requests)
    whole = [now.read == before.total for before, now in pairwise(bills)]
    assert 0 < whole.count(False) == resets(requests) < len(whole) / 8, "cuts alone"
    assert sum(bill.cost for bill in bills) < 0.35 * sum(bill.total for bill in bills)
    assert max(len(marks_of(asked.body)) for asked in requests) == 3, "system text, what a cut left, the end"


@pytest.mark.parametrize("breakpoints", ["auto", "off"])
def test_D3_a_summary_is_marked_as_the_conversation_is(breakpoints: str) -> None:
    client = Resending("anthropic")
    with (
        ScriptedServer(both(reads_files(1)), window=Window(16_000, told=True)) as server,
        RunningGateway(upstream=server.url, breakpoints=breakpoints) as gateway,
    ):
        for turn in range(20):
            client.ask(gateway, f"Question {turn}: what does function {turn} do?")
            client.settle(gateway)
    cache = MarkedCache()
    bills = [cache.bill(asked) for asked in server.requests]
    summaries = [bill for bill, asked in zip(bills, server.requests, strict=True) if is_asked_to_summarise(asked)]
    assert summaries
    for bill in summaries:
        assert bill.read > 0.85 * bill.total if breakpoints == "auto" else bill.plain == bill.total
        assert bill.written < 0.01 * bill.total


# --- the bytes -------------------------------------------------------------------------------------

SIGN = b'"cache_control":{"type":"ephemeral"},'
DEFERRED = b'{"name":"b","defer_loading":true}'
FRONTS: dict[str, tuple[dict[str, bytes], dict[str, bytes]]] = {
    "a string": (
        {"system": b' "a\\u00e9" '},
        {"system": b"[{" + SIGN + b'"type":"text","text":"a\\u00e9"}]'},
    ),
    "an empty string": ({"system": b'""'}, {}),
    "blocks": (
        {"system": b'[ {"text":"a", "type":"text"} ,{"type":"text","text":" "}]'},
        {"system": b"[{" + SIGN + b'"text":"a", "type":"text"},{"type":"text","text":" "}]'},
    ),
    "null": ({"system": b"null", "tools": b"null"}, {}),
    "tools": (
        {"tools": b'[{"name":"a"},' + DEFERRED + b"]"},
        {"tools": b"[{" + SIGN + b'"name":"a"},' + DEFERRED + b"]"},
    ),
}


@pytest.mark.parametrize(("fields", "marked"), FRONTS.values(), ids=FRONTS)
def test_bytes_in_front(fields: dict[str, bytes], marked: dict[str, bytes]) -> None:
    assert marked_front(MARKS, "system", fields, 300) == marked


def test_bytes_of_messages() -> None:
    thought = b'{"content":[{"signature":"s","thinking":"Hm.","type":"thinking"}],"role":"assistant"}'
    system = b'{"content":[{"text":"now","type":"text"}],"role":"system"}'
    first = b'{"content":[{"text":"a\\u00e9","type":"text"},{"text":"b","type":"text"}],"role":"user"}'
    members = [first, thought, b'{"content":"","role":"user"}', system]
    borne = first.replace(b'{"text":"b"', b"{" + SIGN + b'"text":"b"')
    for places in ([0], [3], [0, 3], [1, 2, 3]):
        assert marked_members(MARKS, members, places, 300) == [borne, *members[1:]]
    for places in ([], [-1]):
        assert marked_members(MARKS, members, places, 300) == members
    assert encoded(json.loads(marked_members(MARKS, [first], [0], 3600)[0])).count(b'"ttl":"1h"') == 1
