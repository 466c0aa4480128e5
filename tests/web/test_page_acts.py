"""What the agent does, on the page: diffs and commands that can be read, answers by a key, permissions taken back."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from everlong.agent import AgentConfig
from everlong.llm import Answer, in_turn
from tests.web.browser import PHONE, View, a_view, in_a_browser, the_page
from tests.web.running import RunningApp, an_app
from tests.web.test_page_models import PLACES

API = "/everlong/api"
DONE = Answer(text="So be it.")


def call(name: str, **arguments: Any) -> Answer:
    return Answer(calls=((name, json.dumps(arguments)),))


def opened(app: RunningApp, view: View) -> str:
    """A new thread with tools, in view."""
    page = app.page()
    page.do("PUT", f"{API}/settings", {"tools": True})
    thread = page.thread("Work")
    view.open(f"#/t/{thread}")
    return thread


def question(view: View) -> Locator:
    return view.page.get_by_role("alertdialog")


@in_a_browser
@pytest.mark.parametrize(("size", "language", "dark"), PLACES)
def test_a_change_is_a_diff_with_numbers_and_counts_before_and_after(
    size: tuple[int, int], language: str, dark: bool, tmp_path: Path
) -> None:
    (tmp_path / "notes.txt").write_text("one\ntwo\nthree\n")
    script = in_turn([call("write_file", path="notes.txt", content="one\n2\nthree\nfour\n"), DONE])
    with (
        an_app(script, folder=tmp_path, built=the_page()) as (app, _),
        a_view(app, size=size, language=language, dark=dark) as view,
    ):
        opened(app, view)
        view.say("Go")
        asks = question(view)
        expect(asks.locator(".line.added")).to_have_text(["+2", "+four"])
        expect(asks.locator(".line.removed")).to_have_attribute("data-at", "2")
        expect(asks.get_by_text("+2 −1")).to_be_visible()
        assert view.faults() == []
        for button in asks.get_by_role("button").all():
            box = button.bounding_box()
            assert box is not None
            assert box["height"] >= (44 if size == PHONE else 36)
        asks.get_by_role("button", name=view.word("ask.once.file"), exact=True).click()
        expect(view.log.get_by_text("So be it.")).to_be_visible()
        view.log.get_by_role("button", name=re.compile("^write_file")).click()
        expect(view.log.locator(".line.added")).to_have_text(["+2", "+four"])
        expect(view.log.locator(".line.removed")).to_have_text(["-two"])
        assert view.faults() == []


@in_a_browser
def test_a_command_has_its_folder_and_its_exit_code(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    script = in_turn([call("shell", command="echo hi\nexit 3", folder="src"), call("shell", command="true"), DONE])
    config = AgentConfig(workspace=tmp_path, approval="ask", allow=("shell:true",))
    with an_app(script, folder=tmp_path, built=the_page(), config=config) as (app, _), a_view(app) as view:
        opened(app, view)
        view.say("Go")
        asks = question(view)
        expect(asks.locator(".line")).to_have_text(["echo hi", "exit 3"])
        expect(asks.get_by_text(view.word("act.in_folder"))).to_contain_text("src")
        asks.get_by_role("button", name=view.word("ask.once.command"), exact=True).click()
        expect(view.log.get_by_text("So be it.")).to_be_visible()
        for code in ("3", "0"):
            expect(view.log.get_by_text(view.word("act.exit").replace("{code}", code), exact=True)).to_be_visible()
        view.log.get_by_role("button", name=re.compile("^shell echo hi")).click()
        expect(view.log.locator("div.line")).to_have_text(["echo hi", "exit 3"])
        assert view.faults() == []


@in_a_browser
def test_y_and_n_answer_and_a_letter_in_a_message_is_only_a_letter(tmp_path: Path) -> None:
    writes = [call("write_file", path=name, content="1") for name in ("a.txt", "b.txt", "c.txt")]
    with an_app(in_turn([*writes, DONE]), folder=tmp_path, built=the_page()) as (app, _), a_view(app) as view:
        opened(app, view)
        view.say("Go")
        asks = question(view)
        expect(asks.get_by_role("heading")).to_contain_text("a.txt")
        expect(asks.get_by_text(view.word("ask.keys"))).to_be_visible()
        view.field.press_sequentially("yn")
        expect(view.field).to_have_value("yn")
        expect(asks.get_by_role("heading")).to_contain_text("a.txt")
        view.field.press("Alt+y")
        expect(asks.get_by_role("heading")).to_contain_text("b.txt")
        asks.get_by_role("group").focus()
        view.page.keyboard.press("n")
        expect(asks.get_by_role("heading")).to_contain_text("c.txt")
        asks.get_by_role("group").focus()
        view.page.keyboard.press("y")
        expect(view.log.get_by_text("So be it.")).to_be_visible()
        expect(view.field).to_have_value("yn")
    assert sorted(path.name for path in tmp_path.glob("*.txt")) == ["a.txt", "c.txt"]


@in_a_browser
def test_a_question_is_there_again_after_the_page_was_loaded_anew(tmp_path: Path) -> None:
    script = in_turn([call("shell", command="echo hi"), DONE])
    with an_app(script, folder=tmp_path, built=the_page()) as (app, _), a_view(app, size=PHONE) as view:
        opened(app, view)
        view.say("Go")
        expect(question(view)).to_be_visible()
        view.page.reload()
        expect(question(view).locator(".line")).to_have_text("echo hi")
        question(view).get_by_role("button", name=view.word("ask.no"), exact=True).click()
        expect(view.log.get_by_text("So be it.")).to_be_visible()


@in_a_browser
def test_what_was_allowed_is_seen_in_the_settings_and_taken_back(tmp_path: Path) -> None:
    work, own = tmp_path / "work", tmp_path / "own" / "permissions.toml"
    work.mkdir()
    script = in_turn([call("shell", command="echo hi"), DONE, call("write_file", path="a.txt", content="1"), DONE])
    config = AgentConfig(workspace=work, remembered=own)
    with an_app(script, built=the_page(), config=config) as (app, _), a_view(app) as view:
        opened(app, view)
        view.say("Go")
        always = view.word("ask.always").replace("{pattern}", "shell:echo hi")
        question(view).get_by_role("button", name=always, exact=True).click()
        expect(view.log.get_by_text("So be it.")).to_have_count(1)
        view.say("Again")
        question(view).get_by_role("button", name=view.word("ask.thread.file"), exact=True).click()
        expect(view.log.get_by_text("So be it.")).to_have_count(2)
        view.open("#/settings")
        again = view.word("permissions.revoke_which")
        names = [again.replace("{name}", name) for name in ("shell:echo hi", view.word("permissions.file"))]
        for name in names:
            expect(view.page.get_by_role("button", name=name, exact=True)).to_be_visible()
        assert view.faults() == []
        for name in names:
            view.page.get_by_role("button", name=name, exact=True).click()
        expect(view.page.get_by_text(view.word("permissions.none"))).to_be_visible()
        assert "echo hi" not in own.read_text()
