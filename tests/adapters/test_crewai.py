"""CrewAI: an LLM around the LLM, which sends what fits of an agent's messages."""

import asyncio
import os
from pathlib import Path
from typing import Any

os.environ |= {"CREWAI_DISABLE_TELEMETRY": "true", "CREWAI_TRACING_ENABLED": "false", "CREWAI_TESTING": "true"}

import pytest
from crewai import LLM, Agent, Crew, Task
from crewai.hooks import register_before_llm_call_hook, unregister_before_llm_call_hook

from everlong.adapters.crewai import EverlongLLM, _without_files
from everlong.errors import BudgetImpossible
from everlong.testing import Answer, ScriptedServer, Window, in_turn
from tests.adapters.pages import run_example

LONG = "The ship sails north and the wind is fair. " * 60
TALK: list[dict[str, Any]] = [{"role": "system", "content": "You keep the log."}]
for day in range(30):
    TALK += [{"role": "user", "content": f"Day {day}. {LONG}"}, {"role": "assistant", "content": "Noted."}]


def inner_at(server: ScriptedServer) -> Any:
    return LLM(model="openai/gpt-4o", base_url=f"{server.address}/v1", api_key="key", max_retries=0)


def test_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    steps = [Answer(calls=(("recall", '{"what": "ship"}'),)), Answer(text="The Marigold.")]
    printed, offered = run_example("crewai", steps, tmp_path, monkeypatch, capsys)
    assert printed.endswith("The Marigold.")
    assert offered == ["recall", "recall"]


def test_an_llm_sends_what_fits_and_edits_nothing() -> None:
    with ScriptedServer(in_turn([Answer(text="One."), Answer(text="Two.")]), window=Window(8_000)) as server:
        llm = EverlongLLM(inner_at(server), window=8_000, pins=["Dates are Julian."])
        held = [dict(message) for message in TALK]
        assert llm.call(held) == "One."
        assert asyncio.run(llm.acall([*held, {"role": "user", "content": "And now?"}])) == "Two."
        assert held == TALK
        assert llm.get_token_usage_summary().successful_requests == 2
    first, second = server.requests
    assert "Dates are Julian." in " ".join(message.text for message in first.messages)
    assert second.messages[: len(first.messages)] == first.messages


def test_a_refusal_is_recovered_and_crewais_own_summaries_are_never_due() -> None:
    with ScriptedServer(in_turn([Answer(text="One."), Answer(text="Two.")]), window=Window(8_000)) as server:
        llm = EverlongLLM(inner_at(server))
        assert llm.call(TALK) == "One."
        assert len(server.requests) == 2, "the first was refused"
        assert not llm.is_context_window_overflowing_threshold(TALK * 99)
        held = list(TALK)
        llm.summarize_messages(held, [])
        assert held == TALK


def test_what_cannot_be_recovered_ends_the_crew() -> None:
    with ScriptedServer(window=Window(300)) as server:
        agent = Agent(role="Clerk", goal="Log.", backstory="Careful.", llm=EverlongLLM(inner_at(server)))
        task = Task(description=LONG, expected_output="One line.", agent=agent)
        with pytest.raises(BudgetImpossible, match="last user message"):
            Crew(agents=[agent], tasks=[task]).kickoff()
        assert len(server.requests) == 1, "CrewAI tries the task again, but nothing that is known not to fit is sent"


def test_hooks_of_the_program_run_once() -> None:
    seen: list[int] = []

    def count(context: Any) -> None:
        seen.append(len(context.messages))

    register_before_llm_call_hook(count)
    try:
        with ScriptedServer(in_turn([Answer(text="One.")])) as server:
            agent = Agent(role="Clerk", goal="Log.", backstory="Careful.", llm=EverlongLLM(inner_at(server)))
            task = Task(description="Say one.", expected_output="One line.", agent=agent)
            assert str(Crew(agents=[agent], tasks=[task]).kickoff()) == "One."
    finally:
        unregister_before_llm_call_hook(count)
    assert len(seen) == len(server.requests) == 1


def test_files_that_crewai_attaches_reach_the_llm() -> None:
    attached = {"role": "user", "content": "See.", "files": {"log": object()}}
    bare, whole = _without_files([TALK[0], attached])
    assert bare == [TALK[0], {"role": "user", "content": "See."}]
    assert [item is given for item, given in zip(whole(bare), [TALK[0], attached], strict=True)] == [True, True]


def test_one_llm_serves_tasks_whose_conversations_are_told_apart() -> None:
    with ScriptedServer(in_turn([Answer(text="One."), Answer(text="Two.")])) as server:
        llm = EverlongLLM(inner_at(server), thread="crew")
        agent = Agent(role="Clerk", goal="Log.", backstory="Careful.", llm=llm)
        tasks = [
            Task(description=words, expected_output="One line.", agent=agent) for words in ("Say one.", "Say two.")
        ]
        assert str(Crew(agents=[agent], tasks=tasks).kickoff()) == "Two."
        threads = llm._keeper.engine.threads.threads()
    assert len(threads) == 2
