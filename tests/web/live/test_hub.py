"""Events to many pages: numbered, replayed, bounded; who does not read is let go."""

import asyncio

from everlong.web.live.hub import CHANNELS, KEPT, WAITING, Hub, Wanted
from tests.web.running import Stream, an_app


def test_who_was_away_hears_what_came_since_and_no_more() -> None:
    hub = Hub()
    channel = hub.channel("t")
    for number in range(5):
        hub.publish("t", {"type": "said", "text": str(number)})
    assert len(channel.missed(channel.last) or ["x"]) == 1
    assert len(channel.missed(f"{channel.run}-2") or []) == 3
    for unknown in ("", "other-2", f"{channel.run}-99", f"{channel.run}-x", f"{channel.run}--1", "9" * 5_000):
        assert channel.missed(unknown) is None


def test_what_is_kept_is_bounded() -> None:
    hub = Hub()
    for _ in range(KEPT + 10):
        hub.publish("t", {"type": "said", "text": ""})
    channel = hub.channel("t")
    assert len(channel.kept) == KEPT
    assert channel.missed(f"{channel.run}-5") is None
    assert len(channel.missed(f"{channel.run}-10") or []) == KEPT
    for number in range(CHANNELS + 20):
        hub.publish(f"thread {number}", {"type": "said", "text": ""})
    assert hub.channel("t") is not channel


def test_a_reader_that_does_not_read_is_let_go_and_the_others_are_not() -> None:
    async def run() -> tuple[int, bool]:
        hub = Hub()
        slow, quick = hub.listen([Wanted(thread="t")]), hub.listen([Wanted(thread="t")])
        await anext(slow)
        await anext(quick)
        heard = 0
        for _ in range(WAITING + 1):
            hub.publish("t", {"type": "said", "text": "x"})
            await anext(quick)
            heard += 1
        ended = [text async for text in slow] == []
        await quick.aclose()
        return heard, ended

    assert asyncio.run(run()) == (WAITING + 1, True)


def test_closing_ends_every_stream() -> None:
    async def run() -> list[str]:
        hub = Hub()
        stream = hub.listen([Wanted(thread="t", hello=lambda behind: [{"type": "running", "running": behind}])])
        first = await anext(stream)
        hub.close()
        return [first, *[text async for text in stream]]

    assert len(asyncio.run(run())) == 1


def test_requests_of_the_gateway_are_told_to_who_looks_on() -> None:
    with an_app() as (app, _):
        page = app.page()
        with Stream(page, "/everlong/api/live") as stream:
            told = {"type": "request", "id": "r1", "model": "gpt-4o", "tokens": {"before": 9, "after": 5, "saved": 4}}
            app.run(lambda: app.state.report_request(told))
            assert stream.until("request")[-1] == told


def test_a_server_that_is_told_to_end_does_not_wait_for_pages() -> None:
    with an_app() as (app, _):
        page = app.page()
        with page.listen(page.thread()) as stream:
            app.state.end_streams()
            stream.wait_for_end()
