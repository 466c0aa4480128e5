"""Agents of LangChain and LangGraph past their window: the real framework, a scripted provider over HTTP."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import ModelRequest, ModelResponse
from langchain.agents.structured_output import ToolStrategy
from langchain.tools import tool
from langchain_anthropic import ChatAnthropic
from langchain_core.exceptions import ModelAuthenticationError, ModelError
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.prebuilt import create_react_agent
from langgraph.runtime import ExecutionInfo, Runtime
from langgraph.warnings import LangGraphDeprecatedSinceV10
from pydantic import BaseModel

from everlong import Engine, InputError, NotRecovered, open_engine
from everlong.adapters.langchain import EverlongMiddleware, pre_model_hook
from everlong.core import EventKind, Point
from everlong.lab import AdapterVerdict
from everlong.lab.adapters.drivers import langchain as driver
from everlong.lab.adapters.errand import Errand
from everlong.lab.adapters.verdict import AdapterRun, judge_adapter
from everlong.lab.clients.script import Tasks
from everlong.lab.processes import REFUSALS
from everlong.store import open_store
from everlong.testing import Answer, Refusal, ScriptedServer, Window, in_turn
from everlong.wire import problems
from tests.adapters.pages import example_of

Job = driver.Job
WINDOW = 12_000
#: Three windows of files, two of them read at once, in four prompts of one conversation.
ERRAND = Errand(Tasks(count=4, files=9, lines=50))
#: The same in one prompt.
LONG_TURN = Errand(Tasks(count=1, files=36, lines=50), single=True)


def errand_done(
    folder: Path,
    run: Callable[[Job], None] = driver.run,
    *,
    mode: str = "chat",
    how: str = "everlong",
    errand: Errand = ERRAND,
) -> AdapterVerdict:
    """The errand of the lab, in this process: files of three windows, then questions about the beginning."""
    errand.write(folder)
    clerk = errand.script(folder)
    store = f"sqlite:///{folder / 'everlong.db'}"
    dialect, error = mode.partition(" ")[0], ""
    model = "claude-sonnet-5" if dialect == "messages" else "scripted"
    with ScriptedServer(clerk, window=Window(WINDOW, body=REFUSALS.get(dialect, Window().body))) as server:
        job = Job(address=server.address, mode=mode, model=model, prompts=errand.prompts())
        job.how, job.store, job.window = how.replace("untold", "everlong"), store, None if how == "untold" else WINDOW
        try:
            run(job)
        except ModelError as raised:
            error = str(raised)
    with open_store(store) as threads:
        entries = {row.entry for thread in threads.threads(archived=None) for row, _ in threads.points(thread.id)}
    done = AdapterRun(
        framework="langchain",
        mode=mode,
        how=how,
        window=WINDOW,
        answers=job.answers,
        error=error,
        requests=server.requests,
        compactions=sum(isinstance(entry, Point) for entry in entries),
    )
    return judge_adapter(done, errand, clerk)


# --- three windows --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["chat", "chat stream", "responses", "messages", "messages stream"])
def test_an_errand_of_three_windows_is_done_within_the_window(tmp_path: Path, mode: str) -> None:
    verdict = errand_done(tmp_path, mode=mode)
    assert verdict.faults == ()
    assert verdict.kept == verdict.facts == 5
    assert verdict.recalled, "the model had to call the tool to recall"
    assert verdict.compactions == verdict.breaks >= 2
    assert verdict.refused == 0


def test_its_own_summaries_lose_the_beginning_and_nothing_at_all_fails(tmp_path: Path) -> None:
    for how in ("own", "nothing"):
        (tmp_path / how).mkdir()
    own, nothing = (errand_done(tmp_path / how, how=how) for how in ("own", "nothing"))
    assert own.kept != own.facts  # its author is shown the last 4 000 tokens by default
    assert nothing.finished < nothing.tasks
    assert nothing.refused


@pytest.mark.parametrize("mode", ["chat", "messages stream"])
def test_a_window_that_nobody_told_is_learned_from_the_refusal(tmp_path: Path, mode: str) -> None:
    verdict = errand_done(tmp_path, mode=mode, how="untold")
    assert verdict.faults == ()
    assert verdict.refused == 1


def test_one_long_turn_with_an_event_loop(tmp_path: Path) -> None:
    def run(job: Job) -> None:
        agent = create_agent(
            chat(job.address), [driver.read_file], middleware=[EverlongMiddleware(job.store, window=WINDOW)]
        )

        async def talk() -> None:
            async for state in agent.astream({"messages": [HumanMessage(job.prompts[0])]}, stream_mode="values"):
                last = state["messages"][-1]
            job.answers.append(last.text)

        asyncio.run(talk())

    verdict = errand_done(tmp_path, run, errand=LONG_TURN)
    assert verdict.faults == ()
    assert verdict.compactions == verdict.breaks >= 2


def test_a_client_that_sends_its_list_anew_goes_on_in_the_same_thread(tmp_path: Path) -> None:
    """No checkpointer, plain dicts: LangGraph gives the same messages other ids in each call."""

    def run(job: Job) -> None:
        agent = create_agent(
            chat(job.address), [driver.read_file], middleware=[EverlongMiddleware(job.store, window=WINDOW)]
        )
        talk: list[Any] = []
        for prompt in job.prompts:
            talk.append({"role": "user", "content": prompt})
            state = agent.invoke({"messages": talk}, {"configurable": {"thread_id": "7"}})
            job.answers.append(state["messages"][-1].text)
            talk = [message.model_copy(update={"id": None}) for message in state["messages"]]

    verdict = errand_done(tmp_path, run)
    assert verdict.faults == ()
    with open_store(f"sqlite:///{tmp_path / 'everlong.db'}") as store:
        assert [thread.id for thread in store.threads()] == ["7"]


def test_the_hook_of_langgraph(tmp_path: Path) -> None:
    def run(job: Job) -> None:
        model = chat(job.address)
        hook = pre_model_hook(
            model, [driver.read_file], prompt="You are a careful clerk.", engine=job.store, window=WINDOW
        )
        with pytest.warns(LangGraphDeprecatedSinceV10):
            agent = create_react_agent(
                model,
                [driver.read_file],
                prompt="You are a careful clerk.",
                pre_model_hook=hook,
                checkpointer=InMemorySaver(),
            )
        config: Any = {"configurable": {"thread_id": "7"}, "recursion_limit": 200}
        for prompt in job.prompts:
            state = agent.invoke({"messages": [HumanMessage(prompt)]}, config)
            job.answers.append(state["messages"][-1].text)

    verdict = errand_done(tmp_path, run)
    # It has no tool to recall: what files said in their middle may be gone. The user's own words are not.
    assert [fault for fault in verdict.faults if "facts" not in fault] == []
    assert verdict.kept is not None
    assert verdict.kept >= 3
    assert verdict.compactions == verdict.breaks >= 2


# --- the page ----------------------------------------------------------------------------------------------------


def test_the_program_on_the_page_is_short_and_runs(tmp_path: Path) -> None:
    program = example_of("langchain")
    assert len([line for line in program.splitlines() if line.strip()]) <= 10
    (tmp_path / "program.py").write_text(program, encoding="utf-8")
    form = [sys.executable, "-m", "ruff", "format", "--isolated", "--check", "--line-length", "100", "program.py"]
    assert subprocess.run(form, cwd=tmp_path, capture_output=True, check=False).returncode == 0

    def run(job: Job) -> None:
        (tmp_path / "program.py").write_text(program.replace('"agent.db"', repr(job.store)), encoding="utf-8")
        done = subprocess.run(
            [sys.executable, "program.py"],
            cwd=tmp_path,
            env=os.environ | {"OPENAI_BASE_URL": f"{job.address}/v1", "OPENAI_API_KEY": "key"},
            input=job.prompts[0],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        job.answers.append(done.stdout)

    verdict = errand_done(tmp_path, run, how="untold", errand=LONG_TURN)
    assert verdict.faults == ()
    assert verdict.finished == 1


@pytest.mark.parametrize(
    "authors", [["gpt-4o"], "gpt-4o", [HumanMessage("gpt-4o")]], ids=["names", "a name", "another thing"]
)
def test_an_author_that_is_none_is_refused_at_once(authors: Any) -> None:
    with pytest.raises(InputError, match=r"authors must be a list of Authors, such as \[Author\(model=HttpModel"):
        EverlongMiddleware(authors=authors)


def test_without_the_framework_one_line_says_what_to_install() -> None:
    code = "import sys; sys.modules['langchain'] = None; import everlong.adapters.langchain"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1] == (
        'ImportError: everlong.adapters.langchain needs LangChain 1.4 or newer: pip install "langchain>=1.4"'
    )


# --- what is sent ---------------------------------------------------------------------------------------------------


def chat(address: str, *, model: str = "scripted", **more: Any) -> ChatOpenAI:
    return ChatOpenAI(model=model, base_url=f"{address}/v1", api_key="key", max_retries=0, **more)  # type: ignore[arg-type]


def claude(address: str, **more: Any) -> ChatAnthropic:
    settings: dict[str, Any] = {"max_tokens": 1_000, "base_url": address, "api_key": "key", "max_retries": 0} | more
    return ChatAnthropic(model="claude-sonnet-5", **settings)


PICTURE = {"type": "image", "base64": "iVBORw0KGgo" * 20, "mime_type": "image/png"}


def rich(count: int) -> list[AnyMessage]:
    """A talk with pictures, thoughts, calls in parallel and provider parts in every round."""
    talk: list[AnyMessage] = []
    for at in range(count):
        talk.append(HumanMessage([{"type": "text", "text": f"What is in picture {at}?"}, PICTURE], id=f"h{at}"))
        calls = [{"name": "look", "args": {"at": at, "side": side}, "id": f"toolu_{at}_{side}"} for side in "lr"]
        blocks: list[Any] = [
            {"type": "thinking", "thinking": f"Both sides of {at}.", "signature": "c2lnbmVk"},
            {"type": "text", "text": "I look at both.", "citations": None},
            *({"type": "tool_use", "id": call["id"], "name": "look", "input": call["args"]} for call in calls),
        ]
        talk.append(AIMessage(blocks, tool_calls=calls, response_metadata={"model_provider": "anthropic"}))
        talk += [
            ToolMessage("boats and waves, " * 60, tool_call_id=call["id"], name="look", artifact={"at": at})
            for call in calls
        ]
        talk.append(AIMessage(f"Picture {at} shows boats.", id=f"a{at}"))
    return [*talk, HumanMessage("And now?", id="last")]


def asked(messages: list[AnyMessage], model: Any, **more: Any) -> ModelRequest[Any]:
    runtime: Runtime[Any] = Runtime(execution_info=ExecutionInfo("1", "model:1", "1", thread_id="t"))
    system = SystemMessage("You are a careful clerk.")
    return ModelRequest(model=model, messages=messages, system_message=system, runtime=runtime, **more)


def sent_for(middleware: EverlongMiddleware, request: ModelRequest[Any]) -> ModelRequest[Any]:
    seen: list[ModelRequest[Any]] = []

    def handler(given: ModelRequest[Any]) -> ModelResponse[Any]:
        seen.append(given)
        return ModelResponse([AIMessage("Yes.")])

    middleware.wrap_model_call(request, handler)
    return seen[0]


def test_below_the_window_everything_is_the_very_object() -> None:
    talk = rich(3)
    request = asked(talk, claude("http://localhost"))
    sent = sent_for(EverlongMiddleware(window=50_000), request)
    assert all(one is other for one, other in zip(sent.messages, talk, strict=True))
    assert sent.system_message is request.system_message
    assert sent.model_settings == {}


def test_after_a_compaction_what_was_left_alone_is_the_very_object_and_all_is_valid() -> None:
    talk = rich(12)
    model = claude("http://localhost")
    sent = sent_for(EverlongMiddleware(window=30_000), asked(talk, model))
    objects = {id(message) for message in talk}
    untouched = [message for message in sent.messages if id(message) in objects]
    assert len(sent.messages) < len(talk)
    assert any("thinking" in str(message.content) and isinstance(message, AIMessage) for message in untouched)
    assert any(isinstance(message, HumanMessage) and PICTURE in message.content for message in untouched)
    assert sent.messages[-1] is talk[-1]
    shortened = [message for message in sent.messages if isinstance(message, ToolMessage)]
    assert [(message.name, message.artifact) for message in shortened] == [("look", {"at": 11})] * 2
    payload = model._get_request_payload([sent.system_message, *sent.messages])
    assert problems("anthropic", payload) == []


def test_thoughts_go_back_to_the_model_that_had_them() -> None:
    steps = [Answer(thinking="Two files.", text="Both.", calls=(("look", '{"at": 1}'), ("look", '{"at": 2}')))]
    looked: list[int] = []

    def look(at: int) -> str:
        """Look at a place."""
        looked.append(at)
        return f"Place {at} is empty."

    with ScriptedServer(in_turn(steps, then=lambda _: Answer(text="All empty."))) as server:
        model = claude(server.address, thinking={"type": "enabled", "budget_tokens": 1_024}, max_tokens=2_000)
        agent = create_agent(model, [look], middleware=[EverlongMiddleware()])
        agent.invoke({"messages": [HumanMessage([{"type": "text", "text": "Look."}, PICTURE])]})
    first, second = (json.loads(request.body) for request in server.requests)
    assert sorted(looked) == [1, 2]
    assert second["messages"][: len(first["messages"])] == first["messages"]
    assert first["messages"][0]["content"][1]["source"]["data"] == PICTURE["base64"]
    thought, _, *calls = second["messages"][1]["content"]
    assert thought["thinking"] == "Two files."
    assert thought["signature"]
    assert [call["input"] for call in calls] == [{"at": 1}, {"at": 2}]
    assert [block["type"] for block in second["messages"][2]["content"]] == ["tool_result", "tool_result"]


@pytest.mark.parametrize("make", [chat, claude], ids=["openai", "anthropic"])
def test_pins_stand_in_every_request(make: Callable[[str], Any]) -> None:
    with ScriptedServer() as server:
        agent = create_agent(
            make(server.address),
            system_prompt="You are a careful clerk.",
            middleware=[EverlongMiddleware(window=8_000, pins=["Never sail on Friday 13."])],
            checkpointer=InMemorySaver(),
        )
        for at in range(12):
            said = f"Entry {at}. " + "Wind and rain. " * 250
            agent.invoke({"messages": [HumanMessage(said)]}, {"configurable": {"thread_id": "log"}})
    assert all(b"Friday 13" in request.body and b"careful clerk" in request.body for request in server.requests)
    assert [problems(request.fmt, json.loads(request.body)) for request in server.requests] == [[]] * 12


class Report(BaseModel):
    """What was found."""

    words: str


def test_tools_and_the_form_of_the_answer_count() -> None:
    def heavy(at: str) -> str:
        """Do it."""
        return at

    heavy.__doc__ = "Do it. " + "Mind the rules of the harbour. " * 900
    middleware = EverlongMiddleware(window=12_000)
    bare = sent_for(middleware, asked(rich(8), chat("http://localhost")))
    tools = [tool(heavy), {"type": "web_search_20250305", "name": "web_search", "max_uses": 5}]
    small = sent_for(EverlongMiddleware(window=12_000), asked(rich(8), chat("http://localhost"), tools=tools))
    assert len(small.messages) < len(bare.messages)
    Report.__doc__ = heavy.__doc__
    formed = asked(rich(8), chat("http://localhost"), response_format=ToolStrategy(Report))
    assert len(sent_for(EverlongMiddleware(window=12_000), formed).messages) < len(bare.messages)


def test_a_reply_that_leaves_no_room_is_asked_to_be_shorter() -> None:
    request = asked(rich(4), claude("http://localhost", max_tokens=11_000))
    sent = sent_for(EverlongMiddleware(window=12_000), request)
    assert 1_024 <= sent.model_settings["max_tokens"] < 11_000
    assert len(sent.messages) > 3


# --- refusals ----------------------------------------------------------------------------------------------------


@pytest.fixture
def engine() -> Iterator[Engine]:
    with open_engine("memory:") as opened:
        yield opened


def kinds(engine: Engine, thread: str) -> list[str]:
    return [event.kind.value for event in engine.threads.events(thread)]


def test_an_error_that_is_not_ours_comes_through_as_it_is(engine: Engine) -> None:
    with ScriptedServer(lambda _: Refusal(401, '{"error":{"message":"Incorrect API key"}}')) as server:
        agent = create_agent(chat(server.address), middleware=[EverlongMiddleware(engine)])
        with pytest.raises(ModelAuthenticationError, match="Incorrect API key"):
            agent.invoke({"messages": [HumanMessage("hi")]}, {"configurable": {"thread_id": "t"}})
    assert len(server.requests) == 1
    assert kinds(engine, "t")[-1] == EventKind.TURN_FAILED


def test_what_no_window_takes_ends_with_one_clear_error(engine: Engine) -> None:
    body = '{"error":{"message":"prompt is too long","code":"context_length_exceeded"}}'
    with ScriptedServer(lambda _: Refusal(400, body)) as server:
        agent = create_agent(chat(server.address), middleware=[EverlongMiddleware(engine)])
        with pytest.raises(NotRecovered, match="does not fit"):
            agent.invoke({"messages": [*rich(12)]}, {"configurable": {"thread_id": "t"}})
    assert 1 < len(server.requests) <= 4
    sizes = [request.tokens for request in server.requests]
    assert sizes == sorted(sizes, reverse=True)


@pytest.mark.parametrize("text", ["word " * 9_000, "def f(x): return x\n" * 1_600], ids=["seems to fit", "too large"])
def test_law7_a_message_that_cannot_be_made_smaller_is_sent_once(text: str) -> None:
    """The tokens of this model are estimated, so the provider decides; then the same bytes do not go out again."""
    with ScriptedServer(window=Window(8_000, told=True)) as server:
        agent = create_agent(chat(server.address, model="my-own"), middleware=[EverlongMiddleware(window=8_000)])
        with pytest.raises(NotRecovered, match=r"cannot be made shorter.*\(last user message [0-9,]+") as refused:
            agent.invoke({"messages": [HumanMessage(text)]}, {"configurable": {"thread_id": "t"}})
    (request,) = server.requests
    name, size = refused.value.parts[0]
    assert name == "last user message"
    assert size == pytest.approx(request.tokens, rel=0.1), "in the provider's tokens, as the window is"


def test_a_call_that_is_cancelled_is_a_failed_turn(engine: Engine) -> None:
    middleware = EverlongMiddleware(engine)

    async def handler(_: ModelRequest[Any]) -> ModelResponse[Any]:
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(middleware.awrap_model_call(asked([HumanMessage("hi")], chat("http://localhost")), handler))
    assert kinds(engine, "t")[-1] == EventKind.TURN_FAILED


def test_usage_is_learned_from_the_answer(engine: Engine) -> None:
    with ScriptedServer() as server:
        agent = create_agent(chat(server.address), middleware=[EverlongMiddleware(engine)])
        agent.invoke({"messages": [HumanMessage("What floats?")]}, {"configurable": {"thread_id": "t"}})
    (used,) = engine.threads.events("t", kinds=[EventKind.USAGE_RECORDED])
    assert used.tokens_before == server.requests[0].tokens


# --- which conversation --------------------------------------------------------------------------------------------


def test_threads_and_agents_inside_agents_are_conversations_of_their_own(engine: Engine) -> None:
    ask = (("ask", '{"about": "tides"}'), ("ask", '{"about": "moons"}'))
    with ScriptedServer(in_turn([Answer(calls=ask)])) as server:
        middleware = EverlongMiddleware(engine, recall=False)
        inner = create_agent(chat(server.address), middleware=[middleware])

        def ask_expert(about: str) -> str:
            """Ask an expert."""
            state = inner.invoke({"messages": [HumanMessage(about)]})
            return str(state["messages"][-1].text)

        outer = create_agent(chat(server.address), [tool("ask")(ask_expert)], middleware=[middleware])
        outer.invoke({"messages": [HumanMessage("What moves the sea?")]}, {"configurable": {"thread_id": "a"}})
        outer.invoke({"messages": [HumanMessage("Who is there?")]}, {"configurable": {"thread_id": "b"}})
        outer.invoke({"messages": [HumanMessage("Nobody named me.")]})
    said = {
        thread.id: [row.entry.text for row in engine.threads.read(thread.id)] for thread in engine.threads.threads()
    }
    assert said["a"][0] == "What moves the sea?"
    assert said["b"] == ["Who is there?"]
    assert sorted(name.rpartition("/")[0] for name in said if name not in ("a", "b")) == ["", "a/tools", "a/tools"]
    assert sorted(texts[0] for name, texts in said.items() if "/" in name) == ["moons", "tides"]


def test_the_tool_to_recall_looks_in_its_own_conversation(engine: Engine) -> None:
    with ScriptedServer(
        in_turn([Answer(text="Noted."), Answer(calls=(("recall", '{"what": "strongbox number"}'),))])
    ) as server:
        agent = create_agent(
            chat(server.address), middleware=[EverlongMiddleware(engine)], checkpointer=InMemorySaver()
        )
        for text in ("The strongbox number is 77-413-20.", "Recall it."):
            state = agent.invoke({"messages": [HumanMessage(text)]}, {"configurable": {"thread_id": "t"}})
    answer = next(message for message in state["messages"] if isinstance(message, ToolMessage))
    assert "77-413-20" in answer.text
    assert [schema for schema in map(json.loads, server.requests[0].tools) if schema["function"]["name"] == "recall"]
