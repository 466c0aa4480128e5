"""The sessions of Claude Code: what its user says, what the scripted model has it do, and what a run is judged by."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from everlong.core import CallId, Image, Message, ResultPart, Role, Text, ToolResult
from everlong.lab.clients.claude_sessions import LONG_SESSIONS, SESSIONS, Director, Turns, picture
from everlong.lab.clients.drivers.programs.claude_sessions import INSTRUCTION, _going_on
from everlong.lab.clients.prefixes import pairs_of
from everlong.lab.clients.runner import DRIVERS
from everlong.lab.clients.script import SUMMARY
from everlong.lab.clients.verdict import RunRecord, judge
from everlong.lab.clients.witness import MARK, Exchange
from everlong.llm import ReceivedRequest
from everlong.tokens import Counter
from tests.cli.running import everlong

TOOLS = tuple(json.dumps({"name": name, "input_schema": {"type": "object"}}) for name in ("Agent", "Read", "Write"))
WORK = Path("work")
FEW = Turns(count=2, files=2, lines=3)


def user(text: str) -> Message:
    return Message(Role.USER, (Text(text),))


def result(*parts: ResultPart) -> Message:
    return Message(Role.TOOL, (ToolResult(CallId("call"), parts),))


def asks(*messages: Message, tools: tuple[str, ...] = TOOLS) -> ReceivedRequest:
    return ReceivedRequest(number=0, model="m", messages=messages, tools=tools, body=b"{}")


def read_in(turns: Turns, messages: Sequence[Message]) -> tuple[list[list[str]], list[str]]:
    """What is called, one row an answer, and what was missed, if the messages come one after the other."""
    director = Director(turns, WORK)
    answers = [director(asks(*messages[: at + 1])) for at in range(len(messages))]
    called = [[Path(json.loads(given).get("file_path", "")).name for _, given in answer.calls] for answer in answers]
    return called, director.missing


def test_everything_but_the_first_prompt_is_the_same_word() -> None:
    assert FEW.prompts()[1:] == ["continue"]
    assert set(SESSIONS["constant"].tasks.prompts()[1:]) == {"continue"}
    assert len(SESSIONS["constant"].tasks.prompts()) == 40
    assert "'" not in INSTRUCTION, "it is the argument of a command"


def test_files_are_read_one_after_the_other_or_at_once() -> None:
    first, second = (result(Text(FEW.opening(1, at))) for at in (1, 2))
    assert read_in(FEW, [user("Task 1"), first, second]) == ([["part-1-1.txt"], ["part-1-2.txt"], []], [])
    parallel = Turns(count=2, files=2, lines=3, at_once=True)
    assert read_in(parallel, [user("Task 1"), second]) == ([["part-1-1.txt", "part-1-2.txt"], []], [])
    assert read_in(FEW, [user("Task 1"), result(Text("[cut]"))])[1] == ["part-1-1.txt"]


def test_a_picture_has_to_reach_the_model(tmp_path: Path) -> None:
    turns = Turns(count=1, files=2, lines=3, pictures=True)
    seen, text = result(Image(data="aGk=")), result(Text(turns.opening(1, 1)))
    assert read_in(turns, [user("Task 1"), text, seen]) == ([["part-1-1.txt"], ["part-1-2.png"], []], [])
    assert read_in(turns, [user("Task 1"), text, result(Text("[image left out]"))])[1] == ["part-1-2.png"]
    turns.write(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["part-1-1.txt", "part-1-2.png"]
    assert picture(1) != picture(2)


def test_a_sub_agent_reads_what_the_main_conversation_does_not() -> None:
    director = Director(Turns(count=2, files=1, lines=3, agents=True), WORK)
    ((tool, given),) = director(asks(user("Task 1"))).calls
    errand = user(json.loads(given)["prompt"])
    assert tool == "Agent"
    (read,) = director(asks(errand)).calls
    assert read[0] == "Read"
    assert director(asks(errand, result(Text("Record 1.1 of the harbour office")))).text == "Errand 1 is done."
    assert director(asks(user("Task 1"), result(Text("Errand 1 is done.")))).text == "Turn 1 is done."
    assert director.missing == []


def test_titles_and_summaries_are_answered_in_one_line() -> None:
    director = Director(FEW, WORK)
    assert director(asks(user("Task 1"), tools=())).text == SUMMARY
    assert director(asks(user("Write a summary of the conversation so far"))).text == SUMMARY
    assert director.turn == 1


@pytest.mark.parametrize("row", [*SESSIONS.values(), *LONG_SESSIONS.values()], ids=[*SESSIONS, *LONG_SESSIONS])
def test_a_session_is_longer_than_its_window(row: object, tmp_path: Path) -> None:
    work, (window,) = row.tasks, row.windows  # type: ignore[attr-defined]
    line = Counter("gpt-4o").text("0001 the harbour of the signal was entered as 12345 by clerk 7\n")
    texts = work.files - work.pictures
    assert work.agents or work.count * texts * work.lines * line > window
    assert (DRIVERS / (row.driver.replace(".", "/") + ".py")).is_file()  # type: ignore[attr-defined]


def test_a_turn_goes_on_as_its_session_says() -> None:
    assert _going_on("fork", "") == []
    assert _going_on("fork", "s") == ["--resume", "s", "--fork-session"]
    assert _going_on("resume", "s") == ["--resume", "s"]
    assert _going_on("constant", "s") == ["--continue"]


# --- what a run is judged by -------------------------------------------------------------------------


def body_of(**fields: object) -> bytes:
    block = {"type": "text", "text": "Task 1", "cache_control": {"type": "ephemeral"}}
    return json.dumps({"messages": [{"role": "user", "content": [block]}], "max_tokens": 900, **fields}).encode()


def exchange(body: bytes) -> Exchange:
    return Exchange(method="POST", path="/v1/messages?beta=true", headers={}, body=body, status=200)


def test_the_most_marks_of_a_request_are_counted() -> None:
    system = [{"type": "text", "text": '"cache_control": ', "cache_control": {"type": "ephemeral"}}]
    body = body_of(system=system, model="m")
    got = ReceivedRequest(
        number=0, model="m", messages=(user("Task 1"),), body=body, fmt="anthropic", headers={MARK: "0"}
    )
    record = RunRecord(
        version="1", answers=(), error="", exchanges=[exchange(body)], requests=[got], missing=(), window=4_000
    )
    assert judge("claude-code", "messages", FEW, record).marks == 2


@pytest.mark.parametrize(("thinking", "reply"), [({}, 500), ({"type": "enabled", "budget_tokens": 899}, 900)])
def test_what_a_request_keeps_for_thinking_does_not_give_way(thinking: dict[str, object], reply: int) -> None:
    body = body_of(thinking=thinking, model="m")
    got = ReceivedRequest(number=0, model="m", messages=(), body=body, fmt="anthropic", headers={MARK: "0"})
    (pair,) = pairs_of([exchange(body)], [got], 1_000)
    assert abs(1_000 - reply - pair.movable) < 60


def test_the_command_names_its_sessions() -> None:
    told = everlong("lab", "claude-sessions", "--help")
    assert told.code == 0
    assert "constant-1m" in told.out.replace("\n", "").replace(" ", "")
