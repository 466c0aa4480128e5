"""What a caller passes wrongly to the Python interface is one line that names the argument and what it must be."""

import asyncio
import math
from collections.abc import Callable
from typing import Any

import pytest

from everlong import (
    Author,
    Call,
    Engine,
    EverlongError,
    HttpModel,
    InputError,
    Message,
    Role,
    Settings,
    Summaries,
    Text,
    count,
    endpoint_at,
    fit,
    open_store,
    window,
)
from everlong.engine import Titles

TALK: Any = [{"role": "user", "content": "hi " * 100}, {"role": "assistant", "content": "ok"}]
SCHEMA = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}
WRONG: Any = {
    "fit budget text": ("budget", lambda: fit(TALK, budget=_any("5"))),
    "fit budget nan": ("budget", lambda: fit(TALK, budget=_any(math.nan))),
    "fit budget inf": ("budget", lambda: fit(TALK, budget=_any(math.inf))),
    "fit budget below 0": ("budget", lambda: fit(TALK, budget=-1)),
    "fit budget half": ("budget", lambda: fit(TALK, budget=_any(1.5))),
    "fit budget True": ("budget", lambda: fit(TALK, budget=True)),
    "fit budget list": ("budget", lambda: fit(TALK, budget=_any([5]))),
    "fit preset None": ("preset", lambda: fit(TALK, preset=_any(None))),
    "fit preset list": ("preset", lambda: fit(TALK, preset=_any(["auto"]))),
    "fit preset unknown": ("preset", lambda: fit(TALK, preset="autoo")),
    "fit model number": ("model", lambda: fit(TALK, model=_any(5))),
    "fit model bytes": ("model", lambda: fit(TALK, model=_any(b"gpt-4o"))),
    "fit messages None": ("messages", lambda: fit(_any(None))),
    "fit messages text": ("messages", lambda: fit(_any("hello"))),
    "fit messages number": ("messages", lambda: fit(_any(5))),
    "fit tools None": ("tools", lambda: fit(TALK, tools=_any(None))),
    "fit tools dict": ("tools", lambda: fit(TALK, tools=_any(SCHEMA))),
    "fit tools number": ("tools[0]", lambda: fit(TALK, tools=_any([5]))),
    "fit tools a word": ("tools[0]", lambda: fit(TALK, tools=_any(["x"]))),
    "fit tools no JSON": ("tools[0]", lambda: fit(TALK, tools=[{"name": object()}])),
    "fit pins number": ("pins", lambda: fit(TALK, pins=_any(5))),
    "fit pins texts": ("a pin", lambda: fit(TALK, pins=_any(["0"]))),
    "fit previous list": ("previous", lambda: fit(TALK, previous=_any(TALK))),
    "count messages None": ("messages", lambda: count(_any(None))),
    "count model None": ("model", lambda: count(TALK, model=_any(None))),
    "window None": ("model", lambda: window(_any(None))),
    "open_store None": ("url", lambda: open_store(_any(None))),
    "open_store bytes": ("url", lambda: open_store(_any(b"chat.db"))),
    "Engine of a path": ("open_store('chat.db')", lambda: Engine(_any("chat.db"))),
    "Engine of None": ("threads", lambda: Engine(_any(None))),
    "Engine settings dict": ("settings", lambda: Engine(open_store("memory:"), settings=_any({"preset": "auto"}))),
    "Call model None": ("model", lambda: Call(model=_any(None))),
    "Call tools text": ("tools", lambda: Call(model="m", tools=_any("x"))),
    "Call tools number": ("tools[0]", lambda: Call(model="m", tools=_any((5,)))),
    "Call max_tokens text": ("max_tokens", lambda: Call(model="m", max_tokens=_any("5"))),
    "Call max_tokens inf": ("max_tokens", lambda: Call(model="m", max_tokens=_any(math.inf))),
    "Call temperature": ("temperature", lambda: Call(model="m", temperature=_any("hot"))),
    "Call extra dict": ("extra", lambda: Call(model="m", extra=_any({"top_p": 1}))),
    "Call standing text": ("standing", lambda: Call(model="m", standing=_any("be brief"))),
    "Call tail dict": ("tail[0]", lambda: Call(model="m", tail=_any((TALK[0],)))),
    "Settings threshold": ("threshold", lambda: Settings(threshold=_any("x"))),
    "Settings window": ("window", lambda: Settings(window=_any(1.5))),
    "endpoint_at None": ("where", lambda: endpoint_at(_any(None))),
    "HttpModel number": ("endpoint", lambda: HttpModel(_any(1))),
    "Summaries text": ("engine", lambda: Summaries(_any("chat.db"))),
    "Summaries authors names": ("authors", lambda: Summaries(Engine(open_store("memory:")), _any(["gpt-4o"]))),
    "Titles authors names": ("authors", lambda: Titles(Engine(open_store("memory:")), _any(["gpt-4o"]))),
    "Author model name": ("model of an Author", lambda: Author(model=_any("openai"), name="gpt-4o")),
    "Author model None": ("model of an Author", lambda: Author(model=_any(None), name="gpt-4o")),
    "append None": ("messages", lambda: _engine(lambda engine: engine.append("t", _any(None)))),
    "append texts": ("messages[0]", lambda: _engine(lambda engine: engine.append("t", _any(["hello"])))),
    "append a mixture": (
        "messages",
        lambda: _engine(lambda engine: engine.append("t", _any([Message(Role.USER, (Text("a"),)), TALK[0]]))),
    ),
    "append a role as text": (
        "messages[0].role",
        lambda: _engine(lambda engine: engine.append("t", [Message(_any("user"), (Text("a"),))])),
    ),
    "append words as parts": (
        "messages[0]",
        lambda: _engine(lambda engine: engine.append("t", [Message(Role.USER, _any("hello"))])),
    ),
    "append to None": ("thread", lambda: _engine(lambda engine: engine.append(_any(None), TALK))),
    "prepare a dict": ("call", lambda: _engine(lambda engine: engine.prepare("t", _any({"model": "gpt-4o"})))),
    "preview a name": ("call", lambda: _engine(lambda engine: engine.preview("t", _any("gpt-4o")))),
    "compact None": ("call", lambda: _engine(lambda engine: engine.compact("t", _any(None)))),
    "recover None": ("prepared", lambda: _engine(lambda engine: engine.recover(_any(None), _any(None)))),
    "record None": ("prepared", lambda: _engine(lambda engine: engine.record_usage(_any(None), None))),
    "pin a text as place": ("order", lambda: _engine(lambda engine: engine.pin("t", _any("0")))),
    "unpin None": ("pin", lambda: _engine(lambda engine: engine.unpin("t", _any(None)))),
    "recall None": ("what", lambda: _engine(lambda engine: engine.recall("t", _any(None)))),
    "recall limit": ("limit", lambda: _engine(lambda engine: engine.recall("t", "x", limit=_any("5")))),
}


def _any(value: object) -> Any:
    """A value whose type nobody checks, as in a program without types."""
    return value


def _engine(act: Callable[[Engine], Any]) -> object:
    async def run() -> object:
        engine = Engine(open_store("memory:"))
        await engine.append("t", TALK)
        return await act(engine)

    return asyncio.run(run())


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_argument_is_one_line_that_names_it(name: str) -> None:
    argument, wrong = WRONG[name]
    with pytest.raises(InputError) as told:
        wrong()
    assert argument in str(told.value)
    assert "\n" not in str(told.value)
    assert len(str(told.value)) < 250


def test_a_wrong_argument_changes_nothing_in_the_thread() -> None:
    async def run() -> int:
        store = open_store("memory:")
        engine = Engine(store)
        await engine.append("t", TALK)
        for wrong in (1, ["hello"], [TALK[0], None], None):
            with pytest.raises(InputError):
                await engine.append("t", _any(wrong))
        return len(list(store.read("t")))

    assert asyncio.run(run()) == len(TALK)


def test_a_call_accepts_tools_as_dicts_and_sends_them_as_texts() -> None:
    async def tokens(tools: Any) -> int:
        engine = Engine(open_store("memory:"))
        await engine.append("t", TALK)
        return (await engine.prepare("t", Call(model="gpt-4o", tools=tools))).tokens

    (text,) = Call(model="gpt-4o", tools=_any([SCHEMA])).tools
    assert asyncio.run(tokens([SCHEMA])) == asyncio.run(tokens((text,))) > asyncio.run(tokens(()))


def test_a_budget_of_zero_is_said_to_be_impossible_and_a_huge_one_is_not() -> None:
    with pytest.raises(EverlongError, match="the limit is 0"):
        fit(TALK, budget=0)
    assert fit(TALK, budget=10**30).messages == TALK
