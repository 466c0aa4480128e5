"""The chat as other programs use it: one message, pipes, JSON, exit codes; over real HTTP."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from everlong.agent.tools.sandbox import find_sandbox
from everlong.core import Message
from everlong.llm import Answer, ReceivedRequest, Refusal, ScriptedServer, Step, Window
from everlong.store import open_store
from everlong.testing import in_turn
from tests.cli.chat.talk import COMMAND, SECONDS, environment, terminal


def scripted(asked: ReceivedRequest) -> Step:
    last = asked.messages[-1]
    if last.results:
        return Answer(text=f"It says: {last.results[0].text}")
    if "strike" in last.text:
        return Refusal(400, '{"error":{"message":"the model is on strike"}}')
    if "run" in last.text:
        return Answer(calls=(("shell", '{"command": "echo from the shell"}'),))
    return Answer(text=f"**You said** {last.text}", thinking="hm")


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer(scripted, window=Window(16_000, told=True)) as running:
        yield running


def chat(
    folder: Path, server: ScriptedServer | None, *options: str, stdin: bytes = b"", **variables: str
) -> "subprocess.CompletedProcess[bytes]":
    upstream = ("--upstream", server.url) if server else ()
    return subprocess.run(
        [*COMMAND, *upstream, *options],
        input=stdin,
        capture_output=True,
        cwd=folder,
        env=environment(folder) | variables,
        timeout=SECONDS,
        check=False,
    )


def test_one_message_gets_its_answer_and_nothing_else_on_standard_output(
    tmp_path: Path, server: ScriptedServer
) -> None:
    ran = chat(tmp_path, server, "-m", "good morning")
    assert (ran.returncode, ran.stdout.decode(), ran.stderr) == (0, "**You said** good morning\n", b"")


def test_what_is_piped_in_is_attached(tmp_path: Path, server: ScriptedServer) -> None:
    ran = chat(tmp_path, server, "-m", "Summarise:", stdin="一行\nline two\n".encode())
    assert ran.stdout.decode() == "**You said** Summarise:\n\n<stdin>\n一行\nline two\n</stdin>\n"
    alone = chat(tmp_path, server, stdin=b"only this\n")
    assert alone.stdout == b"**You said** only this\n"


@pytest.mark.parametrize(
    ("options", "stdin", "reason"),
    [
        ((), b"", "no message"),
        (("-m", "x"), b"\x00\x01", "standard input is not text"),
        (("-m", "please strike"), b"", "the model is on strike"),
        (("-m", "x", "--thread", "nope"), b"", "no session 'nope'"),
        (("-m", "x", "--continue"), b"", "There are no threads here yet."),
        (("-m", "x", "--preset", "nope"), b"", "nope"),
        (("-m", "x", "--workspace", "nope"), b"", "is not a folder"),
        (("-m", "x", "--local"), b"", "--local and --upstream"),
        (("-m", "x", "--sample", "--continue"), b"", "contradict each other: use one of them"),
    ],
    ids=["nothing", "binary", "refused", "no thread", "no latest", "preset", "workspace", "both", "all at once"],
)
def test_what_goes_wrong_is_one_line_and_code_1(
    tmp_path: Path, server: ScriptedServer, options: tuple[str, ...], stdin: bytes, reason: str
) -> None:
    ran = chat(tmp_path, server, *options, stdin=stdin)
    assert ran.returncode == 1
    assert reason in ran.stderr.decode()
    assert len(ran.stderr.decode().splitlines()) == 1


def test_without_a_model_there_is_one_clear_line(tmp_path: Path) -> None:
    ran = chat(tmp_path, None, "-m", "hello")
    assert ran.returncode == 1
    assert ran.stderr.decode().startswith("everlong: no model: use --local")
    chinese = chat(tmp_path, None, "-m", "hello", "--lang", "zh")
    assert "没有可用的模型" in chinese.stderr.decode()


def test_a_server_that_is_not_there_is_told(tmp_path: Path, server: ScriptedServer) -> None:
    ran = chat(tmp_path, None, "--upstream", "http://127.0.0.1:9/v1", "--model", "m", "-m", "hello")
    assert ran.returncode == 1
    assert "cannot be reached" in ran.stderr.decode()


def test_events_are_lines_of_json(tmp_path: Path, server: ScriptedServer) -> None:
    ran = chat(tmp_path, server, "--json", "--yes", "-m", "run it, 请")
    events = [json.loads(line) for line in ran.stdout.decode("ascii").splitlines()]
    assert ran.returncode == 0
    kinds = [event["event"] for event in events]
    talk = [kind for kind in kinds if kind in ("call_started", "call_ended", "finished", "turn_ended", "meter")]
    assert talk == ["finished", "call_started", "call_ended", "finished", "turn_ended", "meter"]
    ended = events[kinds.index("call_ended")]
    assert "from the shell" in ended["text"]
    assert not ended["failed"]
    assert events[-1]["certainty"] == "exact"
    last = [event["usage"] for event in events if event["event"] == "finished"][-1]
    assert events[-1]["tokens"] == last["prompt"] + last["output"]
    assert "".join(event["text"] for event in events if event["event"] == "said").startswith("It says: from the shell")


def test_a_failure_is_an_event_too_and_code_1(tmp_path: Path, server: ScriptedServer) -> None:
    ran = chat(tmp_path, server, "--json", "-m", "strike")
    events = [json.loads(line) for line in ran.stdout.splitlines()]
    assert ran.returncode == 1
    assert next(event for event in events if event["event"] == "failed")["error"] == "the model is on strike"
    assert ran.stderr.decode() == "everlong: the model is on strike\n"


def test_the_shell_is_refused_where_nobody_can_be_asked(tmp_path: Path, server: ScriptedServer) -> None:
    ran = chat(tmp_path, server, "-m", "run it")
    assert "shell was not allowed" in ran.stdout.decode()
    assert 'there is no one to ask; --allow "shell:echo from the shell" allows it' in ran.stderr.decode()
    assert "from the shell" in chat(tmp_path, server, "--yes", "-m", "run it").stdout.decode()


def test_threads_go_on_and_settings_reach_the_model(tmp_path: Path, server: ScriptedServer) -> None:
    chat(tmp_path, server, "-m", "the word is heron", "--system", "Be brief.", "--no-tools")
    chat(tmp_path, server, "-m", "go on", "--continue", "--no-tools", "--model", "another")
    asked = server.requests[-1]
    assert [message.text for message in asked.messages][:2] == ["Be brief.", "the word is heron"]
    assert (asked.model, asked.tools) == ("another", ())
    with open_store(str(tmp_path / "threads.db")) as store:
        (thread,) = store.threads()
        assert thread.title == "the word is heron"
        said = [row.entry.text for row in store.read(thread.id) if isinstance(row.entry, Message)]
    assert said[-1] == "**You said** go on"
    chat(tmp_path, server, "-m", "and on", "--thread", thread.id[:-1], "--no-tools")
    assert server.requests[-1].messages[1].text == "the word is heron"


def test_a_file_in_a_fetched_folder_starts_no_program_and_sends_no_key(tmp_path: Path, server: ScriptedServer) -> None:
    text = '[agent]\napproval = "always"\nupstream = "http://127.0.0.1:9/v1"\nallowed = ["/"]\nmost_steps = 7\n'
    (tmp_path / "everlong.toml").write_text(text + '[agent.mcp.x]\ncommand = "touch"\nargs = ["started.txt"]\n')
    ran = chat(tmp_path, server, "-m", "run it")
    assert ran.stdout.startswith(b"It says: shell was not allowed")
    assert b"Ignored in this folder's everlong.toml: allowed, approval, mcp, upstream." in ran.stderr
    assert not (tmp_path / "started.txt").exists()


def test_an_upstream_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    ran = chat(tmp_path, None, "--upstream", "http://127.0.0.1:9/v1", "-m", "hello")
    assert (ran.returncode, ran.stdout) == (1, b"")
    assert ran.stderr.startswith(b"everlong: http://127.0.0.1:9/v1 cannot be reached")
    assert ran.stderr.count(b"\n") == 1


@pytest.mark.parametrize("folder", ["~nobody-has-this-name/x", "not/there"])
def test_a_workspace_that_is_not_there_is_one_line(tmp_path: Path, server: ScriptedServer, folder: str) -> None:
    ran = chat(tmp_path, server, "--workspace", folder, "-m", "hello")
    assert (ran.returncode, ran.stderr.count(b"\n")) == (1, 1)
    assert b"is not a folder" in ran.stderr


def test_nanobots_own_file_chooses_model_preset_and_limits(tmp_path: Path, server: ScriptedServer) -> None:
    defaults = {"model": "gpt-4o", "contextPreset": "nanobot-v3", "messageBufferLimit": 30}
    file = tmp_path / "config.json"
    file.write_text(json.dumps({"agents": {"defaults": defaults}}), "utf-8")
    ran = chat(tmp_path, server, "-m", "good morning", "--no-tools", EVERLONG_CONFIG=str(file))
    assert (ran.returncode, ran.stdout) == (0, b"**You said** good morning\n")
    assert "config.json: preset nanobot-v3 does not use messageBufferLimit." in " ".join(ran.stderr.decode().split())
    body = json.loads(server.requests[-1].body)
    assert (body["model"], body["max_tokens"], body["temperature"]) == ("gpt-4o", 8_192, 0.7)


def test_what_commands_may_do_is_said_and_chosen(tmp_path: Path, server: ScriptedServer) -> None:
    """The line at the start, one word that switches the sandbox off, and one line for a kind that there is not."""
    with terminal(tmp_path, "--upstream", server.url) as child:
        usual = find_sandbox()
        child.expect_exact(f"in a sandbox ({usual.kind})" if usual.kind else "No sandbox works on this system")
    for options in (["--no-sandbox"], ["--sandbox", "off"]):
        with terminal(tmp_path, "--upstream", server.url, *options) as child:
            child.expect_exact("The sandbox is off")
    for options, said in {
        ("--sandbox", "soft"): b"one of auto, off",
        ("--sandbox", "landlock", "--no-sandbox"): b"contradict each other",
    }.items():
        ran = chat(tmp_path, server, *options, "-m", "hello")
        assert ran.returncode == 1
        assert said in ran.stderr
        assert ran.stderr.count(b"\n") == 1


def test_the_sandbox_is_around_the_commands_of_a_chat(tmp_path: Path) -> None:
    outside, work = tmp_path / "outside", tmp_path / "work"
    work.mkdir()
    steps = [Answer(calls=(("shell", json.dumps({"command": f"touch {outside}"})),)), Answer(text="Done.")]
    for options in ([], ["--no-sandbox"]):
        with ScriptedServer(in_turn(steps), window=Window(16_000, told=True)) as server:
            assert chat(work, server, "--yes", *options, "-m", "go").returncode == 0
        assert outside.exists() is (not find_sandbox().kind or bool(options))


def test_a_window_of_nothing_in_nanobots_file_is_told(tmp_path: Path, server: ScriptedServer) -> None:
    file = tmp_path / "config.json"
    file.write_text(json.dumps({"agents": {"defaults": {"contextWindowOverride": 0}}}), "utf-8")
    ran = chat(tmp_path, server, "-m", "good morning", EVERLONG_CONFIG=str(file))
    assert (ran.returncode, ran.stdout) == (1, b"")
    assert "nothing fits into 0 tokens" in " ".join(ran.stderr.decode().split())
