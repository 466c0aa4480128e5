"""Agents of pydantic-ai past the window of their model: the real framework, a scripted provider over HTTP."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent, BinaryContent, CachePoint
from pydantic_ai.capabilities import ProcessHistory
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, ThinkingPart, UserPromptPart
from pydantic_ai.models import Model, ModelRequestContext
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider

from everlong import open_engine
from everlong.adapters.pydantic_ai import EverlongCapability, history_processor
from everlong.core import EventKind, Point
from everlong.lab import AdapterVerdict
from everlong.lab.adapters.drivers import job as jobs, pydantic_ai as driver
from everlong.lab.adapters.errand import Errand
from everlong.lab.adapters.verdict import AdapterRun, judge_adapter
from everlong.lab.clients.script import Tasks
from everlong.lab.processes import REFUSALS
from everlong.store import open_store
from everlong.testing import Answer, Refusal, ScriptedServer, Window, in_turn, reads_files

ROOT = Path(__file__).parents[2]
WINDOW = 12_000
#: Three windows of files, two of them read at once.
ERRAND = Errand(Tasks(count=4, files=9, lines=50))


def done_errand(folder: Path, mode: str, *, told: bool = True) -> AdapterVerdict:
    """The errand of the lab, in this process: six prompts, files of three windows, questions about the beginning."""
    ERRAND.write(folder)
    clerk = ERRAND.script(folder)
    store = f"sqlite:///{folder / 'everlong.db'}"
    dialect = mode.partition(" ")[0]
    model = "claude-sonnet-5" if dialect == "messages" else "scripted"
    with ScriptedServer(clerk, window=Window(WINDOW, body=REFUSALS.get(dialect, Window().body))) as server:
        job = jobs.Job(address=server.address, mode=mode, model=model, prompts=ERRAND.prompts(), answers=[])
        job.how, job.store, job.window = "everlong", store, WINDOW if told else None
        driver.run(job)
    with open_store(store) as threads:
        points = [row.entry for thread in threads.threads() for row, _ in threads.points(thread.id)]
    run = AdapterRun(
        framework="pydantic-ai",
        mode=mode,
        how="everlong" if told else "untold",
        window=WINDOW,
        answers=job.answers,
        requests=server.requests,
        compactions=len({point for point in points if isinstance(point, Point)}),
    )
    return judge_adapter(run, ERRAND, clerk)


@pytest.mark.parametrize("mode", ["chat", "messages stream"])
def test_an_errand_of_three_windows_is_done_within_the_window(tmp_path: Path, mode: str) -> None:
    verdict = done_errand(tmp_path, mode)
    assert verdict.faults == ()
    assert verdict.kept == verdict.facts == 5
    assert verdict.compactions == verdict.breaks >= 2
    assert verdict.refused == 0


def test_a_window_that_nobody_told_is_learned_from_the_refusal(tmp_path: Path) -> None:
    verdict = done_errand(tmp_path, "chat stream", told=False)
    assert verdict.faults == ()
    assert verdict.refused == 1


def read_file(path: str) -> str:
    """Read a text file."""
    return "\n".join(f"def {path.replace('/', '_')}_{line}(): return {line}" for line in range(60))


def model_at(server: ScriptedServer, dialect: str = "chat") -> Model:
    if dialect == "messages":
        provider = AnthropicProvider(base_url=server.address, api_key="key")
        return AnthropicModel("claude-sonnet-5", provider=provider, settings={"max_tokens": 1_000})
    openai = OpenAIProvider(base_url=server.url, api_key="key")
    return (OpenAIResponsesModel if dialect == "responses" else OpenAIChatModel)("scripted", provider=openai)


def talk(
    agent: Agent[None, str], *prompts: str, history: Sequence[ModelMessage] = (), **given: Any
) -> list[ModelMessage]:
    """One conversation; connections are closed at its end."""

    async def talked() -> list[ModelMessage]:
        held = list(history)
        async with agent:
            for prompt in prompts:
                held = (await agent.run(prompt, message_history=held, **given)).all_messages()
        return held

    return asyncio.run(talked())


QUESTIONS = ("Question 0?", "Question 1?", "Question 2?")


def test_what_the_agent_holds_stays_whole() -> None:
    with ScriptedServer(reads_files(8), window=Window(WINDOW)) as server:
        agent = Agent(
            model_at(server),
            tools=[read_file],
            capabilities=[EverlongCapability(window=WINDOW)],
            instructions="Be brief.",
        )
        history = talk(agent, *QUESTIONS)
    assert len(history) == 3 * (2 + 2 * 8)
    assert any(len(now.messages) < len(before.messages) for before, now in pairwise(server.requests))
    assert all(request.messages[0].text == "Be brief." for request in server.requests)


def test_what_is_not_touched_is_the_very_object() -> None:
    picture = BinaryContent(b"\x89PNG\r\n\x1a\n", media_type="image/png")
    beginning: list[ModelMessage] = [
        ModelRequest([UserPromptPart(["What is this?", picture, CachePoint()])]),
        ModelResponse([ThinkingPart("A sail.", signature="sealed", provider_name="anthropic"), TextPart("A sail.")]),
    ]
    sent: list[list[ModelMessage]] = []

    class Spy(EverlongCapability[None]):
        async def prepare_model_request(self, ctx: Any, request_context: ModelRequestContext) -> ModelRequestContext:
            prepared = await super().prepare_model_request(ctx, request_context)
            sent.append(list(prepared.messages))
            return prepared

    with ScriptedServer() as server:
        agent = Agent(model_at(server, "messages"), capabilities=[Spy()], instructions="Be brief.")
        held = talk(agent, "And its colour?", history=beginning)
    assert [any(mine is theirs for theirs in sent[0]) for mine in held[:3]] == [True, True, True]
    assert len(sent[0]) == 3
    body = json.loads(server.requests[0].body)
    assert [block["type"] for block in body["messages"][0]["content"]] == ["text", "image"]
    assert body["messages"][1]["content"][0] == {"type": "thinking", "thinking": "A sail.", "signature": "sealed"}


def test_the_model_reads_again_what_left_the_window() -> None:
    secret = "The strongbox opens with 77-413-20."

    def script(asked: Any) -> Answer:
        if asked.number < 12:
            return Answer(calls=(("read_file", f'{{"path": "f{asked.number}"}}'),))
        return (
            Answer(calls=(("recall", '{"what": "strongbox number"}'),)) if asked.number == 12 else Answer(text="Done.")
        )

    def read(path: str) -> str:
        """Read a text file."""
        return f"{read_file(path)}\n{secret if path == 'f0' else ''}\n{read_file(path)}"

    with ScriptedServer(script, window=Window(WINDOW)) as server:
        agent = Agent(model_at(server), capabilities=[EverlongCapability(window=WINDOW)])
        agent.tool_plain(read, name="read_file")
        talk(agent, "Read them all.")
    *_, before, after = server.requests
    assert secret not in before.body.decode()
    assert secret in after.body.decode()
    assert after.messages[-1].results[0].name in {"", "recall"}


def test_pins_stand_in_every_request() -> None:
    pin = "Never write to the ledger of 1897."
    with ScriptedServer(reads_files(8), window=Window(WINDOW)) as server:
        capability = EverlongCapability[None](window=WINDOW, pins=[pin], recall=False)
        talk(Agent(model_at(server), tools=[read_file], capabilities=[capability]), *QUESTIONS)
    assert all(pin in request.body.decode() for request in server.requests[9:])
    assert all("recall" not in tool for request in server.requests for tool in request.tools)


def test_an_error_that_is_not_ours_comes_as_it_was() -> None:
    with ScriptedServer(in_turn([Refusal(401, '{"error": {"message": "no such key"}}')])) as server:
        engine = open_engine("memory:")
        agent = Agent(model_at(server), capabilities=[EverlongCapability[None](engine)])
        with pytest.raises(ModelHTTPError, match="no such key"):
            talk(agent, "Hello", conversation_id="talk")
    assert EventKind.TURN_FAILED in [event.kind for event in engine.threads.events("talk")]


def test_a_server_that_cuts_the_prompt_in_silence_is_asked_again() -> None:
    long = [
        message
        for at in range(20)
        for message in (
            ModelRequest([UserPromptPart(read_file(f"part_{at}"))]),
            ModelResponse([TextPart(f"Part {at} is read.")]),
        )
    ]
    with ScriptedServer(window=Window(8_192, truncates=True)) as server:
        agent = Agent(model_at(server), capabilities=[EverlongCapability[None]()])
        history = talk(agent, "What was in part 3?", history=long)
    cut, again = server.requests
    assert again.tokens < 8_192 < cut.tokens
    assert len(history) == len(long) + 2


def test_two_runs_at_once_keep_apart() -> None:
    async def both(agent: Agent[None, str]) -> list[str]:
        async with agent:
            runs = (agent.run(f"Question {name}?", conversation_id=name) for name in ("a", "b"))
            return [result.output for result in await asyncio.gather(*runs)]

    with ScriptedServer() as server:
        engine = open_engine("memory:")
        agent = Agent(model_at(server), capabilities=[EverlongCapability[None](engine)])
        assert asyncio.run(both(agent)) == ["Question a?", "Question b?"]
    for name in ("a", "b"):
        assert [row.entry.text for row in engine.threads.read(name) if hasattr(row.entry, "text")] == [
            f"Question {name}?"
        ]
        assert [event.kind for event in engine.threads.events(name)][-1] is EventKind.TURN_FINISHED


def test_a_run_that_was_cancelled_leaves_no_request_open() -> None:
    async def cancelled(agent: Agent[None, str], begun: Callable[[], bool]) -> None:
        async with agent:
            run = asyncio.create_task(agent.run("Hello", conversation_id="talk"))
            while not begun():
                await asyncio.sleep(0)
            run.cancel()
            with pytest.raises(asyncio.CancelledError):
                await run

    with ScriptedServer(lambda _: Answer(text="late", before=3)) as server:
        engine = open_engine("memory:")
        agent = Agent(model_at(server), capabilities=[EverlongCapability[None](engine)])
        asyncio.run(cancelled(agent, lambda: bool(server.requests)))
    assert [event.kind for event in engine.threads.events("talk")][-1] is EventKind.TURN_FAILED


@pytest.mark.parametrize("wrapped", [lambda model: WrapperModel(model), lambda model: FallbackModel(model, "test")])
def test_the_model_behind_others_decides(wrapped: Callable[[Model], Model]) -> None:
    with ScriptedServer() as server:
        engine = open_engine("memory:")
        agent = Agent(wrapped(model_at(server, "messages")), capabilities=[EverlongCapability[None](engine)])
        talk(agent, "Hello", conversation_id="talk")
    assert {event.model for event in engine.threads.events("talk") if event.model} == {"claude-sonnet-5"}


def test_a_history_processor_cuts_and_goes_on_from_the_whole() -> None:
    with ScriptedServer(reads_files(8), window=Window(WINDOW)) as server:
        processor = history_processor(window=WINDOW)
        agent = Agent(model_at(server), tools=[read_file], capabilities=[ProcessHistory(processor)])
        history = talk(agent, *QUESTIONS)
    assert len(server.requests) == 27
    assert max(request.tokens for request in server.requests) <= WINDOW
    assert len(history) < 3 * (2 + 2 * 8)


def test_without_the_framework_one_line_says_what_to_install() -> None:
    code = "import sys; sys.modules['pydantic_ai'] = None; import everlong.adapters.pydantic_ai"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    *_, last = done.stderr.splitlines()
    assert last == (
        'ImportError: everlong.adapters.pydantic_ai needs pydantic-ai 2 or newer: pip install "pydantic-ai-slim>=2"'
    )
