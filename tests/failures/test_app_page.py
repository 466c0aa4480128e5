"""What chat apps got wrong, as a person would see it in ours. Each test is named after its failure mode."""

import re

from playwright.sync_api import expect

from everlong.core import Message, Role, Text
from everlong.llm import Answer, Endpoint, ReceivedRequest, Refusal, ScriptedServer, Step
from everlong.web import Source
from tests.web.boats import FILLING, SUMMARY, TALKS, WINDOW, fill, is_asked_to_summarise, points, summaries_asked
from tests.web.browser import View, a_view, in_a_browser, the_page
from tests.web.running import an_app


def tokens(view: View) -> int:
    """What the panel says: "~1,234" -> 1234"""
    return int(re.sub(r"\D", "", view.panel.get_by_test_id("context-tokens").inner_text()))


@in_a_browser
def test_D4_the_price_of_sending_is_seen_and_tokens_are_the_limit() -> None:
    with ScriptedServer(TALKS, models=("gpt-4o",)) as server:
        known = Source(name="openai", endpoint=Endpoint(url=server.url, provider="openai"), models=("gpt-4o",))
        with an_app(sources=(known,), built=the_page()) as (app, _), a_view(app) as view:
            page = app.page()
            page.do("PUT", "/everlong/api/settings", {"windows": {"openai/gpt-4o": 32_000}})
            thread = page.thread()
            for number in range(6):
                said = Message(Role.USER, (Text(f"Report {number}: " + "figures and words " * 9_000),))
                app.state.threads.append(thread, [said, Message(Role.ASSISTANT, (Text("noted"),))])
            view.thread(thread)
            expect(view.panel.get_by_text(view.like("panel.cost_about"))).to_have_text(re.compile(r"\$0\.\d+"))
            expect(view.panel.get_by_role("status").get_by_text(view.like("panel.next.compaction"))).to_be_visible()
            view.say("What now?")
            expect(view.log.get_by_text("What now?")).to_be_visible()
            view.answered()
            assert server.requests
            assert all(asked.tokens <= 32_000 for asked in server.requests)


@in_a_browser
def test_H1_after_three_compactions_all_is_in_view_found_and_there_for_a_second_window() -> None:
    with an_app(TALKS, window=16_384, built=the_page()) as (app, _), a_view(app) as view:
        page = app.page()
        page.do("PUT", "/everlong/api/settings", {"auto": False})
        thread = page.thread("Boats at the pier")
        for number in range(3):
            page.say(thread, f"The code word of day {number} is marigold{number}.")
            fill(page, thread, 3)
            page.compact(thread)
        view.thread(thread)
        assert len(points(page, thread)) == 3
        seen: set[str] = set()
        while "row-0" not in seen:  # a page up at a time, as one would
            seen |= set(view.log.locator("[data-key]").evaluate_all("rows => rows.map(row => row.dataset.key)"))
            view.log.evaluate("box => { box.scrollTop -= box.clientHeight; }")
            view.page.evaluate("() => new Promise(requestAnimationFrame)")
        assert seen >= {f"row-{row['order']}" for row in page.rows(thread) if row["kind"] != "recalled"}
        view.page.keyboard.press("Control+k")
        view.page.keyboard.type("marigold0")
        hit = view.page.get_by_role("navigation").get_by_role("link").filter(has_text="The code word of day 0")
        hit.click()
        expect(view.log.get_by_text("The code word of day 0 is marigold0.")).to_be_in_viewport()
        with a_view(app) as other:
            other.thread(thread)
            other.to_first(other.word("chat.system"))
            expect(other.log.get_by_text("The code word of day 0 is marigold0.")).to_be_visible()


@in_a_browser
def test_H2_a_compaction_is_undone_and_new_turns_stay() -> None:
    with an_app(TALKS, window=WINDOW, built=the_page()) as (app, server), a_view(app) as view:
        page = app.page()
        thread = page.thread()
        fill(page, thread, 3)
        before = server.requests[-1].messages
        view.thread(thread)
        view.button("panel.compact").click()
        expect(view.summary()).to_be_visible()
        view.say("A new turn")
        expect(view.log.get_by_text("A new turn")).to_be_visible()
        view.answered()
        view.summary().get_by_role("button").first.click()
        view.summary().get_by_role("button", name=view.word("chat.undo"), exact=True).click()
        expect(view.log.get_by_text(view.word("chat.undone"))).to_be_visible()
        expect(view.log.get_by_text(view.word("chat.summary.past"))).to_be_visible()
        expect(view.log.get_by_text("A new turn")).to_be_visible()
        view.say("After the undo")
        expect(view.log.get_by_text("After the undo")).to_be_visible()
        view.answered()
        assert server.requests[-1].messages[: len(before)] == before


@in_a_browser
def test_H2_editing_makes_a_version_and_the_old_one_stays() -> None:
    with an_app(TALKS, window=WINDOW, built=the_page()) as (app, _), a_view(app) as view:
        page = app.page()
        thread = page.thread("Boats")
        fill(page, thread, 3)
        page.compact(thread)
        rows = page.rows(thread)
        view.thread(thread)
        view.to_first(view.word("chat.system"))
        message = view.log.get_by_role("article").filter(has_text="Question 1: what about it?").first
        message.hover()
        view.choose(message.get_by_role("button", name=view.word("chat.menu")), "chat.edit")
        box = view.log.get_by_role("textbox", name=view.word("chat.edit"))
        box.fill("What about the lighthouse?")
        box.press("Enter")
        expect(view.log.get_by_text("What about the lighthouse?")).to_be_visible()
        view.answered()
        expect(view.log.get_by_text("Question 1: what about it?")).to_have_count(0)
        expect(view.summary()).to_have_count(0)
        after = [row | {"versions": None} for row in page.rows(thread)]
        assert after == rows
        view.button("versions.previous").click()
        expect(view.log.get_by_text("Question 1: what about it?")).to_be_visible()


@in_a_browser
def test_H3_off_is_off() -> None:
    with an_app(TALKS, window=4_096, built=the_page()) as (app, server), a_view(app) as view:
        page = app.page()
        thread = page.thread()
        fill(page, thread, 1)
        view.thread(thread)
        view.panel.get_by_text(view.word("panel.auto.off"), exact=True).click()
        expect(view.panel.get_by_text(view.word("panel.auto.is_off"))).to_be_visible()
        for number in range(1, 8):
            view.say(f"Question {number}: what about it? {FILLING}")
            expect(view.log.get_by_text(f"Question {number}: what about it?")).to_be_visible()
            view.answered()
        assert not summaries_asked(server)
        assert all(asked.tokens <= 4_096 for asked in server.requests)
        expect(view.summary()).to_have_count(0)


@in_a_browser
def test_H4_the_panel_after_a_compaction_shows_what_is_sent_next() -> None:
    with an_app(TALKS, window=WINDOW, models=("gpt-4o",), built=the_page()) as (app, server), a_view(app) as view:
        page = app.page()
        thread = page.thread()
        fill(page, thread, 3)
        view.thread(thread)
        expect(view.panel.get_by_role("meter")).to_be_visible()
        before = tokens(view)
        view.button("panel.compact").click()
        expect(view.panel.get_by_text(view.like("panel.covered_other"))).to_be_visible()
        after = tokens(view)
        assert after < before
        limit = int(re.sub(r"\D", "", view.panel.get_by_test_id("context-limit").inner_text()))
        percent = float(view.panel.get_by_test_id("context-percent").inner_text().rstrip("%"))
        assert abs(percent - 100 * after / limit) < 0.6
        view.say("ok")
        expect(view.log.get_by_text("ok", exact=True)).to_be_visible()
        view.answered()
        assert abs(server.requests[-1].tokens - after) <= 0.1 * after + 20


@in_a_browser
def test_H5_a_failure_is_told_and_can_be_tried_again() -> None:
    well = [False]

    def script(asked: ReceivedRequest) -> Step:
        if is_asked_to_summarise(asked):
            return Answer(text=SUMMARY) if well[0] else Refusal(400, '{"error": {"message": "no summaries today"}}')
        return TALKS(asked)

    with an_app(script, window=WINDOW, built=the_page()) as (app, _), a_view(app) as view:
        page = app.page()
        # Here rules trim each request: a summary that fails is not made by rules as well.
        page.do("PUT", "/everlong/api/settings", {"preset": "chatbox", "threshold": 40})
        thread = page.thread()
        fill(page, thread, 2)
        view.thread(thread)
        failed = view.page.get_by_role("status").get_by_text(view.like("outcome.failed"))
        for number in range(2, 10):
            view.say(f"Question {number}: what about it? {FILLING}")
            expect(view.log.get_by_text(f"Question {number}: what about it?")).to_be_visible()
            view.answered()
            if failed.is_visible():
                break
        expect(failed).to_be_visible()
        expect(view.panel.get_by_role("alert")).to_contain_text("no summaries today")
        well[0] = True
        view.button("panel.retry").click()
        expect(view.summary()).to_be_visible()
        expect(failed).to_have_count(0)


@in_a_browser
def test_H5_an_answer_that_fails_is_told_and_tried_again_without_saying_it_twice() -> None:
    ill = [True]

    def script(asked: ReceivedRequest) -> Step:
        if ill[0]:
            return Refusal(400, '{"error": {"message": "not well today"}}')
        return Answer(text="Well again.")

    with an_app(script, built=the_page()) as (app, _), a_view(app) as view:
        page = app.page()
        thread = page.thread()
        view.open(f"#/t/{thread}")
        view.say("How are you?")
        failure = view.log.locator(".failure")
        failure.get_by_text(view.word("failure.details"), exact=True).click()
        expect(failure.get_by_text("not well today")).to_be_visible()
        ill[0] = False
        failure.get_by_role("button", name=view.word("app.retry")).click()
        expect(view.log.get_by_text("Well again.")).to_be_visible()
        expect(view.log.get_by_text("How are you?")).to_have_count(1)
        expect(view.page.get_by_text("not well today")).to_have_count(0)
