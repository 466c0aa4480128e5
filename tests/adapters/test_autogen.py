"""AutoGen: a context that keeps everything, and a client that sends what fits of it."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from autogen_agentchat.agents import AssistantAgent
from autogen_core.model_context import ChatCompletionContext
from autogen_core.models import AssistantMessage, SystemMessage, UserMessage
from autogen_ext.models.openai import OpenAIChatCompletionClient

from everlong.adapters.autogen import EverlongChatCompletionContext
from everlong.testing import Answer, ScriptedServer, Window, in_turn
from tests.adapters.pages import run_example

ABLE = {"vision": True, "function_calling": True, "json_output": False, "structured_output": False, "family": "unknown"}
LONG = "The ship sails north and the wind is fair. " * 60
TALK = [
    UserMessage(content=f"Day {day}. {LONG}", source="user")
    if asks
    else AssistantMessage(content="Noted.", source="clerk")
    for day in range(30)
    for asks in (True, False)
]
LOG = SystemMessage(content="You keep the log.")


def client_of(server: ScriptedServer) -> Any:
    address = {"base_url": f"{server.address}/v1", "api_key": "key", "max_retries": 0}
    return OpenAIChatCompletionClient(model="scripted", model_info=ABLE, **address)


def test_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    steps = [Answer(calls=(("recall", '{"what": "ship"}'),)), Answer(text="The Marigold.")]
    printed, offered = run_example("autogen", steps, tmp_path, monkeypatch, capsys)
    assert offered[0] == "recall"
    assert printed, "an agent without a limit of iterations says what the tool answered"


def test_a_context_alone_fits_what_it_holds() -> None:
    async def main() -> None:
        context = EverlongChatCompletionContext("memory:", model="gpt-4o", window=8_000, initial_messages=list(TALK))
        fits = await context.get_messages()
        assert len(fits) < len(TALK)
        assert fits[-1] is TALK[-1]
        await context.add_message(UserMessage(content="And now?", source="user"))
        assert (await context.get_messages())[: len(fits)] == fits
        await context.clear()
        assert await context.get_messages() == []

    asyncio.run(main())


def test_a_wrapped_client_sends_what_fits_and_the_context_stays_whole() -> None:
    async def main() -> None:
        context = EverlongChatCompletionContext("memory:", window=8_000, initial_messages=list(TALK))
        client = context.wrap(client_of(server))
        assert await context.get_messages() == TALK
        assert (await client.create([LOG, *TALK])).content == "One."
        pieces = [
            piece async for piece in client.create_stream([LOG, *TALK, UserMessage(content="And now?", source="u")])
        ]
        assert pieces[-1].content == "".join(pieces[:-1]) == "Two."

    with ScriptedServer(in_turn([Answer(text="One."), Answer(text="Two.")]), window=Window(8_000)) as server:
        asyncio.run(main())
    first, second = server.requests
    assert first.messages[0].text == "You keep the log."
    assert second.messages[: len(first.messages)] == first.messages


def test_a_refusal_is_recovered_and_the_window_is_known_then() -> None:
    async def main() -> None:
        client = EverlongChatCompletionContext("memory:").wrap(client_of(server))
        assert (await client.create(TALK)).content == "One."
        assert len(server.requests) == 2, "the first was refused"
        more = [*TALK, UserMessage(content="And now?", source="user")]
        assert [piece async for piece in client.create_stream(more)][-1].content == "Two."
        assert len(server.requests) == 3

    with ScriptedServer(in_turn([Answer(text="One."), Answer(text="Two.")]), window=Window(8_000)) as server:
        asyncio.run(main())


def test_an_agents_state_and_its_description_go_into_autogens_own_files(tmp_path: Path) -> None:
    async def main() -> None:
        context = EverlongChatCompletionContext(
            str(tmp_path / "a.db"), thread="clerk", window=8_000, pins=["Be brief."]
        )
        agent = AssistantAgent("clerk", context.wrap(client_of(server)), model_context=context)
        await agent.run(task="hello")
        state, described = await agent.save_state(), agent.dump_component()
        again = AssistantAgent.load_component(described)
        await again.load_state(state)
        held = again.model_context
        assert isinstance(held, EverlongChatCompletionContext)
        assert (held.thread, await held.save_state()) == ("clerk", await context.save_state())
        assert (
            ChatCompletionContext.load_component(context.dump_component()).dump_component() == context.dump_component()
        )

    with ScriptedServer(in_turn([Answer(text="One.")])) as server:
        asyncio.run(main())
