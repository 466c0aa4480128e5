"""What answers without a key: the witness behind the gateway and in the terminal, the local model behind the screen."""

import json
from http.client import HTTPConnection
from pathlib import Path

import pytest

from tests.cli.running import everlong
from tests.gateway.processes import ServingProcess
from tests.web.running import Page

TOLD = "The cellar key hangs behind the till."


def test_a_client_of_the_gateway_is_answered_by_the_witness(tmp_path: Path) -> None:
    talk = [
        {"role": "user", "content": TOLD},
        {"role": "assistant", "content": "Fine."},
        {"role": "user", "content": "Where does the key hang?"},
    ]
    body = json.dumps({"model": "witness", "messages": talk})
    options = ("--upstream", "witness", "--no-app", "--store", "memory:")
    with ServingProcess(*options, folder=tmp_path) as gateway:
        connection = HTTPConnection("127.0.0.1", gateway.port, timeout=60)
        connection.request("POST", "/v1/chat/completions", body, {"content-type": "application/json"})
        answer = json.loads(connection.getresponse().read())
        connection.close()
    assert f"> {TOLD}\n>\n> — *you, message 1 of 3*" in answer["choices"][0]["message"]["content"]


def test_the_first_screen_does_not_wait_for_the_local_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It cannot be fetched here: the app is there all the same, with its witness, and says why."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    with ServingProcess("--local", "--no-access-log", "--store", "memory:", folder=tmp_path) as server:
        page = Page(server.port)
        state = page.get("/everlong/api/state")
        assert (state["first_run"], state["default_model"]) == (True, "witness/witness")
        told = page.get("/everlong/api/local")
        while told["state"] in ("fetching", "starting"):
            told = page.get("/everlong/api/local")
        assert told["state"] == "failed"
        assert "cannot be downloaded" in told["reason"]
        thread = page.thread(model="witness/witness")
        page.say(thread, "hello")
        assert page.rows(thread)[-1]["text"].startswith("I am the witness")


def test_the_witness_answers_in_the_terminal(tmp_path: Path) -> None:
    ran = everlong("chat", "--upstream", "witness", "--no-tools", "--store", "memory:", "-m", "hello", folder=tmp_path)
    assert (ran.code, ran.out.startswith("I am the witness")) == (0, True)
