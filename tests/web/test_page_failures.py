"""Errors in plain words, at the message they belong to, with the right button."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Locator, expect

from everlong.llm import Answer, Endpoint, Refusal, ScriptedServer, in_turn
from everlong.web.state.sources import Source
from tests.web.browser import PHONE, WIDE, View, a_view, in_a_browser, the_page
from tests.web.running import an_app

RATE = Refusal(429, '{"error": {"message": "Rate limit reached"}}', (("retry-after", "2"),))
NOT_WORDS = re.compile(r"Error|Traceback|HTTP|\b4\d\d\b|<html|invalid_request|undefined|[{}]")


def line(view: View, kind: str) -> Locator:
    return view.log.locator(f'.failure[data-kind="{kind}"]')


@in_a_browser
@pytest.mark.parametrize(("language", "size", "dark"), [("en-US", WIDE, False), ("zh-CN", PHONE, True)])
def test_a_pause_is_counted_down_and_tried_again_by_itself(language: str, size: tuple[int, int], dark: bool) -> None:
    tries = 3  # of one request
    script = in_turn([RATE] * tries + [Answer(text="Here I am.")])
    with (
        an_app(script, built=the_page()) as (app, server),
        a_view(app, language=language, size=size, dark=dark) as view,
    ):
        thread = app.page().thread()
        view.open(f"#/t/{thread}")
        view.say("Are you there?")
        expect(line(view, "rate")).to_be_visible()
        expect(line(view, "rate").get_by_role("button", name=view.like("failure.retry_in"))).to_be_visible()
        assert not NOT_WORDS.search(line(view, "rate").get_by_role("alert").inner_text())
        expect(view.log.get_by_text("Here I am.")).to_be_visible()
        expect(line(view, "rate")).to_have_count(0)
        assert len(server.requests) == tries + 1
        assert [row["text"] for row in app.page().rows(thread) if row["role"] == "user"] == ["Are you there?"]


@in_a_browser
def test_the_countdown_can_be_cancelled_and_the_details_read() -> None:
    with an_app(in_turn([RATE] * 3), built=the_page()) as (app, server), a_view(app) as view:
        view.open(f"#/t/{app.page().thread()}")
        view.say("Are you there?")
        view.button("failure.retry_cancel").click()
        expect(view.page.get_by_role("button", name=view.like("failure.retry_in"))).to_have_count(0)
        expect(view.page.get_by_text("Rate limit reached")).to_be_hidden()
        view.log.get_by_text(view.word("failure.details"), exact=True).click()
        expect(view.page.get_by_text("Rate limit reached")).to_be_visible()
        expect(view.button("failure.copy")).to_be_visible()
        view.page.reload()  # who comes back sees it too
        expect(line(view, "rate")).to_be_visible()
        view.button("failure.retry_cancel").click()
        asked = len(server.requests)
        line(view, "rate").get_by_role("button", name=view.word("app.retry")).click()
        expect(view.log.get_by_text("Are you there?")).to_have_count(2)  # it is answered with its own words
        assert len(server.requests) == asked + 1


@in_a_browser
def test_a_cancelled_countdown_does_not_begin_again_in_the_same_place() -> None:
    with an_app(in_turn([RATE] * 3), built=the_page()) as (app, server), a_view(app) as view:
        thread, other = app.page().thread(), app.page().thread()
        view.open(f"#/t/{thread}")
        view.say("Are you there?")
        view.button("failure.retry_cancel").click()
        asked = len(server.requests)
        for place in (other, thread):
            view.open(f"#/t/{place}")
        expect(line(view, "rate").get_by_role("button", name=view.word("app.retry"))).to_be_visible()
        expect(view.page.get_by_role("button", name=view.like("failure.retry_in"))).to_have_count(0)
        assert len(server.requests) == asked


@in_a_browser
@pytest.mark.parametrize("language", ["en-US", "zh-CN"])
def test_a_wrong_key_is_mended_where_the_button_leads(language: str, tmp_path: Path) -> None:
    wrong = Refusal(401, '{"error": {"message": "Incorrect API key provided: sk-wrong"}}')
    with (
        ScriptedServer(in_turn([wrong, Answer(text="Welcome.")]), models=("one",)) as other,
        an_app(folder=tmp_path, built=the_page()) as (app, _),
        a_view(app, language=language) as view,
    ):
        page = app.page()
        page.do("POST", "/everlong/api/sources", {"name": "mine", "url": other.url, "key": "sk-wrong-1234"})
        view.open(f"#/t/{page.thread(model='mine/one')}")
        view.say("Hello")
        expect(line(view, "key").get_by_role("alert")).to_contain_text(view.word("failure.key").format(source="mine"))
        view.button("failure.fix_key").click()
        key = view.page.get_by_label(view.word("settings.source_key_new"))
        expect(key).to_be_focused()
        key.fill("sk-right-5678")
        view.button("settings.source_keep").click()
        expect(key).to_have_count(0)
        assert "sk-right" not in view.page.content()
        view.page.go_back()
        view.button("app.retry").click()
        expect(view.log.get_by_text("Welcome.")).to_be_visible()
        assert other.requests[-1].headers["authorization"] == "Bearer sk-right-5678"


@in_a_browser
def test_an_address_without_v1_is_mended_by_one_click(tmp_path: Path) -> None:
    with (
        ScriptedServer(models=("one",)) as other,
        an_app(folder=tmp_path, built=the_page()) as (app, _),
        a_view(app) as view,
    ):
        page = app.page()
        app.state.sources.add(Source(name="mine", endpoint=Endpoint(url=other.url.removesuffix("/v1"))))
        view.open(f"#/t/{page.thread(model='mine/one')}")
        view.say("Hello there")
        view.page.get_by_role("button", name=view.word("failure.add_version").format(version="v1")).click()
        expect(view.log.get_by_text("Hello there")).to_have_count(2)
        view.open("#/settings")
        expect(view.page.get_by_role("listitem").filter(has_text="mine")).to_contain_text(other.url)


@in_a_browser
@pytest.mark.parametrize(("language", "size"), [("en-US", PHONE), ("zh-CN", WIDE)])
def test_a_web_page_is_told_as_one_and_another_model_can_be_chosen(language: str, size: tuple[int, int]) -> None:
    page_of_a_proxy = "<!doctype html><html><head><title>Sign in</title></head><body>Portal</body></html>"
    gone = '{"error": {"message": "The model `x` does not exist", "code": "model_not_found"}}'
    script = in_turn([Refusal(403, page_of_a_proxy), Refusal(404, gone)])
    with (
        an_app(script, built=the_page()) as (app, _),
        a_view(app, language=language, size=size) as view,
    ):
        view.open(f"#/t/{app.page().thread()}")
        view.say("Hello")
        expect(line(view, "web_page").get_by_role("alert")).to_contain_text(view.word("failure.web_page"))
        assert not NOT_WORDS.search(line(view, "web_page").get_by_role("alert").inner_text())
        wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert view.page.evaluate(wide) <= 0
        line(view, "web_page").get_by_role("button", name=view.word("app.retry")).click()
        line(view, "no_such_model").get_by_role("button", name=view.word("failure.choose_model")).click()
        expect(view.page.get_by_role("grid")).to_be_visible()


@in_a_browser
def test_a_source_that_does_not_answer_is_told_in_the_form_and_a_bare_address_is_completed(tmp_path: Path) -> None:
    with (
        ScriptedServer(models=("one",)) as other,
        an_app(folder=tmp_path, built=the_page()) as (app, _),
        a_view(app, complains=("422",)) as view,
    ):
        view.open("#/settings")
        view.page.get_by_role("combobox", name=view.word("settings.source_provider")).select_option("")
        address = view.page.get_by_role("textbox", name=view.word("settings.source_url"))
        address.fill("http://127.0.0.1:9/v1")
        view.button("settings.source_test").click()
        expect(view.page.get_by_text(view.word("failure.unlisted"))).to_be_visible()
        address.fill(other.url.removesuffix("/v1"))
        view.button("settings.source_test").click()
        expect(view.page.get_by_text(view.word("settings.source_longer").format(address=other.url))).to_be_visible()
