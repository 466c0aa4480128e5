"""Who decides whether a tool may act: a whole agent in a workspace, and whoever is asked."""

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from everlong.agent.config import AgentConfig
from everlong.agent.events import AgentEvent, CallRefused, TurnEnded
from everlong.agent.permissions.action import Action, Answer
from everlong.agent.permissions.permissions import names_file, typed_text
from everlong.agent.permissions.visible import LONGEST
from everlong.agent.toolset import workspace_agent
from everlong.core import Message, Role, Text
from everlong.engine import Engine
from everlong.errors import InputError
from everlong.llm import Answer as Said, ReceivedRequest, ScriptedModel
from everlong.store import MemoryThreads
from tests.agent.acting import CONFIG, calls_then, run

Script = Callable[[ReceivedRequest], Said]


def write(path: str, content: str = "new\n") -> tuple[str, str]:
    return "write_file", json.dumps({"path": path, "content": content})


def shell(command: str, **more: object) -> tuple[str, str]:
    return "shell", json.dumps({"command": command, **more})


@dataclass
class Work:
    """An agent in a workspace, and a person who gives these answers, then no."""

    folder: Path
    answers: list[Answer] = field(default_factory=list)
    config: AgentConfig = CONFIG
    nobody: bool = False
    asked: list[Action] = field(default_factory=list)
    events: list[AgentEvent] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.config = replace(self.config, workspace=self.folder)
        self.engine = Engine(MemoryThreads())
        self.permissions = self.config.permissions(None if self.nobody else self.ask)

    async def ask(self, action: Action) -> Answer:
        self.asked.append(action)
        return self.answers.pop(0) if self.answers else Answer.NO

    def turn(self, *rounds: Sequence[tuple[str, str]], say: str = "Go", thread: str = "t") -> list[str]:
        """A turn in which the model makes these calls; the results."""

        async def work() -> None:
            agent = workspace_agent(
                self.engine, ScriptedModel(calls_then(rounds)), self.config, permissions=self.permissions
            )
            self.events += [event async for event in agent.turn(thread, say)]

        before = len(self.results(thread)) if thread in {each.id for each in self.engine.threads.threads()} else 0
        run(work())
        return self.results(thread)[before:]

    def results(self, thread: str) -> list[str]:
        rows = self.engine.threads.read(thread)
        return [result.text for row in rows if isinstance(row.entry, Message) for result in row.entry.results]

    @property
    def subjects(self) -> list[str]:
        return [action.subject for action in self.asked]


def test_a_file_is_asked_for_the_first_time_with_its_diff(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    work = Work(tmp_path, [Answer.ONCE, Answer.ONCE])
    edit = ("edit_file", json.dumps({"path": "a.txt", "old_text": "two", "new_text": "2"}))
    work.turn([edit], [write("a.txt", "again\n")], [write("b/new.txt", "x\ny")])
    assert [(action.kind, action.subject, action.details) for action in work.asked] == [
        ("file", "a.txt", "@@ -1,2 +1,2 @@\n one\n-two\n+2"),
        ("file", "b/new.txt", "@@ -0,0 +1,2 @@\n+x\n+y\n\\ No newline at end of file"),
    ]
    assert work.asked[1].hint == "a new file of 3 bytes"
    assert (tmp_path / "a.txt").read_text() == "again\n"
    assert work.turn([write("a.txt", "elsewhere")], thread="other")[0].startswith("write_file was not allowed")
    assert (tmp_path / "a.txt").read_text() == "again\n"


def test_a_refused_file_stays_as_it_is_and_the_model_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("mine")
    work = Work(tmp_path)
    (said,) = work.turn([write("a.txt")])
    assert said.startswith("write_file was not allowed, and nothing was done: the user denied it")
    assert (tmp_path / "a.txt").read_text() == "mine"


def test_a_binary_file_is_said_to_be_one(tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(b"\0\1\2" * 9)
    work = Work(tmp_path)
    work.turn([write("a.bin", "text\n")])
    assert work.asked[0].hint.startswith("a binary or very large file (27 bytes) is replaced completely")
    assert work.asked[0].details == "@@ -0,0 +1 @@\n+text"


def test_what_changed_since_it_was_shown_is_not_written_over(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("shown\n")
    work = Work(tmp_path)

    async def ask(action: Action) -> Answer:
        file.write_text("somebody's work\n")
        return Answer.ONCE

    work.permissions = work.config.permissions(ask)
    (said,) = work.turn([write("a.txt")])
    assert "changed since it was shown" in said
    assert file.read_text() == "somebody's work\n"


def test_calls_of_one_answer_change_one_file_after_one_question(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("".join(f"<{n}>\n" for n in range(8)))
    work = Work(tmp_path, [Answer.ONCE])
    edits = [("edit_file", json.dumps({"path": "a.txt", "old_text": f"<{n}>", "new_text": f"[{n}]"})) for n in range(8)]
    results = work.turn(edits)
    assert all(result.startswith("edited a.txt") for result in results), results
    assert (tmp_path / "a.txt").read_text() == "".join(f"[{n}]\n" for n in range(8))
    assert len(work.asked) == 1


NAMED = {
    "Fix a.txt please": True,
    "请修改a.txt，谢谢": True,
    "./a.txt is wrong": True,
    "Change the file": False,
    "Fix aa.txt": False,
    "Fix src/a.txt": False,
    "Fix a.txt.bak": False,
    "Do not change a.txt": False,
    "不要改 a.txt": False,
    "Fix it. Don't touch a.txt!": False,
    "Fix b.txt. Never mind a.c\nAnd a.txt too": True,
    "```\na.txt\n```": False,
    "> edit a.txt": False,
    "a.txt " + "x" * 3_000: False,
}


@pytest.mark.parametrize("text", NAMED)
def test_a_file_that_the_message_names_needs_no_question(text: str, tmp_path: Path) -> None:
    work = Work(tmp_path)
    work.turn([write("a.txt")], say=text)
    assert (tmp_path / "a.txt").exists() is NAMED[text]
    assert bool(work.asked) is not NAMED[text]


def test_only_what_a_person_typed_names_files() -> None:
    attached = Message(Role.USER, (Text("Look at this."), Text('<file name="x">\nwrite a.txt\n</file>')))
    assert not names_file(typed_text(attached), "a.txt")
    assert typed_text(Message(Role.USER, (Text('<file name="x">\na.txt\n</file>'),))) == ""
    assert not names_file("Change .bashrc", ".bashrc")
    assert not names_file("Change .github/w.yml", ".github/w.yml")


def test_a_task_for_a_sub_agent_names_nothing_and_it_asks_in_the_persons_thread(tmp_path: Path) -> None:
    def script(asked: ReceivedRequest) -> Said:
        if any(message.results for message in asked.messages):
            return Said(text="Done.")
        if asked.messages[-1].text.startswith("Write a.txt"):
            return Said(calls=(write("a.txt"), write("b.txt")))
        return Said(calls=(("spawn", json.dumps({"task": "Write a.txt and b.txt"})),))

    for answers, made in (([], []), ([Answer.THREAD], ["a.txt", "b.txt"])):
        work = Work(tmp_path, list(answers))

        async def turn(work: Work = work) -> None:
            agent = workspace_agent(work.engine, ScriptedModel(script), work.config, permissions=work.permissions)
            events = [event async for event in agent.turn("t", "Go")]
            assert isinstance(events[-1], TurnEnded)

        run(turn())
        assert {action.thread for action in work.asked} == {"t"}
        assert sorted(each.name for each in tmp_path.glob("*.txt")) == made
        assert len(work.asked) == (1 if made else 2)


def test_every_command_is_asked_for_and_what_follows_once_is_asked_again(tmp_path: Path) -> None:
    work = Work(tmp_path, [Answer.ONCE])
    first, second = work.turn([shell("echo one")], [shell("echo one")])
    assert first.startswith("one")
    assert second.startswith("shell was not allowed")
    assert work.subjects == ["echo one", "echo one"]
    assert Answer.ALWAYS not in work.asked[0].answers  # there is nowhere to remember it


def test_for_this_thread_covers_the_kind_in_this_thread_alone(tmp_path: Path) -> None:
    work = Work(tmp_path, [Answer.THREAD])
    results = work.turn([shell("echo one")], [shell("echo two")], [write("a.txt")])
    assert [result.partition("\n")[0] for result in results[:2]] == ["one", "two"]
    assert [action.kind for action in work.asked] == ["command", "file"]
    assert work.turn([shell("echo three")], thread="other")[0].startswith("shell was not allowed")


def test_always_is_remembered_for_this_folder_and_asked_in_others(tmp_path: Path) -> None:
    remembered, here, there = tmp_path / "home" / "permissions.toml", tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    config = replace(CONFIG, remembered=remembered)
    first = Work(here, [Answer.ALWAYS, Answer.ALWAYS], config)
    first.turn([shell("echo hi")], [write("a.txt")])
    assert [action.pattern for action in first.asked] == ["shell:echo hi", "write:a.txt"]
    assert (remembered.stat().st_mode & 0o777, remembered.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    again = Work(here, [], config)
    assert again.turn([shell("echo hi")])[0].startswith("hi")
    assert again.asked == []
    assert again.turn([shell("echo hi; ls")])[0].startswith("shell was not allowed")
    elsewhere = Work(there, [], config)
    elsewhere.turn([shell("echo hi")], [write("a.txt")])
    assert elsewhere.subjects == ["echo hi", "a.txt"]


def test_a_command_in_another_folder_is_another_command(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    work = Work(tmp_path, [], replace(CONFIG, allow=("shell:pwd", "shell:ls *")))
    inner, outer = work.turn([shell("pwd", folder="sub")], [shell("pwd")])
    assert inner.startswith("shell was not allowed")
    assert outer.startswith(str(tmp_path))
    assert (work.subjects, work.asked[0].hint) == (["cd sub && pwd"], "in the folder sub")


LONG = ["ls" + " " * 21_000 + "; rm -rf x", "\n".join(["true"] * 401), "\x00" * (LONGEST // 2)]


@pytest.mark.parametrize("command", LONG, ids=["spaces", "lines", "escapes"])
def test_a_command_that_is_too_long_to_be_read_is_refused_unasked(command: str, tmp_path: Path) -> None:
    work = Work(tmp_path, [Answer.THREAD] * 3)
    (said,) = work.turn([shell(command)])
    assert "it is too long to show to the user" in said
    assert "\n" not in said
    assert work.asked == []
    (refused,) = (event for event in work.events if isinstance(event, CallRefused))
    assert refused.reason.startswith("shell was not allowed: it is too long")


def test_a_long_diff_can_be_allowed_once_and_says_what_is_hidden(tmp_path: Path) -> None:
    work = Work(tmp_path, [Answer.THREAD])
    work.turn([write("a.txt", "line\n" * 3_000)])
    (action,) = work.asked
    assert action.hidden == 2_001
    assert action.answers == (Answer.NO, Answer.ONCE)
    assert not (tmp_path / "a.txt").exists()  # an answer that was not offered is a no


def test_where_nobody_can_be_asked_patterns_decide_and_the_refusal_names_one(tmp_path: Path) -> None:
    config = replace(CONFIG, allow=("write:src/**", "shell:echo *"), deny=("write:src/b.txt", "shell:rm *"))
    work = Work(tmp_path, [], config, nobody=True)
    results = work.turn(
        *([write(path)] for path in ("src/a.txt", "src/b.txt", "c.txt")),
        *([shell(command)] for command in ("echo 1", "echo 1; rm x", "pwd")),
        say="Write c.txt",
    )
    assert results[0].startswith("wrote src/a.txt")
    assert "the pattern write:src/b.txt denies it" in results[1]
    assert 'there is no one to ask; --allow "write:c.txt" allows it' in results[2]
    assert results[3].startswith("1")
    assert "the pattern shell:rm * denies it" in results[4]
    assert '--allow "shell:pwd" allows it' in results[5]
    assert sorted(path.name for path in tmp_path.rglob("*.txt")) == ["a.txt"]


def test_what_decides_about_permissions_is_asked_for_whatever_is_allowed(tmp_path: Path) -> None:
    own = tmp_path / "own" / "permissions.toml"
    own.parent.mkdir()
    policy = tmp_path / "policy.toml"
    policy.write_text('allow = ["shell", "write"]\n')
    config = replace(CONFIG, approval="always", allow=("write", "shell"), policy=policy, remembered=own)
    calls = [write("own/permissions.toml", 'allow = ["shell"]'), write("own/config.toml"), write("policy.toml")]
    calls.append(shell("echo 'allow = [\"shell\"]' > own/permissions.toml"))
    for nobody in (False, True):
        work = Work(tmp_path, [], config, nobody=nobody)
        results = work.turn(*([call] for call in calls), [write("fine.txt")], say="Write policy.toml")
        assert all("was not allowed" in result for result in results[:4]), results
        assert results[4].startswith(("wrote fine.txt", "replaced fine.txt"))
        assert len(work.asked) == (0 if nobody else 4)
        assert all(action.answers == (Answer.NO, Answer.ONCE) for action in work.asked)
    assert not own.exists()


def test_a_policy_that_cannot_be_read_allows_nothing(tmp_path: Path) -> None:
    own = tmp_path / "permissions.toml"
    own.write_text("allow = [")
    work = Work(tmp_path, [Answer.ONCE], replace(CONFIG, remembered=own))
    (said,) = work.turn([shell("echo hi")])
    assert "the permissions cannot be read" in said
    assert work.asked == []


BROKEN = {
    "allow = 3": "allow must be a pattern or a list of patterns",
    'alow = ["shell"]': "alow: unknown field",
    'allow = ["exec:x"]': "'exec:x' is not a pattern",
    'folder = "/x"': "folder belongs to a rule",
    "rules = 3": "rules must be a list of tables",
    "[[rules]]\nfolder = 3": "folder must be a string",
}


@pytest.mark.parametrize("text", BROKEN)
def test_a_wrong_policy_is_said_in_one_line_that_names_the_file(text: str, tmp_path: Path) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text(text)
    with pytest.raises(InputError) as raised:
        replace(CONFIG, policy=policy).permissions()
    assert BROKEN[text] in str(raised.value)
    assert str(raised.value).startswith(f"{policy}: ")


def test_while_somebody_is_asked_what_is_allowed_goes_on(tmp_path: Path) -> None:
    work = Work(tmp_path, [], replace(CONFIG, allow=("write:free/**",)))
    seen: list[bool] = []

    async def ask(action: Action) -> Answer:
        while not (tmp_path / "free" / "a.txt").exists():
            await asyncio.sleep(0)
        seen.append(True)
        return Answer.NO

    work.permissions = work.config.permissions(ask)
    work.turn([shell("echo wait"), write("free/a.txt")])
    assert seen == [True]


def test_the_agent_does_not_write_where_changes_are_kept(tmp_path: Path) -> None:
    work = Work(tmp_path, [Answer.ONCE] * 2)
    (said,) = work.turn([write(".everlong/changes/x.json")])
    assert said == "files inside .everlong can be changed only by Everlong"
    assert work.asked == []
    assert list(tmp_path.iterdir()) == []
