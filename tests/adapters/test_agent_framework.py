"""Microsoft's Agent Framework with our provider: the real framework, a scripted provider over HTTP."""

import ast
import asyncio
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from agent_framework import Agent, Content, Message
from agent_framework.exceptions import ChatClientException
from agent_framework.openai import OpenAIChatClient, OpenAIChatCompletionClient
from hypothesis import given, strategies as st
from openai import AsyncOpenAI

from everlong.adapters.agent_framework import EverlongCompaction, EverlongMiddleware, EverlongProvider
from everlong.core import EventKind
from everlong.errors import NotRecovered
from everlong.llm import ReceivedRequest
from everlong.store import open_store
from everlong.testing import Answer, Refusal, ScriptedServer, Window, in_turn
from everlong.wire import problems
from everlong.wire.libraries.agent_framework import LIBRARY
from tests.adapters.pages import example_of
from tests.wire.conversations import objects, texts, values

pytestmark = pytest.mark.filterwarnings("ignore")  # the framework has some of its own
LONG = "The ship sails north and the wind is fair. " * 90
KINDS: dict[str, Any] = {"chat": OpenAIChatCompletionClient, "responses": OpenAIChatClient}


def client_of(server: ScriptedServer, kind: str = "chat", **more: Any) -> Any:
    client = AsyncOpenAI(base_url=server.url, api_key="key", max_retries=0)
    return KINDS[kind](model="scripted", async_client=client, **more)


def agent_of(server: ScriptedServer, kind: str = "chat", **more: Any) -> Agent:
    return Agent(
        client_of(server, kind),
        instructions="You are a careful clerk.",
        default_options={"store": False},
        **more,
    )


async def talk(agent: Agent, prompts: list[str], *, stream: bool = False) -> list[str]:
    session, said = agent.create_session(session_id="s"), []
    for prompt in prompts:
        if stream:
            pieces = agent.run(prompt, session=session, stream=True)
            words = "".join([piece.text async for piece in pieces])
            assert (await pieces.get_final_response()).text == words
            said.append(words)
        else:
            said.append((await agent.run(prompt, session=session)).text)
    return said


def days(count: int) -> list[str]:
    return [f"Day {day}: {LONG}" for day in range(count)]


def rows_of(asked: ReceivedRequest) -> list[Any]:
    body = json.loads(asked.body)
    assert problems(asked.fmt, body) == []
    return list(body.get("messages") or body["input"])


def breaks_in(server: ScriptedServer) -> int:
    requests = [rows_of(asked) for asked in server.requests]
    return sum(now[: len(before)] != before for before, now in pairwise(requests))


def noted(asked: ReceivedRequest) -> Answer:
    return Answer(text=f"Noted {asked.number}.")


def test_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    recalls = Answer(calls=(("recall", '{"what": "ship"}'),))
    with ScriptedServer(in_turn([recalls, Answer(text="The Marigold.")])) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        code = compile(example_of("agent-framework"), "agent-framework.md", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        asyncio.run(eval(code, {}))
    assert capsys.readouterr().out.strip() == "The Marigold."
    assert [json.loads(tool)["function"]["name"] for tool in server.requests[0].tools] == ["recall"]
    with open_store("desk.db") as store:
        (thread,) = store.threads()
        assert len(list(store.read(thread.id))) == 3


@pytest.mark.parametrize("kind", ["chat", "responses"])
@pytest.mark.parametrize("name", [None, "clerk"], ids=["no name", "a name"])
def test_requests_fit_and_begin_as_the_one_before(kind: str, name: str | None) -> None:
    def script(asked: ReceivedRequest) -> Answer:
        calls = (("look", '{"path": "a"}'), ("look", '{"path": "b"}'))
        return noted(asked) if asked.number % 2 else Answer(text="I look.", calls=calls)

    def look(path: str) -> str:
        """Look at a file."""
        return f"{path}: salt"

    async def work(server: ScriptedServer) -> int:
        provider = EverlongProvider(window=9_000)
        agent = agent_of(server, kind, name=name, tools=[look], context_providers=[provider])
        said = await talk(agent, days(20))
        assert all("Noted" in answer for answer in said)
        return len(list(provider.keeper.engine.threads.points("s")))

    with ScriptedServer(script, window=Window(9_000)) as server:
        points = asyncio.run(work(server))
    assert [asked for asked in server.requests if asked.tokens > 9_000] == []
    assert breaks_in(server) == points > 1


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_refusal_is_answered_with_a_smaller_request(stream: bool) -> None:
    async def work(server: ScriptedServer) -> list[Any]:
        provider = EverlongProvider()
        said = await talk(agent_of(server, context_providers=[provider]), days(14), stream=stream)
        assert all(answer.startswith("Noted") for answer in said)
        return [event.kind for event in provider.keeper.engine.threads.events("s")]

    with ScriptedServer(noted, window=Window(9_000)) as server:
        kinds = asyncio.run(work(server))
    assert kinds.count(EventKind.OVERFLOW_RECOVERED) == kinds.count(EventKind.OVERFLOW_DETECTED) == 1
    assert kinds.count(EventKind.USAGE_RECORDED) == 14


def test_another_failure_is_the_frameworks_own_and_one_beyond_help_says_what_to_do() -> None:
    with (
        ScriptedServer(lambda _: Refusal(401, '{"error": {"message": "who are you"}}')) as server,
        pytest.raises(ChatClientException, match="who are you"),
    ):
        asyncio.run(talk(agent_of(server, context_providers=[EverlongProvider()]), ["Hello."]))
    with ScriptedServer(noted, window=Window(30)) as server, pytest.raises(NotRecovered):
        asyncio.run(talk(agent_of(server, context_providers=[EverlongProvider()]), days(2)))


def test_an_answer_to_a_request_that_was_cut_in_silence_is_asked_for_again() -> None:
    with ScriptedServer(noted, window=Window(4_096, truncates=True)) as server:
        said = asyncio.run(talk(agent_of(server, context_providers=[EverlongProvider()]), days(8)))
    assert said[-1] == f"Noted {len(server.requests) - 1}."
    assert len(server.requests) > 8


def test_a_conversation_that_the_provider_holds_is_left_alone() -> None:
    async def work(server: ScriptedServer) -> None:
        provider = EverlongProvider()
        agent = Agent(client_of(server, "responses"), context_providers=[provider])
        await talk(agent, ["The seal is XR-9120.", "Go on."])
        assert len(list(provider.keeper.engine.threads.read("s"))) == 1

    with ScriptedServer(noted) as server:
        asyncio.run(work(server))
    assert "previous_response_id" in json.loads(server.requests[1].body)


def test_a_client_without_an_agent_is_fitted_by_the_middleware_alone() -> None:
    async def work(server: ScriptedServer) -> str:
        client = client_of(server)
        client.chat_middleware.append(EverlongMiddleware(window=6_000))
        talk = [Message(role, [f"{role} {day}. {LONG}"]) for day in range(8) for role in ("user", "assistant")]
        return str((await client.get_response([*talk, Message("user", ["Which day?"])])).text)

    with ScriptedServer(noted, window=Window(6_000)) as server:
        assert asyncio.run(work(server)) == "Noted 0."


def test_a_compaction_strategy_fits_the_list_and_changes_it_only_when_it_compacts() -> None:
    async def work(server: ScriptedServer) -> int:
        strategy = EverlongCompaction(model="scripted", window=9_000)
        agent = agent_of(server, compaction_strategy=strategy)
        await talk(agent, days(20))
        threads = strategy.keeper.engine.threads
        return len({row.entry for thread in threads.threads() for row, _ in threads.points(thread.id)})

    with ScriptedServer(noted, window=Window(9_000)) as server:
        points = asyncio.run(work(server))
    assert [asked for asked in server.requests if asked.tokens > 9_000] == []
    assert len(server.requests) == 20
    assert breaks_in(server) == points > 1


# --- messages ----------------------------------------------------------------------------------

pictures = st.builds(Content.from_data, st.binary(max_size=6), st.sampled_from(["image/png", "application/pdf"]))
links = st.builds(Content.from_uri, st.just("https://a/b.png"), media_type=st.just("image/png"))
sayings = st.builds(Content.from_text, texts, additional_properties=st.none() | objects)
contents = (
    sayings
    | pictures
    | links
    | st.builds(
        Content.from_text_reasoning,
        id=st.none() | st.just("rs_1"),
        text=st.none() | texts,
        protected_data=st.none() | st.just("c2VhbGVk"),
    )
    | st.builds(
        Content.from_function_call,
        st.just("c1"),
        st.just("read"),
        arguments=st.none() | st.just('{"path": "a"}') | objects,
        id=st.none() | st.just("af-call-1"),
    )
    | st.builds(
        Content.from_function_result,
        st.just("c1"),
        result=st.none() | texts | values | st.lists(sayings | pictures | links, max_size=2),
    )
    | st.builds(Content.from_hosted_file, st.just("file-1"))
    | st.builds(Content.from_error, message=texts)
)
messages = st.lists(
    st.builds(
        Message,
        st.sampled_from(["user", "assistant", "system", "tool"]),
        st.lists(contents, max_size=3),
        author_name=st.none() | st.just("ann"),
        message_id=st.none() | st.just("m1"),
        additional_properties=st.none() | objects,
    ),
    max_size=4,
)


@given(messages)
def test_messages_come_back_as_they_were(items: list[Message]) -> None:
    units = LIBRARY.read(items)
    assert [unit.items for unit in units] == [(item,) for item in items]
    again = LIBRARY.write([message for unit in units for message in unit.messages])
    assert [message.to_dict() for message in again] == [item.to_dict() for item in items]
