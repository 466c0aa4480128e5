"""Where the work stands: told by code in work with tools, by a model in a talk, as the settings say."""

import asyncio
import json

import pytest

from everlong.core import CallId, History, Message, Role, ToolCall
from everlong.engine.budget import counter_for
from everlong.engine.contracts import Call
from everlong.engine.engine import Engine
from everlong.engine.requests.situation import is_work
from everlong.engine.settings import Settings
from everlong.engine.summaries.schedule import Summaries
from everlong.engine.thread import newest_summary
from everlong.llm import ScriptedModel, Window, reads_files
from everlong.store import MemoryThreads
from tests.core.build import assistant, calls, result, system, user
from tests.engine.authors import accounts, both, is_asked_to_summarise, points
from tests.engine.talking import Talk, lawful, pages

NOTICE = "A summary of the earlier part"
CALL = Call(model="gpt-4o", max_tokens=500)


def worked(choice: str) -> tuple[ScriptedModel, Talk]:
    """Two long loops past the window under this choice of summaries."""

    async def run() -> tuple[ScriptedModel, Talk]:
        model = ScriptedModel(both(reads_files(30)), Window(16_000, told=True))
        talk = Talk(model, settings=Settings(summaries=choice))  # type: ignore[arg-type]
        summaries = Summaries(talk.engine)
        for turn in range(2):
            await talk.say(f"Question {turn}: read the files of part {turn}.")
            await summaries.drain()
        return model, talk

    return asyncio.run(asyncio.wait_for(run(), 300))


def told(history: History) -> list[Message]:
    return [message for message in history if NOTICE in message.text]


def test_in_work_code_tells_where_things_stand_and_no_model_is_asked() -> None:
    model, talk = worked("auto")
    assert not any(map(is_asked_to_summarise, model.requests))
    assert len(points(talk)) >= 2
    assert all(point.account for point in points(talk)), "no compaction without it"
    (said,) = told(model.requests[-1].messages)
    assert "Question 0" not in said.text, "the task stands by itself"
    assert sum("Question 0" in message.text for message in model.requests[-1].messages) == 1
    assert "src/file_" in said.text
    assert counter_for("gpt-4o").message(said) <= 400
    summary = newest_summary(talk.threads, talk.thread)
    assert summary is not None
    assert summary.source == "rules"
    lawful([asked.messages for asked in model.requests])


def test_on_asks_a_model_in_work_too_and_off_tells_nothing() -> None:
    model, talk = worked("on")
    assert any(map(is_asked_to_summarise, model.requests))
    assert accounts(talk)
    model, talk = worked("off")
    assert not any(map(is_asked_to_summarise, model.requests))
    assert not any(told(asked.messages) for asked in model.requests)


def step(number: int, name: str, text: str = "", **arguments: object) -> list[Message]:
    call = ToolCall(CallId(f"c{number}"), name, json.dumps(arguments))
    return [Message(Role.ASSISTANT, (call,)), result(f"c{number}", text or pages(number), name=name)]


def test_it_says_what_was_asked_since_the_open_tasks_the_files_changed_and_the_last_error() -> None:
    engine = Engine(MemoryThreads(), settings=Settings(window=16_000)).blocking
    engine.append("t", [system("Work carefully."), user("Move the harbour ledger to SQLite. Never touch the schema.")])
    todos = [{"content": "write the migration", "status": "in_progress"}, {"content": "read", "status": "completed"}]
    engine.append("t", step(1, "todo_write", "ok", todos=todos))
    engine.append("t", step(2, "edit_file", "ok", path="src/ledger.py", old_string="a", new_string="b"))
    engine.append("t", step(3, "bash", "Error: no such table: ledger\nexit code 1", command="make check"))
    engine.append("t", user("And keep a copy of the old file."))
    number, request = 4, engine.prepare("t", CALL).request
    while not engine.context.threads.thread("t").points:
        engine.append("t", step(number, "read_file", path=f"src/part_{number}.py"))
        request, number = engine.prepare("t", CALL).request, number + 1
    (said,) = told(request.messages)
    assert sum("Move the harbour ledger" in message.text for message in request.messages) == 1
    for part in ("keep a copy", "write the migration", "src/ledger.py", "no such table: ledger"):
        assert part in said.text
    assert "by rules" in said.text


LOOP = [message for number in range(6) for message in (calls(f"c{number}"), result(f"c{number}"))]
ASKED = [user("How many boats?"), assistant("Seven.")]
HISTORIES: dict[str, tuple[list[Message], bool]] = {
    "nothing": ([], False),
    "a talk": (ASKED * 5, False),
    "one long loop": ([user("Go."), *LOOP], True),
    "loops with an answer each": ([user("Go."), *LOOP, assistant("Done.")] * 2, True),
    "a call for each question": ([user("So?"), calls("c"), result("c"), assistant("So.")] * 5, False),
    "a talk with a lookup": ([*ASKED * 4, *LOOP[:2], assistant("Eight.")], False),
    "actions without a tool role": (
        [
            user("Count them."),
            *[assistant("Thought: look.\nAction: count\nAction Input: pier"), user("Observation: 3 boats")] * 4,
        ],
        True,
    ),
}


@pytest.mark.parametrize(("history", "work"), HISTORIES.values(), ids=HISTORIES)
def test_what_counts_as_work(history: list[Message], work: bool) -> None:
    assert is_work(history) == work


def test_a_talk_is_summarised_by_a_model_as_before() -> None:
    async def run() -> None:
        model = ScriptedModel(both(reads_files(0)), Window(8_000, told=True))
        talk = Talk(model)
        summaries = Summaries(talk.engine)
        for turn in range(40):
            await talk.say(f"Question {turn}: " + "how do boats come in, and when? " * 20)
            await summaries.drain()
        assert any(map(is_asked_to_summarise, model.requests))

    asyncio.run(asyncio.wait_for(run(), 300))


def test_work_that_follows_a_model_s_summary_goes_on_from_it() -> None:
    async def run() -> None:
        model = ScriptedModel(both(reads_files(30)), Window(16_000, told=True))
        talk = Talk(model)
        summaries = Summaries(talk.engine)
        await talk.say("Question 0: read the files of part 0.")
        await summaries.compact(talk.thread, talk.call, model)
        by_hand = newest_summary(talk.threads, talk.thread)
        await talk.say("Question 1: read the files of part 1.")
        later = newest_summary(talk.threads, talk.thread)
        assert by_hand is not None
        assert later is not None
        assert (by_hand.source, later.source) == ("model", "rules")
        assert later.covers > by_hand.covers
        assert set(by_hand.done) <= set(later.done), "what a model said before stays"

    asyncio.run(asyncio.wait_for(run(), 300))
