"""A tool that acts, on the page: the whole of it in view, four answers, and a file made what it was before."""

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


def call(name: str, **arguments: Any) -> Answer:
    return Answer(calls=((name, json.dumps(arguments)),))


def opened(app: RunningApp, view: View) -> None:
    """A new thread with tools, in view."""
    page = app.page()
    page.do("PUT", "/everlong/api/settings", {"tools": True})
    view.open(f"#/t/{page.thread()}")


def question(view: View) -> Locator:
    return view.page.get_by_role("alertdialog")


ANSWERS = {"ask.once.file": True, "ask.thread.file": True, "ask.no": False}


@in_a_browser
@pytest.mark.parametrize(("key", "language"), [(key, "en-US") for key in ANSWERS] + [("ask.once.file", "zh-CN")])
def test_a_file_is_changed_only_after_its_diff_was_seen(key: str, language: str, tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("one\ntwo\n")
    script = in_turn([call("write_file", path="notes.txt", content="one\n2 \n"), Answer(text="So be it.")])
    with an_app(script, folder=tmp_path, built=the_page()) as (app, _), a_view(app, language=language) as view:
        opened(app, view)
        view.say("Go")
        asks = question(view)
        expect(asks.locator(".line.removed")).to_have_text("-two")
        expect(asks.locator(".line.added")).to_have_text("+2⟨1 space⟩")
        expect(asks.get_by_role("heading")).to_contain_text("notes.txt")
        colours = [
            asks.locator(f".line.{tone}").evaluate("(line) => getComputedStyle(line).color")
            for tone in ("added", "removed")
        ]
        assert colours[0] != colours[1]
        assert file.read_text() == "one\ntwo\n"
        asks.get_by_role("button", name=view.word(key), exact=True).press("Enter")  # the keyboard reaches it
        expect(view.log.get_by_text("So be it.")).to_be_visible()
        assert file.read_text() == ("one\n2 \n" if ANSWERS[key] else "one\ntwo\n")


@in_a_browser
def test_always_is_offered_with_its_pattern_and_kept(tmp_path: Path) -> None:
    work, own = tmp_path / "work", tmp_path / "own" / "permissions.toml"
    work.mkdir()
    echo = call("shell", command="echo hi")
    script = in_turn([echo, Answer(text="First."), echo, Answer(text="Second.")])
    config = AgentConfig(workspace=work, remembered=own)
    with an_app(script, folder=tmp_path, built=the_page(), config=config) as (app, _), a_view(app) as view:
        opened(app, view)
        view.say("Go")
        always = view.word("ask.always").replace("{pattern}", "shell:echo hi")
        question(view).get_by_role("button", name=always, exact=True).click()
        expect(view.log.get_by_text("First.")).to_be_visible()
        assert "shell:echo hi" in own.read_text()
        view.say("Again")
        expect(view.log.get_by_text("Second.")).to_be_visible()
        expect(question(view)).to_have_count(0)


@in_a_browser
def test_what_is_too_long_to_be_read_is_refused_and_the_reader_is_told(tmp_path: Path) -> None:
    command = "ls" + " " * 21_000 + "; touch made.txt"
    script = in_turn([call("shell", command=command), Answer(text="Then not.")])
    with an_app(script, folder=tmp_path, built=the_page()) as (app, _), a_view(app) as view:
        opened(app, view)
        view.say("Go")
        expect(view.page.get_by_role("status").get_by_text(re.compile("too long to show"))).to_be_visible()
        expect(view.log.get_by_text("Then not.")).to_be_visible()
        expect(question(view)).to_have_count(0)
    assert not (tmp_path / "made.txt").exists()


@in_a_browser
def test_nothing_in_a_command_is_hidden_or_turned_round(tmp_path: Path) -> None:
    command = "echo a" + " " * 300 + "; echo \u202ehs.x\n\n\n\n\nrm \u05d0; ls \u05d1"
    script = in_turn([call("shell", command=command), Answer(text="Then not.")])
    with an_app(script, folder=tmp_path, built=the_page()) as (app, _), a_view(app, size=PHONE) as view:
        opened(app, view)
        view.say("Go")
        lines = question(view).locator(".line")
        expect(lines).to_have_text(["echo a⟨300 spaces⟩; echo ⟨U+202E⟩hs.x⟨5 line ends⟩", "rm \u05d0; ls \u05d1"])
        # The second Hebrew letter stands to the right of the first: nothing was reordered.
        placed = lines.nth(1).evaluate(
            """(line) => [3, 9].map((at) => { const range = document.createRange();
            range.setStart(line.firstChild, at); range.setEnd(line.firstChild, at + 1);
            return range.getBoundingClientRect().left; })"""
        )
        assert placed[0] < placed[1]
        box = question(view).bounding_box()
        assert box is not None
        assert box["x"] + box["width"] <= PHONE[0]
        question(view).get_by_role("button", name=view.word("ask.no"), exact=True).click()
        expect(view.log.get_by_text("Then not.")).to_be_visible()


@in_a_browser
@pytest.mark.parametrize("changed", [False, True])
def test_a_changed_file_is_restored_from_its_call(changed: bool, tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("first\n")
    script = in_turn([call("write_file", path="notes.txt", content="second\n"), Answer(text="Written.")])
    with an_app(script, folder=tmp_path, built=the_page()) as (app, _), a_view(app, complains=("409",)) as view:
        opened(app, view)
        view.say("Please write notes.txt")  # it is named, so nobody is asked
        expect(view.log.get_by_text("Written.")).to_be_visible()
        assert file.read_text() == "second\n"
        if changed:
            file.write_text("a person's own\n")
        view.log.get_by_role("button", name=re.compile("^write_file")).click()
        view.button("restore.offer").click()
        if changed:
            expect(view.page.get_by_role("alert")).to_contain_text("notes.txt")
            assert file.read_text() == "a person's own\n"
            view.button("restore.force").click()
        expect(view.page.get_by_role("status").get_by_text(view.like("restore.done"))).to_be_visible()
        assert file.read_text() == "first\n"
        expect(view.button("restore.offer")).to_have_count(0)
