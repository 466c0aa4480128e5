"""Signs of life and the end of work, without a clock: the waiting is the test's own."""

import asyncio
from collections.abc import Awaitable, Mapping
from typing import Any, TypeVar

import pytest

from everlong.gateway.exchange.response import GONE, until_disconnect, with_comments

T = TypeVar("T")


def run(work: Awaitable[T]) -> T:
    """What it gives; nothing may be left running."""

    async def alone() -> T:
        result = await asyncio.wait_for(work, 20)
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return result

    return asyncio.run(alone())


class Waits:
    """A wait that never waits for time: work is done at the n-th; each is noted."""

    def __init__(self, done_at: int, work: "asyncio.Future[str]") -> None:
        self._done_at = done_at
        self._work = work
        self.seconds: list[float] = []

    async def __call__(self, task: "asyncio.Future[Any]", seconds: float) -> None:
        self.seconds.append(seconds)
        if len(self.seconds) == self._done_at:
            self._work.set_result("done")
            await asyncio.wait((task,))


@pytest.mark.parametrize(
    ("done_at", "seconds"), [(1, [5.0]), (2, [5.0, 2.0]), (4, [5.0, 2.0, 2.0, 2.0])], ids=["soon", "late", "very late"]
)
def test_comments_begin_after_a_while_and_come_again(done_at: int, seconds: list[float]) -> None:
    async def scene() -> tuple[str, int, list[float]]:
        sent: list[None] = []
        work = asyncio.get_running_loop().create_future()
        waits = Waits(done_at, work)

        async def comment() -> None:
            sent.append(None)

        result = await with_comments(work, comment, after=5.0, every=2.0, wait=waits)
        return result, len(sent), waits.seconds

    assert run(scene()) == ("done", done_at - 1, seconds)


def test_real_time_passes_too() -> None:
    async def scene() -> str:
        enough = asyncio.Event()
        sent: list[None] = []

        async def comment() -> None:
            sent.append(None)
            if len(sent) == 3:
                enough.set()

        async def work() -> str:
            await enough.wait()
            return "done"

        return await with_comments(work(), comment, after=0.001, every=0.001)

    assert run(scene()) == "done"


async def _nothing() -> None:
    return


def test_failure_of_the_work_is_the_callers() -> None:
    async def fails() -> str:
        raise LookupError("no")

    with pytest.raises(LookupError, match="no"):
        run(with_comments(fails(), _nothing, after=1.0, every=1.0))


class Endless:
    """Work that never ends by itself, says when it runs, and needs a moment to stop."""

    def __init__(self) -> None:
        self.runs = asyncio.Event()
        self.stopped = False

    async def __call__(self) -> str:
        self.runs.set()
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            for _ in range(3):
                await asyncio.sleep(0)
            self.stopped = True
        return "never"


def test_a_comment_that_cannot_be_sent_ends_the_work() -> None:
    async def scene() -> bool:
        work = Endless()

        async def broken() -> None:
            await work.runs.wait()
            raise ConnectionResetError

        with pytest.raises(ConnectionResetError):
            await with_comments(work(), broken, after=0.0, every=1.0)
        return work.stopped

    assert run(scene())


@pytest.mark.parametrize("cancels", [1, 2, 3])
@pytest.mark.parametrize("watched", [False, True], ids=["kept_alive", "until_gone"])
def test_cancelling_ends_the_work_before_it_returns(watched: bool, cancels: int) -> None:
    async def scene() -> bool:
        work = Endless()
        waiting = (
            until_disconnect(_never, work()) if watched else with_comments(work(), _nothing, after=60.0, every=60.0)
        )
        task = asyncio.ensure_future(waiting)
        await work.runs.wait()
        for _ in range(cancels):
            task.cancel()
            await asyncio.sleep(0)
        await asyncio.wait((task,))
        assert task.cancelled()
        return work.stopped

    assert run(scene())


async def _never() -> Mapping[str, Any]:
    await asyncio.get_running_loop().create_future()
    return {}


def test_work_that_is_done_is_given() -> None:
    async def work() -> int:
        return 7

    assert run(until_disconnect(_never, work())) == 7


@pytest.mark.parametrize(
    "before",
    [[], [("body", False)], [("bo", True), ("dy", False)]],
    ids=["the body was read", "the body is there", "the body comes in parts"],
)
def test_a_client_that_goes_ends_the_work(before: list[tuple[str, bool]]) -> None:
    async def scene() -> tuple[object, bool]:
        work = Endless()
        messages = [{"type": "http.request", "body": body.encode(), "more_body": more} for body, more in before]

        async def receive() -> Mapping[str, Any]:
            await work.runs.wait()
            return messages.pop(0) if messages else {"type": "http.disconnect"}

        return await until_disconnect(receive, work()), work.stopped

    assert run(scene()) == (GONE, True)


def test_a_server_that_repeats_the_end_of_the_body_starves_nobody() -> None:
    async def scene() -> tuple[object, int]:
        asked = 0

        async def receive() -> Mapping[str, Any]:
            nonlocal asked
            asked += 1
            return {"type": "http.request", "body": b"", "more_body": False}

        async def work() -> str:
            for _ in range(100):
                await asyncio.sleep(0)
            return "done"

        return await until_disconnect(receive, work()), asked

    assert run(scene()) == ("done", 2)


def test_what_fails_is_raised_whichever_it_is() -> None:
    async def fails() -> str:
        raise LookupError

    async def broken() -> Mapping[str, Any]:
        raise ConnectionResetError

    async def scene() -> bool:
        work = Endless()
        with pytest.raises(ConnectionResetError):
            await until_disconnect(broken, work())
        return work.stopped

    with pytest.raises(LookupError):
        run(until_disconnect(_never, fails()))
    run(scene())
