"""Settings: what is stored, what is refused, and what follows for the engine."""

from typing import Any

import pytest

from everlong.store import MemoryThreads
from everlong.web.state.settings import AppSettings, load_settings
from tests.web.running import an_app

WRONG: dict[str, dict[str, Any]] = {
    "below": {"threshold": 35},
    "above": {"threshold": 95},
    "between steps": {"threshold": 62},
    "in words": {"threshold": "60"},
    "half": {"threshold": 60.5},
    "auto in words": {"auto": "on"},
    "a preset that is none": {"preset": "best"},
    "a preset that sends too much": {"preset": "off"},
    "windows as a list": {"windows": []},
    "a window of nothing": {"windows": {"a/b": 0}},
    "a window in words": {"windows": {"a/b": "many"}},
    "a language that is none": {"language": "fr"},
    "no days": {"retention_days": 0},
    "a setting that is none": {"colour": "red"},
    "a mode that sends too much": {"mode": "off"},
    "a share above one": {"recall_share": 2},
    "a model of nobody": {"summary_model": "nobody/none"},
    "code of the server": {"semantic": "os:system"},
    "files of the server": {"semantic": "/etc"},
}


@pytest.mark.parametrize("name", WRONG)
def test_settings_that_make_no_sense_change_nothing(name: str) -> None:
    with an_app() as (app, _):
        page = app.page()
        before = page.get("/everlong/api/settings")
        status, told = page.ask("PUT", "/everlong/api/settings", WRONG[name])
        assert status in (400, 409)
        assert told["error"]["message"]
        assert page.get("/everlong/api/settings") == before


def test_settings_are_kept_beyond_the_server() -> None:
    threads = MemoryThreads()
    chosen = {
        "auto": False,
        "threshold": 75,
        "summary_model": "main/scripted",
        "naming_model": "",
        "preset": "chatbox",
        "windows": {"main/scripted": 9_000},
        "language": "zh",
        "tools": False,
        "retention_days": 90,
    }
    with an_app(threads=threads) as (app, _):
        assert app.page().do("PUT", "/everlong/api/settings", chosen) == chosen
        app.page().do("PUT", "/everlong/api/settings", {"threshold": 80})
    with an_app(threads=threads) as (app, _):
        assert app.page().get("/everlong/api/settings") == chosen | {"threshold": 80}
        assert app.page().get("/everlong/api/state")["language"] == "zh"


def test_every_setting_of_the_engine_can_be_set_by_its_name() -> None:
    threads = MemoryThreads()
    with an_app(threads=threads) as (app, _):
        before = app.page().get("/everlong/api/settings")
        assert app.page().do("PUT", "/everlong/api/settings", {"soft_cap": 20_000}) == before | {"soft_cap": 20_000}
    with an_app(threads=threads) as (app, _):
        assert app.state.engine.blocking.context.settings.soft_cap == 20_000
        status, told = app.page().ask("PUT", "/everlong/api/settings", {"treshold": 60})
        assert (status, "did you mean threshold?" in told["error"]["message"]) == (400, True)
        assert app.page().do("PUT", "/everlong/api/settings", {"soft_cap": None}) == before


def test_settings_that_cannot_be_read_are_the_defaults() -> None:
    for kept in ("{", "[]", '{"threshold": 7}', "null"):
        threads = MemoryThreads()
        threads.keep_fact("app", "settings", kept)
        assert load_settings(threads) == AppSettings()
