"""Answers that end before their time, and versions of a conversation, in a real browser."""

import pytest
from playwright.sync_api import expect

from everlong.llm import Answer, in_turn
from everlong.llm.scripted.script import Broken
from tests.web.browser import PHONE, WIDE, a_view, in_a_browser, the_page
from tests.web.running import an_app

WORDS = " ".join(f"word{at}" for at in range(4_000))


@pytest.mark.parametrize(("size", "language"), [(WIDE, "en-US"), (PHONE, "zh-CN")])
@in_a_browser
def test_a_stopped_answer_stays_and_goes_on(size: tuple[int, int], language: str) -> None:
    script = in_turn([Answer(text=WORDS, between=0.002), Answer(text="the rest of it"), Answer(text="another one")])
    with an_app(script, built=the_page()) as (app, _), a_view(app, size=size, language=language) as view:
        view.open(f"#/t/{app.page().thread()}")  # with a title: nobody is asked for one
        view.say("talk")
        expect(view.log.get_by_text("word3 ")).to_be_visible()
        view.button("composer.stop").click()
        view.answered()
        note = view.log.get_by_text(view.word("ending.stopped"), exact=True)
        expect(note).to_be_visible()
        view.page.reload()
        expect(view.log.get_by_text("word3 ")).to_be_visible()
        view.button("ending.continue").click()
        expect(view.log.get_by_text("the rest of it")).to_be_visible()
        expect(view.log.get_by_text("word3 ")).to_be_visible()
        view.answered()
        expect(view.button("ending.continue")).to_have_count(0)


@in_a_browser
def test_what_broke_off_can_be_tried_again_and_looked_at_again() -> None:
    script = in_turn([Broken(Answer(text=WORDS), 9), Answer(text="now it is whole")])
    with an_app(script, built=the_page()) as (app, _), a_view(app) as view:
        view.open(f"#/t/{app.page().thread()}")  # with a title: nobody is asked for one
        view.say("talk")
        expect(view.log.get_by_text(view.word("ending.broken_off"), exact=True)).to_be_visible()
        expect(view.button("ending.continue")).to_be_visible()
        view.log.get_by_role("button", name=view.word("app.retry")).click()
        expect(view.log.get_by_text("now it is whole")).to_be_visible()
        expect(view.log.get_by_text("2/2", exact=True)).to_be_visible()
        view.button("versions.previous").click()
        expect(view.log.get_by_text(view.word("ending.broken_off"), exact=True)).to_be_visible()
        expect(view.log.get_by_text("1/2", exact=True)).to_be_visible()


@pytest.mark.parametrize("size", [WIDE, PHONE])
@in_a_browser
def test_answers_again_and_edits_are_versions_in_place(size: tuple[int, int]) -> None:
    answers = [Answer(text=text) for text in ("the first", "the second", "to the edited")]
    with an_app(in_turn(answers), built=the_page()) as (app, _), a_view(app, size=size) as view:
        view.open(f"#/t/{app.page().thread()}")  # with a title: nobody is asked for one
        view.say("tell me")
        expect(view.log.get_by_text("the first")).to_be_visible()
        view.answered()
        answer = view.log.get_by_role("article", name=view.word("role.assistant"))
        answer.hover()
        view.choose(answer.get_by_role("button", name=view.word("chat.menu")), "chat.regenerate")
        expect(view.log.get_by_text("the second")).to_be_visible()
        expect(view.log.get_by_text("the first")).to_have_count(0)
        view.answered()
        question = view.log.get_by_role("article", name=view.word("role.user"))
        question.hover()
        view.choose(question.get_by_role("button", name=view.word("chat.menu")), "chat.edit")
        view.page.get_by_role("textbox", name=view.word("chat.edit")).fill("tell me more")
        question.get_by_role("button", name=view.word("chat.edit.send")).click()
        expect(view.log.get_by_text("to the edited")).to_be_visible()
        view.answered()
        expect(question.get_by_text("2/2")).to_be_visible()
        question.get_by_role("button", name=view.word("versions.previous")).click()
        expect(view.log.get_by_text("the second")).to_be_visible()
        expect(answer.get_by_text("2/2")).to_be_visible()
        answer.get_by_role("button", name=view.word("versions.previous")).click()
        expect(view.log.get_by_text("the first")).to_be_visible()
        assert len(app.page().get("/everlong/api/threads")["threads"]) == 1
