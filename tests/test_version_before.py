"""What others rely on is as the version before had it: files of settings, variables, and the names of everything.

`requirements/version_before` was written by that version and is never written again: files with every setting that it
took, what it read from them, and its names. New names may come; none of these goes or changes its value.
"""

import asyncio
import json
import logging
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from starlette.routing import BaseRoute, Match

from everlong import errors
from everlong.agent.config import load_config as load_agent_config
from everlong.cli.app import app_from_environment
from everlong.core import OUTCOMES, EventKind
from everlong.engine import SETTINGS, Settings
from everlong.gateway import GatewayConfig, Report
from everlong.gateway.clients import MODE_HEADER
from everlong.gateway.config import load_config as load_gateway_config
from everlong.gateway.http.endpoints import THREAD_HEADER
from everlong.gateway.http.server import SERVING
from everlong.gateway.operations.reports import access_log, log_request
from everlong.gateway.upstreams.providers import routes_from
from everlong.llm import RefreshSettings, ScriptedServer, Window, cache_folder, endpoint_from_environment
from everlong.store import default_store, open_store
from everlong.web import environment_sources
from everlong.web.api.guard import PAGE_HEADER
from everlong.web.state.settings import AppSettings, changed_settings, load_settings
from everlong.wire import Usage
from tests.cli.running import everlong
from tests.gateway.resending import post
from tests.gateway.running import RunningGateway

HERE = Path(__file__).parent
BEFORE = HERE / "requirements" / "version_before"
STORE = HERE / "store" / "fixtures" / "sqlite" / "chat.db"
#: An environment that has no file of settings anywhere.
NOWHERE = {"HOME": "/nowhere", "XDG_CONFIG_HOME": "/nowhere"}


def recorded(name: str) -> Any:
    return json.loads((BEFORE / name).read_text(encoding="utf-8"))


EXPECTED, NAMES, ENVIRONMENT = recorded("settings.json"), recorded("names.json"), recorded("environment.json")


# --- settings --------------------------------------------------------------------------------------


def values_of(value: Any) -> Any:
    """A value of ours as JSON has it; the engine's settings by name, those of presets among them."""
    match value:
        case Settings():
            names = [option.name for option in SETTINGS]
            return {name: getattr(value, name) if hasattr(value, name) else value.option(name) for name in names}
        case Path():
            return str(value)
        case Mapping():
            return {name: values_of(each) for name, each in value.items()}
        case list() | tuple():
            return [values_of(each) for each in value]
        case _ if is_dataclass(value):
            return {each.name: values_of(getattr(value, each.name)) for each in fields(value)}
        case _:
            return value


def flat(config: GatewayConfig | AppSettings) -> dict[str, Any]:
    """Settings whose file has the engine's beside its own."""
    values = values_of(config)
    return {**values.pop("engine"), **values}


def assert_as_before(values: Any, expected: Any, where: str) -> None:
    """Every value that was recorded is the same; there may be more."""
    match expected:
        case dict():
            for name, each in expected.items():
                assert name in values, f"{where}: {name} is gone"
                if name == "formats":  # there may be more that are spoken
                    assert set(each) <= set(values[name]), where
                    continue
                assert_as_before(values[name], each, f"{where}: {name}")
        case list() if any(isinstance(each, dict) for each in expected):
            assert len(values) == len(expected), where
            for value, each in zip(values, expected, strict=True):
                assert_as_before(value, each, where)
        case _:
            assert values == expected, where


def test_the_gateways_file_and_variables_mean_what_they_meant(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    file = str(BEFORE / "gateway.toml")
    own = {name: value for name, value in ENVIRONMENT.items() if name.startswith("EVERLONG_GATEWAY_")}
    config = load_gateway_config(file, {}, NOWHERE)
    found = {
        "gateway file": flat(config),
        "gateway variables": flat(load_gateway_config(None, {}, NOWHERE | own)),
        "gateway file and variables": flat(load_gateway_config(file, {}, ENVIRONMENT)),
        "gateway file: upstreams": values_of(routes_from(config, {"HOUSE_KEY": "house-secret"}).upstreams),
        "gateway by EVERLONG_UPSTREAM, _KEY, _FORMAT": values_of(
            routes_from(load_gateway_config(None, {}, NOWHERE), ENVIRONMENT).upstreams
        ),
    }
    for name, values in found.items():
        assert_as_before(values, EXPECTED[name], name)
    assert load_gateway_config(None, {}, NOWHERE | {"EVERLONG_CONFIG": file}) == config


def test_the_agents_files_and_variables_mean_what_they_meant() -> None:
    file = BEFORE / "everlong.toml"
    found = {
        "agent file": load_agent_config({}, file=file),
        "agent variables": load_agent_config(ENVIRONMENT),
        "agent file and variables": load_agent_config(ENVIRONMENT, file=file),
        "agent nanobot config.json": load_agent_config({}, file=BEFORE / "config.json"),
    }
    for name, config in found.items():
        assert_as_before(values_of(config), EXPECTED[name], name)


def test_the_engines_variables_and_threads_mean_what_they_meant() -> None:
    of_a_thread = json.dumps({name.removeprefix("EVERLONG_").lower(): value for name, value in ENVIRONMENT.items()})
    for settings in (Settings.from_environment(ENVIRONMENT), Settings().for_thread(of_a_thread)):
        assert_as_before(values_of(settings), EXPECTED["engine variables"], "engine")


def test_the_apps_settings_mean_what_they_meant() -> None:
    settings = changed_settings(AppSettings(), recorded("app_settings.json"))
    assert_as_before(flat(settings) | {"threshold": settings.threshold}, EXPECTED["app settings"], "app")
    assert_as_before(values_of(settings.over(Settings())), EXPECTED["app settings: engine"], "app: engine")
    assert_as_before(values_of(environment_sources(ENVIRONMENT)), EXPECTED["app sources"], "app: sources")


def test_the_apps_settings_in_a_store_mean_what_they_meant(tmp_path: Path) -> None:
    content = json.loads((STORE.parents[1] / "expected.json").read_text(encoding="utf-8"))["all"]
    with open_store(str(shutil.copy(STORE, tmp_path))) as store:
        settings = load_settings(store)
    values = flat(settings) | {"threshold": settings.threshold, "windows.0": list(settings.windows[0])}
    prefix = "app_settings."
    assert_as_before(
        values, {name.removeprefix(prefix): each for name, each in content.items() if name.startswith(prefix)}, "store"
    )


def test_the_other_variables_mean_what_they_meant() -> None:
    folders = {"XDG_DATA_HOME": "/data", "LOCALAPPDATA": "C:/data"}
    found = {
        "endpoint": endpoint_from_environment(ENVIRONMENT),
        "cache folder": cache_folder(ENVIRONMENT),
        "refresh": RefreshSettings.from_environment(ENVIRONMENT),
        "store": default_store(ENVIRONMENT, "linux"),
        "store by system": {system: default_store(folders, system) for system in ("linux", "win32")},
    }
    for name, value in found.items():
        assert_as_before(values_of(value), EXPECTED[name], name)


# --- names -----------------------------------------------------------------------------------------


def paths(value: Any, at: str = "") -> set[str]:
    """The paths of all values in JSON. Example: {"a": [{"b": 1}]} -> {"a[].b"}"""
    match value:
        case dict() if value:
            return set().union(*(paths(each, f"{at}.{name}" if at else name) for name, each in value.items()))
        case list() if value:
            return set().union(*(paths(each, f"{at}[]") for each in value))
        case _:
            return {at + ("{}" if value == {} else "[]" if value == [] else "")}


def gone(name: str, now: set[str]) -> set[str]:
    return set(NAMES[name]) - now


def test_no_event_or_error_lost_its_name() -> None:
    assert not gone("event kinds", {kind.value for kind in EventKind})
    assert not gone("errors", set(errors.__all__))
    assert {start.value: [end.value for end in ends] for start, ends in OUTCOMES.items()} == NAMES["outcomes"]


def test_no_header_metric_or_key_of_the_gateway_lost_its_name() -> None:
    talk = [{"role": role, "content": "Boats. " * 900} for role in ("user", "assistant")] * 4
    body = json.dumps({"model": "gpt-4o", "messages": [*talk, {"role": "user", "content": "And now?"}]}).encode()
    window = Window(8_000, told=True)
    with ScriptedServer(window=window) as upstream, RunningGateway(upstream=upstream.url) as gateway:
        _, headers, _ = post(gateway, "/v1/chat/completions", body)
    lines = gateway.services.metrics.written()[0].decode().splitlines()
    samples = {re.sub(r'="[^"]*"', "", line.rpartition(" ")[0]) for line in lines if not line.startswith("#")}
    assert not gone("metrics", samples)
    assert not gone("metric families", {line.split()[2] for line in lines if line.startswith("# TYPE")})
    assert not gone("answer headers", set(headers))
    assert not gone("request headers", {PAGE_HEADER, MODE_HEADER.decode(), THREAD_HEADER.decode()})


@pytest.fixture
def own_logging() -> Iterator[None]:
    """Serving sets up the logging of the process; afterwards it is as it was."""
    loggers = [logging.getLogger("everlong"), access_log]
    before = [(logger.handlers, logger.propagate, logger.level) for logger in loggers]
    yield
    for logger, (handlers, propagate, level) in zip(loggers, before, strict=True):
        logger.handlers, logger.propagate = handlers, propagate
        logger.setLevel(level)


@pytest.mark.usefixtures("own_logging")
def test_no_key_of_a_report_lost_its_name(caplog: pytest.LogCaptureFixture) -> None:
    report = Report(
        **{name: name for name in ("id", "client", "path", "fmt", "model", "upstream", "mode")},
        time=datetime(2026, 1, 1, tzinfo=UTC),
        usage=Usage(prompt=3, cached=2, output=1),
    )
    access_log.propagate = logging.getLogger("everlong").propagate = True
    with caplog.at_level(logging.INFO, logger=access_log.name):
        log_request(report)
    assert not gone("access log", paths(json.loads(caplog.messages[-1])))
    report.usage = None
    assert not gone("explanation", paths(report.explanation()))


@pytest.mark.usefixtures("own_logging")
def test_no_route_of_the_gateway_or_the_app_moved(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    options = {"store": "memory:", "upstream": "http://127.0.0.1:9/v1", "access_log": False}
    variables = {"HOME": tmp_path, "XDG_CONFIG_HOME": tmp_path, "EVERLONG_CACHE": tmp_path, "EVERLONG_OFFLINE": "1"}
    for name, value in {**variables, SERVING: json.dumps({"options": options})}.items():
        monkeypatch.setenv(name, str(value))
    monkeypatch.chdir(tmp_path)

    async def answered() -> set[str]:
        app = app_from_environment()
        async with app.router.lifespan_context(app):
            return {route for route in NAMES["routes"] if is_answered(app.router.routes, *route.split(" "))}

    assert not gone("routes", asyncio.run(answered()))


def is_answered(routes: Sequence[BaseRoute], method: str, path: str) -> bool:
    """Whether a request to such a path reaches an endpoint."""
    written = re.sub(r"\{[a-z]+\}", "name", path.replace("{order:int}", "1").replace("{path:path}", "embeddings"))
    written = written.replace("{file:path}", "index.js")
    scope = {"type": "http", "method": "GET" if method == "ANY" else method, "path": written, "headers": []}
    return any(route.matches(scope)[0] is Match.FULL for route in routes)


@pytest.mark.parametrize("command", NAMES["commands"])
def test_no_key_of_a_commands_json_lost_its_name(command: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("EVERLONG_STORE", str(shutil.copy(STORE, tmp_path)))
    monkeypatch.setenv("EVERLONG_OFFLINE", "1")
    monkeypatch.setenv("EVERLONG_CACHE", str(tmp_path / "cache"))
    ran = everlong(*command.split())
    assert ran.code == 0, ran.err
    assert set(NAMES["commands"][command]) <= paths(json.loads(ran.out))
