"""Real clients against the scripted model, without the gateway: the harness runs them and sees what went wrong."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from everlong.cli.lab.clients import clients_command
from everlong.core import CallId, Message, Role, Text, ToolResult
from everlong.lab.clients.drivers.task import Task
from everlong.lab.clients.runner import DRIVERS, Runner
from everlong.lab.clients.script import Reader, Tasks, tool_names
from everlong.lab.clients.table import CLIENTS
from everlong.lab.clients.verdict import RunRecord, Verdict, judge, left_out
from everlong.lab.clients.witness import MARK, Exchange
from everlong.lab.environments import Environment, Environments
from everlong.llm import ReceivedRequest
from everlong.tokens import Counter
from tests.cli.running import everlong

TASKS = Tasks(count=2, files=2, lines=40)
ROOMY = 100_000  # tokens
TIGHT = 2_500  # two files of the first task fit, all files of both do not
READ_FILE = '{"type": "function", "function": {"name": "read_file"}}'


def runner(tmp_path: Path) -> Runner:
    return Runner(Environments(tmp_path / "lab"), TASKS, direct=True, here=True, records=tmp_path / "records")


SDK_MODES = [("openai", "chat"), ("openai", "responses stream"), ("anthropic", "messages stream")]


@pytest.mark.parametrize(("name", "mode"), SDK_MODES)
def test_a_client_with_room_finishes_and_is_told_that_this_proves_nothing(name: str, mode: str, tmp_path: Path) -> None:
    judged = runner(tmp_path).run(CLIENTS[name], mode, ROOMY)
    assert judged.faults == ("the conversation never outgrew the window",)
    assert (judged.turns, judged.requests, judged.errors) == (2, 6, 0)
    assert judged.version
    assert 1_000 < judged.wanted <= judged.largest < ROOMY
    assert 0 < judged.smallest < judged.largest
    assert (judged.compactions, judged.breaks, judged.summaries) == (0, 0, 0)
    assert (judged.task, judged.tasked) == (6, 6)


@pytest.mark.parametrize(("name", "mode"), [("openai", "chat stream"), ("anthropic", "messages")])
def test_a_client_alone_in_a_small_window_fails_and_every_sign_of_it_is_seen(
    name: str, mode: str, tmp_path: Path
) -> None:
    judged = runner(tmp_path).run(CLIENTS[name], mode, TIGHT)
    assert not judged.ok
    assert judged.errors == 1
    assert judged.turns < TASKS.count
    assert judged.faults[0].startswith("the client failed: ")
    assert "BadRequestError" in judged.faults[0]
    assert judged.faults[1].startswith("the client got 400: ")
    assert f"tokens for a window of {TIGHT}" in judged.faults[-1]


def test_records_hold_every_request_of_the_client_and_of_the_model(tmp_path: Path) -> None:
    runner(tmp_path).run(CLIENTS["openai"], "chat", ROOMY)
    kept = json.loads((tmp_path / "records" / f"openai-chat-{ROOMY}.json").read_text(encoding="utf-8"))
    assert [one["path"] for one in kept["client"]] == ["/v1/chat/completions"] * 6
    assert [one["body"] for one in kept["client"]] == [one["body"] for one in kept["upstream"]]
    assert [one["made_of"] for one in kept["upstream"]] == [str(number) for number in range(6)]


def test_every_client_has_a_driver() -> None:
    for row in CLIENTS.values():
        assert (
            DRIVERS / (row.driver if row.driver.endswith(".mjs") else row.driver.replace(".", "/") + ".py")
        ).is_file()
        assert row.modes
        assert row.windows
        assert row.models.keys() <= {mode.partition(" ")[0] for mode in row.modes}


def test_a_mode_may_have_a_model_of_its_own() -> None:
    row = replace(CLIENTS["openai"], models={"responses": "other"})
    assert [row.model_in(mode) for mode in ("chat stream", "responses", "responses stream")] == [
        row.model,
        "other",
        "other",
    ]


@pytest.mark.parametrize("name", ["qwen-code", "openclaw", "opencode", "aider", "smolagents", "pi", "crewai"])
def test_what_a_coding_agent_gets_to_read_is_three_times_its_window(name: str, tmp_path: Path) -> None:
    row = CLIENTS[name]
    row.tasks.write(tmp_path)
    texts = [*(file.read_text(encoding="utf-8") for file in tmp_path.iterdir()), *row.tasks.prompts()]
    assert sum(map(Counter("gpt-4o").text, texts)) > 3 * max(row.windows)


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


@pytest.mark.parametrize(
    ("properties", "field"),
    [({}, "path"), ({"file_path": {}, "limit": {}}, "file_path"), ({"filePath": {}}, "filePath")],
    ids=["nothing said", "snake", "camel"],
)
def test_a_tool_is_called_with_the_path_where_its_schema_wants_it(properties: dict[str, object], field: str) -> None:
    tool = {"name": "read", "input_schema": {"type": "object", "properties": properties}}
    answer = Reader(TASKS, Path("work"))(asks(user(TASKS.prompt(1)), tools=(json.dumps(tool),)))
    ((name, arguments),) = answer.calls
    assert (name, json.loads(arguments)) == ("read", {field: str(Path("work/part-1-1.txt"))})


def test_the_plug_in_before_the_name_of_a_tool_is_part_of_it() -> None:
    tool = json.dumps({"type": "function", "function": {"name": "Files-read_file"}})
    answer = Reader(TASKS, Path("work"))(asks(user(TASKS.prompt(1)), tools=(tool,)))
    assert answer.calls == (("Files-read_file", json.dumps({"path": str(Path("work/part-1-1.txt"))})),)


def test_a_task_ends_by_the_tool_that_takes_the_last_words() -> None:
    submit = json.dumps({"name": "submit", "input_schema": {"properties": {"answer": {"type": "string"}}}})
    reader, prompt = Reader(TASKS, Path("work")), user(TASKS.prompt(1))
    seen = (result(TASKS.opening(1, 1)), result(TASKS.opening(1, 2)))
    answers = [reader(asks(prompt, *seen[:at], tools=(READ_FILE, submit))) for at in range(3)]
    assert [answer.calls[0][0] for answer in answers] == ["read_file", "read_file", "submit"]
    assert json.loads(answers[-1].calls[0][1]) == {"answer": TASKS.done(1)}
    assert reader.missing == []


def test_a_client_without_tools_is_given_its_next_step_as_an_object() -> None:
    step = json.dumps({"name": "Step", "input_schema": {"properties": {"path": {}, "said": {}}}})
    reader, prompt = Reader(TASKS, Path("work")), user(TASKS.prompt(1))
    seen = (result(TASKS.opening(1, 1)), result(TASKS.opening(1, 2)))
    answers = [reader(asks(prompt, *seen[:at], tools=(step,))) for at in range(3)]
    steps = [json.loads(arguments) for answer in answers for _, arguments in answer.calls]
    assert [one["path"] for one in steps] == [str(Path("work/part-1-1.txt")), str(Path("work/part-1-2.txt")), ""]
    assert [one["said"] for one in steps] == ["", "", TASKS.done(1)]
    assert reader.missing == []


CODES = Message(Role.SYSTEM, (Text("Write code. Tools:\ndef read_file(path: str) -> str:"),))


def test_a_client_that_runs_code_is_given_code_and_its_results_are_words_of_the_user() -> None:
    reader, prompt = Reader(TASKS, Path("work")), user(f"New task:\n{TASKS.prompt(1)}")
    first, second = (user(f"Observation:\n{TASKS.opening(1, at)}") for at in (1, 2))
    said = [reader(asks(CODES, prompt, *seen, tools=())).text for seen in ((), (first,), (first, second))]
    assert [text.partition("<code>\n")[2].partition("\n</code>")[0] for text in said] == [
        f"print(read_file({str(Path('work/part-1-1.txt'))!r}))",
        f"print(read_file({str(Path('work/part-1-2.txt'))!r}))",
        f"final_answer({TASKS.done(1)!r})",
    ]
    assert reader.missing == []
    reader(asks(CODES, user(TASKS.prompt(2)), tools=()))
    reader(asks(CODES, user(TASKS.prompt(2)), tools=()))
    assert reader.missing == ["part-2-1.txt"]


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
FROM_CLIENT = {MARK: "0"}
GOOD = RunRecord(
    version="1",
    answers=[TASKS.done(1), TASKS.done(2)],
    error="",
    exchanges=[Exchange("POST", "/v1/chat/completions", {}, BODY, status=200)],
    requests=[
        ReceivedRequest(
            number=0, model="scripted", messages=(), tokens=90, body=BODY, headers=FROM_CLIENT, fmt="openai-chat"
        )
    ],
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


def run_with(asked: list[str], sent: list[str]) -> RunRecord:
    """A run of one request: the texts of the user as the client sent them, and as the model got them."""
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": text} for text in asked]}).encode()
    got = replace(GOOD.requests[0], messages=tuple(map(user, sent)), body=BODY)
    return replace(GOOD, exchanges=[Exchange("POST", "/v1/chat/completions", {}, body, status=200)], requests=[got])


FIRST, SECOND = TASKS.prompt(1), TASKS.prompt(2)


@pytest.mark.parametrize(
    ("asked", "sent", "counted"),
    [
        ([FIRST, "Go on."], [FIRST, "Go on."], (1, 1)),
        ([FIRST, SECOND], [FIRST, SECOND], (1, 1)),
        ([FIRST, SECOND], [SECOND], (0, 1)),
        ([FIRST, SECOND], [FIRST], (0, 1)),
        ([FIRST], [f"Background: the user said {FIRST!r}"], (0, 1)),
        ([SECOND], [SECOND], (1, 1)),
        (["Give it a title."], [], (0, 0)),
        ([FIRST, "Summarise the conversation."], [], (0, 0)),
    ],
    ids=["kept", "both kept", "first lost", "newest lost", "quoted", "lost by the client", "none", "summary"],
)
def test_the_task_must_stand_where_the_client_sent_it(
    asked: list[str], sent: list[str], counted: tuple[int, int]
) -> None:
    judged = verdict(run_with(asked, sent))
    assert (judged.task, judged.tasked) == counted
    assert ("request 0 does not hold the task" in judged.faults) is (counted == (0, 1))


def test_requests_that_no_client_made_are_the_gateways_summaries() -> None:
    own = replace(GOOD.requests[0], number=1, headers={})
    judged = verdict(replace(GOOD, requests=[*GOOD.requests, own]))
    assert (judged.summaries, judged.requests) == (1, 1)
    assert judged.ok
    assert verdict(replace(GOOD, requests=[*GOOD.requests, own, own])).faults == ("2 summaries for 0 compactions",)


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


def stand_in(folder: Path, environment: Environment) -> None:
    """Make an environment whose interpreter is the one that runs the tests."""
    python = Environments(folder).python(environment)
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n', encoding="utf-8")
    python.chmod(0o755)
    (folder / environment.name / "installed.txt").write_text("\n".join(environment.wanted), encoding="utf-8")


def test_the_command_shows_every_run_and_exits_with_1_if_one_is_not_ok(tmp_path: Path) -> None:
    home = CLIENTS["anthropic"].home
    assert isinstance(home, Environment)
    stand_in(tmp_path, home)
    ran = everlong("lab", "clients", "anthropic", "--direct", "--environments", str(tmp_path))
    assert ran.code == 1
    assert ran.err.splitlines()[-1] == "everlong: 2 of 2 runs failed"
    head = next(line for line in ran.out.splitlines() if "client" in line)
    assert [name for name in ("compactions", "breaks", "summaries", "task") if name not in head] == []


def test_the_command_has_help_for_every_option() -> None:
    shown = CliRunner().invoke(clients_command, ["--help"])
    assert shown.exit_code == 0
    assert all(option in shown.output for option in ("--direct", "--environments", "--records", "--json"))


def test_a_driver_knows_its_dialect_and_whether_to_stream() -> None:
    given = Task(address="", mode="responses stream", model="m", prompts=[])
    assert (given.dialect, given.stream) == ("responses", True)
    assert not replace(given, mode="chat").stream
