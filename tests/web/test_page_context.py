"""The context as the document draws it: the number at the composer with its panel, the status, the slider."""

import re
from threading import Event as Signal

import pytest
from playwright.sync_api import Locator, expect

from everlong.llm import Answer, ReceivedRequest, ScriptedServer, Step
from tests.web.boats import SUMMARY, TALKS, fill
from tests.web.browser import PHONE, WIDE, View, a_view, in_a_browser, the_page
from tests.web.running import an_app

FIGURE = re.compile(r"^~?[\d.]+k? / 16\.4k · \d+%$")


def figure(view: View) -> Locator:
    return view.page.get_by_test_id("context-figure")


def card(view: View) -> Locator:
    return view.page.get_by_role("dialog", name=view.word("panel.estimate"))


@in_a_browser
@pytest.mark.parametrize(("language", "size", "dark"), [("en-US", WIDE, False), ("zh-CN", PHONE, True)])
def test_the_figure_at_the_composer_opens_the_estimate(language: str, size: tuple[int, int], dark: bool) -> None:
    with (
        an_app(TALKS, window=16_384, built=the_page()) as (app, _),
        a_view(app, size=size, language=language, dark=dark) as view,
    ):
        page = app.page()
        thread = page.thread("Boats at the pier")
        fill(page, thread, 3)
        view.thread(thread)
        expect(figure(view)).to_have_text(FIGURE)
        expect(card(view)).to_have_count(0)
        if size == PHONE:
            figure(view).tap()
            touched = figure(view).bounding_box()
            assert touched is not None
            assert touched["height"] >= 40
        else:
            figure(view).hover()
        expect(card(view)).to_be_visible()
        told = page.get(f"/everlong/api/threads/{thread}/context")
        expect(card(view)).to_contain_text(f"{told['tokens']:,}")
        expect(card(view)).to_contain_text(view.word("panel.limit_tokens").format(window="16,384"))
        expect(card(view)).to_contain_text(view.word("panel.source.served"))
        expect(card(view).get_by_role("meter")).to_be_visible()
        expect(card(view).get_by_role("button", name=view.word("panel.compact"))).to_be_enabled()
        box, width = card(view).bounding_box(), size[0]
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
        assert box["y"] >= 0
        if size != PHONE:
            view.field.hover()  # away from both
            expect(card(view)).to_have_count(0)


@in_a_browser
def test_the_estimate_by_keyboard() -> None:
    with an_app(TALKS, window=16_384, built=the_page()) as (app, _), a_view(app) as view:
        page = app.page()
        thread = page.thread("Boats")
        fill(page, thread, 2)
        view.thread(thread)
        expect(figure(view)).to_be_visible()
        view.field.focus()
        for _ in range(6):
            view.page.keyboard.press("Tab")
            if figure(view).evaluate("it => it === document.activeElement"):
                break
        expect(card(view)).to_be_visible()
        expect(figure(view)).to_have_attribute("aria-expanded", "true")
        view.page.keyboard.press("Tab")
        assert card(view).evaluate("it => it.contains(document.activeElement)")
        view.page.keyboard.press("Escape")
        expect(card(view)).to_have_count(0)
        expect(figure(view)).to_be_focused()
        view.page.keyboard.press("Enter")
        card(view).get_by_text(view.word("panel.auto.off"), exact=True).click()
        expect(card(view).get_by_text(view.like("panel.auto.is_off"))).to_be_visible()
        assert page.get(f"/everlong/api/threads/{thread}")["auto"] == "off"


@in_a_browser
@pytest.mark.parametrize(("language", "size"), [("en-US", PHONE), ("zh-CN", WIDE)])
def test_an_unknown_window_is_said_and_set_at_the_figure(language: str, size: tuple[int, int]) -> None:
    with (
        an_app(TALKS, told=False, built=the_page()) as (app, _),
        a_view(app, size=size, language=language) as view,
    ):
        page = app.page()
        thread = page.thread("Boats")
        fill(page, thread, 1)
        view.thread(thread)
        expect(figure(view)).to_have_text(re.compile(r"^~?[\d.]+k?$"))
        figure(view).click()
        expect(card(view)).to_contain_text(view.word("panel.limit_assumed").format(assumed="96,000"))
        expect(card(view).get_by_role("meter")).to_have_count(0)
        expect(card(view)).not_to_contain_text("%")
        expect(card(view).get_by_role("radio", name=view.word("panel.auto.on"))).to_be_disabled()
        expect(card(view).get_by_role("group").first).to_have_attribute("title", view.word("panel.switch_unknown"))
        field = card(view).get_by_role("textbox")
        field.fill("32k")
        field.press("Enter")
        expect(figure(view)).to_have_text(re.compile(r"/ 32k · \d+%$"))
        expect(card(view).get_by_role("meter")).to_be_visible()
        expect(view.log.get_by_text("32k")).to_have_count(0)  # nothing was sent


@in_a_browser
@pytest.mark.parametrize(("language", "size"), [("en-US", WIDE), ("zh-CN", PHONE)])
def test_a_compaction_is_shown_at_the_top_and_can_be_cancelled(language: str, size: tuple[int, int]) -> None:
    may_write = Signal()

    def writes(_: ReceivedRequest) -> Step:
        may_write.wait(60)
        return Answer(text=SUMMARY)

    with (
        ScriptedServer(writes, models=("writer",)) as slow,
        an_app(TALKS, window=16_384, built=the_page()) as (app, _),
        a_view(app, size=size, language=language) as view,
    ):
        page = app.page()
        page.do("POST", "/everlong/api/sources", {"name": "slow", "url": slow.url})
        page.do("PUT", "/everlong/api/settings", {"summary_model": "slow/writer", "auto": False})
        thread = page.thread("Boats")
        fill(page, thread, 4)
        view.thread(thread)
        figure(view).click()
        card(view).get_by_role("button", name=view.word("panel.compact")).click()
        status = view.page.get_by_role("status").filter(has_text=view.word("compacting.title"))
        expect(status).to_be_visible()
        above, below = status.bounding_box(), view.log.bounding_box()
        assert above is not None
        assert below is not None
        assert above["y"] + above["height"] <= below["y"] + 1
        status.get_by_role("button", name=view.word("app.cancel")).click()
        expect(status).to_have_count(0)
        ended = view.page.get_by_role("status").filter(has_text=view.word("outcome.reason.cancelled"))
        expect(ended).to_be_visible()
        expect(view.summary()).to_have_count(0)
        ended.get_by_role("button", name=view.word("app.close")).click()
        expect(ended).to_have_count(0)
        may_write.set()


@in_a_browser
def test_the_slider_has_its_bands_and_the_documents_figures() -> None:
    with an_app(built=the_page()) as (app, _), a_view(app) as view:
        changes = {"preset": "chatbox", "windows": {"main/scripted": 200_000}, "threshold": 60}
        app.page().do("PUT", "/everlong/api/settings", changes)
        view.open("#/settings")
        slider = view.page.get_by_role("slider")
        expect(view.page.get_by_text("100,800")).to_be_visible()  # (200,000 - 32,000) x 0.6
        assert view.page.locator(".ticks i").count() == 11
        bands = view.page.locator(".bands span")
        expect(bands).to_have_text([view.word(f"settings.strategy.{name}") for name in ("cost", "balanced", "keep")])
        expect(view.page.locator(".bands .now")).to_have_text(view.word("settings.strategy.balanced"))
        slider.press("Home")
        expect(view.page.locator(".bands .now")).to_have_text(view.word("settings.strategy.cost"))
        expect(view.page.get_by_text("67,200")).to_be_visible()
        slider.press("End")
        expect(view.page.locator(".bands .now")).to_have_text(view.word("settings.strategy.keep"))
        expect(view.page.get_by_text("151,200")).to_be_visible()
        view.page.get_by_label(view.word("settings.preset"), exact=True).select_option("simple")
        expect(view.page.get_by_text(view.word("settings.threshold_rules"))).to_be_visible()
