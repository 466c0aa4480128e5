"""The turn: answers and calls in order, limits, failures of the model, interrupts and resuming."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from everlong.agent.definitions import Outcome, Place
from everlong.agent.events import CallStarted
from everlong.agent.words import ENGLISH
from everlong.core import JsonObject, Message, Role
from everlong.engine import Failed, Reply, Request, Said
from everlong.errors import NotRecovered, StoreError
from everlong.llm import Answer, Refusal, ScriptedModel, Window, in_turn
from everlong.store import MemoryThreads, open_store
from tests.agent.acting import (
    CONFIG,
    Act,
    Ran,
    asks_once,
    calls_then,
    ended,
    roles,
    run,
    tool_of,
)
from tests.core.build import calls, result, user


def test_a_turn_is_asked_answered_and_told_in_order() -> None:
    ran = Ran()
    act = Act(ScriptedModel(asks_once("read", '{"path": "a"}')), [ran.tool()])
    events = run(act.say("Read a"))
    assert [type(event).__name__ for event in events] == [
        "CallGrew",
        "Finished",
        "CallStarted",
        "CallEnded",
        "Said",
        "Finished",
        "TurnEnded",
    ]
    assert ended(events).reason == "done"
    assert ended(events).steps == 2
    assert ran.calls == [("call_0_0", {"path": "a"})]
    assert roles(act.stored) == [Role.SYSTEM, Role.USER, Role.ASSISTANT, Role.TOOL, Role.ASSISTANT]
    assert act.stored[0].text == "Work carefully."


def test_the_most_steps_end_in_an_answer_without_calls() -> None:
    ran = Ran()
    model = ScriptedModel(
        lambda asked: (
            Answer(text="So far.") if asked.number == 3 else Answer(calls=(("read", f'{{"n":{asked.number}}}'),))
        )
    )
    act = Act(model, [ran.tool()], replace(CONFIG, most_steps=3))
    events = run(act.say("Go on for ever"))
    assert ended(events) == replace(ended(events), reason="most steps", steps=4)
    assert len(ran.calls) == 3
    assert "This turn has used all of its 3 steps" in model.requests[-1].messages[-1].text
    assert act.stored[-1].text == "So far."
    assert not any("This turn has used" in message.text for message in act.stored)  # said, not kept
    act.sound()


def test_a_model_that_calls_nevertheless_is_not_obeyed_and_the_thread_is_sound() -> None:
    ran = Ran()
    model = ScriptedModel(lambda asked: Answer(calls=(("read", f'{{"n":{asked.number}}}'),)))
    act = Act(model, [ran.tool()], replace(CONFIG, most_steps=2))
    assert ended(run(act.say("Go"))).reason == "most steps"
    assert len(ran.calls) == 2
    assert act.results[-1] == "[not run: the turn had ended.]"
    act.sound()


def test_the_most_tokens_end_a_turn_too() -> None:
    model = ScriptedModel(lambda asked: Answer(calls=(("read", f'{{"n":{asked.number}}}'),)))
    act = Act(model, [Ran().tool()], replace(CONFIG, most_tokens=200))
    last = ended(run(act.say("Go")))
    assert last.reason == "most tokens"
    assert last.tokens >= 200


def test_a_failed_model_ends_the_turn_and_the_next_one_works() -> None:
    model = ScriptedModel(in_turn([Refusal(401, '{"error":{"message":"no key"}}')], then=lambda _: Answer(text="ok")))
    act = Act(model)
    events = run(act.say("Hello"))
    assert isinstance(events[-2], Failed)
    assert ended(events).reason == "failed"
    assert ended(run(act.say("Again"))).reason == "done"
    act.sound()


def test_what_cannot_fit_is_a_failed_turn_that_names_the_parts() -> None:
    act = Act(ScriptedModel(window=Window(2_000, told=True)), config=replace(CONFIG, system="rule " * 4_000))
    events = run(act.say("Hello"))
    assert isinstance(events[0], Failed)
    assert isinstance(events[0].error, NotRecovered)
    assert any("system" in name for name, _ in events[0].error.parts)
    assert ended(events).reason == "failed"


# --- Interrupts -------------------------------------------------------------------------------------


@dataclass
class Slow:
    """A model that says half an answer, and the rest when it is let."""

    fmt: str = "openai-chat"
    endpoint: str = "slow"
    provider: str = ""
    said: asyncio.Event = field(default_factory=asyncio.Event)
    closed: bool = False

    async def served_window(self, _: str) -> int | None:
        return None

    async def stream(self, request: Request) -> AsyncGenerator[Reply, None]:
        try:
            yield Said("Half")
            self.said.set()
            await asyncio.Event().wait()
        finally:
            self.closed = True


def test_an_interrupt_while_the_model_speaks_keeps_what_it_said() -> None:
    async def turn() -> None:
        act = Act(Slow())
        task = asyncio.create_task(act.say("Tell me"))
        await act.model.said.wait()  # type: ignore[attr-defined]
        assert act.agent.running("t")
        assert act.agent.interrupt("t")
        events = await task
        assert ended(events).reason == "interrupted"
        assert not act.agent.running("t")
        assert not act.agent.interrupt("t")
        assert act.model.closed  # type: ignore[attr-defined]
        assert roles(act.stored) == [Role.SYSTEM, Role.USER, Role.ASSISTANT]
        assert (act.stored[-1].text, act.stored[-1].ending) == ("Half", "stopped")
        assert act.kinds() == ["turn.started", "turn.failed"]

    run(turn())


async def _interrupted(act: Act, started: asyncio.Event, by: str) -> list[object]:
    """A turn stopped once a tool runs: by the agent, by cancelling who reads it, or by closing the iterator."""
    if by == "close":
        async with aclosing(act.agent.turn("t", "Go")) as events:
            async for event in events:
                if isinstance(event, CallStarted):
                    await started.wait()
                    break
        return []
    task = asyncio.create_task(act.say("Go"))
    await started.wait()
    if by == "interrupt":
        act.agent.interrupt("t")
        return list(await task)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    return []


@pytest.mark.parametrize("by", ["interrupt", "cancel", "close"])
def test_an_interrupt_while_tools_run_gives_every_call_its_one_result(by: str) -> None:
    async def turn() -> None:
        started, stopped = asyncio.Event(), asyncio.Event()

        async def work(arguments: JsonObject, place: Place) -> Outcome:
            if arguments["n"] != 1:
                return Outcome(f"done {arguments['n']}")
            started.set()
            try:
                await asyncio.Event().wait()
            finally:
                stopped.set()
            return Outcome("never")

        model = ScriptedModel(calls_then([[("work", f'{{"n": {n}}}') for n in range(3)]]))
        act = Act(model, [tool_of(work, "work")])
        events = await _interrupted(act, started, by)
        if by == "interrupt":
            assert ended(events).reason == "interrupted"  # type: ignore[arg-type]
        assert stopped.is_set()
        assert act.results == ["done 0", ENGLISH.interrupted, "done 2"]
        act.sound()
        assert ended(await act.say("Go on")).reason == "done"
        assert len([r for m in model.requests[-1].messages for r in m.results]) == 3

    run(turn())


def test_a_store_that_fails_is_raised_and_leaves_nothing_running() -> None:
    class Full(MemoryThreads):
        def append(self, thread: str, entries, **given: object):  # type: ignore[no-untyped-def, override]
            if full and any(isinstance(each, Message) and each.results for each in entries):
                raise StoreError("the disk is full")
            return super().append(thread, entries, **given)  # type: ignore[arg-type]

    async def turn() -> None:
        act = Act(ScriptedModel(asks_once()), [Ran().tool()], threads=Full())
        with pytest.raises(StoreError, match="disk is full"):
            await act.say("Go")
        assert not act.agent.running("t")
        full.clear()
        assert ended(await act.say("Go on")).reason == "done"
        assert act.results == [ENGLISH.crashed]
        act.sound()

    full = [True]
    run(turn())


# --- Resuming ---------------------------------------------------------------------------------------


def test_B1_after_a_crash_open_calls_get_results_and_nothing_is_run_again() -> None:
    ran = Ran()
    act = Act(ScriptedModel(lambda _: Answer(text="I see.")), [ran.tool()])
    act.threads.create("t")
    act.threads.append("t", [user("Go"), calls("x", "y", name="read"), result("x", "kept")])
    assert ended(run(act.say("Are you there?"))).reason == "done"
    assert act.results == ["kept", ENGLISH.crashed]
    assert roles(act.stored)[-3:] == [Role.TOOL, Role.USER, Role.ASSISTANT]
    assert not ran.calls
    act.sound()


def test_B1_a_program_that_was_killed_in_the_middle_of_a_call_resumes_and_runs_nothing_twice(tmp_path: Path) -> None:
    store, log = f"sqlite:///{tmp_path / 'threads.db'}", tmp_path / "log"
    died = subprocess.run([sys.executable, "-m", "tests.agent.dying", store, str(log)], check=False)
    assert died.returncode == -signal.SIGKILL
    with open_store(store) as threads:
        ran = Ran()
        act = Act(ScriptedModel(lambda _: Answer(text="I see.")), [ran.tool("act")], threads=threads)
        assert ended(run(act.say("Go on"))).reason == "done"
        assert act.results == ["done 0", ENGLISH.crashed, ENGLISH.crashed]
        assert not ran.calls
        act.sound()
    assert sorted(log.read_text("utf-8").split()) == ["0", "1", "2"]
