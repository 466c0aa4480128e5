"""What a public value prints in a Python prompt: one short line that says what it is, and never a key."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from everlong import Call, HttpModel, Prepared, fit, open_engine, window

TALK = [{"role": "user", "content": f"Question {n}. " + "And the weather? " * 40} for n in range(20)]
BODY = {"model": "claude-opus-4-5", "max_tokens": 100, "system": "Be brief.", "messages": TALK[:1]}
MOST = 300  # characters: three lines of a terminal


def prepared() -> Prepared:
    async def prepare() -> Prepared:
        async with open_engine("memory:") as engine:
            await engine.append("harbour", TALK[:2])
            return await engine.prepare("harbour", Call(model="gpt-4o"))

    return asyncio.run(prepare())


#: A value, and how its text begins and ends.
PRINTED: dict[str, tuple[Callable[[], Any], str, str]] = {
    "a list that had to shrink": (
        lambda: fit(TALK, model="gpt-4o", budget=1_000),
        "<Fitted openai-chat: 20 messages in, ",
        " of 1,000 tokens, 18 edits>",
    ),
    "a body that fits": (
        lambda: fit(BODY, budget=1_000),
        "<Fitted anthropic: 2 messages in, 2 out, ",
        " of 1,000 tokens, 0 edits>",
    ),
    "a single message": (
        lambda: fit(TALK[:1], model="gpt-4o", preset="off"),
        "<Fitted openai-chat: 1 message in, 1 out, ",
        " tokens, 0 edits>",
    ),
    "a prepared request": (
        prepared,
        "<Prepared openai-chat: thread 'harbour', gpt-4o, 2 messages, ",
        " of 128,000 tokens, 0 edits>",
    ),
    "a window": (
        lambda: window("deepseek-chat"),
        "Window(model='deepseek-chat', context=",
        "))",
    ),
    "a guessed window": (
        lambda: window("my-own-model"),
        "Window(model='my-own-model', context=128000, source='default', known=False",
        ")",
    ),
    "a model behind HTTP": (
        lambda: HttpModel("openai", "gpt-4o", key="sk-secret"),
        "<HttpModel 'gpt-4o' at https://api.openai.com/v1",
        " (openai-chat)>",
    ),
    "a model without a name": (
        lambda: HttpModel("http://127.0.0.1:11434/v1"),
        "<HttpModel at http://127.0.0.1:11434/v1",
        " (openai-chat)>",
    ),
}


@pytest.mark.parametrize("name", PRINTED)
def test_a_value_prints_as_one_short_line(name: str) -> None:
    make, begins, ends = PRINTED[name]
    text = repr(make())
    assert (text[: len(begins)], text[-len(ends) :]) == (begins, ends)
    assert len(text) <= MOST
    assert "\n" not in text
    assert "secret" not in text
