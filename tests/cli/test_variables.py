"""A misspelt variable counts for nothing: it is named in one line, with what may have been meant."""

from pathlib import Path

import pytest

from everlong.cli.variables import OTHERS, unknown_variables
from tests.cli.running import everlong

NAMED = {
    "a setting of the engine": ("EVERLONG_TRESHOLD", "EVERLONG_THRESHOLD"),
    "one of the agent": ("EVERLONG_WORKSPCE", "EVERLONG_WORKSPACE"),
    "one of the gateway": ("EVERLONG_GATEWAY_PROT", "EVERLONG_GATEWAY_PORT"),
    "another": ("EVERLONG_STOR", "EVERLONG_STORE"),
    "nothing like it": ("EVERLONG_XYZZY", ""),
}
FINE = ("EVERLONG_THRESHOLD", "EVERLONG_MODEL", "EVERLONG_GATEWAY_PORT", "EVERLONG_GATEWAY_WINDOW", "EVERLONG", "PATH")
KUBERNETES = ("EVERLONG_GATEWAY_SERVICE_HOST", "EVERLONG_GATEWAY_PORT_8333_TCP", "EVERLONG_SERVICE_PORT")


@pytest.mark.parametrize("name", NAMED)
def test_a_variable_that_nothing_reads_is_named(name: str) -> None:
    variable, meant = NAMED[name]
    assert list(unknown_variables({variable: "1"})) == [(variable, meant)]


@pytest.mark.parametrize("variable", [*FINE, *KUBERNETES, *(f"EVERLONG_{name}" for name in sorted(OTHERS))])
def test_what_is_read_or_is_not_ours_is_not_named(variable: str) -> None:
    assert list(unknown_variables({variable: "1"})) == []


def test_one_that_is_set_to_nothing_is_not_set() -> None:
    assert list(unknown_variables({"EVERLONG_TRESHOLD": ""})) == []


@pytest.fixture
def misspelt(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("EVERLONG_TRESHOLD", "0.8")
    monkeypatch.setenv("EVERLONG_FOO", "1")
    monkeypatch.setenv("EVERLONG_STORE", str(tmp_path / "threads.db"))


LINE = "in the environment, and read by nothing: EVERLONG_FOO, EVERLONG_TRESHOLD (did you mean EVERLONG_THRESHOLD?)"


@pytest.mark.parametrize(
    "arguments",
    [
        ("sessions", "list"),
        ("models", "gpt-4o"),
        ("lab", "replay", "nowhere"),
        ("wrap", "--list"),
        ("serve", "--new-key"),
    ],
    ids=" ".join,
)
def test_a_command_that_reads_variables_names_it_in_one_line(arguments: tuple[str, ...], misspelt: None) -> None:
    assert everlong(*arguments).err.splitlines().count(f"everlong: {LINE}") == 1


@pytest.mark.parametrize(
    "arguments", [("count", "--sample"), ("sessions", "--help"), ("sessions", "list", "-h")], ids=" ".join
)
def test_others_say_nothing(arguments: tuple[str, ...], misspelt: None) -> None:
    assert everlong(*arguments).err == ""


def test_it_is_told_in_chinese(misspelt: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    assert "EVERLONG_TRESHOLD（是不是 EVERLONG_THRESHOLD？）" in everlong("sessions", "list").err
