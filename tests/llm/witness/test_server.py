"""The witness over HTTP: a key, a window that refuses, answers piece by piece, nothing kept."""

import asyncio
from collections.abc import Coroutine
from dataclasses import replace
from typing import TypeVar

import pytest

from everlong.core import Message, Role, Text
from everlong.engine import Failed, Finished, Reply, Request, Said
from everlong.errors import ContextOverflow
from everlong.llm import WITNESS, HttpModel, WitnessServer
from everlong.llm.witness.server import REMEMBERED, WITNESS_WINDOW

T = TypeVar("T")


def say(text: str) -> Request:
    return Request(model=WITNESS, messages=(Message(Role.USER, (Text(text),)),))


async def replies(model: HttpModel, request: Request) -> list[Reply]:
    return [reply async for reply in model.stream(request)]


def run(work: Coroutine[None, None, T]) -> T:
    return asyncio.run(work)


@pytest.mark.parametrize("fmt", ["openai-chat", "anthropic"])
def test_it_answers_piece_by_piece_in_any_format(fmt: str) -> None:
    async def talk(server: WitnessServer) -> tuple[list[Reply], int | None]:
        model = HttpModel(server.endpoint(fmt))
        try:
            return await replies(model, say("hello")), await model.served_window(WITNESS)
        finally:
            await model.close()

    with WitnessServer() as server:
        told, window = run(talk(server))
    pieces = [reply.text for reply in told if isinstance(reply, Said)]
    assert len(pieces) > 5
    last = told[-1]
    assert isinstance(last, Finished)
    assert last.message.text == "".join(pieces)
    assert window == (WITNESS_WINDOW if fmt == "openai-chat" else window)


def test_what_is_too_long_is_refused_with_its_window() -> None:
    async def talk(server: WitnessServer) -> Reply:
        model = HttpModel(server.endpoint())
        try:
            return (await replies(model, say("word " * 2 * WITNESS_WINDOW)))[-1]
        finally:
            await model.close()

    with WitnessServer() as server:
        last = run(talk(server))
    assert isinstance(last, Failed)
    assert isinstance(last.error, ContextOverflow)
    assert last.error.limit == WITNESS_WINDOW


def test_without_its_key_nobody_is_answered() -> None:
    async def talk(server: WitnessServer) -> Reply:
        model = HttpModel(replace(server.endpoint(), key="another"))
        try:
            return (await replies(model, say("hello")))[-1]
        finally:
            await model.close()

    with WitnessServer() as server:
        last = run(talk(server))
        assert server.requests == []
    assert isinstance(last, Failed)
    assert "key" in str(last.error)


def test_it_keeps_no_more_than_the_last_requests() -> None:
    async def talk(server: WitnessServer) -> None:
        model = HttpModel(server.endpoint())
        try:
            for number in range(3 * REMEMBERED):
                await replies(model, replace(say(f"question {number}: who?"), max_tokens=10))
        finally:
            await model.close()

    with WitnessServer() as server:
        run(talk(server))
        assert [request.number for request in server.requests] == list(range(2 * REMEMBERED, 3 * REMEMBERED))
        assert server.held == {}
