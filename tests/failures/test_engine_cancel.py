"""F7: whoever goes away, and whenever: the turn has its one outcome, nothing is locked, the next turn works."""

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from typing import Any

import pytest

from everlong.engine import Engine, Finished
from everlong.llm import Answer, HttpModel, Refusal, ScriptedServer, Window, in_turn
from everlong.store import MemoryThreads
from tests.core.build import assistant, user
from tests.engine.talking import FORMATS, Talk, over_http, pages

TOO_LONG = Refusal(400, '{"error":{"message":"prompt is too long: 9000 tokens > 7000 maximum"}}')
COUNTED = frozenset({"thread", "pins", "append", "open", "read", "last", "record", "search", "fact", "keep_fact"})


class Interrupted(MemoryThreads):
    """A store that tells somebody when it is called for the n-th time."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0
        self.alarm: tuple[int, Callable[[], None]] | None = None

    def __getattribute__(self, name: str) -> Any:
        if name in COUNTED:
            self.calls += 1
            if self.alarm is not None and self.calls >= self.alarm[0]:
                ring, self.alarm = self.alarm[1], None
                ring()
        return super().__getattribute__(name)


async def _cancelled_at(talk: Talk, number: int) -> bool:
    """Cancel a turn at the n-th call of the store; whether it came to that."""
    threads = talk.threads
    assert isinstance(threads, Interrupted)
    await talk.engine.append(talk.thread, [user(f"Question {number}")])
    loop, rang = asyncio.get_running_loop(), asyncio.Event()
    turn = asyncio.ensure_future(talk.ask())

    def ring() -> None:
        loop.call_soon_threadsafe(turn.cancel)
        loop.call_soon_threadsafe(rang.set)

    threads.alarm = (threads.calls + number, ring)
    await asyncio.wait((turn,))
    reached = threads.alarm is None
    threads.alarm = None
    if reached:
        await rang.wait()
    return reached


@pytest.mark.parametrize("refusals", [0, 1, 3], ids=["answered", "recovered", "given up"])
def test_F7_a_cancel_at_any_call_of_the_store_leaves_one_outcome_and_a_thread_that_goes_on(refusals: int) -> None:
    async def run(model: HttpModel) -> None:
        number, reached = 1, True
        while reached:
            talk = Talk(model, threads=Interrupted())
            talk.threads.append(
                talk.thread, [m for at in range(9) for m in (user(f"Q {at}"), assistant(pages(at, 40)))]
            )
            server.model.script = in_turn([TOO_LONG] * refusals, then=lambda asked: Answer(text="one two three"))
            reached = await _cancelled_at(talk, number)
            talk.one_outcome_each()
            assert not talk.threads.unfinished(talk.thread)
            server.model.script = lambda asked: Answer(text="ok")
            assert isinstance((await talk.say("Still there?"))[-1], Finished)
            talk.one_outcome_each()
            number += 1
        assert number > 10

    with ScriptedServer(window=Window(16_000, told=True)) as server:
        over_http(server, run)


@pytest.mark.parametrize("fmt", FORMATS)
def test_F7_a_cancel_at_any_piece_of_the_answer_leaves_one_outcome(fmt: str) -> None:
    answer = Answer(text="one two three four five six seven eight nine ten", thinking="Hm.")

    async def run(model: HttpModel) -> None:
        for pieces in range(1, 5):
            talk = Talk(model)
            await talk.engine.append(talk.thread, [user("Hello")])
            seen = 0
            async with aclosing(talk.stream()) as replies:
                async for _ in replies:
                    seen += 1
                    if seen == pieces:
                        break
            talk.one_outcome_each()
            assert isinstance((await talk.say("Still there?"))[-1], Finished)
            talk.one_outcome_each()

    with ScriptedServer(lambda asked: answer) as server:
        over_http(server, run, fmt)


def test_F7_two_turns_of_one_thread_at_once_end_each_in_one_outcome() -> None:
    async def run(model: HttpModel) -> None:
        talk = Talk(model)
        await talk.engine.append(talk.thread, [user("Hello")])
        await asyncio.gather(*(talk.ask() for _ in range(6)))
        talk.one_outcome_each()
        assert len(talk.stored) == 2 + 6

    with ScriptedServer(lambda asked: Answer(text="ok")) as server:
        over_http(server, run)


def test_F7_two_who_come_first_both_get_in() -> None:
    async def run() -> int:
        threads = MemoryThreads()
        engine = Engine(threads)
        await asyncio.gather(*(engine.append("new", [user(f"Hello {at}")]) for at in range(8)))
        return threads.thread("new").messages

    assert asyncio.run(run()) == 8
