"""Sources and their models: what is tried and stored, what is refused, and that keys never come back."""

import json
import logging
import stat
from pathlib import Path
from typing import Any

import pytest

from everlong.llm import Endpoint, ScriptedServer, Window
from everlong.web.state.sources import Source, Sources, environment_sources, sources_file
from tests.web.running import an_app

KEY = "sk-very-secret-0123456789"


def test_a_source_is_tried_kept_for_its_owner_and_its_key_never_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with ScriptedServer(models=("one", "two")) as other, an_app(folder=tmp_path) as (app, _):
        page = app.page()
        added = page.do("POST", "/everlong/api/sources", {"name": "mine", "url": other.url, "key": KEY})
        assert added == {
            "name": "mine",
            "url": other.url,
            "format": "openai-chat",
            "has_key": True,
            "fast_model": "",
            "models": 2,
            "added": True,
        }
        listed = page.get("/everlong/api/sources")
        assert [(one["name"], one["has_key"], one["added"]) for one in listed] == [
            ("main", True, False),
            ("mine", True, True),
        ]
        assert {"mine/one", "mine/two"} <= {model["id"] for model in page.get("/everlong/api/state")["models"]}
        file = tmp_path / "sources.json"
        assert KEY in file.read_text(encoding="utf-8")
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        page.say(page.thread(model="mine/two"), "hello")
        assert other.requests[-1].model == "two"
        told = [
            page.raw("GET", path)[1]
            for path in (
                "/everlong/api/sources",
                "/everlong/api/state",
                "/everlong/api/settings",
                "/everlong/api/usage",
            )
        ]
        assert not any(KEY.encode() in body or b"given-key" in body for body in told)
        assert KEY not in repr(app.state.sources.added)
        assert page.ask("DELETE", "/everlong/api/sources/main")[0] == 409
        assert page.ask("DELETE", "/everlong/api/sources/nobody")[0] == 404
        page.do("DELETE", "/everlong/api/sources/mine")
        assert KEY not in file.read_text(encoding="utf-8")
    assert KEY not in caplog.text


UNUSABLE: dict[str, tuple[dict[str, Any], int]] = {
    "no address": ({"name": "x"}, 400),
    "no address at all": ({"url": "what"}, 400),
    "another scheme": ({"url": "file:///etc/passwd"}, 400),
    "a key in the address": ({"url": "https://user:pass@models.example/v1"}, 400),
    "a format that is none": ({"url": "http://127.0.0.1:1/v1", "format": "telex"}, 400),
    "nobody there": ({"url": "http://127.0.0.1:1/v1"}, 422),
    "a name with a slash": ({"url": "http://127.0.0.1:1/v1", "name": "a/b"}, 400),
    "a name that is taken": ({"url": "http://127.0.0.1:1/v1", "name": "main"}, 409),
    "a key that is no text": ({"url": "http://127.0.0.1:1/v1", "key": ["x"]}, 400),
}


@pytest.mark.parametrize("name", UNUSABLE)
def test_a_source_that_does_not_work_is_not_kept(name: str, tmp_path: Path) -> None:
    said, expected = UNUSABLE[name]
    with an_app(folder=tmp_path) as (app, _):
        status, told = app.page().ask("POST", "/everlong/api/sources", said)
        assert status == expected, told
        assert "user:pass" not in told["error"]["message"]
        assert not (tmp_path / "sources.json").exists()


def test_kept_sources_are_read_and_broken_ones_left_out(tmp_path: Path) -> None:
    file = tmp_path / "sources.json"
    rows = [{"name": "a", "url": "http://127.0.0.1:9/v1", "key": KEY}, {"name": "b"}, 7, {"name": "c", "url": "x"}]
    file.write_text(json.dumps({"sources": rows}), encoding="utf-8")
    assert [source.name for source in Sources((), file).all] == ["a"]
    file.write_text("{", encoding="utf-8")
    assert Sources((), file).all == ()


def test_keys_of_the_environment_are_sources() -> None:
    found = environment_sources(
        {"OPENAI_API_KEY": "sk-1", "GROQ_API_KEY": "", "EVERLONG_UPSTREAM": "http://127.0.0.1:9/v1"}
    )
    assert [source.name for source in found] == ["127.0.0.1:9", "openai"]
    assert sources_file({"XDG_CONFIG_HOME": "/conf"}) == Path("/conf/everlong/sources.json")


def test_the_first_run_has_no_source_and_one_may_be_added() -> None:
    with ScriptedServer(models=("one",)) as server, an_app(sources=()) as (app, _):
        page = app.page()
        state = page.get("/everlong/api/state")
        assert state["first_run"]
        assert (state["models"], state["default_model"]) == ([], "")
        thread = page.thread()
        assert (
            page.ask("POST", f"/everlong/api/threads/{thread}/turn", {"text": "hi"})[1]["error"]["kind"] == "no_model"
        )
        page.do("POST", "/everlong/api/sources", {"name": "new", "url": server.url})
        state = page.get("/everlong/api/state")
        assert (state["first_run"], state["default_model"]) == (False, "new/one")
        page.say(thread, "hi")
        assert page.rows(thread)[-1]["text"] == "hi"


def test_windows_are_told_with_their_source() -> None:
    told = ScriptedServer(window=Window(9_000, told=True), models=("local-one",))
    with told as server, an_app(told=False) as (app, _):
        page = app.page()
        page.do("POST", "/everlong/api/sources", {"name": "served", "url": server.url})
        page.do("PUT", "/everlong/api/settings", {"windows": {"main/other": 5_000}})
        models = {model["id"]: model for model in page.get("/everlong/api/state")["models"]}
        assert (models["served/local-one"]["window"], models["served/local-one"]["window_source"]) == (9_000, "served")
        assert (models["main/scripted"]["window"], models["main/scripted"]["known"]) == (None, False)
        page.do("PUT", "/everlong/api/settings", {"windows": {"main/scripted": 5_000}})
        models = {model["id"]: model for model in page.get("/everlong/api/state")["models"]}
        assert (models["main/scripted"]["window"], models["main/scripted"]["window_source"]) == (5_000, "user")


def test_a_source_of_the_server_counts_before_one_that_was_added(tmp_path: Path) -> None:
    given = Source(name="same", endpoint=Endpoint(url="http://127.0.0.1:7/v1"))
    added = Source(name="same", endpoint=Endpoint(url="http://127.0.0.1:8/v1"))
    sources = Sources((), tmp_path / "sources.json")
    sources.add(added)
    both = Sources((given,), tmp_path / "sources.json")
    assert [source.endpoint.url for source in both.all] == ["http://127.0.0.1:7/v1"]
