"""Acting is asked for in the terminal and decided by options in a pipe: files, commands, and taking changes back."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pexpect
import pytest

from everlong.cli.words.chinese import CHINESE
from everlong.llm import Answer, ReceivedRequest, ScriptedServer, Step, Window, in_turn
from tests.cli.chat.talk import COMMAND, PROMPT, SECONDS, environment, talking, terminal


def scripted(asked: ReceivedRequest) -> Step:
    """Say "CALL {json}" and the model makes that call."""
    last = asked.messages[-1]
    if last.results:
        return Answer(text=f"It says: {last.results[0].text}")
    name, _, arguments = last.text.partition(" CALL ")[2].partition(" ")
    return Answer(calls=((name, arguments),)) if name else Answer(text="Nothing to do.")


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer(scripted, window=Window(16_000, told=True)) as running:
        yield running


def once(folder: Path, server: ScriptedServer, call: str, *options: str) -> "subprocess.CompletedProcess[bytes]":
    return subprocess.run(
        [*COMMAND, "--upstream", server.url, "-m", f"do CALL {call}", *options],
        input=b"",
        capture_output=True,
        cwd=folder,
        env=environment(folder),
        timeout=SECONDS,
        check=False,
    )


WRITE = 'write_file {"path": "src/a.txt", "content": "written"}'
OPTIONS = {
    "nothing": ((), False, 'write_file was not allowed: there is no one to ask; --allow "write:src/a.txt" allows it'),
    "allow": (("--allow", "write:src/**"), True, ""),
    "allow another": (("--allow", "write:doc/**"), False, "there is no one to ask"),
    "yes": (("--yes",), True, ""),
    "deny wins": (("--yes", "--allow", "write", "--deny", "write:src/*"), False, "the pattern write:src/* denies it"),
    "policy": (("--policy", "policy.toml"), True, ""),
    "policy denies": (("--policy", "policy.toml", "--deny", "write"), False, "the pattern write denies it"),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_in_a_pipe_options_decide_about_files(name: str, tmp_path: Path, server: ScriptedServer) -> None:
    options, written, line = OPTIONS[name]
    (tmp_path / "policy.toml").write_text('allow = ["write:src/**"]\n')
    ran = once(tmp_path, server, WRITE, *options)
    assert ran.returncode == 0, ran.stderr
    assert (tmp_path / "src/a.txt").exists() is written
    said = ran.stderr.decode()
    assert line in said
    if not written:
        assert "It says: write_file was not allowed, and nothing was done" in ran.stdout.decode()
        assert sum(line in each for each in said.splitlines()) == 1


def test_a_pattern_for_a_command_covers_no_second_command(tmp_path: Path, server: ScriptedServer) -> None:
    allow = ("--allow", "shell:echo *", "--allow", "shell:git status")
    assert once(tmp_path, server, 'shell {"command": "echo fine"}', *allow).stdout.startswith(b"It says: fine")
    for command in (
        "echo a; touch made.txt",
        "git status; touch made.txt",
        "echo $(touch made.txt)",
        "echo a\ntouch made.txt",
    ):
        ran = once(tmp_path, server, f"shell {json.dumps({'command': command})}", *allow)
        assert b"shell was not allowed" in ran.stdout
    assert not (tmp_path / "made.txt").exists()


def test_a_file_in_the_folder_allows_nothing_and_may_deny(tmp_path: Path, server: ScriptedServer) -> None:
    (tmp_path / "everlong.toml").write_text('[agent]\nallow = ["write"]\npolicy = "p.toml"\ndeny = ["write:secret*"]\n')
    (tmp_path / "p.toml").write_text('allow = ["write"]\n')
    (tmp_path / "permissions.toml").write_text('allow = ["write"]\n')
    ran = once(tmp_path, server, WRITE)
    assert b"there is no one to ask" in ran.stderr
    assert b"Ignored in this folder's everlong.toml: allow, policy." in ran.stderr
    denied = once(tmp_path, server, 'write_file {"path": "secret.txt", "content": "x"}', "--yes")
    assert b"the pattern write:secret* denies it" in denied.stderr
    assert not (tmp_path / "src").exists()


def test_the_users_own_file_allows_in_its_folder(tmp_path: Path, server: ScriptedServer) -> None:
    own = tmp_path / "everlong" / "permissions.toml"
    own.parent.mkdir()
    own.write_text(f'[[rules]]\nfolder = "{tmp_path}"\nallow = "write:src/a.txt"\n')
    assert once(tmp_path, server, WRITE).returncode == 0
    assert (tmp_path / "src/a.txt").read_text() == "written"
    ran = once(
        tmp_path,
        server,
        'write_file {"path": "everlong/permissions.toml", "content": "allow = [\\"shell\\"]"}',
        "--yes",
    )
    assert b"it changes the permissions" in ran.stderr
    assert "shell" not in own.read_text()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--allow", "exec:x"), "'exec:x' is not a pattern"),
        (("--policy", "missing.toml"), "missing.toml: cannot be read"),
    ],
)
def test_a_wrong_option_is_said_in_one_line(
    options: tuple[str, ...], said: str, tmp_path: Path, server: ScriptedServer
) -> None:
    ran = once(tmp_path, server, WRITE, *options)
    assert ran.returncode != 0
    assert said in ran.stderr.decode()
    assert len(ran.stderr.decode().strip().splitlines()) == 1
    serving = subprocess.run(
        [*COMMAND[:-1], "serve", "--port", "0", *options],
        capture_output=True,
        cwd=tmp_path,
        env=environment(tmp_path),
        timeout=SECONDS,
        check=False,
    )
    assert serving.returncode != 0
    assert said in serving.stderr.decode()


def test_programs_read_refusals_as_events(tmp_path: Path, server: ScriptedServer) -> None:
    ran = once(tmp_path, server, WRITE, "--json")
    events = [json.loads(line) for line in ran.stdout.splitlines()]
    (refused,) = (event for event in events if event["event"] == "refused")
    assert refused["name"] == "write_file"
    assert 'there is no one to ask; --allow "write:src/a.txt"' in refused["reason"]


def ask(child: "pexpect.spawn[str]", call: str, answer: str) -> str:
    """Let the model make a call, answer the question; what was shown before it."""
    child.expect_exact(PROMPT)
    child.send(f"do CALL {call}\r")
    child.expect_exact("Allow it?")
    shown = str(child.before)
    child.send(answer + "\r")
    child.expect("It says: ")
    return shown


def test_a_person_sees_the_diff_answers_and_takes_it_back(tmp_path: Path, server: ScriptedServer) -> None:
    file = tmp_path / "notes.md"
    file.write_text("one\ntwo\n")
    edit = 'edit_file {"path": "notes\\u002emd", "old_text": "two", "new_text": "2 \\u202e"}'
    with terminal(tmp_path, "--upstream", server.url, size=(60, 160)) as child:
        shown = ask(child, edit, "n")
        for line in ("edit_file wants to change notes.md", "│ @@ -1,2 +1,2 @@", "│ -two", "│ +2 ⟨U+202E⟩"):
            assert line in shown
        assert file.read_text() == "one\ntwo\n"
        ask(child, edit, "y")
        child.expect("edited notes.md")
        assert file.read_text() == "one\n2 \u202e\n"
        child.expect_exact(PROMPT)
        child.send("/restore\r")
        child.expect("changed · edit_file")
        child.expect_exact(PROMPT)
        child.send("/restore 1\r")
        child.expect("notes.md is restored")
        assert file.read_text() == "one\ntwo\n"


def test_always_is_kept_beyond_the_chat(tmp_path: Path, server: ScriptedServer) -> None:
    with terminal(tmp_path, "--upstream", server.url, size=(60, 160)) as child:
        ask(child, 'shell {"command": "echo hi there"}', "a")
        child.expect_exact(PROMPT)
    own = tmp_path / "everlong" / "permissions.toml"
    assert 'allow = "shell:echo hi there"' in own.read_text()
    assert own.stat().st_mode & 0o777 == 0o600
    assert b"It says: hi there" in once(tmp_path, server, 'shell {"command": "echo hi there"}').stdout
    assert b"not allowed" in once(tmp_path, server, 'shell {"command": "echo hi here"}').stdout


def call(name: str, **arguments: str) -> Answer:
    return Answer(calls=((name, json.dumps(arguments)),))


def test_a_named_file_is_written_unasked_and_a_new_one_is_removed_again(tmp_path: Path) -> None:
    script = in_turn([call("write_file", path="new.txt", content="x"), Answer(text="ok")])
    with talking(tmp_path, script) as talk:
        assert "no file was changed" in talk.do("/restore")
        talk.say("Write new.txt")
        assert talk.person.asked == []
        assert (tmp_path / "new.txt").exists()
        (tmp_path / "new.txt").write_text("somebody else's")
        assert "has been changed since then" in talk.do("/restore 1")
        assert "a number from 1 to 1" in talk.do("/restore 2")
        assert "new.txt was new and is deleted" in talk.do("/restore 1 force")
    assert not (tmp_path / "new.txt").exists()


def test_the_question_says_what_each_answer_covers(tmp_path: Path) -> None:
    script = in_turn([call("write_file", path="a.txt", content="x"), Answer(text="ok")] * 2)
    with talking(tmp_path, script, remembered=tmp_path / "own" / "permissions.toml") as talk:
        talk.say("go")
    assert talk.person.asked == [
        "Allow it? y(es, this file) / t(his thread: every file) / a(lways here: write:a.txt) / n(o) [n]: "
    ]
    with talking(tmp_path, script, language=CHINESE) as talk:
        assert "write_file 想修改 a.txt：" in talk.say("开始")
    assert talk.person.asked == ["允许吗？y 允许改这个文件 / t 本会话的所有文件 / n 否 [n]："]


# --- diffs before edits ---------------------------------------------------------------------------

EDIT = ("edit_file", '{"path": "notes.txt", "old_text": "ten", "new_text": "nine"}')
DIFF = ("│ -Open from ten", "│ +Open from nine")


@pytest.mark.parametrize("said", ["Go on.", "Please change notes.txt"], ids=["asked", "named"])
def test_the_diff_is_seen_before_every_edit_asked_for_or_not(said: str, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("Open from ten\n")
    with talking(tmp_path, in_turn([Answer(calls=(EDIT,)), Answer(text="Done.")])) as talk:
        talk.person.answers = ["y"]
        seen = talk.say(said)
        assert len(talk.person.asked) == (said == "Go on.")
        for line in DIFF:
            assert seen.index(line) < seen.index("✓ 1 edit_file")
        assert ("edit_file changes notes.txt:" in seen) == (said != "Go on.")
    assert (tmp_path / "notes.txt").read_text() == "Open from nine\n"


def test_the_second_edit_of_a_file_is_seen_too_and_a_long_one_at_a_glance(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("Open from ten\n")
    content = json.dumps({"path": "notes.txt", "content": "\n".join(f"line {number}" for number in range(300))})
    steps = [Answer(calls=(EDIT,)), Answer(calls=(("write_file", content),)), Answer(text="Done.")]
    with talking(tmp_path, in_turn(steps)) as talk:
        talk.person.answers = ["y"]
        seen = talk.say("Go on.").partition("write_file changes notes.txt:")[2]
        assert len(talk.person.asked) == 1
        assert "│ +line 7\n" in seen
        assert "lines are hidden or shortened" in seen
        assert seen.count("\n│") <= 42


def test_where_nobody_looks_no_diff_is_written(tmp_path: Path, server: ScriptedServer) -> None:
    ran = once(tmp_path, server, WRITE, "--yes")
    assert b"+written" not in ran.stderr + ran.stdout
