"""What one process announces reaches the others: whole, in order, once; and who was away is told so."""

import asyncio
from collections.abc import Callable, Iterator

import psycopg
import pytest
from hypothesis import given, settings, strategies as st

from everlong.store.postgres.notices import HEAD, LARGEST, MOST_BYTES, PostgresNotices, _pieces, _Texts
from tests.store.postgres_server import database_url, drop_database

SECONDS = 60.0


@pytest.fixture
def url() -> Iterator[str]:
    made = database_url()
    yield made
    drop_database(made)


async def until(holds: Callable[[], bool]) -> None:
    """Wait until something holds; a test that fails waits a minute."""
    async with asyncio.timeout(SECONDS):
        while not holds():
            await asyncio.sleep(0.01)


def test_texts_of_any_length_arrive_whole_and_in_order_and_not_at_their_sender(url: str) -> None:
    texts = ["one", "two", "two", "船" * 20_000, 'a\n"b"\0\ud800', "", "x" * (LARGEST + 1), "last"]

    async def run() -> tuple[list[str], list[str], int]:
        here, there = PostgresNotices(url), PostgresNotices(url)
        heard_here: list[str] = []
        heard: list[str] = []
        gaps: list[None] = []
        await here.start(heard_here.append, lambda: None)
        await there.start(heard.append, lambda: gaps.append(None))
        for text in texts:
            here.announce(text)
        await until(lambda: heard[-1:] == ["last"])
        there.announce("an answer")
        await until(lambda: bool(heard_here))
        await here.close()
        await there.close()
        return heard, heard_here, len(gaps)

    heard, heard_here, gaps = asyncio.run(run())
    assert heard == ["one", "two", "two", "船" * 20_000, 'a\n"b"?', " ", "last"]
    assert heard_here == ["an answer"]
    assert gaps == 1, "the one that was too long to be sent is noticed"


def test_after_a_lost_connection_it_listens_again_and_says_that_something_may_be_missed(url: str) -> None:
    async def run() -> tuple[list[str], int]:
        here, there = PostgresNotices(url), PostgresNotices(url)
        heard: list[str] = []
        gaps: list[None] = []
        await here.start(lambda _: None, lambda: None)
        await there.start(heard.append, lambda: gaps.append(None))
        here.announce("before")
        await until(lambda: heard == ["before"])
        with psycopg.connect(url, autocommit=True) as link:
            link.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
                " AND pid <> pg_backend_pid()"
            )
        await until(lambda: bool(gaps))
        here.announce("after")
        await until(lambda: heard[-1] == "after")
        await here.close()
        await there.close()
        return heard, len(gaps)

    heard, gaps = asyncio.run(run())
    assert heard == ["before", "after"]
    assert gaps >= 1


@given(st.text(min_size=1, max_size=4_000), st.integers(1, 6))
def test_pieces_are_the_text_and_fit(text: str, times: int) -> None:
    pieces = _pieces(text * times * 10)
    assert all(0 < len(piece.encode()) <= MOST_BYTES for piece in pieces)
    assert "".join(pieces) == ((text * times * 10).replace("\0", "").encode("utf-8", "replace").decode() or " ")


@settings(max_examples=300)
@given(st.data())
def test_whatever_is_lost_or_repeated_no_text_is_wrong_or_heard_twice(data: st.DataObject) -> None:
    """Pieces are lost, or sent again from some point on, as after a lost connection."""
    texts = [f"text {number} " + "x" * data.draw(st.integers(0, 3)) for number in range(6)]
    sender = "ab" * 16
    sent = []
    for number, text in enumerate(texts, start=1):
        cut = [text[at : at + 4] for at in range(0, len(text), 4)]
        sent += [(number, f"{sender} {number} {at} {len(cut)}\n{piece}") for at, piece in enumerate(cut)]
    order: list[int] = []
    at = 0
    while at < len(sent):
        step = data.draw(st.sampled_from(["send", "send", "send", "lose", "repeat"]))
        if step == "repeat" and order:
            at = max(0, at - data.draw(st.integers(1, 5)))
        elif step == "send":
            order.append(at)
        at += 1
    heard: list[str] = []
    gaps: list[None] = []
    receiver = _Texts("cd" * 16)
    for place in order:
        heard += receiver.take(sent[place][1], lambda: gaps.append(None))
    assert [text for text in texts if text in heard] == heard
    first = sent[order[0]][0] if order else 1
    lost = set(range(len(sent))) - set(order)
    if {sent[place][0] for place in lost if sent[place][0] > first and place < max(order, default=0)}:
        assert gaps, "a loss before what was heard last is noticed"
    assert all(HEAD.match(payload) for _, payload in sent)
