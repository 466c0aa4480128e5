"""Prompts on the page: found behind a slash, filled, written, removed, and as files; answers by other models."""

import json
from pathlib import Path

import pytest
from playwright.sync_api import expect

from everlong.llm import Answer
from tests.web.browser import PHONE, WIDE, View, a_view, in_a_browser, the_page
from tests.web.running import an_app
from tests.web.test_page_models import PLACES, open_picker

API = "/everlong/api"


@in_a_browser
@pytest.mark.parametrize(("size", "language", "dark"), PLACES)
def test_a_prompt_is_found_behind_a_slash_filled_and_sent(size: tuple[int, int], language: str, dark: bool) -> None:
    with an_app(built=the_page()) as (app, server), a_view(app, size=size, language=language, dark=dark) as view:
        view.open()
        view.field.fill("/")
        options = view.page.get_by_role("option")
        expect(options).to_have_count(6)
        assert view.faults() == []
        title, text = (view.word(f"prompt.built.translate.{part}") for part in ("title", "text"))
        view.field.press_sequentially(title[:4].lower())
        expect(options.first).to_contain_text(title)
        view.field.press("ArrowDown")
        view.field.press("ArrowUp")
        view.field.press("Enter")
        dialog = view.page.get_by_role("dialog", name=title)
        fields = dialog.get_by_role("textbox")
        expect(fields).to_have_count(2)
        assert view.faults() == []
        fields.nth(0).fill("Latin")
        fields.nth(1).fill("Seven boats $& {left}.")
        dialog.get_by_role("button", name=view.word("prompts.insert")).click()
        first, second = (part.split("}")[0] for part in text.split("{")[1:])
        wanted = text.replace(f"{{{first}}}", "Latin").replace(f"{{{second}}}", "Seven boats $& {left}.")
        expect(view.field).to_have_value(wanted)
        expect(view.field).to_be_focused()
        assert server.requests == []
        view.button("composer.send").click()
        expect(view.log.get_by_text("Latin")).to_have_count(2)
        assert server.requests[0].messages[-1].text == wanted


@in_a_browser
def test_a_slash_that_no_prompt_fits_is_said_as_it_is() -> None:
    with an_app(built=the_page()) as (app, _), a_view(app) as view:
        view.open()
        view.field.fill("/")
        expect(view.page.get_by_role("listbox")).to_be_visible()
        view.field.press("Escape")
        expect(view.page.get_by_role("listbox")).to_have_count(0)
        view.say("/nothing-like-it")
        expect(view.log.get_by_text("/nothing-like-it")).to_have_count(2)


def opened(view: View) -> None:
    view.button("prompts.title").click()
    expect(view.page.get_by_role("dialog", name=view.word("prompts.title"))).to_be_visible()


@in_a_browser
def test_prompts_are_written_found_changed_and_removed() -> None:
    with an_app(built=the_page()) as (app, _), a_view(app) as view:
        view.open()
        opened(view)
        view.button("prompts.new").click()
        form = view.page.get_by_role("dialog", name=view.word("prompts.new"))
        form.get_by_role("button", name=view.word("app.save")).click()
        expect(form.get_by_text(view.word("prompts.name_wrong"))).to_be_visible()
        expect(form.get_by_text(view.word("prompts.text_wrong"))).to_be_visible()
        form.get_by_label(view.word("prompts.name"), exact=True).fill("Harbour report")
        form.get_by_label(view.word("prompts.text"), exact=True).fill("Report on pier 3.")
        assert view.faults() == []
        form.get_by_role("button", name=view.word("app.save")).click()
        expect(form).to_have_count(0)
        dialog = view.page.get_by_role("dialog", name=view.word("prompts.title"))
        dialog.get_by_role("searchbox").fill("pier")
        expect(dialog.get_by_role("listitem")).to_have_count(1)
        assert view.faults() == []
        dialog.get_by_role("button", name=view.word("prompts.edit_which").replace("{title}", "Harbour report")).click()
        form = view.page.get_by_role("dialog", name=view.word("prompts.edit"))
        form.get_by_label(view.word("prompts.text"), exact=True).fill("Report on pier 4.")
        form.get_by_role("button", name=view.word("app.save")).click()
        dialog.get_by_role("button", name="Harbour report Report on pier 4.").click()
        expect(view.field).to_have_value("Report on pier 4.")
        view.page.reload()
        opened(view)
        dialog.get_by_role(
            "button", name=view.word("prompts.remove_which").replace("{title}", "Harbour report")
        ).click()
        dialog.get_by_role("group").get_by_role("button").first.click()
        expect(dialog.get_by_text("Harbour report")).to_have_count(0)
        assert app.page().get(f"{API}/kept")["prompts"] == []


@in_a_browser
def test_prompts_come_from_files_and_go_to_files(tmp_path: Path) -> None:
    theirs, broken = tmp_path / "theirs.json", tmp_path / "broken.json"
    theirs.write_text(json.dumps([{"command": "/boats", "title": "Boats", "content": "How many boats at {pier}?"}]))
    broken.write_text("[]")
    with an_app(built=the_page()) as (app, _), a_view(app, size=PHONE) as view:
        view.open()
        opened(view)
        dialog = view.page.get_by_role("dialog", name=view.word("prompts.title"))
        file = dialog.locator("input[type=file]")
        file.set_input_files(broken)
        expect(view.page.get_by_text(view.word("prompts.import_none"))).to_be_attached()
        file.set_input_files(theirs)
        expect(dialog.get_by_text("How many boats at {pier}?")).to_be_visible()
        with view.page.expect_download() as download:
            dialog.get_by_role("button", name=view.word("prompts.export")).click()
        given = json.loads(Path(download.value.path()).read_text())
        assert given == {"prompts": [{"title": "Boats", "text": "How many boats at {pier}?"}]}


@in_a_browser
@pytest.mark.parametrize(("size", "language"), [(WIDE, "en-US"), (PHONE, "zh-CN")])
def test_an_answer_names_its_model_and_another_model_answers_again(size: tuple[int, int], language: str) -> None:
    with (
        an_app(lambda asked: Answer(text=f"I am {asked.model}."), models=("lantern", "beacon"), built=the_page()) as (
            app,
            server,
        ),
        a_view(app, size=size, language=language) as view,
    ):
        page = app.page()
        thread = page.thread(model="main/lantern")
        page.say(thread, "Who are you?")
        view.thread(thread)
        answer = view.log.get_by_role("article", name=view.word("role.assistant"))
        expect(answer.get_by_title(view.word("chat.answered_by").replace("{model}", "lantern"))).to_be_visible()
        answer.hover()
        view.choose(answer.get_by_role("button", name=view.word("chat.menu")), "chat.regenerate_with")
        dialog = view.page.get_by_role("dialog", name=view.word("chat.regenerate_with"))
        expect(dialog.get_by_role("grid")).to_be_visible()
        assert view.faults() == []
        dialog.get_by_title("main/beacon").click()
        expect(answer).to_contain_text("I am beacon.")
        expect(answer.get_by_title(view.word("chat.answered_by").replace("{model}", "beacon"))).to_be_visible()
        expect(view.page.get_by_role("button", name=view.word("model.choose"))).to_contain_text("beacon")
        assert [asked.model for asked in server.requests] == ["lantern", "beacon"]
        open_picker(view)
        recent = view.page.get_by_role("rowgroup", name=view.word("model.recent"))
        expect(recent.get_by_title("main/beacon")).to_be_visible()
