"""Many tabs of one browser: one stream for all of them, words in each, and nothing left behind by those that close."""

import time
from collections.abc import Callable
from dataclasses import replace

from playwright.sync_api import Route, expect

from everlong.core import JsonObject
from everlong.llm import Answer, ReceivedRequest, Step
from tests.web.browser import PATIENCE, View, a_view, in_a_browser, the_page
from tests.web.running import RunningApp, an_app

TABS = 10


def script(asked: ReceivedRequest) -> Step:
    name = asked.messages[-1].text.split()[-1]
    return Answer(text=f"first-{name} " + "and so on " * 30 + f"last-{name}", between=0.005)


def another(view: View) -> View:
    """Another tab of the same browser."""
    return replace(view, page=view.page.context.new_page())


def wait_until(view: View, holds: Callable[[], bool]) -> None:
    """Until something holds at the server; the browser goes on meanwhile."""
    end = time.monotonic() + PATIENCE / 1_000
    while not holds():
        assert time.monotonic() < end
        view.page.wait_for_timeout(20)


def streams(app: RunningApp) -> int:
    return app.state.hub.streams


@in_a_browser
def test_ten_tabs_answer_at_once_through_one_stream() -> None:
    with an_app(script, built=the_page()) as (app, _), a_view(app) as view:
        page = app.page()
        threads = [page.thread() for _ in range(TABS)]
        tabs = [view, *(another(view) for _ in threads[1:])]
        for tab, thread in zip(tabs, threads, strict=True):
            tab.open(f"#/t/{thread}")
        for number, tab in enumerate(tabs):
            tab.say(f"Say something to tab {number}")
        for number, tab in enumerate(tabs):
            expect(tab.log.get_by_text(f"first-{number}")).to_be_visible()
        assert streams(app) <= 2
        for number, tab in enumerate(tabs):
            expect(tab.log.get_by_text(f"last-{number}")).to_have_count(1)
            tab.answered()
        for tab in tabs[1:]:
            tab.page.close()
        wait_until(view, lambda: streams(app) == 1 and readers(app, threads) == [1, *[0] * (TABS - 1)])
        view.say("Still there, tab 0")
        expect(view.log.get_by_text("last-0")).to_have_count(2)


def readers(app: RunningApp, threads: list[str]) -> list[int]:
    """How many streams tell of each thread."""
    return [len(app.state.hub.channel(thread).readers) for thread in threads]


@in_a_browser
def test_two_tabs_of_one_thread_show_the_same_words_once() -> None:
    with an_app(script, built=the_page()) as (app, _), a_view(app) as view:
        thread = app.page().thread()
        view.open(f"#/t/{thread}")
        view.say("Talk to tab 1")
        expect(view.log.get_by_text("first-1")).to_be_visible()
        late = another(view)
        late.open(f"#/t/{thread}")
        for tab in (view, late):
            expect(tab.log.get_by_text("last-1")).to_have_count(1)
            tab.answered()
            assert tab.log.inner_text().count("first-1") == 1
            assert tab.log.inner_text().count("and so on") == 30
        wait_until(view, lambda: streams(app) == 1)


@in_a_browser
def test_a_browser_without_shared_workers_has_a_stream_in_each_tab() -> None:
    with an_app(script, built=the_page()) as (app, _), a_view(app) as view:
        view.page.context.add_init_script("delete globalThis.SharedWorker")
        page = app.page()
        threads = [page.thread(), page.thread()]
        tabs = [view, another(view)]
        for number, (tab, thread) in enumerate(zip(tabs, threads, strict=True)):
            tab.open(f"#/t/{thread}")
            tab.say(f"Talk to tab {number}")
        for number, tab in enumerate(tabs):
            expect(tab.log.get_by_text(f"last-{number}")).to_be_visible()
        assert streams(app) == 2
        tabs[1].page.close()
        wait_until(view, lambda: streams(app) == 1)


HIDE = """(hidden) => {
    Object.defineProperty(document, "hidden", {value: hidden, configurable: true});
    Object.defineProperty(document, "visibilityState", {value: hidden ? "hidden" : "visible", configurable: true});
    document.dispatchEvent(new Event("visibilitychange"));
}"""


@in_a_browser
def test_a_tab_out_of_sight_is_told_no_words_and_catches_up_when_it_is_shown() -> None:
    with an_app(script, built=the_page()) as (app, _), a_view(app) as view:
        page = app.page()
        thread = page.thread()
        view.page.clock.install()
        view.open(f"#/t/{thread}")
        view.say("Talk to tab 1")
        expect(view.log.get_by_text("last-1")).to_be_visible()
        view.page.evaluate(HIDE, True)
        view.page.clock.fast_forward(21_000)
        channel = app.state.hub.channel(thread)
        wait_until(view, lambda: [wanted.quiet for wanted in channel.readers.values()] == [True])
        page.say(thread, "Talk to tab 2")
        expect(view.page).to_have_title(view.like("tab.unseen"))
        view.page.evaluate(HIDE, False)
        wait_until(view, lambda: [wanted.quiet for wanted in channel.readers.values()] == [False])
        expect(view.log.get_by_text("last-2")).to_have_count(1)
        assert view.log.inner_text().count("first-2") == 1


@in_a_browser
def test_the_requests_of_the_gateway_come_through_the_same_stream() -> None:
    with an_app(script, built=the_page()) as (app, _), a_view(app) as view:
        view.open(f"#/t/{app.page().thread()}")
        live = another(view)
        live.open("#/live")
        expect(live.page.get_by_text(live.word("live.connected"))).to_be_visible()
        told: JsonObject = {
            "type": "request", "id": "r1", "time": 1.0, "model": "model-7", "upstream": "main", "status": 200,
            "tokens": {"before": 9, "after": 5, "saved": 4}, "edits": [], "recovered": False, "added_ms": 1.0,
            "seconds": 0.5, "error": None,
        }  # fmt: skip
        app.run(lambda: app.state.report_request(told))
        expect(live.page.get_by_text("model-7")).to_be_visible()
        assert streams(app) == 1


@in_a_browser
def test_a_stream_that_the_server_ends_goes_on_where_it_was() -> None:
    with an_app(script, built=the_page()) as (app, _), a_view(app) as view:
        thread = app.page().thread()
        view.open(f"#/t/{thread}")
        view.say("Talk to tab 1")
        expect(view.log.get_by_text("first-1")).to_be_visible()
        app.state.end_streams()
        expect(view.log.get_by_text("last-1")).to_have_count(1)
        view.answered()
        assert view.log.inner_text().count("and so on") == 30


@in_a_browser
def test_what_happened_before_the_stream_was_there_is_shown_as_soon_as_it_is() -> None:
    held: list[Route] = []
    with an_app(script, built=the_page()) as (app, _), a_view(app) as view:
        view.page.context.add_init_script("delete globalThis.SharedWorker")
        view.page.route("**/everlong/api/events*", lambda route: held.append(route))
        page = app.page()
        thread = page.thread()
        page.say(thread, "Talk to tab 1")
        view.thread(thread)
        expect(view.log.get_by_text("last-1")).to_be_visible()
        wait_until(view, lambda: bool(held))
        page.say(thread, "Talk to tab 2")
        page.do("PATCH", f"/everlong/api/threads/{thread}", {"title": "Renamed meanwhile"})
        for one in held:
            one.continue_()
        view.listening()
        expect(view.log.get_by_text("last-2")).to_be_visible()
        expect(view.page).to_have_title("Renamed meanwhile · Everlong")
