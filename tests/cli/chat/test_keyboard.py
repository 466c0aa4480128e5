"""The chat in a real terminal, driven as a person drives it: typing, stopping, resizing, being killed, coming back."""

import re
import shlex
import signal
from collections.abc import Iterator
from pathlib import Path

import pexpect
import pytest

from everlong.agent.calls import open_calls
from everlong.cli.chat.keyboard import completions
from everlong.core import Message
from everlong.llm import Answer, ReceivedRequest, ScriptedServer, Step, Window
from everlong.store import open_store
from everlong.wire import OPENAI_CHAT, problems
from tests.cli.chat.talk import COMMAND, PROMPT, SECONDS, environment, terminal

PRESSES = 6  # of a key, before it counts as dead
PASTE, PASTED = "\x1b[200~", "\x1b[201~"
MANY = "\n\n".join(f"Paragraph {n} about kettles." for n in range(12))
HOSTILE = "\x1b]0;owned\x07\x1b[2Jgone \u202etxt.exe &#x202e;y\n\n"


def scripted(asked: ReceivedRequest) -> Step:
    last = asked.messages[-1]
    if last.results:
        return Answer(text=f"The tool ended: {last.results[-1].text[:30]}")
    if "sleep" in last.text:
        return Answer(text="I sleep.", calls=(("shell", '{"command": "echo begun > begun.txt; sleep 600"}'),))
    if "stream" in last.text:
        return Answer(text=MANY)
    if "forever" in last.text:
        return Answer(text="word and\n\nanother " * 4_000, between=0.02)
    if "hostile" in last.text:
        return Answer(text=HOSTILE + "and harmless.")
    return Answer(text=f"Heard: {last.text!r}")


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer(scripted, window=Window(16_000, told=True)) as running:
        yield running


def say(child: "pexpect.spawn[str]", text: str, answer: str) -> None:
    """Type at the prompt, and wait for what must be seen."""
    child.expect_exact(PROMPT)
    child.send(text + "\r")
    child.expect(answer)


def interrupt_line(child: "pexpect.spawn[str]", answer: object) -> None:
    """Press Ctrl-C while a line is typed, until its answer is seen.

    Python's readline looks for signals only while it waits: it misses one that comes as it draws a letter, or together
    with a key, and a person presses again.
    """
    for _ in range(PRESSES):
        child.sendintr()
        if not child.expect([answer, pexpect.TIMEOUT], timeout=SECONDS / PRESSES):
            return
    raise AssertionError(f"{PRESSES} times Ctrl-C, and no {answer}: {child.before!r}")


def kept(folder: Path) -> list[Message]:
    with open_store(str(folder / "threads.db")) as store:
        (thread,) = store.threads()
        return [row.entry for row in store.read(thread.id) if isinstance(row.entry, Message)]


def is_valid(messages: list[Message]) -> bool:
    return not open_calls(messages) and not problems("openai-chat", OPENAI_CHAT.write_history(messages))


def test_someone_types_and_reads_as_it_streams_and_leaves(tmp_path: Path, server: ScriptedServer) -> None:
    with terminal(tmp_path, "--upstream", server.url) as child:
        child.expect_exact("window 16,000 tokens")
        say(child, "please stream", r"Paragraph 0 about kettles[\s\S]+Paragraph 11 about kettles")
        child.expect(r"[\d,]+ / 16,000 tokens · \d+ %")
        say(child, "/exit", r"To continue: everlong chat --thread chat-\S+")
        child.expect(pexpect.EOF)
        child.close()
        assert child.exitstatus == 0


def test_ctrl_d_leaves(tmp_path: Path, server: ScriptedServer) -> None:
    with terminal(tmp_path, "--upstream", server.url) as child:
        child.expect_exact(PROMPT)
        child.sendeof()
        child.expect(pexpect.EOF)


def test_a_tool_is_stopped_in_the_middle_and_the_thread_stays_valid(tmp_path: Path, server: ScriptedServer) -> None:
    with terminal(tmp_path, "--upstream", server.url) as child:
        say(child, "sleep a while", re.escape("Allow it?"))
        child.send("y\r")
        child.expect("shell echo begun")
        while not (tmp_path / "begun.txt").exists():
            child.expect(r"\d s")  # it is redrawn while it runs
        child.sendintr()
        child.expect("✗ 1 shell")
        child.expect("■ stopped")
        say(child, "still there?", "Heard: 'still there\\?'")
        child.sendline("/exit")
        child.expect(pexpect.EOF)
    messages = kept(tmp_path)
    assert [len(message.results) for message in messages if message.results] == [1]
    assert is_valid(messages)


def test_an_answer_is_stopped_and_ctrl_c_twice_leaves(tmp_path: Path, server: ScriptedServer) -> None:
    before = server.cancelled
    with terminal(tmp_path, "--upstream", server.url) as child:
        say(child, "talk forever", r"word and[\s\S]+?word and")
        child.sendintr()
        child.expect("■ stopped")
        child.expect_exact(PROMPT)
        child.send("half a line")
        child.expect("half a line")
        interrupt_line(child, "Press Ctrl-C again to exit")
        say(child, "no, I stay", "Heard: 'no, I stay'")
        for letter, answer in (("x", "Press Ctrl-C again to exit"), ("y", pexpect.EOF)):
            child.expect_exact(PROMPT)
            child.send(letter)
            child.expect_exact(letter)  # it listens by now
            interrupt_line(child, answer)
    assert server.cancelled > before
    assert is_valid(kept(tmp_path))


def test_ctrl_c_at_a_question_means_no(tmp_path: Path, server: ScriptedServer) -> None:
    with terminal(tmp_path, "--upstream", server.url) as child:
        say(child, "sleep a while", re.escape("Allow it?"))
        child.sendintr()
        child.expect("not allowed")
        child.expect("The tool ended: shell was not allowed")
        child.expect_exact(PROMPT)
    assert not (tmp_path / "begun.txt").exists()


def test_after_kill_9_the_thread_goes_on(tmp_path: Path, server: ScriptedServer) -> None:
    with terminal(tmp_path, "--upstream", server.url, "--yes") as child:
        say(child, "the word is heron", "Heard: 'the word is heron'")
        say(child, "now sleep", "shell echo begun")
        while not (tmp_path / "begun.txt").exists():
            child.expect(r"\d s")
        child.kill(signal.SIGKILL)
        child.expect(pexpect.EOF)
    with terminal(tmp_path, "--upstream", server.url, "--continue") as child:
        child.expect("Continuing “the word is heron”")
        child.expect("your last message: now sleep")
        say(child, "are you back?", "Heard: 'are you back\\?'")
        child.expect("16,000 tokens")
    messages = kept(tmp_path)
    assert is_valid(messages)
    assert sum(len(message.results) for message in messages) == 1
    assert any("the program ended before" in result.text for message in messages for result in message.results)


def test_the_terminal_may_change_its_size(tmp_path: Path, server: ScriptedServer) -> None:
    with terminal(tmp_path, "--upstream", server.url, size=(40, 120)) as child:
        say(child, "first", "Heard: 'first'")
        child.setwinsize(24, 40)
        say(child, "/help", "how full the")
        child.expect_exact(PROMPT)
        assert max(len(line) for line in plain(child.before or "").splitlines()) <= 40
        child.setwinsize(40, 120)
        child.send("talk forever\r")
        child.expect("word")
        child.setwinsize(12, 30)
        child.expect(r"word and[\s\S]+?word and")
        child.sendintr()
        child.expect("■ stopped")


def plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\r", "", text)


def test_chinese_is_typed_erased_and_answered(tmp_path: Path, server: ScriptedServer) -> None:
    with terminal(tmp_path, "--upstream", server.url, "--lang", "zh") as child:
        child.expect("/help 列出命令")
        say(child, "你好，世间\x7f界", "Heard: '你好，世界'")
        child.expect(r"16,000 token · \d+ %")
        say(child, "/上下文", "未知命令 /上下文")
        say(child, "/help", "撤销最近一次压缩")


def test_pasted_lines_stay_together_and_a_backslash_continues(tmp_path: Path, server: ScriptedServer) -> None:
    with terminal(tmp_path, "--upstream", server.url) as child:
        child.expect_exact(PROMPT)
        child.send(f"{PASTE}one\ntwo\n  three{PASTED}\r")
        child.expect(re.escape(r"Heard: 'one\ntwo\n  three'"))
        child.expect_exact(PROMPT)
        child.send("first \\\r")
        child.expect_exact("… ")
        child.send("second\r")
        child.expect(re.escape(r"Heard: 'first \nsecond'"))


def test_tab_completes_and_history_comes_back(tmp_path: Path, server: ScriptedServer) -> None:
    with terminal(tmp_path, "--upstream", server.url) as child:
        child.expect_exact(PROMPT)
        child.send("/thresh\t")
        child.expect_exact("/threshold ")
        child.send("70\r")
        child.expect("Compaction starts at 70 % of the budget")
        child.expect_exact(PROMPT)
        child.send("\x1b[A\x7f\x7f80\r")
        child.expect("Compaction starts at 80 % of the budget")


def test_hostile_words_never_reach_the_terminal_raw(tmp_path: Path, server: ScriptedServer) -> None:
    with terminal(tmp_path, "--upstream", server.url) as child:
        say(child, "be hostile", "and harmless")
        seen = child.before or ""
        assert "gone" in seen
        assert "\x1b]0;" not in seen
        assert "\x1b[2J" not in seen
        assert "\u202e" not in seen


def test_without_a_key_a_person_is_asked_once(tmp_path: Path, server: ScriptedServer) -> None:
    with terminal(tmp_path) as child:
        child.expect("Which model do you want to talk to")
        child.expect_exact("1 or 2 [1]:")
        child.send("2\r")
        child.expect_exact("(not shown): ")
        child.send(f"{server.url}\r")
        child.expect_exact("(not shown): ")
        child.send("sk-secret-of-mine\r")
        say(child, "hello", "Heard: 'hello'")
        child.sendline("/exit")
        child.expect(pexpect.EOF)
        assert "sk-secret" not in (child.before or "")
    assert not any(b"sk-secret" in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


def test_a_question_is_seen_though_the_answer_goes_to_a_file(tmp_path: Path, server: ScriptedServer) -> None:
    words = shlex.join([*COMMAND, "--upstream", server.url, "-m", "sleep a while"])
    child = pexpect.spawn(
        "/bin/sh",
        ["-c", f"exec {words} > answer.md"],
        cwd=str(tmp_path),
        env=environment(tmp_path),
        encoding="utf-8",
        timeout=SECONDS,
    )
    try:
        child.expect_exact("shell wants to run")
        child.expect_exact("Allow it?")
        child.send("n\r")
        child.expect(pexpect.EOF)
    finally:
        child.close(force=True)
    answer = (tmp_path / "answer.md").read_text()
    assert "The tool ended: shell was not allowed" in answer
    assert "wants to run" not in answer


@pytest.mark.parametrize(
    ("line", "found"),
    [("/thr", ["/threads ", "/threshold "]), ("/x", []), ("hello", []), ("/image ", ["a.png", "sub/"])],
)
def test_tab_completes_commands_and_paths(tmp_path: Path, line: str, found: list[str]) -> None:
    (tmp_path / "a.png").touch()
    (tmp_path / "sub").mkdir()
    start = f"{line}{tmp_path}/" if line == "/image " else line
    prefix = f"{tmp_path}/" if line == "/image " else ""
    assert completions(start, ["/threads", "/threshold", "/image"], ["/image"]) == [prefix + each for each in found]


def test_files_are_completed_after_an_at_sign(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").touch()
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "app.py").touch()
    for line, found in (
        ("@", ["@notes.txt", "@src/"]),
        ("@no", ["@notes.txt"]),
        ("read @no", ["@notes.txt"]),
        ("read both, @notes.txt and @src/a", ["both, @notes.txt and @src/app.py"]),
        ("me@no", []),
        ("/pin @no", []),
        ("@no ", []),
        ("@nowhere/", []),
    ):
        assert completions(line, ["/pin"], [], tmp_path) == found, line


def test_tab_completes_a_file_at_the_prompt(tmp_path: Path, server: ScriptedServer) -> None:
    (tmp_path / "kettles.txt").write_text("blue\n")
    with terminal(tmp_path, "--upstream", server.url) as child:
        child.expect_exact(PROMPT)
        child.send("look at @kett\t")
        child.expect_exact("@kettles.txt")
        child.send("\r")
        child.expect_exact("attached: kettles.txt (1 line)")
        child.expect("Heard: [^\n]*look at @kettles.txt")
