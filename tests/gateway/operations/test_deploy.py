"""What deploy/ says is so: its settings, commands, paths, metrics and files are those of the program.

`scripts/check_deploy.py` looks at the same files with Helm, the schemas of Kubernetes and Compose, and hadolint.
"""

import json
import re
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement

from everlong.cli.main import program
from everlong.gateway.config import OWN, load_config
from everlong.gateway.upstreams.providers import routes_from
from everlong.llm import ScriptedServer
from tests.gateway.running import RunningGateway

ROOT = Path(__file__).parents[3]
DEPLOY = ROOT / "deploy"
TEMPLATES = sorted((DEPLOY / "helm" / "everlong" / "templates").glob("*"))
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
ALERTS = [
    rule
    for group in yaml.safe_load((DEPLOY / "prometheus" / "alerts.yml").read_text(encoding="utf-8"))["groups"]
    for rule in group["rules"]
]
BOARD: dict[str, Any] = json.loads((DEPLOY / "grafana" / "dashboards" / "everlong.json").read_text(encoding="utf-8"))
PAGE = (ROOT / "docs" / "operate" / "metrics.md").read_text(encoding="utf-8")
OURS = {name: service for name, service in COMPOSE["services"].items() if service.get("image") == "everlong"}


def said(port: int, path: str) -> tuple[int, str]:
    connection = HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request("GET", path)
    answer = connection.getresponse()
    found = answer.status, answer.read().decode()
    connection.close()
    return found


@pytest.fixture(scope="module")
def gateway() -> Iterator[RunningGateway]:
    with ScriptedServer() as upstream, RunningGateway(upstream=upstream.url) as running:
        yield running


@pytest.fixture(scope="module")
def metrics(gateway: RunningGateway) -> set[str]:
    """The names of all metrics as they are scraped, with those of the parts of histograms."""
    kinds = re.findall(r"^# TYPE (\S+) (\S+)$", said(gateway.port, "/metrics")[1], re.MULTILINE)
    parts = {f"{name}{part}" for name, kind in kinds if kind == "histogram" for part in ("_bucket", "_sum", "_count")}
    return {name for name, _ in kinds} | parts


def named(expression: str) -> set[str]:
    return set(re.findall(r"\beverlong_[a-z_]+", expression))


def test_the_dashboard_asks_only_for_metrics_that_are_there(metrics: set[str]) -> None:
    asked = set.union(*(named(one["expr"]) for panel in BOARD["panels"] for one in panel.get("targets", ())))
    assert asked <= metrics, asked - metrics
    assert len(asked) > 15


def test_every_panel_has_its_place_and_says_what_it_shows() -> None:
    panels = BOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        at = panel["gridPos"]
        cells = {(at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])}
        assert not taken & cells, panel["title"]
        assert at["x"] + at["w"] <= 24
        taken |= cells
        assert panel["type"] == "row" or panel["targets"]


def test_alerts_ask_only_for_metrics_that_are_there_and_are_explained(metrics: set[str]) -> None:
    for rule in ALERTS:
        assert named(rule["expr"]) <= metrics, rule["alert"]
        assert rule["annotations"]["summary"]
        assert f"`{rule['alert']}`" in PAGE, f"docs/operate/metrics.md does not explain {rule['alert']}"


def test_every_metric_is_explained(metrics: set[str]) -> None:
    parts = ("_bucket", "_sum", "_count", "_created")
    missing = sorted(name for name in metrics if not name.endswith(parts) and f"`{name}`" not in PAGE)
    assert not missing


@pytest.mark.parametrize("name", OURS)
def test_a_service_runs_a_command_that_exists_without_rights(name: str) -> None:
    service = OURS[name]
    command, *options = service["command"]
    assert command in program.commands
    known = {
        option
        for parameter in program.commands[command].params
        for option in (*parameter.opts, *parameter.secondary_opts)
    }
    assert {option for option in options if option.startswith("--")} <= known
    assert service["read_only"]
    assert service["cap_drop"] == ["ALL"]
    for mount in service["volumes"]:
        assert (DEPLOY / mount.split(":")[0]).exists()


@pytest.mark.parametrize("name", [name for name, one in COMPOSE["services"].items() if name not in OURS])
def test_what_others_read_is_there(name: str) -> None:
    for mount in COMPOSE["services"][name].get("volumes", ()):
        if mount.startswith("."):
            assert (DEPLOY / mount.split(":")[0]).exists(), mount
    assert ":" in COMPOSE["services"][name]["image"].rpartition("/")[2], "a version is named"


def test_every_variable_of_ours_is_a_setting() -> None:
    files = [DEPLOY / "compose.yaml", DEPLOY / "Containerfile", *TEMPLATES]
    found = {word for file in files for word in re.findall(r"EVERLONG_GATEWAY_([A-Z_]+)", file.read_text("utf-8"))}
    assert {"STORE", "DRAIN_DELAY", "GRACE"} <= found
    assert found <= {name.upper() for name in OWN}


def test_a_process_is_given_the_time_that_it_takes_to_end() -> None:
    for name in ("gateway-1", "gateway-2"):
        given = COMPOSE["services"][name]["environment"]
        needed = float(given["EVERLONG_GATEWAY_DRAIN_DELAY"]) + 2 * float(given["EVERLONG_GATEWAY_GRACE"])
        assert float(COMPOSE["services"][name]["stop_grace_period"].removesuffix("s")) > needed
    chart = (DEPLOY / "helm" / "everlong" / "templates" / "gateway.yaml").read_text(encoding="utf-8")
    asked = "add .Values.gateway.drainDelay .Values.gateway.grace .Values.gateway.grace 15"
    assert f"terminationGracePeriodSeconds: {{{{ {asked} }}}}" in chart


def test_probes_ask_for_paths_that_answer(gateway: RunningGateway) -> None:
    files = [DEPLOY / "haproxy.cfg", DEPLOY / "Containerfile", *TEMPLATES]
    paths = {word for file in files for word in re.findall(r"/health[a-z/]*", file.read_text("utf-8"))}
    assert paths == {"/health/live", "/health/ready"}
    assert [said(gateway.port, path)[0] for path in sorted(paths)] == [200, 200]


def test_the_example_of_a_configuration_is_one() -> None:
    config = load_config(str(DEPLOY / "everlong.toml"), {"host": "0.0.0.0"}, {})
    routes = routes_from(config, {"ANTHROPIC_API_KEY": "sk-ant"})
    assert [one.name for one in routes.upstreams] == ["anthropic"]
    values = yaml.safe_load((DEPLOY / "helm" / "everlong" / "values.yaml").read_text(encoding="utf-8"))
    assert "[[upstreams]]" in values["config"]


def test_every_value_of_the_chart_is_used_and_every_used_one_is_there() -> None:
    values = yaml.safe_load((DEPLOY / "helm" / "everlong" / "values.yaml").read_text(encoding="utf-8"))
    text = "".join(file.read_text(encoding="utf-8") for file in TEMPLATES)
    used = {tuple(found.split(".")) for found in re.findall(r"\.Values\.([A-Za-z.]+)", text)}

    def there(path: tuple[str, ...]) -> bool:
        value: Any = values
        for part in path:
            if not isinstance(value, dict) or part not in value:
                return False
            value = value[part]
        return True

    assert [path for path in sorted(used) if not there(path)] == []

    def leaves(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
        if isinstance(value, dict) and value:
            for name, inner in value.items():
                yield from leaves(inner, (*path, name))
        else:
            yield path

    unused = [path for path in leaves(values) if not any(path[: len(each)] == each for each in used)]
    assert unused == []


def test_the_container_is_locked_to_the_versions_that_are_tested() -> None:
    def versions(file: Path) -> dict[str, str]:
        lines = re.findall(r"^([a-z0-9].*?==\S+)", file.read_text(encoding="utf-8"), re.MULTILINE)
        read = [Requirement(line) for line in lines]
        return {one.name: str(one.specifier) for one in read}

    ours, tested = versions(DEPLOY / "requirements.txt"), versions(ROOT / "requirements" / "developing.txt")
    assert {"uvicorn", "starlette", "aiohttp", "psycopg", "procrastinate", "prometheus-client"} <= ours.keys()
    assert {
        name: (ours[name], tested[name]) for name in ours.keys() & tested.keys() if ours[name] != tested[name]
    } == {}
