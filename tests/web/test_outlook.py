"""What the threshold costs and keeps, beside the slider that sets it: told with the state, shown as it moves."""

from typing import Any

import pytest
from playwright.sync_api import expect

from everlong.engine import outlook
from everlong.web.state.settings import THRESHOLDS
from tests.web.browser import PHONE, a_view, in_a_browser, the_page
from tests.web.running import Page, an_app


def told(page: Page) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = page.get("/everlong/api/state")["outlook"]
    return found


def steps(window: int) -> list[dict[str, Any]]:
    found = [(at, outlook(window, at / 100).percents) for at in THRESHOLDS]
    return [{"threshold": at, "cost": cost, "kept": kept} for at, (cost, kept) in found]


@pytest.mark.parametrize("window", [50_000, 128_000, 1_000_000])
def test_each_step_is_told_for_the_window_in_use(window: int) -> None:
    with an_app(window=window) as (app, _):
        assert told(app.page()) == steps(window)


def test_nothing_is_told_of_a_window_so_small_that_none_like_it_was_measured() -> None:
    with an_app(window=4_096) as (app, _):
        assert told(app.page()) == []


def test_nothing_is_told_until_the_window_is_known() -> None:
    with an_app(told=False) as (app, _):
        page = app.page()
        assert told(page) == []
        page.do("PUT", "/everlong/api/settings", {"windows": {"main/scripted": 64_000}})
        assert told(page) == steps(64_000)


def test_it_is_told_of_the_model_chosen_last() -> None:
    with an_app(told=False, models=("one", "two")) as (app, _):
        page = app.page()
        page.do("PUT", "/everlong/api/settings", {"windows": {"main/one": 64_000, "main/two": 128_000}})
        assert told(page) == steps(64_000)
        page.do("PATCH", f"/everlong/api/threads/{page.thread()}", {"model": "main/two"})
        assert page.get("/everlong/api/state")["default_model"] == "main/two"
        assert told(page) == steps(128_000)


def test_without_a_model_nothing_is_told() -> None:
    with an_app(sources=()) as (app, _):
        assert told(app.page()) == []


def shown(text: str, step: dict[str, Any]) -> str:
    """The sentence of a step, as the page writes it."""
    return text.format(cost=f"{step['cost']}%", kept=f"{step['kept']}%")


@in_a_browser
@pytest.mark.parametrize(("language", "size"), [("en-US", (1280, 800)), ("zh-CN", PHONE)])
def test_the_slider_says_what_it_costs_and_keeps_while_it_moves(language: str, size: tuple[int, int]) -> None:
    with (
        an_app(window=64_000, built=the_page()) as (app, _),
        a_view(app, language=language, size=size) as view,
    ):
        view.open("#/settings")
        slider, line = view.page.get_by_role("slider"), view.page.get_by_test_id("threshold-outlook")
        expect(view.page.get_by_text(view.word("settings.outlook_note"))).to_be_visible()
        slider.press("Home")
        for step in steps(64_000):
            expect(slider).to_have_value(str(step["threshold"]))
            expect(line).to_have_text(shown(view.word("settings.outlook"), step))
            slider.press("ArrowRight")


@in_a_browser
def test_the_slider_says_nothing_of_another_preset_or_an_unknown_window() -> None:
    with an_app(told=False, built=the_page()) as (app, _), a_view(app) as view:
        view.open("#/settings")
        line = view.page.get_by_test_id("threshold-outlook")
        expect(view.page.get_by_text(view.like("settings.threshold_unknown"))).to_be_visible()
        expect(line).to_have_count(0)
        expect(view.page.get_by_text(view.word("settings.outlook_note"))).to_have_count(0)
        window = view.page.get_by_label(view.word("settings.windows_of").format(model="main/scripted"))
        window.fill("64000")
        window.press("Enter")
        expect(line).to_be_visible()
        preset = view.page.get_by_label(view.word("settings.preset"), exact=True)
        preset.select_option("chatbox")
        expect(line).to_have_count(0)
        preset.select_option("auto")
        expect(line).to_be_visible()
