"""Packed answers: unpacked piece by piece, never beyond a bound, and never in one go."""

import asyncio
import gzip
import zlib
from collections.abc import Awaitable, Callable
from typing import TypeVar

import aiohttp
import pytest
from hypothesis import given, strategies as st

from everlong.core import Message, Role, Text
from everlong.errors import ProviderError
from everlong.llm import Endpoint, HttpModel, Patience, read_whole
from everlong.llm.bodies import PIECE, UnreadableBody, _Unpacking, pieces_of
from everlong.wire import Failed, Request
from tests.gateway.raw_upstream import PATIENCE, RawUpstream, Talk, response

T = TypeVar("T")
MIB = 1024 * 1024


def bomb(size: int) -> bytes:
    """So many blanks, packed: a thousandth of it."""
    packer = zlib.compressobj(9, wbits=31)
    parts = [packer.compress(b" " * MIB) for _ in range(size // MIB)]
    return b"".join([*parts, packer.flush()])


BOMB = bomb(400 * MIB)


def served(data: bytes, do: Callable[[aiohttp.ClientResponse], Awaitable[T]]) -> T:
    async def serve(talk: Talk) -> None:
        await talk.request()
        await talk.say(data)

    async def both() -> T:
        async with (
            RawUpstream(serve) as server,
            aiohttp.ClientSession() as session,
            session.get(f"http://127.0.0.1:{server.port}/", auto_decompress=False) as answer,
        ):
            return await do(answer)

    return asyncio.run(asyncio.wait_for(both(), PATIENCE))


def packed(body: bytes, encoding: str = "gzip") -> bytes:
    return response(body, more=(f"content-encoding: {encoding}",))


def test_others_get_their_turn_after_each_piece() -> None:
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def do(answer: aiohttp.ClientResponse) -> tuple[int, int, int]:
        beside = asyncio.create_task(others())
        sizes = [len(piece) async for piece in pieces_of(answer)]
        beside.cancel()
        return len(sizes), max(sizes), sum(sizes)

    pieces, largest, size = served(packed(bomb(20 * MIB)), do)
    assert size == 20 * MIB
    assert largest <= PIECE
    assert turns >= pieces >= 20 * MIB // PIECE


def test_unpacking_stops_at_the_bound() -> None:
    sizes: list[int] = []

    async def do(answer: aiohttp.ClientResponse) -> None:
        async for piece in pieces_of(answer, most=MIB):
            sizes.append(len(piece))  # noqa: PERF401 - what came before it raised counts

    with pytest.raises(UnreadableBody, match="larger than 1,048,576 bytes"):
        served(packed(BOMB), do)
    assert sum(sizes) == MIB


def test_of_a_whole_body_no_more_is_unpacked_than_is_wanted() -> None:
    async def do(answer: aiohttp.ClientResponse) -> bytes:
        return await read_whole(answer, 100_000)

    assert served(packed(BOMB), do) == b" " * 100_000


@pytest.mark.parametrize("encoding", ["br", "zstd", "compress", "gzip, gzip", "deflate,gzip"])
def test_what_was_not_asked_for_is_not_read(encoding: str) -> None:
    async def do(answer: aiohttp.ClientResponse) -> None:
        with pytest.raises(UnreadableBody, match="not requested"):
            await read_whole(answer, 100)

    served(packed(gzip.compress(b"x"), encoding), do)


@given(st.binary(max_size=400_000), st.integers(1, 70_000), st.sampled_from(["gzip", "deflate", "headless", "parts"]))
def test_any_body_in_any_split_comes_out_whole_in_pieces(body: bytes, split: int, how: str) -> None:
    match how:
        case "gzip":
            data = gzip.compress(body)
        case "parts":
            data = gzip.compress(body[:split]) + gzip.compress(body[split:]) + b"\0" * 8
        case "deflate":
            data = zlib.compress(body)
        case _:
            data = zlib.compress(body)[2:-4]
    unpacking = _Unpacking("gzip" if how in ("gzip", "parts") else "deflate")
    got = []
    for at in range(0, len(data), split):
        unpacking.feed(data[at : at + split])
        while piece := unpacking.piece():
            assert len(piece) <= PIECE
            got.append(piece)
    assert b"".join(got) == body
    assert unpacking.whole


def test_a_model_that_packs_too_much_into_its_reply_fails_in_one_line() -> None:
    async def serve(talk: Talk) -> None:
        await talk.request()
        await talk.say(packed(BOMB))

    async def do() -> ProviderError:
        async with RawUpstream(serve) as server:
            model = HttpModel(Endpoint(url=f"http://127.0.0.1:{server.port}/v1"), patience=Patience(attempts=1))
            request = Request(model="m", messages=(Message(Role.USER, (Text("Hello."),)),))
            async with model:
                last = [reply async for reply in model.stream(request)][-1]
            assert isinstance(last, Failed)
            return last.error

    error = asyncio.run(asyncio.wait_for(do(), PATIENCE))
    assert "\n" not in str(error)
