"""The OpenAI Agents SDK itself, on a scripted provider over HTTP: long tasks, refusals, sessions."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import pytest
from agents import (
    Agent,
    Model,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    RunConfig,
    Runner,
    Session,
    SessionSettings,
    Tool,
    function_tool,
)
from agents.run_config import CallModelData, ModelInputData
from hypothesis import given, settings, strategies as st
from openai import AsyncOpenAI, AuthenticationError, BadRequestError

from everlong.adapters.openai_agents import EverlongFilter, EverlongModel, EverlongSession, recall_tool
from everlong.core import EventKind, Point
from everlong.lab.adapters.drivers.job import read_file
from everlong.lab.adapters.errand import Errand
from everlong.lab.adapters.verdict import AdapterRun, judge_adapter
from everlong.lab.clients.script import Tasks
from everlong.llm.scripted.script import Broken, Raw
from everlong.store import open_engine
from everlong.testing import Answer, Refusal, ScriptedServer, Window, in_turn
from tests.attack.rules_openai import chat, responses

KINDS: dict[str, Any] = {"chat": OpenAIChatCompletionsModel, "responses": OpenAIResponsesModel}
RULES: dict[str, Any] = {"chat": chat, "responses": responses}
MODES = [(kind, streamed) for kind in KINDS for streamed in (False, True)]
#: Three times the window.
ERRAND = Errand(Tasks(count=3, files=8, lines=40))
SMALL = 6_000  # tokens


@asynccontextmanager
async def model_at(server: ScriptedServer, kind: str) -> AsyncIterator[Model]:
    async with AsyncOpenAI(base_url=server.url, api_key="key", max_retries=0) as client:
        yield KINDS[kind](model="scripted", openai_client=client)


async def say(agent: Agent[Any], words: Any, *, streamed: bool = False, **options: Any) -> Any:
    if not streamed:
        return await Runner.run(agent, words, max_turns=40, **options)
    result = Runner.run_streamed(agent, words, max_turns=40, **options)
    assert [event async for event in result.stream_events()], "a run that streams has events"
    return result


def clerk(**settings: Any) -> Agent[Any]:
    tools: list[Tool] = [function_tool(read_file), recall_tool]
    return Agent(name="clerk", instructions="You are a careful clerk.", tools=tools, **settings)


def points(session: EverlongSession) -> int:
    threads = session.keeper.engine.threads
    rows = [row for thread in threads.threads(archived=None) for row, _ in threads.points(thread.id)]
    return len({row.entry for row in rows if isinstance(row.entry, Point)})


# --- long tasks ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "streamed"), MODES)
@pytest.mark.parametrize("told", [True, False], ids=["told", "untold"])
def test_an_agent_goes_past_its_window(kind: str, streamed: bool, told: bool, tmp_path: Path) -> None:
    ERRAND.write(tmp_path)
    script = ERRAND.script(tmp_path)
    session = EverlongSession("errand", window=SMALL if told else None)
    answers: list[str] = []

    async def work(server: ScriptedServer) -> None:
        async with model_at(server, kind) as model:
            config = session.run_config(RunConfig(model=model))
            for prompt in ERRAND.prompts():
                result = await say(clerk(), prompt, streamed=streamed, session=session, run_config=config)
                answers.append(str(result.final_output))

    with ScriptedServer(script, window=Window(SMALL)) as server:
        asyncio.run(work(server))
    run = AdapterRun(
        framework="openai-agents",
        mode=kind,
        how="everlong" if told else "untold",
        window=SMALL,
        answers=answers,
        requests=server.requests,
        compactions=points(session),
    )
    verdict = judge_adapter(run, ERRAND, script)
    assert verdict.faults == ()
    assert verdict.refused == (not told)
    assert verdict.breaks == verdict.compactions
    assert len(asyncio.run(session.get_items())) > 3 * len(ERRAND.prompts())
    for request in server.requests:
        assert list(RULES[kind](json.loads(request.body))) == []


def test_an_agent_with_a_model_of_its_own_is_fitted_by_the_filter_alone_and_recovered_if_it_is_wrapped(
    tmp_path: Path,
) -> None:
    ERRAND.write(tmp_path)
    script = ERRAND.script(tmp_path)

    async def work(server: ScriptedServer) -> None:
        items: list[Any] = []
        config = RunConfig(call_model_input_filter=EverlongFilter(window=SMALL))
        async with model_at(server, "chat") as model:
            for prompt in ERRAND.prompts():
                result = await say(clerk(model=model), [*items, item(prompt)], run_config=config)
                items = result.to_input_list()
            assert script.kept == ERRAND.facts
            await say(clerk(model=EverlongModel(model, EverlongFilter())), items)

    with ScriptedServer(script, window=Window(SMALL)) as server:
        asyncio.run(work(server))
    assert script.missing == []
    sizes = [request.tokens for request in server.requests]
    assert [size > SMALL for size in sizes].count(True) == 1, "only the wrapped one is not told"
    assert sizes[-2] > SMALL > sizes[-1]


def test_two_users_of_one_agent_do_not_meet_and_each_has_its_own_prefix() -> None:
    async def work(server: ScriptedServer) -> None:
        engine = open_engine("memory:")
        agent = clerk()
        sessions = [EverlongSession(name, engine) for name in ("ada", "bob")]
        async with model_at(server, "responses") as model:
            for turn, session in product(range(3), sessions):
                config = session.run_config(RunConfig(model=model))
                await say(agent, f"{session.session_id} says {turn}", session=session, run_config=config)

    with ScriptedServer() as server:
        asyncio.run(work(server))
    for name, other in (("ada", "bob"), ("bob", "ada")):
        bodies = [json.loads(request.body)["input"] for request in server.requests]
        own = [body for body in bodies if body[0]["content"].startswith(name)]
        assert len(own) == 3
        assert other not in json.dumps(own)
        assert all(later[: len(earlier)] == earlier for earlier, later in pairwise(own))


# --- refusals --------------------------------------------------------------------------------------------------------

FAILED = {
    "type": "response.failed",
    "sequence_number": 1,
    "response": {
        "id": "resp_1",
        "object": "response",
        "created_at": 0,
        "status": "failed",
        "model": "scripted",
        "output": [],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "error": {
            "code": "context_length_exceeded",
            "message": "Your input exceeds the context window of this model. Please adjust your input and try again.",
        },
    },
}


def test_an_overflow_inside_a_stream_is_recovered_from() -> None:
    failed = Raw(chunk=b"event: response.failed\ndata: " + json.dumps(FAILED).encode() + b"\n\n")
    words = [f"Note {at}: " + " ".join(f"word{at}{number}" for number in range(300)) for at in range(12)]
    steps: list[Any] = [*(Answer(text="Noted.") for _ in words[:-1]), failed, Answer(text="All of it is noted.")]

    async def work(server: ScriptedServer) -> str:
        session = EverlongSession("notes")
        async with model_at(server, "responses") as model:
            config = session.run_config(RunConfig(model=model))
            for text in words:
                result = await say(clerk(), text, streamed=True, session=session, run_config=config)
        return str(result.final_output)

    with ScriptedServer(in_turn(steps)) as server:
        assert asyncio.run(work(server)) == "All of it is noted."
    refused, again = server.requests[-2:]
    assert again.tokens < refused.tokens


def test_a_stream_that_breaks_off_has_one_outcome() -> None:
    session = EverlongSession("one")

    async def work(server: ScriptedServer) -> None:
        async with model_at(server, "chat") as model:
            config = session.run_config(RunConfig(model=model))
            await say(clerk(), "Hello!", streamed=True, session=session, run_config=config)

    broken = Broken(Answer(text="I will tell you all about it, from the beginning to the end."), pieces=2)
    with ScriptedServer(lambda _: broken) as server, pytest.raises(Exception, match=r"."):
        asyncio.run(work(server))
    threads = session.keeper.engine.threads
    outcomes = [event.kind for thread in threads.threads(archived=None) for event in threads.events(thread.id)]
    assert outcomes.count(EventKind.TURN_FAILED) == 1
    assert EventKind.TURN_FINISHED not in outcomes


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    ("refusal", "raised"),
    [
        (Refusal(401, '{"error":{"message":"no such key","code":"invalid_api_key"}}'), AuthenticationError),
        (Refusal(400, '{"error":{"message":"unknown parameter: top_q"}}'), BadRequestError),
    ],
)
def test_every_other_error_is_the_sdks_own(refusal: Refusal, raised: type[Exception], streamed: bool) -> None:
    async def work(server: ScriptedServer) -> None:
        session = EverlongSession("one")
        async with model_at(server, "chat") as model:
            config = session.run_config(RunConfig(model=model))
            await say(clerk(), "Hello!", streamed=streamed, session=session, run_config=config)

    with ScriptedServer(lambda _: refusal) as server, pytest.raises(raised):
        asyncio.run(work(server))
    assert len(server.requests) == 1


# --- what is configured ----------------------------------------------------------------------------------------------


def test_a_configuration_keeps_what_it_says_and_its_own_filter_runs_first() -> None:
    def shout(data: CallModelData[Any]) -> ModelInputData:
        items: list[Any] = [{"role": "user", "content": "HELLO!"}]
        return ModelInputData(input=items, instructions=data.model_data.instructions)

    async def work(server: ScriptedServer) -> None:
        session = EverlongSession("one", pins=["The door code is 4711."])
        async with model_at(server, "chat") as model:
            own = RunConfig(model=model, call_model_input_filter=shout, workflow_name="mine")
            config = session.run_config(own)
            assert config.workflow_name == "mine"
            await say(clerk(), "Hello!", session=session, run_config=config)

    with ScriptedServer() as server:
        asyncio.run(work(server))
    (request,) = server.requests
    texts = [message.text for message in request.messages]
    assert "HELLO!" in texts
    assert any("4711" in text for text in texts)


def test_a_wrapped_model_is_asked_for_whatever_else_the_sdk_wants_of_it() -> None:
    async def work(server: ScriptedServer) -> None:
        session = EverlongSession("one")
        async with model_at(server, "responses") as model:
            assert session.run_config(RunConfig(model=model)).model.model == "scripted"  # type: ignore[union-attr]
            for config in (RunConfig(model=model), session.run_config(RunConfig(model=model))):
                await say(clerk(), "Hello!", run_config=config)

    with ScriptedServer() as server:
        asyncio.run(work(server))
    bare, ours = (json.loads(request.body) for request in server.requests)
    assert bare.keys() == ours.keys()


def test_the_recall_tool_outside_of_a_run_says_so() -> None:
    async def work() -> str:
        outside: Any = None
        return str(await recall_tool.on_invoke_tool(outside, '{"what": "berth"}'))

    assert "no everlong session" in asyncio.run(work())


# --- sessions --------------------------------------------------------------------------------------------------------


@pytest.fixture(params=["memory:", "file"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return "memory:" if request.param == "memory:" else f"sqlite:///{tmp_path / 'chat.db'}"


def item(text: str) -> Any:
    return {"role": "user", "content": text}


def test_a_session_is_one_of_the_sdks_and_keeps_to_its_limits(url: str) -> None:
    async def work() -> None:
        session: Session = EverlongSession("one", url, session_settings=SessionSettings(limit=2))
        assert isinstance(session, Session)
        assert await session.get_items() == []
        assert await session.pop_item() is None
        await session.add_items([])
        await session.add_items([item("a"), item("b"), item("c")])
        assert await session.get_items() == [item("b"), item("c")]
        assert await session.get_items(limit=5) == [item("a"), item("b"), item("c")]
        assert await session.get_items(limit=0) == []
        assert await session.pop_item() == item("c")
        await session.clear_session()
        assert await session.get_items() == []
        await session.add_items([item("d")])
        assert await session.get_items() == [item("d")]

    asyncio.run(work())


def test_a_session_is_there_after_a_restart_and_seen_by_another_process_at_once(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'chat.db'}"

    async def work() -> None:
        first, second = EverlongSession("one", url), EverlongSession("one", url)
        await first.add_items([item("a"), item("b")])
        assert await second.get_items() == [item("a"), item("b")]
        assert await second.pop_item() == item("b")
        await second.add_items([item("c")])
        assert await first.get_items() == [item("a"), item("c")]
        assert await EverlongSession("two", url).get_items() == []
        await first.clear_session()
        assert await second.get_items() == []

    asyncio.run(work())


def test_clearing_a_session_leaves_nothing_of_it_and_all_of_the_others() -> None:
    async def work(server: ScriptedServer) -> None:
        engine = open_engine("memory:")
        async with model_at(server, "responses") as model:
            for name in ("one", "one-more"):
                session = EverlongSession(name, engine)
                config = session.run_config(RunConfig(model=model))
                await say(clerk(), f"Hello from {name}!", session=session, run_config=config)
        await EverlongSession("one", engine).clear_session()
        left = [thread.id for thread in engine.threads.threads(archived=None)]
        assert left
        assert all(name.startswith("one-more") for name in left)

    with ScriptedServer() as server:
        asyncio.run(work(server))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
ITEMS = st.dictionaries(st.text(max_size=6), JSON, min_size=1, max_size=4)
MOVES = st.one_of(st.lists(ITEMS, max_size=3), st.just("pop"), st.just("clear"), st.integers(0, 4))


@settings(max_examples=25)
@given(st.lists(MOVES, max_size=10))
def test_a_session_behaves_like_a_list(moves: Sequence[Any]) -> None:
    async def work() -> None:
        session, known = EverlongSession("one"), list[Any]()
        for move in moves:
            if isinstance(move, list):
                await session.add_items(move)
                known += move
            elif move == "pop":
                assert await session.pop_item() == (known.pop() if known else None)
            elif move == "clear":
                await session.clear_session()
                known.clear()
            else:
                assert await session.get_items(limit=move) == known[max(0, len(known) - move) :]
        assert await session.get_items() == known

    asyncio.run(work())
