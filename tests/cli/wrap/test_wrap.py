"""A user types `everlong wrap CLIENT`: the client is behind the gateway, and all else is as it was."""

import json
import os
import re
import signal
import sys
from pathlib import Path
from typing import Any

import pexpect
import pytest

from everlong.testing import ScriptedServer, Window
from tests.cli.wrap.fakes import PATIENCE, Desk, digests
from tests.gateway.running import RunningGateway

TALKS = "messages(8, 200); say(base=os.environ['ANTHROPIC_BASE_URL'], argv=sys.argv[1:]); sys.exit(7)"
WAITS = (
    "say(base=os.environ['ANTHROPIC_BASE_URL']); messages(1, 10)\nif sys.argv[1:] == ['wait']: sys.stdin.readline()\n"
)
ASKS_ALL = (
    "told = [{'role': 'user', 'content': 'hi'}]; openai = os.environ['OPENAI_BASE_URL']\n"
    "ask(openai + '/chat/completions', {'model': 'm', 'messages': told}, authorization='Bearer k')\n"
    "ask(openai + '/responses', {'model': 'm', 'input': told}, authorization='Bearer k')\n"
    "messages(1, 1)\n"
    "gemini = os.environ['GOOGLE_GEMINI_BASE_URL'] + '/v1beta/models/gemini-2.5-pro:generateContent'\n"
    "ask(gemini, {'contents': [{'role': 'user', 'parts': [{'text': 'hi'}]}]})\n"
    "ask(os.environ['OLLAMA_HOST'] + '/api/chat', {'model': 'm', 'messages': told, 'stream': False})\n"
)
AGENT = (
    "config = json.loads(os.environ['OPENCODE_CONFIG_CONTENT']); own = config['provider']['everlong']\n"
    "base = own['options']['baseURL']; (model,) = own['models']; key = own['options']['apiKey']\n"
    "body = {'model': model, 'messages': [{'role': 'user', 'content': 'hi'}]}\n"
    "ask(base + '/chat/completions', body, authorization='Bearer ' + key); say(base=base, model=config['model'])\n"
)
LISTENS = (
    "wanted = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}\n"
    "signal.pthread_sigmask(signal.SIG_BLOCK, wanted)\n"
    "say(ready=True, terminal=[os.isatty(place) for place in (0, 1, 2)])\n"
    "for _ in range(2):\n"
    "    number = signal.sigwait(wanted); say(heard=number)\n"
    "    if number == signal.SIGTERM:\n"
    "        os.kill(os.getpid(), number); signal.pthread_sigmask(signal.SIG_UNBLOCK, wanted)\n"
    "sys.exit(5)\n"
)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def ended(desk: Desk) -> None:
    """Wait until no gateway of the desk lives: its lock is free then, and not before."""
    for path in desk.state.glob("*.alive"):
        wait_for_lock(path)


def wait_for_lock(path: Path) -> None:
    import fcntl  # noqa: PLC0415 - systems that have no such locks share no gateway

    fd = os.open(path, os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
    finally:
        os.close(fd)


def test_a_client_works_past_its_window_with_one_command_and_nothing_of_the_users_files_is_changed(desk: Desk) -> None:
    desk.program("claude", TALKS)
    (desk.home / ".claude").mkdir()
    (desk.home / ".claude" / "settings.json").write_text('{"model": "opus"}')
    (desk.work / "notes.txt").write_text("mine")
    before = digests(desk.home)
    with ScriptedServer(window=Window(6_000)) as server:
        ran = desk.run(
            "wrap", "claude", "-p", "--json", "--", "x",
            variables={"ANTHROPIC_BASE_URL": server.address, "ANTHROPIC_API_KEY": "sk-mine"},
        )  # fmt: skip
        requests = list(server.requests)
    assert ran.returncode == 7, ran.stderr
    told = json.loads(ran.stdout)
    assert told["argv"] == ["-p", "--json", "--", "x"]
    assert told["base"].startswith("http://127.0.0.1:")
    assert told["base"] != server.address
    # the base URL that was set is the upstream, the client's own key goes along, and what arrives fits
    own = [one for one in requests if one.headers.get("x-api-key") == "sk-mine"]
    assert len(own) >= 8
    assert len([one for one in requests if one.tokens > 6_000]) <= 1  # the refusal that told the window
    lines = ran.stderr.splitlines()
    assert all(line.startswith("everlong: ") for line in lines), ran.stderr
    assert re.fullmatch(r"everlong: log: .+\.log", lines[-1]), ran.stderr
    figures = re.search(r"8 requests, (\d+) compactions?", lines[0])
    assert figures, lines
    assert 1 <= int(figures[1]) <= 4
    tokens = re.search(r"([\d,]+) prompt tokens from the client, ([\d,]+) sent \((\d+) % less\)", lines[1])
    assert tokens, lines
    asked, sent = (int(tokens[at].replace(",", "")) for at in (1, 2))
    assert 20_000 < asked < 60_000
    assert asked // 4 < sent < asked
    assert re.search(r"about \$\d\S* at list prices", lines[2]), lines
    # the user's files are as they were; all that is new is ours
    after = digests(desk.home)
    assert {name: after.get(name) for name in before} == before
    assert not [name for name in after.keys() - before.keys() if "/everlong/" not in f"/{name}"]
    assert "sk-mine" not in "".join(path.read_text(errors="replace") for path in desk.state.glob("*.*"))
    ended(desk)


@pytest.mark.parametrize("named", [False, True], ids=["a file that lies there", "a file that the user names"])
def test_only_a_file_that_the_user_names_can_send_requests_and_keys_elsewhere(named: bool, desk: Desk) -> None:
    desk.program("claude", "messages(1, 1)")
    with ScriptedServer() as own, ScriptedServer() as other:
        (desk.work / "everlong.toml").write_text(f'upstream = "{other.address}"\n')
        variables = {"ANTHROPIC_BASE_URL": own.address, "ANTHROPIC_API_KEY": "sk-mine"}
        ran = desk.run("wrap", "claude", variables=variables | ({"EVERLONG_CONFIG": "everlong.toml"} if named else {}))
        asked = len(own.requests), len(other.requests)
    assert ran.returncode == 0, ran.stderr
    assert [bool(count) for count in asked] == [not named, named]
    ended(desk)


def test_every_base_url_that_was_set_is_the_upstream_of_its_api(desk: Desk) -> None:
    desk.program("mine", ASKS_ALL)
    with ScriptedServer() as server:
        addresses = {"OPENAI_BASE_URL": server.url, "ANTHROPIC_BASE_URL": server.address}
        addresses |= {"GOOGLE_GEMINI_BASE_URL": server.address, "OLLAMA_HOST": server.address}
        ran = desk.run("wrap", "--json", "--", "mine", variables=addresses)
        asked = [one.fmt for one in server.requests]
    assert ran.returncode == 0, ran.stderr
    assert asked == ["openai-chat", "openai-responses", "anthropic", "gemini", "ollama"]
    told = json.loads(ran.stderr)
    assert (told["shared"], told["everlong"]["requests"], told["everlong"]["failed"]) == (False, 5, 0)
    ended(desk)


def test_two_runs_share_a_gateway_and_it_ends_with_the_last(desk: Desk) -> None:
    desk.program("claude", WAITS)
    with ScriptedServer() as server:
        options = ("wrap", "--upstream", server.url, "claude")
        first = desk.start(*options, "wait")
        assert first.stdout is not None
        address = json.loads(first.stdout.readline())["base"]
        second = desk.run(*options)
        assert json.loads(second.stdout)["base"] == address
        assert "other clients used this gateway at the same time" in second.stderr
        (lease,) = desk.leases()
        assert lease.lives()
        desk.program("opencode", AGENT)  # one that must be told which models there are
        agent = desk.run(*options[:-1], "opencode", "run")
        assert json.loads(agent.stdout) == {"base": f"{address}/v1", "model": "everlong/scripted"}, agent.stderr
        other = desk.run("wrap", "--upstream", server.url, "--window", "9000", "claude")
        assert json.loads(other.stdout)["base"] != address  # other settings, another gateway
        _, said = first.communicate("\n", timeout=PATIENCE)
    assert first.returncode == 0
    assert "other clients used this gateway" in said
    assert "other clients used this gateway" not in other.stderr
    ended(desk)


def test_a_gateway_ends_although_the_run_that_started_it_was_killed(desk: Desk) -> None:
    desk.program("claude", WAITS)
    with ScriptedServer() as server:
        first = desk.start("wrap", "--upstream", server.url, "claude", "wait")
        assert first.stdout is not None
        address = json.loads(first.stdout.readline())["base"]
        first.kill()
        first.wait()
        ended(desk)
        (left,) = desk.state.glob("run-*")  # of the run that was killed
        second = desk.run("wrap", "--upstream", server.url, "claude")
    assert second.returncode == 0, second.stderr
    assert json.loads(second.stdout)["base"] != address
    assert "others used" not in second.stderr
    assert not left.exists()
    first.communicate()
    ended(desk)


def test_a_gateway_that_is_killed_is_named_at_the_end(desk: Desk) -> None:
    desk.program("claude", WAITS)
    with ScriptedServer() as server:
        run = desk.start("wrap", "--upstream", server.url, "claude", "wait")
        assert run.stdout is not None
        run.stdout.readline()
        (record,) = desk.state.glob("*.json")
        os.kill(json.loads(record.read_text())["pid"], signal.SIGKILL)
        ended(desk)
        _, said = run.communicate("\n", timeout=PATIENCE)
    assert "the gateway ended while the client was running" in said
    assert re.search(r"log: .+\.log", said)


def test_a_gateway_that_does_not_start_is_one_line_that_names_its_log(desk: Desk) -> None:
    desk.program("claude", "say(started=True)")
    ran = desk.run("wrap", "--upstream", "http://127.0.0.1:9/v1", "--store", "sqlite:////dev/null/x.db", "claude")
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr.count("\n") == 1
    named = re.search(r"the gateway did not start: .+ \(log: (.+\.log)\)", ran.stderr)
    assert named, ran.stderr
    assert Path(named[1]).is_file()


# --- with a gateway that runs already ----------------------------------------------------------------


def read(process: Any) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(process.stdout.readline())
    return told


def test_a_gateway_that_the_user_names_is_used_and_left_alone(desk: Desk) -> None:
    desk.program("claude", TALKS)
    with ScriptedServer() as server, RunningGateway(upstream=server.url) as gateway:
        ran = desk.run("wrap", "claude", variables={"EVERLONG_GATEWAY": gateway.url})
        assert json.loads(ran.stdout)["base"] == gateway.address
        assert ran.returncode == 7
        assert "8 requests" in ran.stderr
        again = desk.run("wrap", "claude", variables={"ANTHROPIC_BASE_URL": gateway.address})
        assert json.loads(again.stdout)["base"] == gateway.address  # its address was set by hand before: no loop
        usual = desk.run("wrap", "claude", variables={"EVERLONG_GATEWAY_PORT": str(gateway.port)})
        assert json.loads(usual.stdout)["base"] == gateway.address
    assert not desk.leases()


def test_signals_reach_the_client_and_we_end_as_it_ends(desk: Desk) -> None:
    desk.program("claude", LISTENS)
    with ScriptedServer() as server, RunningGateway(upstream=server.url) as gateway:
        named = {"EVERLONG_GATEWAY": gateway.address}
        process = desk.start("wrap", "claude", variables=named)
        assert read(process)["ready"]
        process.send_signal(signal.SIGHUP)
        assert read(process) == {"heard": signal.SIGHUP}
        process.send_signal(signal.SIGTERM)
        assert read(process) == {"heard": signal.SIGTERM}
        process.communicate(timeout=PATIENCE)
        assert process.returncode == -signal.SIGTERM


def test_the_client_has_the_terminal_and_hears_ctrl_c_once(desk: Desk) -> None:
    desk.program("claude", LISTENS)
    with ScriptedServer() as server, RunningGateway(upstream=server.url) as gateway:
        child = pexpect.spawn(
            sys.executable,
            ["-P", "-m", "everlong", "wrap", "claude"],
            cwd=str(desk.work),
            env=desk.variables(EVERLONG_GATEWAY=gateway.address),
            encoding="utf-8",
            timeout=PATIENCE,
        )
        child.expect('"terminal": \\[true, true, true\\]')
        child.sendintr()
        child.expect(f'"heard": {int(signal.SIGINT)}')
        child.sendintr()
        child.expect(f'"heard": {int(signal.SIGINT)}')
        child.expect("the client sent no request to the gateway")
        child.expect(pexpect.EOF)
        child.wait()
    assert child.exitstatus == 5


def test_any_command_gets_every_base_url(desk: Desk) -> None:
    names = ("OPENAI_BASE_URL", "OPENAI_API_BASE", "ANTHROPIC_BASE_URL", "GOOGLE_GEMINI_BASE_URL", "OLLAMA_HOST")
    desk.program("mine", f"say(**{{name: os.environ.get(name) for name in {names}}}, argv=sys.argv[1:])")
    with ScriptedServer() as server, RunningGateway(upstream=server.url) as gateway:
        ran = desk.run("wrap", "--", "mine", "--", "a", variables={"EVERLONG_GATEWAY": gateway.address})
        missing = desk.run("wrap", "--", "nothing-like-it", variables={"EVERLONG_GATEWAY": gateway.address})
    told = json.loads(ran.stdout)
    assert told.pop("argv") == ["--", "a"]
    assert told == {
        "OPENAI_BASE_URL": gateway.url,
        "OPENAI_API_BASE": gateway.url,
        "ANTHROPIC_BASE_URL": gateway.address,
        "GOOGLE_GEMINI_BASE_URL": gateway.address,
        "OLLAMA_HOST": gateway.address,
    }
    assert (missing.returncode, missing.stderr) == (1, "everlong: nothing-like-it is not on the PATH\n")
