"""Failure modes of windows, budgets and usage, through the engine over HTTP: C1, C5, C6, F6, I2."""

import asyncio
import json
from collections.abc import Callable

import pytest

from everlong.core import History
from everlong.engine import Call, Engine, Finished, Prepared, Settings
from everlong.llm import Answer, HttpModel, ReceivedRequest, ScriptedServer, Window, reads_files
from everlong.store import MemoryThreads
from everlong.wire import Usage
from tests.core.build import system, user
from tests.engine.talking import Talk, over_http

TOOL = json.dumps({"name": "read_file", "description": "Reads a file. " * 20, "parameters": {"type": "object"}})


def _prepared(call: Call, settings: Settings | None = None, learned: int | None = None) -> Prepared:
    threads = MemoryThreads()
    threads.create("t")
    threads.append("t", [system("s"), user("hello")])
    if learned is not None:
        threads.keep_fact("window", json.dumps([call.endpoint, call.model]), json.dumps(learned))
    return Engine(threads, settings=settings or Settings()).blocking.prepare("t", call)


@pytest.mark.parametrize(
    ("user_says", "learned", "served", "model", "expected"),
    [
        (9_000, 8_000, 7_000, "gpt-4o", (9_000, "user")),
        (None, 8_000, 7_000, "gpt-4o", (8_000, "learned")),
        (None, None, 7_000, "gpt-4o", (7_000, "served")),
        (None, None, None, "gpt-4o", (128_000, "registry")),
        (None, None, None, "nobody-knows-me", (128_000, "default")),
    ],
    ids=["user", "learned", "served", "registry", "default"],
)
def test_C1_the_window_comes_from_who_knows_best_and_says_so(
    user_says: int | None, learned: int | None, served: int | None, model: str, expected: tuple[int, str]
) -> None:
    call = Call(model=model, endpoint="here", served=served)
    prepared = _prepared(call, Settings(window=user_says), learned)
    assert (prepared.window.context, prepared.window.source) == expected
    assert prepared.budget.available > expected[0] // 2


def test_C1_what_one_endpoint_taught_is_not_believed_of_another() -> None:
    call = Call(model="gpt-4o", endpoint="here")
    assert _prepared(call, learned=8_000).window.context == 8_000
    threads = MemoryThreads()
    threads.create("t")
    threads.append("t", [user("hello")])
    threads.keep_fact("window", json.dumps(["there", "gpt-4o"]), "8000")
    assert Engine(threads).blocking.prepare("t", call).window.context == 128_000


def test_C1_an_unknown_model_gets_a_usable_budget_and_a_warning() -> None:
    threads = MemoryThreads()
    threads.create("t")
    threads.append("t", [user("hello")])
    blocking = Engine(threads).blocking
    for _ in range(2):
        prepared = blocking.prepare("t", Call(model="nobody-knows-me"))
        blocking.record_usage(prepared, None)
    assert not prepared.window.known
    warned = [event for event in threads.events("t") if event.kind == "context.warned"]
    assert len(warned) == 1
    assert "EVERLONG_WINDOW" in warned[0].reason


STYLES: dict[str, Callable[[ReceivedRequest], Usage]] = {
    "all cached": lambda asked: Usage(prompt=asked.tokens, cached=asked.tokens, output=3),
    "nothing cached": lambda asked: Usage(prompt=asked.tokens, output=3),
    "written": lambda asked: Usage(prompt=asked.tokens, cache_written=asked.tokens // 2, output=3),
}


@pytest.mark.parametrize("fmt", ["anthropic", "gemini", "ollama", "openai-chat", "openai-responses"])
@pytest.mark.parametrize("style", STYLES)
def test_C5_cached_tokens_are_counted_once_however_they_are_reported(style: str, fmt: str) -> None:
    async def run(model: HttpModel) -> None:
        talk = Talk(model)
        for turn in range(6):
            assert isinstance((await talk.say(f"Question {turn} " + "word " * 300))[-1], Finished)
        used = [event.tokens_before for event in talk.events if event.kind == "usage.recorded"]
        assert used == [asked.tokens for asked in server.requests]
        prepared = await talk.engine.prepare(talk.thread, Call(model="gpt-4o", endpoint=model.endpoint, fmt=fmt))
        assert abs(prepared.tokens - prepared.counted) <= 0.02 * prepared.counted

    with ScriptedServer(lambda asked: Answer(text="ok", usage=STYLES[style](asked))) as server:
        over_http(server, run, fmt)


def test_C5_tools_and_system_text_are_part_of_every_figure() -> None:
    bare = _prepared(Call(model="gpt-4o"))
    tooled = _prepared(Call(model="gpt-4o", tools=(TOOL,) * 200))
    assert tooled.budget.tools > 200 * 60
    assert tooled.tokens - bare.tokens >= tooled.budget.tools
    assert tooled.budget.available == bare.budget.available - tooled.budget.tools


@pytest.mark.parametrize("asked_for", [None, 1, 500, 4_096, 65_536, 10_000_000])
@pytest.mark.parametrize("window", [2_048, 8_192, 16_384, 131_072, 1_000_000])
@pytest.mark.parametrize("model", ["gpt-4o", "claude-opus-4-5", "nobody-knows-me"])
def test_C6_the_reserve_leaves_room_and_the_reply_fits_what_is_left(
    model: str, window: int, asked_for: int | None
) -> None:
    prepared = _prepared(Call(model=model, served=window, max_tokens=asked_for))
    reserve = window - prepared.budget.available
    assert prepared.budget.available > 0
    assert reserve <= window * 0.54, "half for the answer at most, and the margin"
    sent = prepared.request.max_tokens
    assert sent is None or prepared.tokens + sent <= window
    if asked_for is not None and asked_for < window // 2:
        assert sent == asked_for


@pytest.mark.parametrize("reserve", [500, 2_000, 6_000])
def test_C6_setting_the_reserve_moves_the_trigger(reserve: int) -> None:
    plain = _prepared(Call(model="gpt-4o", served=32_000), Settings(reserve=0))
    less = _prepared(Call(model="gpt-4o", served=32_000), Settings(reserve=reserve))
    moved = plain.budget.available - less.budget.available
    assert moved == reserve - (plain.budget.margin - less.budget.margin)


def test_C6_a_16k_model_without_an_output_limit_does_not_cut_at_once() -> None:
    with ScriptedServer(reads_files(1), window=Window(16_000, told=True)) as server:

        async def run(model: HttpModel) -> list[str]:
            talk = Talk(model, call=Call(model="nobody-knows-me"), lines=20)
            for turn in range(5):
                await talk.say(f"Question {turn}")
            return talk.kinds()

        assert "context.compressed" not in over_http(server, run)


def test_F6_a_smaller_model_gets_a_smaller_request_first_and_a_larger_one_everything_again() -> None:
    large = ScriptedServer(reads_files(2), window=Window(200_000, told=True))
    small = ScriptedServer(reads_files(2), window=Window(8_000, told=True))

    async def run(model: HttpModel) -> tuple[History, list[str]]:
        talk = Talk(model)
        for turn in range(16):
            await talk.say(f"Question {turn}")

        async def shrunk(other: HttpModel) -> None:
            talk.model = other
            assert isinstance((await talk.say("On a small one"))[-1], Finished)

        await asyncio.to_thread(over_http, small, shrunk)
        talk.model = model
        assert isinstance((await talk.say("Back again"))[-1], Finished)
        return talk.stored, talk.kinds()

    with large, small:
        stored, kinds = over_http(large, run)
    assert all(asked.tokens + 500 <= 8_000 for asked in small.requests)
    assert "overflow.detected" not in kinds
    assert kinds.count("context.restored") >= 1
    sent = large.requests[-1].messages
    assert [message.text for message in stored[: len(sent)] if message.text] == [m.text for m in sent if m.text]


def test_I2_the_event_loop_goes_on_while_five_megabytes_are_counted() -> None:
    async def run() -> tuple[int, int]:
        threads = MemoryThreads()
        engine = Engine(threads)
        text = "".join(
            f"line {at}: the quick brown fox jumps over the lazy dog; 中文也一样。\n" for at in range(80_000)
        )
        await engine.append("t", [user(text[at : at + 50_000]) for at in range(0, 5_000_000, 50_000)])
        ticks = 0
        counting = asyncio.ensure_future(engine.prepare("t", Call(model="gpt-4o", served=4_000_000)))
        while not counting.done():
            await asyncio.sleep(0)
            ticks += 1
        return ticks, counting.result().counted

    ticks, counted = asyncio.run(run())
    assert counted > 1_000_000
    assert ticks > 50
