"""What all adapters share: pins, recall, summaries by a model, and errors that say what to do."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from everlong import Author, HttpModel, InputError, NotRecovered, Settings, Usage, open_engine
from everlong.adapters.keeper import RECALL, RECALL_PARAMETERS, Keeper, format_of, missing
from everlong.core import EventKind
from everlong.llm import ReceivedRequest
from everlong.testing import Answer, ScriptedServer

TASK = {"role": "user", "content": "Read all files. The code word is PLOVER."}
OVERFLOW = RuntimeError("This model's maximum context length is 9000 tokens. However, your messages resulted in 20000.")


def step(number: int) -> list[dict[str, Any]]:
    call = {"id": f"c{number}", "type": "function", "function": {"name": "read", "arguments": f'{{"f": {number}}}'}}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"c{number}", "content": f"line of file {number}\n" * 40},
    ]


def work(steps: int) -> list[dict[str, Any]]:
    return [TASK, *(row for number in range(steps) for row in step(number))]


def test_pins_stand_in_every_request_and_are_pinned_once() -> None:
    keeper = Keeper(window=8_000, pins=["Never delete anything.", "Answer in French."])
    for steps in range(0, 60, 5):
        prepared = keeper.prepare("t", work(steps), model="gpt-4o", max_tokens=500)
        keeper.answered(prepared, None)
        pinned = [str(row["content"]) for row in prepared.messages if "Never delete anything." in str(row["content"])]
        assert len(pinned) == 1
        assert "Answer in French." in str(prepared.messages)
    assert len(keeper.engine.threads.pins(prepared.thread)) == 2
    assert prepared.compactions >= 1


def test_markers_name_the_tool_to_recall_only_where_there_is_one() -> None:
    for recall in (True, False):
        keeper = Keeper(window=8_000, recall=recall)
        prepared = keeper.prepare("t", work(60), model="gpt-4o", max_tokens=500)
        assert prepared.compactions >= 1 or prepared.edits
        assert (RECALL in str(prepared.messages)) is recall


def test_what_left_is_recalled_by_words() -> None:
    keeper = Keeper(window=8_000)
    keeper.answered(keeper.prepare("t", work(60), model="gpt-4o"), None)
    assert "line of file 3" in keeper.recalled("t", "file 3")
    assert asyncio.run(keeper.arecalled("t", "file 3")) == keeper.recalled("t", "file 3")
    assert "give a reference" in keeper.recalled("t", "  ")
    assert "has no messages yet" in keeper.recalled("another", "file 3")
    assert RECALL_PARAMETERS["required"] == ["what"]


def test_what_is_recalled_is_sized_to_the_window_and_holds_the_best() -> None:
    sizes = {}
    for window in (8_000, 100_000):
        keeper = Keeper(window=window)
        long = [row | {"content": row["content"] * 5} if row["role"] == "tool" else row for row in work(60)]
        keeper.answered(keeper.prepare("t", long, model="gpt-4o"), None)
        text = keeper.recalled("t", "line of file 37")
        assert "line of file 37" in text
        sizes[window] = len(text)
    assert sizes[8_000] <= 8_000 < sizes[100_000]


def test_an_overflow_is_recovered_twice_and_other_errors_are_the_frameworks() -> None:
    keeper = Keeper(window=200_000)
    prepared = keeper.prepare("t", work(60), model="gpt-4o")
    assert keeper.refused(prepared, ValueError("a bug")) is None
    prepared = keeper.prepare("t", work(60), model="gpt-4o")
    for _ in range(2):
        again = keeper.refused(prepared, OVERFLOW)
        assert again is not None
        assert again.tokens < min(9_000, prepared.tokens)
        prepared = again
    with pytest.raises(NotRecovered):
        keeper.refused(prepared, OVERFLOW)


def test_authors_write_summaries_of_a_history_that_a_framework_holds() -> None:
    def script(asked: ReceivedRequest) -> Answer:
        return Answer(text="The user wants all files read. The code word is PLOVER. Files so far held lines.")

    async def main(url: str) -> list[EventKind]:
        async with HttpModel(url, "gpt-4o") as model:
            written = Settings(summaries="on")  # by itself `auto` leaves work with tools to code
            keeper = Keeper(settings=written, window=8_000, authors=[Author(model=model, name="gpt-4o")])
            for steps in range(60):
                prepared = await keeper.aprepare("t", work(steps), model="gpt-4o", max_tokens=500)
                await keeper.aanswered(prepared, Usage(prompt=prepared.tokens, output=10))
            assert keeper.summaries is not None
            await keeper.summaries.drain()
            return [event.kind for event in keeper.engine.threads.events("t")]

    with ScriptedServer(script) as server:
        kinds = asyncio.run(main(server.url))
    assert EventKind.SUMMARY_APPLIED in kinds


@pytest.mark.parametrize(
    ("model", "provider", "fmt"),
    [
        ("claude-sonnet-4-5", "", "anthropic"),
        ("gpt-4o", "", "openai-chat"),
        ("gemini-2.5-pro", "", "gemini"),
        ("my-own", "", "openai-chat"),
        ("my-own", "anthropic", "anthropic"),
    ],
)
def test_the_format_is_that_of_the_models_maker(model: str, provider: str, fmt: str) -> None:
    assert format_of(model, provider) == fmt


def test_an_engine_of_ones_own_has_its_own_settings() -> None:
    with open_engine("memory:", settings=Settings(window=8_000)) as engine:
        assert Keeper(engine).engine is engine
        with pytest.raises(InputError, match=r"open_engine\('chat.db', settings=Settings\(window=9000\)\)"):
            Keeper(engine, window=9_000)
        with pytest.raises(InputError, match=r"settings=Settings\(…\)"):
            Keeper(engine, settings=Settings())


AUTHORS = 'authors must be a list of Authors, such as [Author(model=HttpModel("openai"), name="gpt-4o")], not '
WRONG_AUTHORS: dict[str, tuple[Any, str]] = {
    "names of models": (["gpt-4o"], "the string 'gpt-4o'"),
    "one name": ("gpt-4o", "the string 'gpt-4o'"),
    "a client without a name": ([HttpModel("http://127.0.0.1:9/v1", "gpt-4o")], "a HttpModel"),
    "a dict": ([{"model": "gpt-4o"}], "a dict"),
    "one that is not set": ([None], "None"),
}


@pytest.mark.parametrize("name", WRONG_AUTHORS)
def test_an_author_that_is_none_is_refused_before_a_store_is_made(name: str, tmp_path: Path) -> None:
    authors, what = WRONG_AUTHORS[name]
    with pytest.raises(InputError) as told:
        Keeper(str(tmp_path / "chat.db"), authors=authors)
    assert str(told.value) == AUTHORS + what
    assert not list(tmp_path.iterdir())


def test_a_framework_that_is_missing_is_named_with_what_to_install() -> None:
    error = missing("LangChain 1.4 or newer", "langchain>=1.4", "everlong.adapters.langchain")
    assert str(error) == 'everlong.adapters.langchain needs LangChain 1.4 or newer: pip install "langchain>=1.4"'
