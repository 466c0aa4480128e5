"""Traces through `everlong serve`: a client's trace goes on here, and shows what a request was made of."""

import json
import os
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from everlong.errors import InputError
from everlong.gateway.traces import NO_TRACES, set_up_traces
from everlong.llm import ScriptedServer
from tests.gateway.processes import ServingProcess
from tests.gateway.talking import PATHS, body_of

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
CLIENTS = f"00-{TRACE}-{PARENT}-01"
SECRET = "How many boats of Ann?"


def spans_of(lines: list[str]) -> list[dict[str, Any]]:
    """The spans that the console exporter wrote, between the lines of the access log."""
    decoder, text, found = json.JSONDecoder(), "".join(lines), []
    while text := text.lstrip():
        value, end = decoder.raw_decode(text)
        found += [value] if "context" in value else []
        text = text[end:]
    return found


@pytest.mark.parametrize("tells", [False, True], ids=["as it came", "told of ours"])
def test_a_request_is_one_trace_from_its_client_to_the_upstream_and_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tells: bool
) -> None:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "console")
    monkeypatch.setenv("OTEL_SERVICE_NAME", "gateway-of-the-test")
    (tmp_path / "everlong.toml").write_text(f"trace_upstream = {str(tells).lower()}\n")
    with ScriptedServer() as upstream:
        options = ("--upstream", upstream.url, "--store", "threads.db", "--config", "everlong.toml", "--no-app")
        with ServingProcess(*options, "--keep", "text", folder=tmp_path) as gateway:
            connection = HTTPConnection("127.0.0.1", gateway.port, timeout=60)
            said = [{"role": "user", "content": SECRET}]
            connection.request("POST", PATHS["openai-chat"], body_of("openai-chat", said), {"traceparent": CLIENTS})
            assert connection.getresponse().status == 200
            connection.close()
    mine = [span for span in spans_of(gateway.lines) if span["context"]["trace_id"] == f"0x{TRACE}"]
    names = {span["name"]: span for span in mine}
    request = names[f"POST {PATHS['openai-chat']}"]
    place = upstream.url.removeprefix("http://").removesuffix("/v1")
    called = names[f"upstream {place}"]
    assert (request["kind"], request["parent_id"]) == ("SpanKind.SERVER", f"0x{PARENT}")
    assert request["attributes"]["http.response.status_code"] == 200
    assert request["resource"]["attributes"]["service.name"] == "gateway-of-the-test"
    assert names["prepare"]["parent_id"] == request["context"]["span_id"]
    assert (called["kind"], called["parent_id"]) == ("SpanKind.CLIENT", request["context"]["span_id"])
    assert names["chat gpt-4o"]["attributes"]["gen_ai.operation.name"] == "chat"
    assert {name for name in names if name.startswith("store ")} >= {"store append", "store create"}
    assert SECRET not in json.dumps(mine)
    heard = next(one for one in upstream.requests if "traceparent" in one.headers).headers["traceparent"]
    assert heard == (f"00-{TRACE}-{called['context']['span_id'].removeprefix('0x')}-01" if tells else CLIENTS)


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"OTEL_TRACES_EXPORTER": "none"},
        {"OTEL_TRACES_EXPORTER": "console", "OTEL_SDK_DISABLED": "true"},
        {"OTEL_SERVICE_NAME": "a"},
    ],
)
def test_without_being_asked_nothing_is_traced(environment: dict[str, str]) -> None:
    assert set_up_traces(environment) is NO_TRACES


def test_an_exporter_that_is_not_there_is_named() -> None:
    with pytest.raises(InputError) as error:
        set_up_traces({"OTEL_TRACES_EXPORTER": "zipkin"})
    assert "OTEL_TRACES_EXPORTER" in str(error.value)
    assert "'zipkin' is not installed" in str(error.value)
    assert os.linesep not in str(error.value)
