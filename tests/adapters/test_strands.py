"""Strands Agents with our conversation manager: the real framework, a scripted provider over HTTP."""

import asyncio
import json
from pathlib import Path
from typing import Any

import openai
import pytest
from strands import Agent, tool
from strands.agent.conversation_manager import SlidingWindowConversationManager, SummarizingConversationManager
from strands.models.openai import OpenAIModel
from strands.session.file_session_manager import FileSessionManager
from strands.types.exceptions import ContextWindowOverflowException

from everlong import InputError, NotRecovered
from everlong.adapters.strands import EverlongConversationManager
from everlong.core import EventKind
from everlong.llm import ReceivedRequest
from everlong.store import open_store
from everlong.testing import Answer, Refusal, ScriptedServer, Window, in_turn
from everlong.wire import problems
from tests.adapters.pages import run_example

pytestmark = pytest.mark.filterwarnings("ignore")  # the framework has some of its own
LONG = "The ship sails north and the wind is fair. " * 90


def agent_of(server: ScriptedServer, manager: Any, **more: Any) -> Agent:
    options = {"base_url": server.url, "api_key": "key", "max_retries": 0}
    return Agent(
        model=OpenAIModel(client_args=options, model_id="scripted"),
        system_prompt="You are a careful clerk.",
        conversation_manager=manager,
        callback_handler=None,
        **more,
    )


def talk(agent: Agent, prompts: list[str]) -> list[str]:
    async def all_of_it() -> list[str]:
        return [str(await agent.invoke_async(prompt)).strip() for prompt in prompts]

    return asyncio.run(all_of_it())


def days(count: int, start: int = 0) -> list[str]:
    return [f"Day {day}: {LONG}" for day in range(start, start + count)]


def rows_of(asked: ReceivedRequest) -> list[Any]:
    body = json.loads(asked.body)
    assert problems("openai-chat", body) == []
    return list(body["messages"])


def noted(asked: ReceivedRequest) -> Answer:
    return Answer(text=f"Noted {asked.number}.")


def test_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    steps = [Answer(calls=(("recall", '{"what": "ship"}'),)), Answer(text="The Marigold.")]
    printed, offered = run_example("strands", steps, tmp_path, monkeypatch, capsys)
    assert printed.endswith("The Marigold.")
    assert offered == ["recall", "recall"]
    with open_store(str(tmp_path / "desk.db")) as store:
        (thread,) = store.threads()
        assert len(list(store.read(thread.id))) == 3


def test_the_messages_stay_whole_and_every_request_fits() -> None:
    with ScriptedServer(noted, window=Window(9_000)) as server:
        agent = agent_of(server, EverlongConversationManager(window=9_000))
        prompts = days(24)
        assert all(said.startswith("Noted") for said in talk(agent, prompts))
    assert [message["content"][0]["text"] for message in agent.messages[::2]] == prompts
    assert [asked for asked in server.requests if asked.tokens > 9_000] == []
    requests = [rows_of(asked) for asked in server.requests]
    breaks = [at for at in range(1, len(requests)) if requests[at][: len(requests[at - 1])] != requests[at - 1]]
    points = list(agent.conversation_manager.keeper.engine.threads.points(agent.conversation_manager.thread))
    assert len(breaks) == len(points) > 1


@pytest.mark.parametrize(
    "body",
    [
        Window().body,
        '{"error": {"message": "prompt is too long: {tokens} tokens > {window} maximum", "code": "bad_request"}}',
        '{"error": {"message": "the request exceeds the available context size, try increasing it", "code": "x"}}',
    ],
    ids=["known to Strands", "Anthropic's words", "llama.cpp's words"],
)
def test_a_refusal_is_answered_with_a_smaller_request(body: str) -> None:
    with ScriptedServer(noted, window=Window(9_000, body=body)) as server:
        agent = agent_of(server, EverlongConversationManager())
        said = talk(agent, days(14))
        manager = agent.conversation_manager
    assert all(answer.startswith("Noted") for answer in said)
    kinds = [event.kind for event in manager.keeper.engine.threads.events(manager.thread)]
    assert kinds.count(EventKind.OVERFLOW_RECOVERED) >= 1
    assert kinds.count(EventKind.OVERFLOW_FAILED) == 0


def test_another_failure_is_the_frameworks_own_and_one_beyond_help_says_what_to_do() -> None:
    with (
        ScriptedServer(lambda _: Refusal(401, '{"error": {"message": "who are you"}}')) as server,
        pytest.raises(openai.AuthenticationError, match="who are you"),
    ):
        talk(agent_of(server, EverlongConversationManager()), ["Hello."])
    with ScriptedServer(noted, window=Window(30)) as server, pytest.raises(NotRecovered):
        talk(agent_of(server, EverlongConversationManager()), days(2))


def test_of_a_request_that_was_cut_in_silence_the_later_answer_counts() -> None:
    with ScriptedServer(noted, window=Window(4_096, truncates=True)) as server:
        agent = agent_of(server, EverlongConversationManager())
        said = talk(agent, days(8))
    assert said[-1] == f"Noted {len(server.requests) - 1}."
    assert len(server.requests) > 8
    assert len(agent.messages) == 16


def test_pins_and_parallel_calls_of_tools() -> None:
    calls = tuple(("read_file", json.dumps({"path": f"{name}.md"})) for name in "ab")
    steps = [Answer(text="I look.", calls=calls), Answer(text="Done.")]
    with ScriptedServer(in_turn(steps)) as server:
        manager = EverlongConversationManager(pins=["The seal is XR-9120."], recall=False)
        agent = agent_of(server, manager, tools=[tool(read_file)])
        assert talk(agent, ["Read both."]) == ["Done."]
    assert [row["role"] for row in rows_of(server.requests[1])][-3:] == ["assistant", "tool", "tool"]
    assert all("XR-9120" in asked.body.decode() for asked in server.requests)


def read_file(path: str) -> str:
    """Read a text file."""
    return f"{path}: salt"


# --- sessions ----------------------------------------------------------------------------------


def test_a_session_goes_on_in_another_process_with_the_same_prefix(tmp_path: Path) -> None:
    store = str(tmp_path / "desk.db")

    def begin(server: ScriptedServer) -> Agent:
        sessions = FileSessionManager(session_id="s", storage_dir=str(tmp_path / "sessions"))
        return agent_of(server, EverlongConversationManager(store, window=9_000), session_manager=sessions)

    with ScriptedServer(noted, window=Window(9_000)) as server:
        first = begin(server)
        talk(first, days(12))
        second = begin(server)
        assert second.conversation_manager.thread == first.conversation_manager.thread
        assert len(second.messages) == 24
        before = rows_of(server.requests[-1])
        talk(second, ["Go on."])
        after = rows_of(server.requests[-1])
    assert after[: len(before)] == before
    assert "Day 0" in asyncio.run(
        second.conversation_manager.keeper.arecalled(first.conversation_manager.thread, "Day 0")
    )


@pytest.mark.parametrize(
    "manager",
    [SlidingWindowConversationManager(window_size=4), SummarizingConversationManager(preserve_recent_messages=2)],
    ids=["sliding", "summarizing"],
)
def test_a_session_that_another_manager_has_cut_goes_on(manager: Any, tmp_path: Path) -> None:
    def sessions() -> FileSessionManager:
        return FileSessionManager(session_id="s", storage_dir=str(tmp_path))

    with ScriptedServer(noted) as server:
        old = agent_of(server, manager, session_manager=sessions())
        talk(old, days(6))
        if isinstance(manager, SummarizingConversationManager):
            manager.reduce_context(old)
            old._session_manager.sync_agent(old)
        kept = len(old.messages)
        for at in range(2):
            new = agent_of(server, EverlongConversationManager(), session_manager=sessions())
            assert len(new.messages) == kept + 2 * at
            assert new.messages[0]["role"] == "user"
            talk(new, ["Go on."])


def test_a_manager_belongs_to_one_agent() -> None:
    with ScriptedServer(noted) as server:
        manager = EverlongConversationManager()
        agent_of(server, manager)
        with pytest.raises(InputError, match="one agent"):
            agent_of(server, manager)
    with pytest.raises(ContextWindowOverflowException):
        manager.reduce_context(None, ContextWindowOverflowException("too long"))
