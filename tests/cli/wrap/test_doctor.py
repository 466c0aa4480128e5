"""`everlong doctor`, `wrap --list` and `wrap --print`: what a person reads before starting anything."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from everlong.cli.words.wording import LANGUAGES
from everlong.cli.wrap.clients import CLIENTS
from everlong.extras import PACKAGES
from everlong.testing import ScriptedServer
from tests.cli.running import everlong
from tests.cli.wrap.fakes import Desk

VERSION = "print('2.1.9 (a client)')"


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """A user's machine that commands in this process see, too."""
    made = Desk(tmp_path)
    for name in [name for client in CLIENTS for name in client.keys]:
        monkeypatch.delenv(name, raising=False)
    for base in ("OPENAI_BASE_URL", "OPENAI_API_BASE", "ANTHROPIC_BASE_URL", "EVERLONG_GATEWAY"):
        monkeypatch.delenv(base, raising=False)
    for name, value in made.variables().items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(made.work)
    return made


def test_all_that_is_needed_is_there(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.program("claude", VERSION)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret")
    ran = everlong("doctor", "claude", "--model", "claude-sonnet-4-5", "--lang", "en")
    assert ran.code == 0, ran
    assert "2.1.9 (a client)" in ran.out
    assert "in the environment variable ANTHROPIC_API_KEY" in ran.out
    assert "200,000 tokens for claude-sonnet-4-5 (registry" in re.sub(r"\s+", " ", ran.out)
    assert "Ready. Run: everlong wrap claude --model claude-sonnet-4-5" in ran.out
    assert "sk-secret" not in ran.out + ran.err


MISSING = {
    "no client": ((), {}, "npm install -g @anthropic-ai/claude-code"),
    "no key": (("claude",), {}, "set ANTHROPIC_API_KEY"),
    "a login that goes elsewhere": (("claude",), {"CLAUDE_CODE_USE_VERTEX": "1"}, "unset CLAUDE_CODE_USE_VERTEX"),
    "a server that does not answer": (
        ("claude",),
        {"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": "http://127.0.0.1:9"},
        "start the server at http://127.0.0.1:9/v1",
    ),
    "a gateway that does not answer": (
        ("claude",),
        {"ANTHROPIC_API_KEY": "k", "EVERLONG_GATEWAY": "http://127.0.0.1:9"},
        "EVERLONG_GATEWAY: no gateway answers at http://127.0.0.1:9;",
    ),
    "a gateway that is no address": (
        ("claude",),
        {"ANTHROPIC_API_KEY": "k", "EVERLONG_GATEWAY": "127.0.0.1:9"},
        "EVERLONG_GATEWAY must be an address, such as http://127.0.0.1:8333",
    ),
    "settings that make no sense": (
        ("claude",),
        {"ANTHROPIC_API_KEY": "k", "EVERLONG_GATEWAY_MODE": "fast"},
        "EVERLONG_GATEWAY_MODE",
    ),
}


@pytest.mark.parametrize("case", MISSING)
def test_what_is_missing_is_said_with_what_to_do(case: str, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    programs, variables, remedy = MISSING[case]
    for name in programs:
        desk.program(name, VERSION)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    ran = everlong("doctor", "claude", "--json")
    assert ran.code == 1
    assert any(remedy in one for one in json.loads(ran.out)["missing"]), ran.out
    shown = everlong("doctor", "claude", "--lang", "en")
    assert "To do: " in shown.out


@pytest.mark.parametrize("upstream", ["nosuch", "localhost:11434"])
def test_an_upstream_that_the_gateway_would_refuse_is_refused_here_too(upstream: str, desk: Desk) -> None:
    desk.program("codex", VERSION)
    ran = everlong("doctor", "codex", "--upstream", upstream, "--lang", "en")
    assert ran.code == 1
    assert "an upstream must be an http or https address or one of" in re.sub(r"\s+", " ", ran.out)
    assert "Ready" not in ran.out


def test_the_command_that_installs_missing_packages_is_printed_whole(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.program("claude", VERSION)
    monkeypatch.setitem(PACKAGES, "server", ("no_such_package",))
    shown = re.sub(r"\s+", " ", everlong("doctor", "claude", "--lang", "en").out)
    assert "packages are missing: pip install 'everlong[server]'" in shown
    assert "pip install 'everlong[server]'" in shown.split("To do: ")[1]


def test_a_server_on_this_machine_is_asked_and_others_are_not(desk: Desk) -> None:
    desk.program("codex", VERSION)
    with ScriptedServer() as server:
        near = json.loads(everlong("doctor", "codex", "--upstream", server.url, "--json").out)
    assert near["upstreams"] == [{"url": server.url, "answers": True}]
    far = json.loads(everlong("doctor", "codex", "--upstream", "https://llm.invalid/v1", "--json").out)
    assert far["upstreams"] == [{"url": "https://llm.invalid/v1", "answers": None}]
    shown = everlong("doctor", "codex", "--upstream", "https://llm.invalid/v1", "--lang", "en").out
    assert "Ready. Run: everlong wrap --upstream https://llm.invalid/v1 codex" in shown
    assert near["missing"] == far["missing"] == []  # a server of one's own needs no key


def test_all_clients_are_listed_with_what_is_installed(desk: Desk) -> None:
    desk.program("pi", VERSION)
    rows = {row["name"]: row for row in json.loads(everlong("wrap", "--list", "--json").out)}
    assert set(rows) == {client.name for client in CLIENTS}
    assert rows["pi"]["path"]
    assert not rows["aider"]["path"]
    ran = everlong("doctor", "--json")
    assert {row["client"]: row["version"] for row in json.loads(ran.out)}["pi"] == "2.1.9 (a client)"
    assert "pip install aider-chat" in re.sub(r"\s+", " ", everlong("wrap", "--list", "--lang", "en").out)


def test_nothing_installed_is_said(desk: Desk) -> None:
    ran = everlong("doctor", "--lang", "en")
    assert ran.code == 1
    assert "everlong wrap -- COMMAND" in ran.err


@pytest.mark.parametrize("name", [client.name for client in CLIENTS])
def test_the_printed_lines_are_a_script_that_starts_the_client(
    name: str, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret")
    client = next(one for one in CLIENTS if one.name == name)
    desk.program(client.program, "say(argv=sys.argv[1:], environment=dict(os.environ))")
    ran = everlong("wrap", "--print", name, "its", "own 'words'")
    assert ran.code == 0, ran
    lines = ran.out.splitlines()
    at = next(at for at, line in enumerate(lines) if line.startswith("everlong serve"))
    script = "set -e\n" + "\n".join(lines[at + 1 :])
    done = subprocess.run(
        ["sh", "-c", script], env=desk.variables(), capture_output=True, text=True, check=False, cwd=desk.work
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["argv"][-2:] == ["its", "own 'words'"]
    written = "".join(path.read_text() for path in desk.home.rglob("by-hand/*"))
    assert "127.0.0.1:8333" in json.dumps(told) + written
    assert "sk-secret" not in ran.out


def test_an_unknown_client_is_one_line_that_says_what_there_is(desk: Desk) -> None:
    ran = everlong("wrap", "vim", "--lang", "en")
    assert ran.code == 1
    assert "everlong wrap -- vim" in ran.err
    assert ran.err.count("\n") == 1
    assert everlong("wrap").code == 2


@pytest.mark.parametrize("language", [language.code for language in LANGUAGES])
def test_both_languages_say_all_of_it(language: str, desk: Desk) -> None:
    for arguments in (("doctor", "claude"), ("wrap", "--list"), ("wrap", "--print", "claude")):
        at = len(arguments) if arguments[0] == "doctor" else 1
        ran = everlong(*arguments[:at], "--lang", language, *arguments[at:])
        assert ran.out
        assert "{" not in ran.out
