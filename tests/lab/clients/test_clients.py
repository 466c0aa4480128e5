"""Real clients against the scripted model, without the gateway: the harness runs them and sees what went wrong."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from everlong.cli.lab.clients import clients_command
from everlong.core import CallId, Message, Role, Text, ToolResult
from everlong.lab.clients.drivers.task import Task
from everlong.lab.clients.runner import DRIVERS, Runner
from everlong.lab.clients.script import Reader, Tasks, tool_names
from everlong.lab.clients.table import CLIENTS, ClientRow
from everlong.lab.clients.verdict import RunRecord, Verdict, judge, left_out
from everlong.lab.clients.witness import Exchange
from everlong.lab.environments import Environments
from everlong.llm import ReceivedRequest

TASKS = Tasks(count=2, files=2, lines=40)
ROOMY = 100_000  # tokens
TIGHT = 2_500  # two files of the first task fit, all files of both do not
READ_FILE = '{"type": "function", "function": {"name": "read_file"}}'


def runner(tmp_path: Path) -> Runner:
    return Runner(Environments(tmp_path / "lab"), TASKS, direct=True, here=True, records=tmp_path / "records")


def in_window(name: str, window: int) -> ClientRow:
    return replace(CLIENTS[name], window=window)


SDK_MODES = [("openai", "chat"), ("openai", "responses stream"), ("anthropic", "messages stream")]


@pytest.mark.parametrize(("name", "mode"), SDK_MODES)
def test_a_client_with_room_finishes_and_is_told_that_this_proves_nothing(name: str, mode: str, tmp_path: Path) -> None:
    judged = runner(tmp_path).run(in_window(name, ROOMY), mode)
    assert judged.faults == ("the conversation never outgrew the window",)
    assert (judged.turns, judged.requests, judged.errors) == (2, 6, 0)
    assert judged.version
    assert 1_000 < judged.wanted <= judged.largest < ROOMY


@pytest.mark.parametrize(("name", "mode"), [("openai", "chat stream"), ("anthropic", "messages")])
def test_a_client_alone_in_a_small_window_fails_and_every_sign_of_it_is_seen(
    name: str, mode: str, tmp_path: Path
) -> None:
    judged = runner(tmp_path).run(in_window(name, TIGHT), mode)
    assert not judged.ok
    assert judged.errors == 1
    assert judged.turns < TASKS.count
    assert judged.faults[0].startswith("the client failed: ")
    assert "BadRequestError" in judged.faults[0]
    assert judged.faults[1].startswith("the client got 400: ")
    assert f"tokens for a window of {TIGHT}" in judged.faults[-1]


def test_records_hold_every_request_of_the_client_and_of_the_model(tmp_path: Path) -> None:
    runner(tmp_path).run(in_window("openai", ROOMY), "chat")
    kept = json.loads((tmp_path / "records" / "openai-chat.json").read_text(encoding="utf-8"))
    assert [one["path"] for one in kept["client"]] == ["/v1/chat/completions"] * 6
    assert [one["body"] for one in kept["client"]] == [one["body"] for one in kept["upstream"]]


def test_every_client_has_a_driver() -> None:
    for row in CLIENTS.values():
        assert (DRIVERS / (row.driver if row.driver.endswith(".mjs") else f"{row.driver}.py")).is_file()
        assert row.modes


# --- the script ----------------------------------------------------------------------------------


def asks(*messages: Message, tools: tuple[str, ...] = (READ_FILE,), body: bytes = b"{}") -> ReceivedRequest:
    return ReceivedRequest(number=0, model="scripted", messages=messages, tools=tools, body=body)


def user(text: str) -> Message:
    return Message(Role.USER, (Text(text),))


def result(text: str) -> Message:
    return Message(Role.TOOL, (ToolResult(CallId("call"), (Text(text),)),))


def test_the_model_reads_one_file_after_the_other_and_then_says_so() -> None:
    reader, prompt = Reader(TASKS, Path("work")), user(TASKS.prompt(1))
    first, second = result(TASKS.opening(1, 1)), result(TASKS.opening(1, 2))
    answers = [reader(asks(prompt)), reader(asks(prompt, first)), reader(asks(prompt, first, second))]
    called = [[json.loads(arguments)["path"] for _, arguments in answer.calls] for answer in answers]
    assert called == [[str(Path("work/part-1-1.txt"))], [str(Path("work/part-1-2.txt"))], []]
    assert answers[-1].text == TASKS.done(1)
    assert reader.missing == []


def test_a_result_that_is_gone_before_the_model_read_it_is_noted() -> None:
    reader, prompt = Reader(TASKS, Path("work")), user(TASKS.prompt(1))
    reader(asks(prompt))
    reader(asks(prompt, result("[trimmed]")))
    assert reader.missing == ["part-1-1.txt"]


@pytest.mark.parametrize(
    "asked",
    [
        asks(user("Give it a title.")),
        asks(user(TASKS.prompt(1)), tools=()),
        asks(user(TASKS.prompt(1)), user("Stop here and summarise the conversation so far.")),
    ],
    ids=["no task", "no tools", "a summary is wanted"],
)
def test_what_is_no_step_of_a_task_is_answered_in_words_and_costs_no_step(asked: ReceivedRequest) -> None:
    reader = Reader(TASKS, Path("work"))
    assert not reader(asked).calls
    assert not reader.made


@pytest.mark.parametrize(
    ("thinking", "thinks"),
    [({"type": "enabled", "budget_tokens": 9}, True), ({"type": "adaptive"}, True), ({"type": "disabled"}, False)],
    ids=["enabled", "adaptive", "disabled"],
)
def test_the_model_thinks_where_the_client_asks_for_it(thinking: dict[str, object], thinks: bool) -> None:
    body = json.dumps({"thinking": thinking}).encode()
    assert bool(Reader(TASKS, Path("work"))(asks(user(TASKS.prompt(1)), body=body)).thinking) is thinks


@pytest.mark.parametrize(
    ("tool", "name"),
    [
        (READ_FILE, "read_file"),
        ('{"name": "Read", "input_schema": {}}', "Read"),
        ('{"type": "function", "name": "exec_command"}', "exec_command"),
        ('{"type": "web_search"}', ""),
    ],
    ids=["chat", "anthropic", "responses", "without a name"],
)
def test_tool_names_are_found_in_every_format(tool: str, name: str) -> None:
    assert tool_names([tool]) == [name]


# --- the judge -----------------------------------------------------------------------------------

CHAT: dict[str, object] = {"model": "scripted", "messages": [{"role": "user", "content": "word " * 200}]}
BODY = json.dumps(CHAT).encode()
ORPHAN = json.dumps({"messages": [{"role": "tool", "tool_call_id": "c", "content": "r"}]}).encode()
GOOD = RunRecord(
    version="1",
    answers=[TASKS.done(1), TASKS.done(2)],
    error="",
    exchanges=[Exchange("POST", "/v1/chat/completions", {}, BODY, status=200)],
    requests=[ReceivedRequest(number=0, model="scripted", messages=(), tokens=90, body=BODY, fmt="openai-chat")],
    missing=[],
    window=100,
)


def verdict(record: RunRecord) -> Verdict:
    return judge("openai", "chat", TASKS, record)


def test_a_good_run_is_ok() -> None:
    judged = verdict(GOOD)
    assert judged.ok
    assert (judged.turns, judged.requests, judged.largest, judged.errors) == (2, 1, 90, 0)
    assert judged.wanted > GOOD.window


@pytest.mark.parametrize(
    ("record", "fault"),
    [
        (replace(GOOD, error="ValueError: no"), "the client failed: ValueError: no"),
        (replace(GOOD, answers=[TASKS.done(1)]), "1 of 2 tasks finished"),
        (replace(GOOD, missing=["part-1-1.txt"]), "part-1-1.txt was read, but the model did not get it"),
        (
            replace(
                GOOD, exchanges=[Exchange("POST", "/v1/messages?beta=true", {}, BODY, status=429, trouble="slow\ndown")]
            ),
            "the client got 429: slow down",
        ),
        (
            replace(GOOD, requests=[replace(GOOD.requests[0], max_tokens=20)]),
            "request 0 has 110 tokens for a window of 100",
        ),
        (
            replace(GOOD, requests=[replace(GOOD.requests[0], body=ORPHAN)]),
            "request 0 is invalid at messages[0]",
        ),
        (replace(GOOD, window=1_000), "the conversation never outgrew the window"),
    ],
    ids=["client", "unfinished", "missing", "error", "too large", "invalid", "small"],
)
def test_every_fault_is_told(record: RunRecord, fault: str) -> None:
    judged = verdict(record)
    assert not judged.ok
    assert any(told.startswith(fault) for told in judged.faults), judged.faults


def test_what_a_client_asks_elsewhere_is_no_request_to_the_model() -> None:
    beside = Exchange("GET", "/v1/models", {}, b"", status=404, trouble="not found")
    assert verdict(replace(GOOD, exchanges=[*GOOD.exchanges, beside])) == verdict(GOOD)


# --- the command ---------------------------------------------------------------------------------


def test_a_client_that_cannot_be_had_is_left_out_with_its_reason(tmp_path: Path) -> None:
    (tmp_path / "lab").write_text("a file where the folder should be", encoding="utf-8")
    (told,) = Runner(Environments(tmp_path / "lab", lambda _: None)).all_modes(CLIENTS["openai"])
    assert told == left_out("openai", "pip cannot install it here")
    assert not told.ok
    assert not told.faults


def test_the_command_has_help_for_every_option() -> None:
    shown = CliRunner().invoke(clients_command, ["--help"])
    assert shown.exit_code == 0
    assert all(option in shown.output for option in ("--direct", "--environments", "--records", "--json"))


def test_a_driver_knows_its_dialect_and_whether_to_stream() -> None:
    given = Task(address="", mode="responses stream", model="m", prompts=[])
    assert (given.dialect, given.stream) == ("responses", True)
    assert not replace(given, mode="chat").stream
