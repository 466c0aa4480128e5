"""LlamaIndex: a memory that is kept in a store, and a model that sends what fits of it."""

from pathlib import Path
from typing import Any

import pytest
from llama_index.core.base.llms.types import ChatMessage, ImageBlock, TextBlock, ToolCallBlock
from llama_index.core.workflow import JsonSerializer
from llama_index.llms.openai_like import OpenAILike

from everlong.adapters.llama_index import EverlongMemory
from everlong.errors import NotRecovered
from everlong.testing import Answer, ScriptedServer, Window, in_turn
from tests.adapters.pages import run_example

LONG = "The ship sails north and the wind is fair. " * 60
TALK = [
    ChatMessage(role=role, content=f"Day {day}. {LONG if role == 'user' else 'Noted.'}")
    for day in range(30)
    for role in ("user", "assistant")
]


def model(server: ScriptedServer) -> Any:
    kind = {"is_chat_model": True, "is_function_calling_model": True}
    return OpenAILike(model="scripted", api_base=f"{server.address}/v1", api_key="key", max_retries=0, **kind)


def test_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    steps = [Answer(calls=(("recall", '{"what": "ship"}'),)), Answer(text="The Marigold.")]
    printed, offered = run_example("llama-index", steps, tmp_path, monkeypatch, capsys)
    assert printed == "The Marigold."
    assert offered == ["recall", "recall"]
    reopened = EverlongMemory.from_defaults(str(tmp_path / "chat.db"), session_id="ship")
    assert [message.role.value for message in reopened.get_all()] == ["user", "assistant", "tool", "assistant"]


def test_a_session_is_the_same_when_it_is_opened_again(tmp_path: Path) -> None:
    said = [
        ChatMessage(role="user", blocks=[TextBlock(text="See:"), ImageBlock(url="https://shelf.example/x.png")]),
        ChatMessage(
            role="assistant", blocks=[ToolCallBlock(tool_call_id="c1", tool_name="read", tool_kwargs={"path": "a"})]
        ),
        ChatMessage(role="tool", content="salt", additional_kwargs={"tool_call_id": "c1"}),
    ]
    store = str(tmp_path / "chat.db")
    memory = EverlongMemory.from_defaults(store, session_id="s", chat_history=said[:1])
    memory.put(said[1])
    memory.put_messages(said[2:])
    assert memory.get_all() == said
    assert all(held is item for held, item in zip(memory.get_all(), said, strict=True))
    assert EverlongMemory.from_defaults(store, session_id="s").get_all() == said
    assert EverlongMemory.from_defaults(store, session_id="another").get_all() == []
    memory.set(said[:1])
    assert EverlongMemory.from_defaults(store, session_id="s").get_all() == said[:1]
    memory.reset()
    assert memory.get_all() == EverlongMemory.from_defaults(store, session_id="s").get_all() == []


def test_a_memory_goes_into_llama_indexs_own_files(tmp_path: Path) -> None:
    memory = EverlongMemory.from_defaults(str(tmp_path / "chat.db"), session_id="s", window=8_000, pins=["Be brief."])
    memory.put(ChatMessage(content="hello"))
    again = JsonSerializer().deserialize(JsonSerializer().serialize(memory))
    assert isinstance(again, EverlongMemory)
    assert again.to_dict() == memory.to_dict()
    assert again.get_all() == [ChatMessage(content="hello")]


def test_a_memory_alone_fits_what_it_holds() -> None:
    memory = EverlongMemory.from_defaults("memory:", model="gpt-4o", window=8_000, chat_history=TALK)
    fits = memory.get()
    assert len(fits) < len(TALK)
    assert fits[-1] is TALK[-1]
    assert memory.get() == fits
    assert memory.get_all() == TALK


def test_a_wrapped_model_sends_what_fits_and_the_memory_stays_whole() -> None:
    with ScriptedServer(in_turn([Answer(text="One."), Answer(text="Two.")]), window=Window(8_000)) as server:
        memory = EverlongMemory.from_defaults("memory:", window=8_000, pins=["Dates are Julian."], chat_history=TALK)
        llm = memory.wrap(model(server))
        assert memory.get() == TALK
        assert llm.chat([ChatMessage(role="system", content="You keep the log."), *TALK]).message.content == "One."
        grown = [ChatMessage(role="system", content="You keep the log."), *TALK, ChatMessage(content="And now?")]
        assert "".join(str(piece.delta) for piece in llm.stream_chat(grown)) == "Two."
    first, second = server.requests
    assert "Dates are Julian." in " ".join(message.text for message in first.messages)
    assert second.messages[: len(first.messages)] == first.messages
    assert second.messages[-1].text == "And now?"


def test_a_refusal_is_recovered_once_and_for_all() -> None:
    with ScriptedServer(in_turn([Answer(text="One."), Answer(text="Two.")]), window=Window(8_000)) as server:
        memory = EverlongMemory.from_defaults("memory:", chat_history=TALK)
        llm = memory.wrap(model(server))
        assert llm.chat(TALK).message.content == "One."
        assert len(server.requests) == 2, "the first was refused"
        assert llm.chat([*TALK, ChatMessage(content="And now?")]).message.content == "Two."
        assert len(server.requests) == 3


def test_what_the_model_is_asked_beside_the_session_is_no_part_of_it() -> None:
    with ScriptedServer(in_turn([Answer(text="One."), Answer(text="Two."), Answer(text="Three.")])) as server:
        memory = EverlongMemory.from_defaults("memory:", session_id="s", chat_history=TALK[:2])
        llm = memory.wrap(model(server))
        llm.chat(TALK[:2])
        llm.chat([ChatMessage(content="Write this as JSON.")])
        llm.chat(TALK[:3])
        threads = {thread.id for thread in memory._keeper.engine.threads.threads()}
    assert threads >= {"s", "s/memory"}
    assert len(threads) == 3, "and no branch of the session"


def test_what_cannot_be_recovered_is_said() -> None:
    with ScriptedServer(window=Window(300)) as server:
        llm = EverlongMemory.from_defaults("memory:").wrap(model(server))
        with pytest.raises(NotRecovered):
            llm.chat([ChatMessage(content=LONG)])
        server_gone = model(server)
    with pytest.raises(Exception, match=r"[Cc]onnect"):
        EverlongMemory.from_defaults("memory:").wrap(server_gone).chat([ChatMessage(content="hello")])
