"""A tab out of sight: its title, the dot on its icon, and notifications, if they are wanted, without the content."""

import pytest
from playwright.sync_api import expect

from everlong.llm import Answer, ReceivedRequest, Step
from tests.web.browser import PHONE, WIDE, View, a_view, in_a_browser, the_page
from tests.web.running import an_app
from tests.web.test_page_tabs import HIDE, wait_until

#: Notes every notification instead of showing it, and every question for the permission.
NOTED = """
globalThis.noted = []; globalThis.asked = 0;
globalThis.Notification = class {
    static permission = "default";
    static async requestPermission() { globalThis.asked += 1; return (Notification.permission = "granted"); }
    constructor(title, options) { globalThis.noted.push([title, options.body, options.tag]); }
    close() {}
};
"""


def script(asked: ReceivedRequest) -> Step:
    return Answer(text="slowly " * 400 + "the-end", between=0.01)


def noted(view: View) -> list[list[str]]:
    found: list[list[str]] = view.page.evaluate("globalThis.noted")
    return found


@in_a_browser
@pytest.mark.parametrize(("size", "language"), [(WIDE, "en-US"), (PHONE, "zh-CN")])
def test_a_long_answer_that_ends_unseen_is_told_when_it_was_asked_for(size: tuple[int, int], language: str) -> None:
    with an_app(script, built=the_page()) as (app, _), a_view(app, size=size, language=language) as view:
        view.page.add_init_script(NOTED)
        view.page.clock.install()
        thread = app.page().thread("Boats of the bay")
        view.open(f"#/t/{thread}")
        expect(view.page).to_have_title("Boats of the bay · Everlong")
        plain = view.page.locator("link[rel=icon]").get_attribute("href")
        view.field.fill("Tell me")
        view.button("composer.send").click()
        expect(view.page).to_have_title(view.like("tab.answering"))
        assert view.page.evaluate("globalThis.asked") == 0
        offer = view.button("notify.accept")
        expect(offer).to_have_count(0)
        expect(view.log.get_by_text("slowly slowly")).to_be_visible()
        view.page.clock.fast_forward(11_000)  # it takes long: now it is offered
        offer.click()
        expect(offer).to_have_count(0)
        assert view.page.evaluate("globalThis.asked") == 1
        view.page.evaluate(HIDE, True)
        expect(view.page).to_have_title(view.like("tab.unseen"))
        assert noted(view) == [["Everlong", view.word("notify.done"), thread]]
        assert view.page.locator("link[rel=icon]").get_attribute("href") != plain
        view.page.evaluate(HIDE, False)
        expect(view.page).to_have_title("Boats of the bay · Everlong")
        assert view.page.locator("link[rel=icon]").get_attribute("href") == plain


@in_a_browser
def test_the_title_of_the_thread_is_told_only_if_it_is_allowed() -> None:
    with an_app(script, built=the_page()) as (app, _), a_view(app) as view:
        view.page.add_init_script(NOTED)
        view.page.clock.install()
        thread = app.page().thread("Boats of the bay")
        view.open("#/settings")
        setting = view.page.get_by_role("group", name=view.word("notify.set"))
        setting.get_by_text(view.word("notify.set.title"), exact=True).click()
        expect(setting.get_by_role("radio", name=view.word("notify.set.title"))).to_be_checked()
        view.page.evaluate(f"location.hash = '#/t/{thread}'")
        view.say("Tell me")
        expect(view.page).to_have_title(view.like("tab.answering"))
        expect(view.log.get_by_text("slowly slowly")).to_be_visible()
        view.page.clock.fast_forward(9_000)
        view.page.evaluate(HIDE, True)
        expect(view.page).to_have_title(view.like("tab.unseen"))
        assert noted(view)[0][1] == f"Boats of the bay: {view.word('notify.done')}"


@in_a_browser
def test_nobody_is_asked_for_a_permission_on_load_and_short_answers_are_no_news() -> None:
    with an_app(built=the_page()) as (app, _), a_view(app) as view:
        view.page.add_init_script(NOTED)
        thread = app.page().thread()
        view.open(f"#/t/{thread}")
        wait_until(view, lambda: bool(app.state.hub.channel(thread).readers))
        view.page.evaluate(HIDE, True)
        app.page().say(thread, "A short one")
        expect(view.page).to_have_title(view.like("tab.unseen"))
        assert (view.page.evaluate("globalThis.asked"), noted(view)) == (0, [])
