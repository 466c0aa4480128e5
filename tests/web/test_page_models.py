"""Models, options and assistants on the page: found, chosen, set and kept, at a desk and on a phone."""

import json
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from everlong.agent import AgentConfig
from everlong.llm import ScriptedServer, Window
from tests.web.browser import PHONE, WIDE, View, a_view, in_a_browser, the_page
from tests.web.running import RunningApp, an_app

API = "/everlong/api"
MANY = ("gpt-4o", "gpt-4o-mini", *(f"qwen-{number}" for number in range(400)))
PLACES = [(WIDE, "en-US", False), (PHONE, "zh-CN", True)]


def bodies(server: ScriptedServer) -> list[dict[str, Any]]:
    """The bodies of the conversation; titles are asked for without a system text."""
    read = [json.loads(asked.body) for asked in server.requests]
    return [body for body in read if body["messages"][0]["role"] == "system"]


def said(view: View, text: str) -> None:
    """Say something and wait for the answer, which repeats it."""
    view.say(text)
    expect(view.log.get_by_text(text)).to_have_count(2)
    view.answered()


def open_picker(view: View) -> None:
    view.page.get_by_role("button", name=view.word("model.choose")).click()
    expect(view.page.get_by_role("grid")).to_be_visible()


@in_a_browser
@pytest.mark.parametrize(("size", "language", "dark"), PLACES)
def test_a_model_is_found_by_words_and_chosen_with_the_keyboard(
    size: tuple[int, int], language: str, dark: bool
) -> None:
    with (
        an_app(models=MANY, built=the_page()) as (app, _),
        a_view(app, size=size, language=language, dark=dark) as view,
    ):
        thread = app.page().thread()
        view.open(f"#/t/{thread}")
        open_picker(view)
        assert view.faults() == []
        rows = view.page.get_by_role("grid").get_by_role("row")
        assert rows.count() < 100  # of 400: the rest is drawn when it is scrolled to
        search = view.page.get_by_role("combobox")
        search.fill("39 qwen")
        expect(view.page.get_by_role("gridcell", name="qwen-39", exact=False).first).to_be_visible()
        expect(view.page.get_by_role("grid").get_by_title("main/gpt-4o")).to_have_count(0)
        for key in ("ArrowDown", "ArrowDown", "ArrowUp", "Enter"):
            search.press(key)
        expect(view.page.get_by_role("grid")).to_have_count(0)
        button = view.page.get_by_role("button", name=view.word("model.choose"))
        expect(button).to_contain_text("qwen-139")
        expect(button).to_be_focused()
        assert app.page().get(f"{API}/threads/{thread}")["model"] == "main/qwen-139"


@in_a_browser
def test_windows_prices_favourites_and_recent_models_are_in_the_list() -> None:
    with an_app(models=MANY, told=False, built=the_page()) as (app, _), a_view(app) as view:
        page = app.page()
        page.thread(model="main/gpt-4o-mini")
        view.open()
        open_picker(view)
        grid = view.page.get_by_role("grid")
        expect(grid.get_by_title("main/gpt-4o", exact=True)).to_contain_text("$2.50")
        expect(grid.get_by_title("main/qwen-7", exact=True)).to_contain_text(view.word("model.unknown"))
        recent = view.page.get_by_role("rowgroup", name=view.word("model.recent"))
        expect(recent.get_by_title("main/gpt-4o-mini", exact=True)).to_be_visible()
        star = grid.get_by_role("button", name=view.word("model.favourite").replace("{model}", "qwen-7"), exact=True)
        star.click()
        favourites = view.page.get_by_role("rowgroup", name=view.word("model.favourites"))
        expect(favourites.get_by_title("main/qwen-7", exact=True)).to_be_visible()
        view.page.reload()
        open_picker(view)
        favourites.get_by_title("main/qwen-7", exact=True).click()
        assert page.get(f"{API}/kept")["favourites"] == ["main/qwen-7"]
        said(view, "Who are you?")
        assert page.get(f"{API}/threads")["threads"][0]["model"] == "main/qwen-7"


@in_a_browser
def test_hundreds_of_models_can_be_scrolled_to_the_last() -> None:
    with an_app(models=MANY, built=the_page()) as (app, _), a_view(app) as view:
        view.open()
        open_picker(view)
        last = view.page.get_by_role("grid").get_by_title("main/qwen-399", exact=True)
        expect(last).to_have_count(0)
        view.page.wait_for_function(
            """() => { const list = document.querySelector('[role=grid]'); list.scrollTop = list.scrollHeight;
            return list.querySelector('[title="main/qwen-399"]') !== null; }"""
        )
        last.click()
        expect(view.page.get_by_role("button", name=view.word("model.choose"))).to_contain_text("qwen-399")


@in_a_browser
@pytest.mark.parametrize(("size", "language", "dark"), PLACES)
def test_options_are_set_for_a_thread_and_used_from_the_next_message_on(
    size: tuple[int, int], language: str, dark: bool
) -> None:
    with (
        an_app(built=the_page(), config=AgentConfig()) as (app, server),
        a_view(app, size=size, language=language, dark=dark) as view,
    ):
        page = app.page()
        thread = page.thread()
        page.say(thread, "Hello")
        view.thread(thread)
        view.button("options.open").click()
        dialog = view.page.get_by_role("dialog", name=view.word("options.title"))
        temperature = dialog.get_by_label(view.word("options.temperature"), exact=True)
        temperature.fill("7")
        dialog.get_by_label(view.word("options.max_tokens"), exact=True).fill("many")
        dialog.get_by_role("button", name=view.word("app.save"), exact=True).click()
        expect(dialog.get_by_text(view.word("options.temperature_wrong"))).to_be_visible()
        expect(dialog.get_by_text(view.word("options.max_tokens_wrong"))).to_be_visible()
        expect(dialog.get_by_text(view.word("options.uncached"))).to_have_count(0)
        dialog.get_by_label(view.word("options.system"), exact=True).fill("Speak like a sailor.")
        expect(dialog.get_by_text(view.word("options.uncached"))).to_be_visible()
        assert view.faults() == []
        temperature.fill("0,3")
        dialog.get_by_label(view.word("options.max_tokens"), exact=True).fill("256")
        dialog.get_by_role("button", name=view.word("app.save"), exact=True).click()
        expect(dialog).to_have_count(0)
        said(view, "And now?")
        sent = bodies(server)[-1]
        assert sent["messages"][0] == {"role": "system", "content": "Speak like a sailor."}
        assert (sent["temperature"], sent["max_tokens"]) == (0.3, 256)
        view.page.reload()
        view.button("options.open").click()
        expect(dialog.get_by_label(view.word("options.temperature"), exact=True)).to_have_value("0.3")


def options_of(app: RunningApp, thread: str) -> dict[str, Any]:
    options: dict[str, Any] = app.page().get(f"{API}/threads/{thread}/options")
    return options


@in_a_browser
def test_an_assistant_is_made_of_a_thread_chosen_for_a_new_one_edited_and_removed() -> None:
    with (
        an_app(built=the_page(), models=("small", "large"), config=AgentConfig()) as (app, server),
        a_view(app) as view,
    ):
        page = app.page()
        thread = page.thread(model="main/large", options={"system": "You know every boat.", "temperature": 0.2})
        page.thread(model="main/small")
        page.say(thread, "Hello")
        view.thread(thread)
        view.button("options.open").click()
        view.button("options.keep").click()
        made = view.page.get_by_role("dialog", name=view.word("assistants.new"))
        made.get_by_role("button", name=view.word("app.save"), exact=True).click()
        expect(made.get_by_text(view.word("assistants.name_wrong"))).to_be_visible()
        assert view.faults() == []
        made.get_by_label(view.word("assistants.name"), exact=True).fill("Harbour master")
        made.get_by_label(view.word("assistants.icon"), exact=True).fill("⚓")
        made.get_by_role("button", name=view.word("app.save"), exact=True).click()
        expect(made).to_have_count(0)

        view.open("#/")
        chip = view.page.get_by_role("button", name="Harbour master")
        expect(chip).to_have_attribute("aria-pressed", "false")
        chip.click()
        expect(view.page.get_by_role("button", name=view.word("model.choose"))).to_contain_text("large")
        said(view, "How many?")
        sent = bodies(server)[-1]
        assert (sent["model"], sent["messages"][0]["content"]) == ("large", "You know every boat.")

        view.open("#/settings")
        view.page.get_by_role(
            "button", name=view.word("assistants.edit_which").replace("{name}", "Harbour master")
        ).click()
        edited = view.page.get_by_role("dialog", name=view.word("assistants.edit"))
        edited.get_by_label(view.word("options.system"), exact=True).fill("You know every lighthouse.")
        edited.get_by_label(view.word("assistants.default")).click()
        edited.get_by_role("button", name=view.word("app.save"), exact=True).click()
        expect(view.page.get_by_text("You know every lighthouse.")).to_be_visible()
        assert view.faults() == []
        view.open("#/")
        expect(chip).to_have_attribute("aria-pressed", "true")
        said(view, "And now?")
        assert bodies(server)[-1]["messages"][0]["content"] == "You know every lighthouse."

        view.open("#/settings")
        remove = view.word("assistants.remove_which").replace("{name}", "Harbour master")
        view.page.get_by_role("button", name=remove, exact=True).click()
        view.page.get_by_role("group", name=view.like("assistants.sure")).get_by_role("button").first.click()
        expect(view.page.get_by_text(view.word("assistants.none"))).to_be_visible()
        assert options_of(app, thread)["system"] == "You know every boat."


@in_a_browser
def test_options_can_be_set_before_the_first_word() -> None:
    with an_app(built=the_page(), config=AgentConfig()) as (app, server), a_view(app, size=PHONE) as view:
        view.open()
        view.page.get_by_role("main").get_by_role("group").get_by_role("button", name=view.word("options.open")).click()
        dialog = view.page.get_by_role("dialog", name=view.word("options.title_new"))
        dialog.get_by_label(view.word("options.system"), exact=True).fill("Be brief.")
        dialog.get_by_role("button", name=view.word("app.save"), exact=True).click()
        expect(view.button("options.own")).to_have_attribute("aria-pressed", "true")
        said(view, "Hello")
        assert bodies(server)[0]["messages"][0]["content"] == "Be brief."
        view.open("#/")
        expect(view.button("options.own")).to_have_count(0)


@in_a_browser
def test_the_model_for_summaries_of_a_source_is_chosen_where_the_source_is_added(tmp_path: Path) -> None:
    with (
        ScriptedServer(window=Window(16_384, told=True), models=("large", "tiny")) as other,
        an_app(built=the_page(), folder=tmp_path) as (app, _),
        a_view(app) as view,
    ):
        view.open("#/settings")
        view.page.get_by_role("combobox", name=view.word("settings.source_provider")).select_option(
            label=view.word("settings.source_custom")
        )
        view.page.get_by_label(view.word("settings.source_url")).fill(other.url)
        view.page.get_by_label(view.word("settings.source_name")).fill("pocket")
        view.button("settings.source_test").click()
        label = view.word("settings.fast_model_of").replace("{name}", "pocket")
        view.page.locator("form").get_by_role("button", name=label).click()
        view.page.get_by_role("grid").get_by_title("pocket/tiny").click()
        expect(view.page.locator("form").get_by_role("button", name=label)).to_contain_text("tiny")
        expect(view.page.locator("ul").get_by_role("button", name=label)).to_contain_text("tiny")
        told = app.page().get(f"{API}/sources")
        assert [source["fast_model"] for source in told] == ["", "tiny"]
