"""A misspelt variable counts for nothing: it is named in one line, with what may have been meant."""

import json
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


LINE = "unknown environment variables: EVERLONG_FOO, EVERLONG_TRESHOLD (did you mean EVERLONG_THRESHOLD?)"


@pytest.mark.parametrize(
    "arguments",
    [
        ("sessions", "list"),
        ("models", "gpt-4o"),
        ("fit", "--sample", "--json"),
        ("inspect", "--sample", "--json"),
        ("demo", "--json"),
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


def test_fit_reads_the_preset_and_its_options(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVERLONG_HISTORY_WINDOW", "4")
    by_option = json.loads(everlong("fit", "--sample", "--preset", "simple", "--json").out)
    monkeypatch.setenv("EVERLONG_PRESET", "simple")
    by_variable = json.loads(everlong("fit", "--sample", "--json").out)
    assert by_option == by_variable
    monkeypatch.setenv("EVERLONG_HISTORY_WINDOW", "8")
    assert json.loads(everlong("fit", "--sample", "--json").out)["messages"] > by_variable["messages"]


def test_fit_reads_the_window(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVERLONG_WINDOW", "32000")
    assert json.loads(everlong("fit", "--sample", "--json").out)["budget"] < 32_000


def test_inspect_reads_window_and_threshold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVERLONG_WINDOW", "100000")
    late = json.loads(everlong("inspect", "--sample", "--json").out)
    monkeypatch.setenv("EVERLONG_THRESHOLD", "0.5")
    early = json.loads(everlong("inspect", "--sample", "--json").out)
    assert late["window"]["tokens"] == 100_000
    assert early["window"]["threshold"] < late["window"]["threshold"]


def test_the_demo_reads_preset_and_window_and_its_options_count_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVERLONG_PRESET", "simple")
    monkeypatch.setenv("EVERLONG_WINDOW", "20000")
    played = json.loads(everlong("demo", "--json").out)
    assert (played["preset"], played["window"]) == ("simple", 20_000)
    played = json.loads(everlong("demo", "--json", "--preset", "auto", "--window", "16000").out)
    assert (played["preset"], played["window"]) == ("auto", 16_000)
    monkeypatch.setenv("EVERLONG_WINDOW", "100")
    ran = everlong("demo")
    assert (ran.code, "EVERLONG_WINDOW: the demo needs a window of at least 4,000" in ran.err) == (1, True)


def test_an_option_that_the_preset_does_not_use_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVERLONG_HISTORY_WINDOW", "4")
    ran = everlong("fit", "--sample")
    assert ran.code == 1
    assert "history_window" in ran.err


PRESETS = "the presets are auto, chatbox, nanobot, nanobot-v3, simple, static-buffer and off"
WRONG = {
    "a preset": ("EVERLONG_PRESET", "latest", f"unknown preset 'latest'; {PRESETS}"),
    "a share": ("EVERLONG_THRESHOLD", "5", "threshold must be a share from 0.40 to 0.95, not 5.0"),
    "a number": ("EVERLONG_WINDOW", "wide", "window must be an integer, not 'wide'"),
    "another preset's option": (
        "EVERLONG_HISTORY_WINDOW",
        "4",
        "history_window: preset auto does not use it; preset simple does",
    ),
}


@pytest.mark.parametrize(
    "arguments", [("fit", "--sample"), ("inspect", "--sample"), ("demo",), ("chat", "-m", "hi")], ids=" ".join
)
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_value_is_one_line_with_its_variable(
    name: str, arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    variable, value, line = WRONG[name]
    monkeypatch.setenv("EVERLONG_MODE", "trim")  # not this one
    monkeypatch.setenv("EVERLONG_STORE", str(tmp_path / "threads.db"))
    monkeypatch.setenv(variable, value)
    ran = everlong(*arguments)
    assert (ran.code, ran.out, ran.err) == (1, "", f"everlong: {variable}: {line}\n")


def test_a_wrong_preset_of_the_chat_is_one_line_with_the_option(tmp_path: Path) -> None:
    ran = everlong("chat", "--preset", "latest", "-m", "hi", "--store", str(tmp_path / "threads.db"))
    assert (ran.code, ran.err) == (1, f"everlong: --preset: unknown preset 'latest'; {PRESETS}\n")


@pytest.mark.parametrize("arguments", [("wrap", "--list"), ("serve", "--new-key")], ids=" ".join)
def test_the_gateway_names_variables_that_it_ignores(
    arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    line = "everlong: EVERLONG_PRESET is not read by the gateway; set EVERLONG_GATEWAY_PRESET"
    monkeypatch.setenv("EVERLONG_PRESET", "simple")
    assert everlong(*arguments).err.splitlines() == [line]
    monkeypatch.setenv("EVERLONG_GATEWAY_PRESET", "simple")
    assert everlong(*arguments).err == ""
