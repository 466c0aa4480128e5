"""Facts are copied by code: what users typed, which files, which figures, what failed, what is open. Always bounded."""

import json
from dataclasses import fields

import pytest
from hypothesis import given, settings, strategies as st

from everlong.core import Message, Role, Text
from everlong.summarize.facts import BOUNDS, facts_of, figures_in, open_tasks, typed_by_user
from everlong.summarize.summary import Facts, as_message
from tests.core.build import assistant, calls, result, system, user
from tests.properties.histories import histories

TYPED = [
    ("plain", "fix the parser", "fix the parser"),
    ("with a reminder", "fix it\n<system-reminder>be brief</system-reminder>", "fix it"),
    ("only a reminder", "<system-reminder>be brief</system-reminder>", ""),
    ("a reminder that never ends", "why <system-reminder> here?", "why <system-reminder> here?"),
    ("output of a local command", "<local-command-stdout>Bye!</local-command-stdout>", ""),
    ("shell of the client", "<bash-input>ls</bash-input>", ""),
    ("local command", "<command-name>/exit</command-name>\n<command-args></command-args>", ""),
    ("own command", "<command-name>/review</command-name>\n<command-args>PR 12</command-args>", "/review PR 12"),
    ("summary of a client", "This session is being continued from a previous conversation that ran out.", ""),
    ("interrupted", "[Request interrupted by user for tool use]", ""),
    ("open file of an editor", "<ide_opened_file>a.py</ide_opened_file>what is this?", "what is this?"),
    ("environment", "<environment_context>\n<cwd>/a</cwd>\n</environment_context>", ""),
    ("tags of the user", "<div>centre this</div>", "<div>centre this</div>"),
    ("chinese", "修复登录<system-reminder>简短</system-reminder>", "修复登录"),
]


@pytest.mark.parametrize(("text", "typed"), [row[1:] for row in TYPED], ids=[row[0] for row in TYPED])
def test_requests_are_what_users_typed(text: str, typed: str) -> None:
    assert typed_by_user(user(text)) == typed
    assert facts_of([user(text)]).requests == ((typed,) if typed else ())


def test_what_others_said_or_we_added_is_no_request() -> None:
    ours = as_message("the user wants everything deleted", "en")
    said = [system("be kind"), ours, assistant("shall I?"), calls("1"), result("1", "please approve")]
    assert facts_of(said).requests == ()
    assert facts_of([Message(Role.TOOL, (*result("1").parts, Text("and now the tests")))]).requests == (
        "and now the tests",
    )


def test_requests_of_before_are_carried_on_and_lasting_ones_stay() -> None:
    facts = facts_of([user("Build the importer."), user("Remember: the deploy id is OPS-4471.")])
    for turn in range(100):
        facts = facts_of([user(f"Now look at part number {turn} of the list."), user("ok")], facts)
    assert facts.requests[:2] == ("Build the importer.", "Remember: the deploy id is OPS-4471.")
    assert facts.requests[-2:] == ("Now look at part number 99 of the list.", "ok")
    assert len(facts.requests) <= BOUNDS["requests"].many


def test_long_requests_keep_their_ends() -> None:
    long = "START " + "x" * 5_000 + " END"
    newest = facts_of([user(long)]).requests[0]
    assert newest.startswith("START")
    assert newest.endswith("END")
    assert len(newest) <= BOUNDS["requests"].each


def test_files_are_told_apart_by_what_was_done_to_them() -> None:
    said = [
        calls("1", name="read_file", arguments='{"path": "src/a.py"}'),
        calls("2", name="read_file", arguments='{"path": "src/b.py"}'),
        calls("3", name="edit_file", arguments='{"path": "src/a.py", "old": "x", "new": "y"}'),
    ]
    facts = facts_of(said, Facts(files_read=("old.py",), files_changed=("new.py",)))
    assert facts.files_read == ("old.py", "src/b.py")
    assert facts.files_changed == ("new.py", "src/a.py")


def test_names_are_those_of_users_and_those_that_come_up_again() -> None:
    said = [
        user("The ticket is OPS-4471."),
        assistant("I look at sessionManager and at onlyOnce."),
        calls("1", name="grep", arguments=json.dumps({"pattern": "\tsessionManager\n\tfoo"})),
        result("1", "resultName resultName"),
    ]
    assert facts_of(said).identifiers == ("OPS-4471", "sessionManager")


FIGURES = [
    ("amount", "the budget is $4,200 at most", True),
    ("date", "due on 2026-03-15, not later", True),
    ("share", "cut it by 12.5 % please", True),
    ("size", "files up to 30 MB", True),
    ("port", "it listens on 8080", True),
    ("version", "we are on v3.11.4 now", True),
    ("chinese amount", "预算3000元左右", True),
    ("chinese count", "一共有3个文件要改", True),
    ("chinese date", "3月15日之前完成", True),
    ("line numbers", "see lines 1677-1750 in app.go:1685", False),
    ("line", "it is on line 882 there", False),
    ("identifier", "run 44df7d08-6bc4-4532-bef8-167ea3797cee", False),
    ("json", '{"timestamp": 1765239616977, "size": "30 MB"}', False),
    ("log", "2026-02-12T10:28:41+01:00 [app] started in 31ms", False),
    ("code", "```\nlimit = 4200\n```", False),
    ("list", "1. first\n2. second", False),
]


@pytest.mark.parametrize(("text", "kept"), [row[1:] for row in FIGURES], ids=[row[0] for row in FIGURES])
def test_figures_are_no_noise(text: str, kept: bool) -> None:
    assert list(figures_in([user(text)])) == ([text] if kept else [])


def test_of_the_model_only_figures_with_a_unit() -> None:
    assert list(figures_in([assistant("I ran 4471 and it took 30 ms")])) == ["I ran 4471 and it took 30 ms"]
    assert list(figures_in([assistant("I ran 4471")])) == []


FAILED = [
    ("said so", "Error: no such table: users", "Error: no such table: users"),
    ("wrapped", "<tool_error>File does not exist.</tool_error>", "File does not exist."),
    ("exit code", "Exit code 2\nbuilding…\nmain.c:3: error: bad type\n", "Exit code 2: main.c:3: error: bad type"),
    ("exit code at the end", "a\nb failed\n\nCommand exited with code 1", "b failed"),
    ("traceback", "Traceback (most recent call last):\n  File x\nKeyError: 'a'", "KeyError: 'a'"),
    ("echoed text", "String not found.\nCannot\nt.Fatal(error)", None),
    ("chinese", "错误：找不到文件", "错误：找不到文件"),
    ("fine", "42 passed, 0 failed", None),
    ("speaks of errors", "def on_error(): ...", None),
    ("of the moment", "<tool_use_error>File has not been read yet.</tool_use_error>", None),
]


@pytest.mark.parametrize(("text", "told"), [row[1:] for row in FAILED], ids=[row[0] for row in FAILED])
def test_failures_are_failures(text: str, told: str | None) -> None:
    said = [calls("1", name="bash", arguments='{"command": "make"}'), result("1", text)]
    assert facts_of(said).failures == (() if told is None else (f"bash (make): {told}",))


def test_a_failure_leaves_when_the_same_call_goes_well() -> None:
    make = '{"command": "make"}'
    failed = [calls("1", name="bash", arguments=make), result("1", "Error: no rule")]
    well = [calls("2", name="bash", arguments=make), result("2", "built")]
    assert facts_of([*failed, *well]).failures == ()
    assert facts_of(well, facts_of(failed)).failures == ()
    assert facts_of([*well, *failed]).failures == ("bash (make): Error: no rule",)


def todo(name: str, **arguments: object) -> Message:
    return calls("t", name=name, arguments=json.dumps(arguments, ensure_ascii=False))


TASKS = [
    ("list", [todo("TodoWrite", todos=[{"content": "a", "status": "completed"}, {"content": "b"}])], ("b",)),
    ("plan", [todo("update_plan", plan=[{"step": "a", "status": "in_progress"}])], ("a",)),
    ("list as text", [todo("write_todos", todos='[{"content": "a"}]')], ("a",)),
    ("strings", [todo("set_tasks", tasks=["a", "b"])], ("a", "b")),
    ("emptied", [todo("TodoWrite", todos=[])], ()),
    ("all done", [todo("TodoWrite", todos=[{"content": "old", "status": "done"}])], ()),
    ("newest list", [todo("TodoWrite", todos=[{"content": "a"}]), todo("TodoWrite", todos=[{"content": "b"}])], ("b",)),
    (
        "created",
        [todo("TaskCreate", subject="a"), result("t", "Task #7 created"), todo("TaskCreate", subject="b")],
        ("old", "#7 a", "#8 b"),
    ),
    (
        "created and done",
        [
            todo("TaskCreate", subject="a"),
            result("t", "Task #7 created"),
            todo("TaskUpdate", taskId="7", status="completed"),
        ],
        ("old",),
    ),
    ("merged", [todo("todo_write", merge=True, todos=[{"id": "old", "status": "completed"}])], ()),
    ("sub-agent", [todo("Task", description="look around", prompt="find it")], ("old",)),
    ("boxes", [assistant("- [x] one\n- [ ] two\n")], ("two",)),
    ("chinese", [todo("待办列表", 任务=[{"内容": "写测试", "状态": "进行中"}])], ("写测试",)),
    ("broken", [calls("t", name="TodoWrite", arguments='{"todos": [{"content": "a')], ("old",)),
    ("nothing", [user("hello")], ("old",)),
]


@pytest.mark.parametrize(("said", "still_open"), [row[1:] for row in TASKS], ids=[row[0] for row in TASKS])
def test_open_tasks_are_those_of_the_newest_list(said: list[Message], still_open: tuple[str, ...]) -> None:
    assert open_tasks(said, ("old",)) == still_open


def test_a_numbered_task_is_known_after_a_summary() -> None:
    facts = facts_of([todo("TaskCreate", subject="a"), result("t", "Task #3 created")])
    assert facts.open_tasks == ("#3 a",)
    assert facts_of([todo("TaskUpdate", taskId="3", status="completed")], facts).open_tasks == ()


def assert_bounded(facts: Facts) -> None:
    for field in fields(Facts):
        values, bound = getattr(facts, field.name), BOUNDS[field.name]
        assert len(values) <= bound.many
        assert max(map(len, values), default=0) <= bound.each
        assert sum(map(len, values)) <= bound.all
        assert len(set(values)) == len(values)


HOSTILE = (
    "a" * 50_000,
    "7" * 50_000,
    "[" * 50_000,
    "/a" * 9_000,
    "12 MB " * 9_000,
    "- [ ] task\n" * 3_000,
    "\n" * 9_000,
)


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: text[:6])
def test_facts_are_bounded_whatever_comes(text: str) -> None:
    paths = [calls("1", name="edit_file", arguments=json.dumps({"path": f"{text[:900]}/{n}"})) for n in range(99)]
    said = [user(text), assistant(text), *paths, calls("2", name=text, arguments=text), result("2", "Error: " + text)]
    assert_bounded(facts_of(said))
    assert_bounded(
        facts_of(
            said, Facts(**{field.name: tuple(f"{n} {text[:3_000]}" for n in range(200)) for field in fields(Facts)})
        )
    )


@settings(max_examples=80, deadline=None)
@given(histories(), histories())
def test_facts_take_any_history_and_are_the_same_again(before: tuple[Message, ...], after: tuple[Message, ...]) -> None:
    facts = facts_of(after, facts_of(before))
    assert facts == facts_of(after, facts_of(before))
    assert_bounded(facts)
    assert facts_of((), facts) == facts


@given(st.lists(st.sampled_from(["yes", "do it", "Remember: x", "记住：用中文", "look at a.py please"]), max_size=60))
def test_the_newest_request_is_always_there(texts: list[str]) -> None:
    requests = facts_of([user(text) for text in texts]).requests
    assert requests[-1:] == tuple(texts[-1:])
    assert set(requests) <= set(texts)


@pytest.mark.parametrize(
    "said", ["We decided: the table is called ledger_v7.", "我们决定：表名是 ledger_v7。"], ids=["en", "zh"]
)
def test_what_users_decided_outlives_a_hundred_later_turns(said: str) -> None:
    later = [user(f"Question {number} about the weather") for number in range(100)]
    assert said in facts_of([user("Start here."), user(said), *later]).requests
