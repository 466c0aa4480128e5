"""The chat app's lines of the Chatbox document, as a person sees them. Each test is named after the line it proves."""

import re
from threading import Event as Signal

import pytest
from playwright.sync_api import Locator, expect

from everlong.core import CallId, Message, Role, Text, ToolCall, ToolResult
from everlong.llm import Answer, ReceivedRequest, Refusal, ScriptedServer, Step, Window
from tests.web.boats import FILLING, SUMMARY, TALKS, WINDOW, WORDS, fill, summaries_asked, talks
from tests.web.browser import View, a_view, in_a_browser, the_page
from tests.web.running import an_app

LANGUAGES = ("en-US", "zh-CN")
#: Threshold -> its label: below 60 lower cost, 60 to 75 balanced, above keep more.
LABELS = {
    40: ("Lower cost", "成本优先"),
    55: ("Lower cost", "成本优先"),
    60: ("Balanced", "平衡模式"),
    75: ("Balanced", "平衡模式"),
    80: ("Keep more", "信息保留"),
    90: ("Keep more", "信息保留"),
}


def figure(locator: Locator) -> int:
    """The number in a text: "~1,234" -> 1234"""
    return int(re.sub(r"\D", "", locator.inner_text()))


def bar(view: View) -> Locator:
    return view.panel.get_by_role("meter")


@in_a_browser
def test_CB_1_a_talk_is_compacted_by_itself_and_all_of_it_stays_in_view() -> None:
    with an_app(TALKS, window=WINDOW, built=the_page()) as (app, server), a_view(app) as view:
        page = app.page()
        thread = page.thread()
        fill(page, thread, 2)
        view.thread(thread)
        for number in range(2, 12):
            view.say(f"Question {number}: what about it? {FILLING}")
            expect(view.log.get_by_text(f"Question {number}: what about it?")).to_be_visible()
            view.answered()
            if summaries_asked(server):
                break
        summary = view.summary()
        expect(summary).to_be_visible()
        expect(summary).to_contain_text(view.like("cut.messages_other"))
        expect(summary.get_by_text(WORDS)).to_have_count(0)
        ground = "it => getComputedStyle(it.querySelector('.fold') ?? it).backgroundColor"
        answer = view.log.get_by_role("article", name=view.word("role.assistant")).last
        assert summary.evaluate(ground) != answer.evaluate(ground)  # a look of its own
        summary.get_by_role("button", expanded=False).first.click()
        expect(summary.get_by_text(WORDS)).to_be_visible()
        view.say("And now?")
        expect(view.log.get_by_text("And now?")).to_be_visible()
        view.answered()
        sent = [message.text for message in server.requests[-1].messages]
        assert WORDS in sent[1]
        assert not any(text.startswith("Question 1") for text in sent), [text[:80] for text in sent]
        view.to_first(view.word("chat.system"))
        expect(view.log.get_by_text("Question 0: what about it?")).to_be_visible()


@in_a_browser
def test_CB_1_6_the_thread_opens_from_the_list_as_it_was_before_a_compaction() -> None:
    with an_app(TALKS, window=WINDOW, built=the_page()) as (app, _), a_view(app) as view:
        page = app.page()
        thread, other = page.thread("Boats at the pier"), page.thread("Another talk")
        fill(page, thread, 3)
        page.compact(thread)
        page.say(thread, "And after that?")
        page.say(other, "hello")
        view.thread(other)
        expect(view.summary()).to_have_count(0)
        line = view.page.get_by_role("navigation").get_by_role("listitem").filter(has_text="Boats at the pier")
        line.hover()
        view.choose(line.get_by_role("button"), "threads.before")
        view.page.get_by_role("dialog").get_by_role("listitem").get_by_role("link").or_(
            view.page.get_by_role("dialog").get_by_role("listitem").get_by_role("button")
        ).first.click()
        expect(view.page.get_by_text(view.word("chat.past"))).to_be_visible()
        expect(view.log.get_by_text("Question 2: what about it?")).to_be_visible()
        expect(view.log.get_by_text("And after that?")).to_have_count(0)
        expect(view.field).to_have_count(0)
        view.page.get_by_role("link", name=view.word("chat.past.back")).click()
        expect(view.log.get_by_text("And after that?")).to_be_visible()


@in_a_browser
def test_CB_2_old_tool_calls_stay_in_view_and_say_that_they_were_not_sent() -> None:
    with an_app(built=the_page()) as (app, server), a_view(app) as view:
        page = app.page()
        page.do("PUT", "/everlong/api/settings", {"preset": "chatbox", "windows": {"main/scripted": 100_000}})
        thread = page.thread()
        for number in range(5):
            call = CallId(f"c{number}")
            app.state.threads.append(
                thread,
                [
                    Message(Role.USER, (Text(f"Question {number}"),)),
                    Message(Role.ASSISTANT, (ToolCall(call, "look", "{}"),)),
                    Message(Role.TOOL, (ToolResult(call, (Text(f"found {number}"),), name="look"),)),
                    Message(Role.ASSISTANT, (Text(f"Answer {number}"),)),
                ],
            )
        view.thread(thread)
        view.say("And?")
        expect(view.log.get_by_text("And?").last).to_be_visible()
        view.answered()
        cards = view.log.get_by_role("button", name=re.compile("^look"))
        expect(cards).to_have_count(5)
        expect(cards.first).to_contain_text(view.word("chat.not_sent"))
        expect(cards.last).not_to_contain_text(view.word("chat.not_sent"))
        cards.first.click()
        expect(view.log.get_by_text("found 0")).to_be_visible()
        assert b"found 0" not in server.requests[-1].body


@in_a_browser
def test_CB_3_an_unknown_window_shows_no_bar_until_it_is_set_right_there() -> None:
    with an_app(TALKS, told=False, built=the_page()) as (app, _), a_view(app) as view:
        page = app.page()
        thread = page.thread()
        fill(page, thread, 1)
        view.thread(thread)
        expect(view.panel.get_by_text(view.word("panel.limit_unknown").format(assumed="96,000"))).to_be_visible()
        expect(bar(view)).to_have_count(0)
        expect(view.panel.get_by_test_id("context-percent")).to_have_count(0)
        expect(view.panel.get_by_role("radio", name=view.word("panel.auto.follow"))).to_be_disabled()
        expect(view.panel.get_by_text(view.word("panel.switch_unknown"))).to_be_visible()
        window = view.panel.get_by_role("textbox", name=view.like("panel.set_window"))
        window.fill("twelve")
        window.press("Enter")
        expect(view.panel.get_by_role("alert")).to_have_text(view.word("panel.set_window_wrong"))
        window.fill("32,000")
        view.button("panel.set_window_save").click()
        expect(bar(view)).to_be_visible()
        expect(view.panel.get_by_test_id("context-percent")).to_have_text(re.compile(r"\d+(\.\d)?%"))
        expect(view.panel.get_by_role("radio", name=view.word("panel.auto.follow"))).to_be_enabled()
        expect(view.panel.get_by_test_id("context-limit")).to_contain_text("32,000")
        expect(view.panel.get_by_text(view.word("panel.source.user"))).to_be_visible()


@in_a_browser
@pytest.mark.parametrize("language", LANGUAGES)
def test_CB_4_the_threshold_moves_in_steps_of_five_and_says_what_it_favours(language: str) -> None:
    with an_app(built=the_page()) as (app, _), a_view(app, language=language) as view:
        view.open("#/settings")
        slider = view.page.get_by_role("slider")
        expect(slider).to_have_value("60")
        slider.press("Home")
        seen = {}
        for percent in range(40, 95, 5):
            expect(slider).to_have_value(str(percent))
            seen[percent] = view.page.get_by_test_id("threshold-label").inner_text()
            slider.press("ArrowRight")
        column = LANGUAGES.index(language)
        assert {percent: seen[percent] for percent in LABELS} == {at: words[column] for at, words in LABELS.items()}
        expect(slider).to_have_value("90")
        for _ in range(3):
            slider.press("ArrowLeft")
        expect(view.page.locator("output")).to_have_text("75%")
        view.page.wait_for_function(
            "() => fetch('/everlong/api/settings').then(got => got.json()).then(now => now.threshold === 75)"
        )


@in_a_browser
def test_CB_4_one_switch_for_all_and_each_thread_follows_it_or_has_its_own() -> None:
    with an_app(TALKS, window=WINDOW, built=the_page()) as (app, _), a_view(app) as view:
        page = app.page()
        thread = page.thread()
        fill(page, thread, 1)
        view.open("#/settings")
        everywhere = view.page.get_by_role("switch", name=view.word("settings.auto"))
        expect(everywhere).to_be_checked()
        everywhere.press("Space")
        expect(everywhere).not_to_be_checked()
        expect(view.page.get_by_text(view.word("settings.saved"), exact=True)).to_be_visible()
        view.thread(thread)
        expect(view.panel.get_by_text(view.like("panel.auto.follow_off"))).to_be_visible()
        expect(view.panel.get_by_role("radio", name=view.word("panel.auto.follow"))).to_be_checked()
        for choice, on in (("on", True), ("off", False)):
            view.panel.get_by_text(view.word(f"panel.auto.{choice}"), exact=True).click()
            expect(view.panel.get_by_text(view.like(f"panel.auto.is_{choice}"))).to_be_visible()
            assert page.get(f"/everlong/api/threads/{thread}/context")["auto_on"] is on
        view.page.reload()
        expect(view.panel.get_by_role("radio", name=view.word("panel.auto.off"))).to_be_checked()


@in_a_browser
def test_CB_5_the_models_that_write_summaries_and_titles_are_chosen_in_the_settings() -> None:
    with (
        an_app(TALKS, window=WINDOW, models=("talker", "namer", "writer"), built=the_page()) as (app, server),
        a_view(app) as view,
    ):
        page = app.page()
        view.open("#/settings")
        view.page.get_by_title(view.word("settings.summary_model")).click()
        view.page.get_by_role("grid").get_by_title("main/writer").click()
        expect(view.page.get_by_text(view.word("settings.saved"), exact=True)).to_be_visible()
        view.page.get_by_title(view.word("settings.naming_model")).click()
        view.page.get_by_role("grid").get_by_title("main/namer").click()
        view.page.wait_for_function(
            "() => fetch('/everlong/api/settings').then(got => got.json())"
            ".then(now => now.naming_model === 'main/namer')"
        )
        thread = page.thread(model="main/talker")
        fill(page, thread, 3)
        view.thread(thread)
        view.button("panel.compact").click()
        expect(view.summary()).to_be_visible()
        assert summaries_asked(server)[-1].model == "writer"


@in_a_browser
@pytest.mark.parametrize("language", LANGUAGES)
def test_CB_6_the_panel_in_each_of_its_states(language: str) -> None:
    may_write = Signal()

    def writes(_: ReceivedRequest) -> Step:
        may_write.wait(60)
        return Answer(text=SUMMARY)

    with (
        ScriptedServer(writes, models=("writer",)) as slow,
        an_app(TALKS, window=16_384, built=the_page()) as (app, _),
        a_view(app, language=language) as view,
    ):
        page = app.page()
        page.do("POST", "/everlong/api/sources", {"name": "slow", "url": slow.url})
        page.do("PUT", "/everlong/api/settings", {"summary_model": "slow/writer"})
        thread = page.thread()
        fill(page, thread, 4)
        view.thread(thread)
        expect(bar(view)).to_be_visible()
        before = figure(view.panel.get_by_test_id("context-tokens"))
        limit = figure(view.panel.get_by_test_id("context-limit"))
        percent = float(view.panel.get_by_test_id("context-percent").inner_text().rstrip("%"))
        assert abs(percent - 100 * before / limit) < 0.6
        expect(view.panel.get_by_text(view.like("panel.auto.follow_on"))).to_be_visible()
        expect(view.panel.get_by_role("row").filter(has_text=view.word("panel.part.assistant"))).to_be_visible()
        view.panel.get_by_label(view.word("panel.focus")).fill("the pier")
        view.button("panel.compact").click()
        expect(view.button("panel.compacting")).to_be_disabled()
        expect(view.panel.get_by_role("radio", name=view.word("panel.auto.follow"))).to_be_disabled()
        expect(view.panel.get_by_text(view.word("panel.progress"))).to_be_visible()
        expect(view.page.get_by_role("status").get_by_text(view.word("compacting.title"))).to_be_visible()
        view.say("And meanwhile?")
        expect(view.log.get_by_text("And meanwhile?")).to_be_visible()
        view.answered()
        may_write.set()
        expect(view.summary()).to_be_visible()
        view.summary().get_by_role("button").first.click()
        expect(view.summary().get_by_text(view.like("chat.focus"))).to_be_visible()
        expect(view.panel.get_by_text(view.like("panel.covered_other"))).to_be_visible()
        expect(view.panel.get_by_role("row").filter(has_text=view.word("panel.part.summary"))).to_be_visible()
        assert figure(view.panel.get_by_test_id("context-tokens")) < before
        view.button("panel.undo").click()
        expect(view.button("panel.undo")).to_have_count(0)
        expect(view.log.get_by_text(view.word("chat.undone"))).to_be_visible()


@in_a_browser
def test_CB_6_a_window_that_is_nearly_full_warns() -> None:
    with an_app(window=4_096, built=the_page()) as (app, _), a_view(app) as view:
        page = app.page()
        thread = page.thread()
        page.do("PATCH", f"/everlong/api/threads/{thread}", {"auto": "off"})
        said = [Message(Role.USER, (Text(f"Question {number}? {FILLING}"),)) for number in range(17)]
        app.state.threads.append(thread, said)
        view.thread(thread)
        warning = view.panel.get_by_role("status")
        expect(warning).to_contain_text(view.word("panel.nearly_full"))
        expect(warning).to_contain_text(view.word("panel.next.off"))
        view.panel.get_by_text(view.word("panel.auto.on"), exact=True).click()
        expect(warning).to_contain_text(view.word("panel.next.compaction"))


@in_a_browser
def test_CB_7_a_smaller_model_is_chosen_and_the_next_request_fits() -> None:
    with (
        ScriptedServer(TALKS, window=Window(4_096, told=True), models=("small",)) as small,
        an_app(TALKS, window=64_000, built=the_page()) as (app, _),
        a_view(app) as view,
    ):
        page = app.page()
        page.do("POST", "/everlong/api/sources", {"name": "pocket", "url": small.url})
        thread = page.thread()
        fill(page, thread, 6)
        view.thread(thread)
        view.page.get_by_role("button", name=view.word("model.choose")).click()
        view.page.get_by_role("grid").get_by_title("pocket/small").click()
        told = view.page.get_by_text(view.like("panel.switched_smaller"))
        expect(told).to_be_visible()
        expect(view.panel.get_by_role("status")).to_contain_text(view.word("panel.over_limit"))
        expect(view.panel.get_by_test_id("context-next")).to_have_text(view.word("panel.next.compaction"))
        view.say("And now?")
        expect(view.log.get_by_text("And now?")).to_be_visible()
        view.answered()
        talk = [asked for asked in small.requests if asked not in summaries_asked(small)]
        assert len(talk) == 1
        assert talk[0].tokens < 4_096
        expect(view.page.get_by_role("button", name=view.word("app.retry"))).to_have_count(0)
        assert figure(view.panel.get_by_test_id("context-tokens")) <= figure(view.panel.get_by_test_id("context-limit"))


@in_a_browser
def test_CB_8_a_summary_that_fails_never_blocks_sending() -> None:
    broken = talks(Refusal(400, '{"error": {"message": "no summaries today"}}'))
    with an_app(broken, window=WINDOW, built=the_page()) as (app, server), a_view(app) as view:
        page = app.page()
        thread = page.thread()
        fill(page, thread, 3)
        view.thread(thread)
        view.button("panel.compact").click()
        expect(view.panel.get_by_text("no summaries today")).to_be_visible()
        for number in range(3, 7):
            view.say(f"Question {number}: what about it? {FILLING}")
            expect(view.log.get_by_text(f"Question {number}: what about it?")).to_be_visible()
            view.answered()
        assert all(asked.tokens <= WINDOW for asked in server.requests)
        view.to_first(view.word("chat.system"))
        expect(view.log.get_by_text("Question 0: what about it?")).to_be_visible()


@in_a_browser
def test_CB_9_a_title_appears_by_itself() -> None:
    def script(asked: ReceivedRequest) -> Step:
        return Answer(text="Boats at the pier") if asked.model == "namer" else Answer(text="Seven boats.")

    with an_app(script, models=("talker", "namer"), built=the_page()) as (app, _), a_view(app) as view:
        app.page().do("PUT", "/everlong/api/settings", {"naming_model": "main/namer"})
        view.open()
        view.say("How many boats are there?")
        expect(view.log.get_by_text("Seven boats.")).to_be_visible()
        expect(view.page.get_by_role("navigation").get_by_role("link", name="Boats at the pier")).to_be_visible()
        expect(view.page).to_have_title("Boats at the pier · Everlong")


@in_a_browser
def test_CB_10_the_figures_of_success_are_on_the_usage_page() -> None:
    with an_app(TALKS, window=WINDOW, built=the_page()) as (app, _), a_view(app) as view:
        page = app.page()
        thread = page.thread("Boats")
        fill(page, thread, 3)
        page.compact(thread)
        page.thread()
        view.open("#/usage")
        success = page.get("/everlong/api/usage")["success"]
        assert success["compactions"] >= 1
        for name, value in success.items():
            expect(view.page.get_by_test_id(f"success-{name}")).to_have_text(f"{value:,}")
        expect(view.page.get_by_role("link", name="Boats")).to_have_count(2)
        expect(view.page.get_by_role("img", name=re.compile(view.word("usage.tokens_chart")))).to_be_visible()
        view.page.get_by_text(view.word("usage.as_table")).first.click()
        expect(view.page.get_by_role("table", name=view.word("usage.tokens_chart"))).to_be_visible()
