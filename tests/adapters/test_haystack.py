"""Haystack's agents past the window of their model: the real framework, a scripted provider over HTTP."""

import asyncio
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from haystack.components.agents import Agent
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage, FileContent, ImageContent, ReasoningContent, TextContent, ToolCall
from haystack.tools import create_tool_from_function
from haystack.utils import Secret

from everlong import open_engine
from everlong.adapters.haystack import EverlongChatGenerator
from everlong.testing import Answer, ScriptedServer, Window, reads_files
from everlong.wire.libraries.haystack import LIBRARY
from tests.adapters.pages import run_example

WINDOW = 12_000
CALL = ToolCall("read_file", {"path": "a.py"}, "c1", {"provider": 1})
PICTURE = ImageContent("iVBORw0KGgo=", "image/png", "low", {"page": 3})
MESSAGES = [
    ChatMessage.from_system("Be brief."),
    ChatMessage.from_user("Look.", meta={"at": 1}, name="clerk"),
    ChatMessage.from_user(content_parts=["This:", PICTURE, FileContent("JVBERi0=", "application/pdf", "a.pdf")]),
    ChatMessage.from_assistant(
        "I look.",
        {"usage": {"prompt_tokens": 3}},
        None,
        [CALL, ToolCall("now", {})],
        reasoning=ReasoningContent("hm", {"signature": "s"}),
    ),
    ChatMessage.from_tool("a = 1", CALL),
    ChatMessage.from_tool([TextContent("x"), PICTURE], CALL, error=True),
    ChatMessage.from_assistant(""),
]


def generator_at(server: ScriptedServer) -> OpenAIChatGenerator:
    return OpenAIChatGenerator(
        api_key=Secret.from_token("key"), model="scripted", api_base_url=server.url, max_retries=0
    )


def read_file(path: str) -> str:
    """Read a text file."""
    return "\n".join(f"def {path.replace('/', '_')}_{line}(): return {line}" for line in range(60))


def test_messages_are_read_and_written_without_loss() -> None:
    units = LIBRARY.read(MESSAGES)
    assert [unit.items for unit in units] == [(message,) for message in MESSAGES]
    assert LIBRARY.write([message for unit in units for message in unit.messages]) == MESSAGES


@pytest.mark.parametrize("told", [True, False])
def test_an_agent_goes_past_the_window(told: bool) -> None:
    with ScriptedServer(reads_files(8), window=Window(WINDOW)) as server:
        generator = EverlongChatGenerator(generator_at(server), window=WINDOW if told else None)
        agent = Agent(chat_generator=generator, tools=[create_tool_from_function(read_file), *generator.tools])
        history: list[ChatMessage] = []
        for number in range(3):
            result = agent.run(messages=[*history, ChatMessage.from_user(f"Question {number}?")])
            history = result["messages"]
    assert len(history) == 3 * (2 + 2 * 8)
    refused = [request for request in server.requests if request.tokens > WINDOW]
    assert len(refused) == (0 if told else 1)
    assert len(server.requests) == 27 + len(refused)


def test_conversations_are_told_apart_also_where_they_begin_alike() -> None:
    talks = (("hello",), ("hello", "yes?", "a"), ("hello", "no?", "b"), ("hello", "yes?", "a", "?", "c"))

    async def asked(generator: Any) -> list[str]:
        said = []
        for words in talks:
            kinds = (ChatMessage.from_assistant if at % 2 else ChatMessage.from_user for at in count())
            messages = [kind(word) for kind, word in zip(kinds, words, strict=False)]
            said.append((await generator.run_async(messages))["replies"][0].text)
        return said

    with ScriptedServer() as server, open_engine("memory:") as engine:
        generator = EverlongChatGenerator(generator_at(server), engine)
        assert asyncio.run(asked(generator)) == [words[-1] for words in talks]
        assert sorted(len(list(engine.threads.read(thread.id))) for thread in engine.threads.threads()) == [3, 5]


def test_it_is_written_as_a_dict_and_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    generator = EverlongChatGenerator(OpenAIChatGenerator(model="gpt-4o"), "memory:", window=WINDOW, pins=["K-47"])
    again = EverlongChatGenerator.from_dict(generator.to_dict())
    assert again.to_dict() == generator.to_dict()
    assert again.chat_generator.model == "gpt-4o"


def test_the_example_of_the_page_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    printed, offered = run_example("haystack", [Answer(text="Hello to you.")], tmp_path, monkeypatch, capsys)
    assert (printed, offered) == ("Hello to you.", ["recall"])
