"""What matters goes last."""

import json

import pytest

from everlong.compress.steps.choice.priority import Priority, priority, priority_of
from everlong.core import Message, Role, Text
from tests.compress.talks import assert_lawful, draft, task
from tests.core.build import assistant, calls, result, system, user

LOW, NORMAL, HIGH = Priority

WORDS = "word " * 300


def command(text: str) -> str:
    return json.dumps({"command": text})


RESULTS = {
    "reading a file": ("read_file", "{}", "the contents", LOW),
    "whatever words it holds": ("read_file", "{}", "IMPORTANT: you must remember this TODO", LOW),
    "other spellings": ("ReadFile", "{}", "x", LOW),
    "a tool server's name before it": ("mcp__files__read_file", "{}", "x", LOW),
    "searching": ("search_web", "{}", "x", LOW),
    "listing": ("list_directory", "{}", "x", LOW),
    "a shell that lists": ("bash", command("ls -la src"), "x", LOW),
    "a shell that searches, in steps": ("exec", command("cd src && grep -rn foo . | head -20"), "x", LOW),
    "a shell under a shell": ("local_shell", json.dumps({"command": ["bash", "-lc", "cat a.py"]}), "x", LOW),
    "a shell that hides errors": ("bash", command("find . -name '*.py' 2>/dev/null"), "x", LOW),
    "a shell that writes": ("bash", command("echo x > a.py"), "x", NORMAL),
    "a shell that lists and does": ("bash", command("ls && make install"), "x", NORMAL),
    "a shell that runs": ("shell", command("catfish --go"), "x", NORMAL),
    "git that looks": ("bash", command("git log --oneline"), "x", LOW),
    "git that acts": ("bash", command("git push"), "x", NORMAL),
    "writing": ("write_file", "{}", "ok", NORMAL),
    "an unknown tool": ("ask_expert", "{}", "fine", NORMAL),
    "a decision": ("ask_expert", "{}", "We decided to use Postgres", HIGH),
    "a Chinese decision": ("execute_shell", command("python plan.py"), "决定使用 TypeScript", HIGH),
    "half a word is no word": ("ask_expert", "{}", "mustard, ruler, todos", NORMAL),
}


@pytest.mark.parametrize(("tool", "arguments", "text", "expected"), RESULTS.values(), ids=list(RESULTS))
def test_results(tool: str, arguments: str, text: str, expected: Priority) -> None:
    assert priority_of(result("1", text), tool, arguments) is expected
    assert priority_of(result("1", text, name=tool), "", arguments) is expected


MESSAGES = {
    "a plain question": (user("what is this?"), NORMAL),
    "a standing wish": (user("请记住以后都用 TypeScript"), HIGH),
    "a rule": (user("From now on, always run the tests"), HIGH),
    "a prohibition": (user("不要修改数据库"), HIGH),
    "an answer": (assistant("it is a file"), NORMAL),
    "a plan": (assistant("TODO: write the tests"), HIGH),
    "Chinese architecture": (assistant("架构分为三层"), HIGH),
    "system text": (system("be brief"), HIGH),
}


@pytest.mark.parametrize(("message", "expected"), MESSAGES.values(), ids=list(MESSAGES))
def test_messages(message: Message, expected: Priority) -> None:
    assert priority_of(message) is expected


@pytest.mark.parametrize(("before", "expected"), [(100, HIGH), (500_000, NORMAL)])
def test_only_the_head_and_the_tail_of_a_long_text_are_looked_at(before: int, expected: Priority) -> None:
    assert priority_of(user("x" * before + " remember this " + "y" * 500_000)) is expected
    assert priority_of(user("x" * 500_000 + " remember this")) is HIGH


def test_the_least_important_go_first_and_the_oldest_among_equals() -> None:
    texts = ["decision: " + WORDS, WORDS + "a", WORDS + "b", WORDS + "c"]
    names = ["run", "run", "read_file", "read_file"]
    steps = [
        message
        for number, (text, name) in enumerate(zip(texts, names, strict=True))
        for message in (calls(str(number), name=name), result(str(number), text))
    ]
    before = draft(user("go"), *steps, assistant("ok"), user("next"))
    for target, gone in ((1_350, []), (1_200, [6]), (900, [6, 8]), (600, [4, 6, 8]), (200, [2, 4, 6, 8])):
        after = priority(before, task(target))
        assert [edit.at for edit in after.edits] == gone
        assert_lawful(before, after, task(target))


def test_the_last_round_is_spared_unless_told_otherwise() -> None:
    steps = [calls("1"), result("1", WORDS), calls("2"), result("2", WORDS)]
    before = draft(user("go"), *steps)
    assert priority(before, task(400)) == before
    assert [edit.at for edit in priority(before, task(400), keep_last_round=False).edits] == [2]


def test_nothing_happens_below_the_target() -> None:
    before = draft(user("go"), calls("1"), result("1", WORDS), assistant("ok"), user("next"))
    assert priority(before, task(10_000)) is before


def test_a_message_with_words_beside_results_is_judged_by_both() -> None:
    message = Message(Role.TOOL, (*result("1", "ok", name="make").parts, Text("请记住")))
    assert priority_of(message) is HIGH
