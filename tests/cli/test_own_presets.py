"""`--preset module:NAME`: a preset of the user's own, from a module in the current folder. Never over HTTP."""

import json
import os
import subprocess
import sys
from http.client import HTTPConnection
from pathlib import Path

import pytest

from tests.gateway.processes import ServingProcess
from tests.web.running import Page

#: The module leaves a file when it is imported.
MODULE = """
from functools import partial
from pathlib import Path

from everlong.compress import Preset, newest

Path("imported").touch()
LATEST = Preset(name="latest", compaction=(partial(newest, most_messages=3),))
NUMBER = 3
"""
BROKEN = "raise RuntimeError('no luck')\n"
WITNESS = ("--upstream", "witness", "--store", "memory:")
NOWHERE = ("--upstream", "http://127.0.0.1:9/v1", "--store", "memory:", "--quiet")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "mine.py").write_text(MODULE)
    (tmp_path / "broken.py").write_text(BROKEN)
    return tmp_path


def everlong(folder: Path, *arguments: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    kept = {name: value for name, value in os.environ.items() if not name.startswith("EVERLONG_")}
    environment = {**kept, "HOME": str(folder), "XDG_CONFIG_HOME": str(folder / "config"), "LC_ALL": "C", **variables}
    command = [sys.executable, "-P", "-m", "everlong", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment, check=False)


CHAT = ("chat", *WITNESS, "--no-tools", "-m", "hello", "--json")
#: Arguments, variables and a text of the output.
USED: dict[str, tuple[tuple[str, ...], dict[str, str], str]] = {
    "fit": (("fit", "--sample", "--budget", "16000", "--preset", "mine:LATEST"), {}, "newest"),
    "fit, by a variable": (("fit", "--sample", "--budget", "16000"), {"EVERLONG_PRESET": "mine:LATEST"}, "newest"),
    "inspect": (("inspect", "--sample", "--budget", "16000", "--preset", "mine:LATEST", "--json"), {}, '"newest"'),
    "demo": (("demo", "--json", "--preset", "mine:LATEST"), {}, '"preset": "latest"'),
    "chat": ((*CHAT, "--preset", "mine:LATEST"), {}, "witness"),
    "chat, by a variable": (CHAT, {"EVERLONG_PRESET": "mine:LATEST"}, "witness"),
    "wrap": (("wrap", *NOWHERE, "--preset", "mine:LATEST", "--", "echo", "done"), {}, "done"),
}


@pytest.mark.parametrize("name", USED)
def test_a_command_uses_the_preset_of_a_module(name: str, folder: Path) -> None:
    arguments, variables, text = USED[name]
    ran = everlong(folder, *arguments, **variables)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert text in ran.stdout
    assert (folder / "imported").exists()


#: The preset, and the line on standard error.
REFUSED = {
    "no such module": ("nowhere:LATEST", "--preset: nowhere:LATEST: No module named 'nowhere'"),
    "no such name": (
        "mine:LATETS",
        "--preset: mine:LATETS: module 'mine' has no attribute 'LATETS'; did you mean LATEST?",
    ),
    "not a preset": ("mine:NUMBER", "--preset: mine:NUMBER is of type int, not a Preset"),
    "no name": ("mine:", "--preset: mine:: module 'mine' has no attribute ''"),
    "no module": (":LATEST", "--preset: :LATEST: Empty module name"),
    "a module that fails": (
        "broken:X",
        "--preset: broken:X: broken cannot be imported: RuntimeError: no luck",
    ),
}


@pytest.mark.parametrize(
    "command", [("fit", "--sample"), ("inspect", "--sample"), CHAT, ("serve", *WITNESS)], ids=" ".join
)
@pytest.mark.parametrize("name", REFUSED)
def test_what_is_wrong_is_one_line(name: str, command: tuple[str, ...], folder: Path) -> None:
    preset, line = REFUSED[name]
    ran = everlong(folder, *command, "--preset", preset)
    assert (ran.returncode, ran.stdout, ran.stderr) == (1, "", f"everlong: {line}\n")


def test_a_folder_that_someone_else_wrote_runs_no_code(folder: Path) -> None:
    (folder / "everlong.toml").write_text('[agent]\npreset = "mine:LATEST"\nsemantic = "mine:embed"\n')
    ran = everlong(folder, "chat", *WITNESS, "--no-tools", "-m", "hello")
    assert ran.returncode == 0
    assert "Ignored in this folder's everlong.toml: preset, semantic." in " ".join(ran.stderr.split())
    assert not (folder / "imported").exists()


def test_a_file_that_the_user_names_may_use_a_module(folder: Path) -> None:
    (folder / "everlong.toml").write_text('[agent]\npreset = "mine:LATEST"\n')
    ran = everlong(folder, *CHAT, EVERLONG_CONFIG="everlong.toml")
    assert (ran.returncode, ran.stderr, (folder / "imported").exists()) == (0, "", True)


@pytest.mark.parametrize(("setting", "value"), [("preset", "mine:LATEST"), ("semantic", "mine:embed")])
def test_the_gateway_asks_to_name_a_file_that_uses_a_module(setting: str, value: str, folder: Path) -> None:
    (folder / "everlong.toml").write_text(f'{setting} = "{value}"\n')
    ran = everlong(folder, "serve", *WITNESS)
    assert (ran.returncode, ran.stdout, ran.stderr) == (
        1,
        "",
        f"everlong: everlong.toml: {setting} {value} would run code; to allow that, name the file with --config "
        "everlong.toml or EVERLONG_CONFIG\n",
    )
    assert not (folder / "imported").exists()


def test_the_gateway_uses_the_preset_of_a_file_that_is_named(folder: Path) -> None:
    (folder / "everlong.toml").write_text('preset = "mine:LATEST"\n')
    with ServingProcess("--config", "everlong.toml", *WITNESS, "--no-app", folder=folder) as gateway:
        assert _fit(gateway.port, {}) == (200, 3)


def _fit(port: int, fields: dict[str, str]) -> tuple[int, object]:
    talk = [{"role": "user", "content": f"Question {n}. " + "And the weather? " * 40} for n in range(20)]
    connection = HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("POST", "/everlong/fit", json.dumps({"messages": talk, "budget": 1_000, **fields}))
    answer = connection.getresponse()
    body = json.loads(answer.read())
    connection.close()
    return answer.status, len(body["messages"]) if answer.status == 200 else body


def test_no_request_can_name_a_module(folder: Path) -> None:
    with ServingProcess(*WITNESS, folder=folder) as server:
        status, _ = _fit(server.port, {"preset": "mine:LATEST"})
        assert status == 400
        page = Page(server.port)
        status, answer = page.ask("PUT", "/everlong/api/settings", {"preset": "mine:LATEST"})
        assert (status, "unknown preset" in str(answer)) == (400, True)
    assert not (folder / "imported").exists()
