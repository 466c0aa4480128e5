"""Servers that have a format below other paths, or know a model by another name: what is asked of them."""

import pytest

from everlong.core import Message, Role, Text
from everlong.llm import Way
from everlong.wire import Outgoing, Request, format_named

KEY = "secret-key-1"
ASKED = Request(model="known", messages=(Message(Role.USER, (Text("hi"),)),), max_tokens=9)


def outgoing(fmt: str, way: Way, model: str = "known") -> Outgoing:
    return way.request(format_named(fmt).ask(ASKED, KEY), model, KEY)


def test_another_name_is_sent_and_nothing_else_is_changed() -> None:
    usual = format_named("openai-chat").ask(ASKED, KEY)
    sent = outgoing("openai-chat", Way(model="known", sent="mine"))
    assert sent == Outgoing(path=usual.path, body={**usual.body, "model": "mine"}, headers=usual.headers)


def test_a_model_of_another_name_keeps_it() -> None:
    way = Way(model="known", sent="mine", path="/model/{model}/invoke")
    assert outgoing("anthropic", way, "author/of@summaries:0").path == "/model/author%2Fof@summaries:0/invoke"


def test_a_path_a_version_and_a_field_of_a_cloud() -> None:
    way = Way(
        model="known",
        sent="us.known-v1:0",
        path="/model/{model}/invoke",
        query="api-version=2",
        fields=(("anthropic_version", '"bedrock-2023-05-31"'),),
        without=frozenset({"model", "stream"}),
        key_header="authorization",
    )
    sent = outgoing("anthropic", way)
    assert sent.path == "/model/us.known-v1:0/invoke?api-version=2"
    assert sent.body["anthropic_version"] == "bedrock-2023-05-31"
    assert not {"model", "stream"} & sent.body.keys()
    assert sent.headers["authorization"] == f"Bearer {KEY}"
    assert "x-api-key" not in sent.headers


@pytest.mark.parametrize(
    ("header", "value"),
    [("api-key", KEY), ("x-api-key", KEY), ("authorization", f"Bearer {KEY}"), ("", f"Bearer {KEY}")],
)
def test_the_key_is_sent_once_in_the_header_that_is_read(header: str, value: str) -> None:
    sent = outgoing("openai-chat", Way(model="known", sent="known", key_header=header))
    assert [(name, told) for name, told in sent.headers.items() if KEY in told] == [(header or "authorization", value)]
