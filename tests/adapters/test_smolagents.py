"""smolagents: a model around the model, which sends what fits of an agent's memory."""

from pathlib import Path
from typing import Any

import pytest
from smolagents import CodeAgent, Model, OpenAIModel, ToolCallingAgent
from smolagents.models import ChatMessage, MessageRole

from everlong.adapters.smolagents import EverlongModel
from everlong.testing import Answer, ScriptedServer, Window, in_turn
from tests.adapters.pages import run_example

LONG = "The ship sails north and the wind is fair. " * 60


def said(role: MessageRole, text: str) -> ChatMessage:
    return ChatMessage(role, [{"type": "text", "text": text}])


TALK = [
    said(MessageRole.SYSTEM, "You keep the log."),
    said(MessageRole.USER, "New task:\nWrite down every day."),
    *(
        message
        for day in range(30)
        for message in (
            said(MessageRole.ASSISTANT, f"Thought: day {day}.\n<code>\nlook()\n</code>"),
            said(MessageRole.TOOL_RESPONSE, f"Observation:\nDay {day}. {LONG}"),
        )
    ),
]


def model_at(server: ScriptedServer, **options: Any) -> EverlongModel:
    inner = OpenAIModel(
        "scripted", api_base=f"{server.address}/v1", api_key="key", client_kwargs={"max_retries": 0}, retry=False
    )
    return EverlongModel(inner, **options)


def test_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    steps = [
        Answer(text="Thought: I ask.\n<code>\nprint(recall('ship'))\n</code>"),
        Answer(text="Thought: I know.\n<code>\nfinal_answer('The Marigold.')\n</code>"),
    ]
    printed, offered = run_example("smolagents", steps, tmp_path, monkeypatch, capsys)
    assert printed.endswith("The Marigold.")
    assert len(offered) == 2


def test_a_model_sends_what_fits_and_begins_as_before() -> None:
    with ScriptedServer(in_turn([Answer(text="One."), Answer(text="Two.")]), window=Window(8_000)) as server:
        model = model_at(server, window=8_000, pins=["Dates are Julian."])
        before = [list(message.content) for message in TALK]
        assert model.generate(TALK).content == "One."
        grown = [*TALK, said(MessageRole.ASSISTANT, "Thought: on.\n<code>\nlook()\n</code>")]
        grown.append(said(MessageRole.TOOL_RESPONSE, "Observation:\nnothing"))
        assert "".join(piece.content or "" for piece in model.generate_stream(grown)) == "Two."
    first, second = server.requests
    assert "Dates are Julian." in " ".join(message.text for message in first.messages)
    assert second.messages[: len(first.messages)] == first.messages
    assert [message.content for message in TALK] == before


def test_a_refusal_is_recovered_and_the_window_is_known_then() -> None:
    with ScriptedServer(in_turn([Answer(text="One."), Answer(text="Two.")]), window=Window(8_000)) as server:
        model = model_at(server)
        assert model.generate(TALK).content == "One."
        assert len(server.requests) == 2, "the first was refused"
        assert model.generate([*TALK, said(MessageRole.USER, "And now?")]).content == "Two."
        assert len(server.requests) == 3


def test_a_model_streams_only_if_the_one_inside_does() -> None:
    class Silent(Model):  # type: ignore[misc]
        """A model without streams."""

    assert not hasattr(EverlongModel(Silent(model_id="silent")), "generate_stream")
    with pytest.raises(ValueError, match="generate_stream"):
        CodeAgent([], EverlongModel(Silent(model_id="silent")), stream_outputs=True)


def test_conversations_of_one_model_are_told_apart_by_their_beginning() -> None:
    answers = [Answer(text="All.", calls=(("final_answer", '{"answer": "done"}'),))] * 3
    with ScriptedServer(in_turn(answers)) as server:
        model = model_at(server, thread="crew")
        first = ToolCallingAgent([], model, verbosity_level=0)
        second = ToolCallingAgent([], model, instructions="You count.", verbosity_level=0)
        assert (first.run("Go."), second.run("Go."), first.run("On.", reset=False)) == ("done", "done", "done")
        threads = model.keeper.engine.threads.threads()
    assert len(threads) == 2
    assert all(thread.id.startswith("crew-") for thread in threads)
