"""Talking in the browser: words as they come, stop, again, attachments, tools and their questions."""

import json
import re
from base64 import b64decode
from pathlib import Path

import pytest
from playwright.sync_api import expect

from everlong.cli.demo_app import picture
from everlong.llm import Answer, ReceivedRequest, Step, in_turn
from tests.web.browser import PHONE, WIDE, a_view, in_a_browser, the_page
from tests.web.running import an_app

ENDLESS = " ".join(f"word{number}" for number in range(5_000))


@in_a_browser
def test_words_are_seen_as_they_come_and_stop_ends_them() -> None:
    def script(asked: ReceivedRequest) -> Step:
        if "endless" in asked.messages[-1].text:
            return Answer(text=ENDLESS, thinking="What a question.", between=0.02)
        return Answer(text="**Short** and good.")

    with an_app(script, built=the_page()) as (app, server), a_view(app) as view:
        thread = app.page().thread()
        view.open(f"#/t/{thread}")
        view.say("Something endless")
        expect(view.log.get_by_text("word20")).to_be_visible()
        expect(view.button("composer.stop")).to_be_visible()
        assert "word4999" not in view.log.inner_text()
        view.field.fill("Only this, please")  # one may write, and send, meanwhile
        expect(view.button("composer.send")).to_be_enabled()
        view.button("composer.stop").click()
        view.answered()
        expect(view.log.get_by_text(view.word("ending.stopped"), exact=True)).to_be_visible()
        view.field.press("Enter")
        expect(view.log.get_by_text("Short and good.")).to_be_visible()
        expect(view.log.locator("strong", has_text="Short")).to_be_visible()
        view.answered()
        assert len(server.requests) == 2


@in_a_browser
def test_what_is_said_meanwhile_enters_the_turn_and_a_page_that_comes_late_sees_it(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("boats: 7\n", encoding="utf-8")
    slowly = Answer(text=ENDLESS[:4_000], calls=(("read_file", '{"path": "notes.txt"}'),), between=0.01)
    with an_app(in_turn([slowly]), folder=tmp_path, built=the_page()) as (app, server), a_view(app) as view:
        page = app.page()
        page.do("PUT", "/everlong/api/settings", {"tools": True})
        thread = page.thread()
        view.open(f"#/t/{thread}")
        view.say("Begin")
        expect(view.log.get_by_text("word3")).to_be_visible()
        view.say("And mind the tide")
        with a_view(app) as late:
            late.thread(thread)
            expect(late.log.get_by_text("word3")).to_be_visible()
            late.answered()
        view.answered()
        expect(view.log.get_by_text("And mind the tide").first).to_be_visible()
        assert any("mind the tide" in message.text for message in server.requests[-1].messages)


@in_a_browser
def test_an_answer_is_given_again_on_a_branch() -> None:
    with (
        an_app(in_turn([Answer(text="First try."), Answer(text="Second try.")]), built=the_page()) as (app, _),
        a_view(app) as view,
    ):
        page = app.page()
        thread = page.thread("A talk")
        page.say(thread, "Say something")
        view.thread(thread)
        answer = view.log.get_by_role("article").filter(has_text="First try.")
        answer.hover()
        view.choose(answer.get_by_role("button", name=view.word("chat.menu")), "chat.regenerate")
        expect(view.log.get_by_text("Second try.")).to_be_visible()
        expect(view.log.get_by_text("First try.")).to_have_count(0)
        assert thread not in view.page.url
        assert [row["text"] for row in page.rows(thread)][-1] == "First try."


@in_a_browser
def test_pictures_and_files_go_with_the_words() -> None:
    with an_app(built=the_page()) as (app, server), a_view(app, complains=("415",)) as view:
        thread = app.page().thread()
        view.open(f"#/t/{thread}")
        view.page.locator("input[type=file]").set_input_files(
            [
                {"name": "sunset.png", "mimeType": "image/png", "buffer": b64decode(picture(16, 16))},
                {"name": "notes.txt", "mimeType": "text/plain", "buffer": b"boats: 7\n"},
                {"name": "noise.bin", "mimeType": "application/octet-stream", "buffer": b"\xff\x00\xfe"},
            ]
        )
        attached = view.page.get_by_role("list", name=view.word("composer.attached")).get_by_role("listitem")
        expect(attached).to_have_count(2)
        expect(view.page.get_by_text(view.like("composer.not_text"))).to_be_visible()
        view.say("Look at these")
        expect(view.log.get_by_role("img").first).to_be_visible()
        view.answered()
        expect(attached).to_have_count(0)
        content = json.loads(server.requests[0].body)["messages"][-1]["content"]
        assert [part["type"] for part in content] == ["text", "text", "image_url"]
        assert "boats: 7" in content[1]["text"]
        assert view.log.locator("img").first.evaluate("it => it.naturalWidth") == 16


CALLS = (("list_files", '{"path": "."}'), ("read_file", '{"path": "nothing-here.txt"}'))


@in_a_browser
def test_tool_calls_are_folded_and_open(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("boats: 7\n", encoding="utf-8")
    script = in_turn([Answer(text="Let me look.", calls=CALLS), Answer(text="There are notes.")])
    with an_app(script, folder=tmp_path, built=the_page()) as (app, _), a_view(app) as view:
        page = app.page()
        page.do("PUT", "/everlong/api/settings", {"tools": True})
        thread = page.thread()
        view.open(f"#/t/{thread}")
        view.say("What is in the folder?")
        expect(view.log.get_by_text("There are notes.")).to_be_visible()
        view.answered()
        card = view.log.get_by_role("button", name=re.compile("^list_files"))
        expect(card).to_have_attribute("aria-expanded", "false")
        expect(view.log.get_by_text("notes.txt")).to_have_count(0)
        card.click()
        expect(view.log.get_by_text("notes.txt")).to_be_visible()
        failed = view.log.get_by_role("button", name=re.compile("^read_file"))
        expect(failed).to_contain_text(view.word("chat.failed"))
        view.page.reload()
        expect(view.log.get_by_role("button", name=re.compile("^list_files"))).to_be_visible()


ANSWERS = {"ask.once.command": (True, WIDE), "ask.no": (False, PHONE)}


@in_a_browser
@pytest.mark.parametrize("key", ANSWERS)
def test_a_tool_that_acts_shows_what_it_would_do_and_waits(key: str, tmp_path: Path) -> None:
    allowed, size = ANSWERS[key]
    call = Answer(calls=(("shell", '{"command": "echo from-the-shell"}'),))
    script = in_turn([call, Answer(text="So be it.")])
    with an_app(script, folder=tmp_path, built=the_page()) as (app, _), a_view(app, size=size) as view:
        page = app.page()
        page.do("PUT", "/everlong/api/settings", {"tools": True})
        thread = page.thread()
        view.open(f"#/t/{thread}")
        view.say("Use the shell")
        asks = view.page.get_by_role("alertdialog")
        expect(asks).to_contain_text("echo from-the-shell")
        view.page.reload()  # the question waits for whoever comes
        expect(asks).to_contain_text("echo from-the-shell")
        asks.get_by_role("button", name=view.word(key), exact=True).click()
        expect(view.log.get_by_text("So be it.")).to_be_visible()
        expect(asks).to_have_count(0)
        result = next(row for row in page.rows(thread) if row["results"])["results"][0]
        assert ("from-the-shell" in result["text"]) is allowed
