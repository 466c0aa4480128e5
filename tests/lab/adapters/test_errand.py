"""The errand and its scripted model: what it has read, what it asks for at the end, and what it says in a summary."""

import json
from pathlib import Path

from everlong.core import CallId, Message, Role, Text, ToolResult
from everlong.lab.adapters.errand import READ, USER_FACTS, Errand, ErrandClerk, said_in
from everlong.lab.adapters.table import ADAPTERS
from everlong.lab.clients.script import Tasks
from everlong.llm import Answer, ReceivedRequest
from everlong.tokens import Counter

SMALL = Errand(Tasks(count=2, files=3, lines=10))
READ_FILE = json.dumps(
    {"type": "function", "function": {"name": "read_file", "parameters": {"properties": {"path": {"type": "string"}}}}}
)
RECALL = json.dumps(
    {"type": "function", "function": {"name": "recall", "parameters": {"properties": {"query": {"type": "string"}}}}}
)


def user(text: str) -> Message:
    return Message(Role.USER, (Text(text),))


def result(text: str) -> Message:
    return Message(Role.TOOL, (ToolResult(CallId("call"), (Text(text),)),))


def asks(*messages: Message, tools: tuple[str, ...] = (READ_FILE,)) -> ReceivedRequest:
    return ReceivedRequest(number=0, model="scripted", messages=messages, tools=tools, body=b"{}")


def files_of(answer: Answer) -> list[str]:
    return [Path(json.loads(arguments)["path"]).name for _, arguments in answer.calls]


def said_by(clerk: ErrandClerk) -> list[str]:
    return [fact.word for fact in clerk.kept or ()]


def test_what_a_framework_gets_to_read_is_three_times_its_window(tmp_path: Path) -> None:
    for row in ADAPTERS.values():
        folder = tmp_path / row.name
        folder.mkdir()
        row.errand.write(folder)
        texts = [*(file.read_text(encoding="utf-8") for file in folder.iterdir()), *row.errand.prompts()]
        assert sum(map(Counter("gpt-4o").text, texts)) > 3 * row.window


def test_every_fact_stands_in_one_place_and_is_asked_for_without_being_told(tmp_path: Path) -> None:
    SMALL.write(tmp_path)
    first, *between, last = SMALL.prompts()
    for fact in USER_FACTS:
        assert fact.word in first
    for at, fact in enumerate(READ, 1):
        assert (tmp_path / f"part-1-{at}.txt").read_text(encoding="utf-8").count(fact.word) == 1
    for fact in SMALL.facts:
        assert fact.question in last
        assert not any(fact.word in prompt for prompt in (*between, last))


def test_files_are_read_two_at_once_and_what_is_not_there_then_is_noted() -> None:
    clerk, prompt = SMALL.script(Path("work")), user(SMALL.prompts()[0])
    assert files_of(clerk(asks(prompt))) == ["part-1-1.txt", "part-1-2.txt"]
    assert files_of(clerk(asks(prompt, result(SMALL.tasks.opening(1, 1))))) == ["part-1-3.txt"]
    assert clerk.missing == ["part-1-2.txt"]
    assert clerk(asks(prompt, result(SMALL.tasks.opening(1, 3)))).text == SMALL.done(1)


def test_at_the_end_the_model_recalls_what_it_does_not_see_once_and_then_answers() -> None:
    clerk = SMALL.script(Path("work"))
    known = (user(SMALL.prompts()[0]), user(SMALL.prompts()[-1]))
    asked = clerk(asks(*known, tools=(READ_FILE, RECALL)))
    assert [json.loads(arguments)["query"] for _, arguments in asked.calls] == [fact.question for fact in READ]
    assert clerk.kept is None
    answer = clerk(asks(*known, result(READ[0].sentence), tools=(READ_FILE, RECALL)))
    assert (answer.text, clerk.asked_for) == (SMALL.done(3), READ)
    assert said_by(clerk) == [fact.word for fact in (*USER_FACTS, READ[0])]


def test_without_a_recall_tool_it_answers_with_what_it_sees() -> None:
    clerk = SMALL.script(Path("work"))
    assert clerk(asks(user(SMALL.prompts()[-1]))).text == SMALL.done(3)
    assert clerk.kept == ()


def test_a_summary_repeats_every_fact_that_it_is_shown_and_no_other() -> None:
    clerk = SMALL.script(Path("work"))
    summary = clerk(asks(user(f"Summarise this. {USER_FACTS[1].sentence}"), result(READ[0].sentence), tools=())).text
    assert [fact for fact in SMALL.facts if fact.word in summary] == [USER_FACTS[1], READ[0]]


def test_an_errand_in_one_prompt_asks_at_its_end() -> None:
    single = Errand(Tasks(count=1, files=2, lines=10), single=True)
    (prompt,) = single.prompts()
    clerk = single.script(Path("work"))
    opened = [result(single.tasks.opening(1, at)) for at in (1, 2)]
    assert len(clerk(asks(user(prompt))).calls) == 2
    assert clerk(asks(user(prompt), *opened)).text == single.done(1)
    assert clerk.kept == USER_FACTS


def test_the_text_of_results_is_read_too() -> None:
    assert said_in((user("a"), result("b"))).split() == ["a", "b"]
