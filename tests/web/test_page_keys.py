"""The keyboard: shortcuts and their sheet; Enter at a desk, on a phone, and while a Chinese word is composed."""

import pytest
from playwright.sync_api import expect

from everlong.llm import Answer, in_turn
from tests.web.browser import PHONE, WIDE, a_view, in_a_browser, the_page
from tests.web.running import an_app
from tests.web.test_page_tabs import wait_until

ENDLESS = Answer(text="word " * 3_000, between=0.02)
CODE = "Here:\n\n```python\nprint(1)\n```\n\nand\n\n```python\nprint(2)\n```\n"


@in_a_browser
@pytest.mark.parametrize(("size", "language"), [(WIDE, "en-US"), (PHONE, "zh-CN")])
def test_the_sheet_tells_the_shortcuts(size: tuple[int, int], language: str) -> None:
    with an_app(built=the_page()) as (app, _), a_view(app, size=size, language=language) as view:
        view.open(f"#/t/{app.page().thread()}")
        view.field.press_sequentially("what? ")
        sheet = view.page.get_by_role("dialog", name=view.word("keys.title"))
        expect(sheet).to_have_count(0)  # a question mark that is typed is a question mark
        expect(view.field).to_have_value("what? ")
        view.field.press("Control+/")
        expect(sheet).to_contain_text(view.word("keys.next"))
        view.page.keyboard.press("Escape")
        expect(sheet).to_have_count(0)
        view.page.locator("#main").focus()
        view.page.keyboard.press("?")
        expect(sheet).to_contain_text(view.word("keys.copy_code"))


@in_a_browser
def test_shortcuts_go_to_threads_places_and_answers() -> None:
    with an_app(in_turn([Answer(text=CODE)]), built=the_page()) as (app, _), a_view(app) as view:
        page = app.page()
        older, newer = page.thread("Older"), page.thread("Newer")
        page.say(older, "Show me")
        view.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        view.thread(older)
        order = [link.get_attribute("href") for link in view.page.locator('nav a[href^="#/t/"]').all()]
        assert sorted(str(place) for place in order) == sorted([f"#/t/{older}", f"#/t/{newer}"])
        forth = "Alt+ArrowDown" if order[0] == f"#/t/{older}" else "Alt+ArrowUp"
        view.field.press(forth)
        expect(view.page).to_have_url(f"{view.origin}/#/t/{newer}")
        view.page.keyboard.press("Alt+ArrowUp" if forth == "Alt+ArrowDown" else "Alt+ArrowDown")
        expect(view.page).to_have_url(f"{view.origin}/#/t/{older}")
        expect(view.log.get_by_text("Show me")).to_be_visible()
        view.page.keyboard.press("Alt+Shift+K")
        expect(view.page.get_by_text(view.word("chat.copied"), exact=True).first).to_be_visible()
        assert view.page.evaluate("navigator.clipboard.readText()") == "print(2)"
        view.page.keyboard.press("Alt+Shift+C")
        wait_until(view, lambda: view.page.evaluate("navigator.clipboard.readText()") == CODE)
        view.page.keyboard.press("Control+k")
        expect(view.page.get_by_role("searchbox", name=view.word("threads.search"), exact=True)).to_be_focused()
        view.page.keyboard.press("Alt+m")
        expect(view.field).to_be_focused()
        expect(view.panel).to_be_visible()
        view.page.keyboard.press("Alt+p")
        expect(view.panel).to_be_hidden()
        view.page.keyboard.press("Control+,")
        expect(view.page).to_have_url(f"{view.origin}/#/settings")
        view.page.keyboard.press("Alt+n")
        expect(view.field).to_be_focused()


@in_a_browser
def test_escape_closes_what_is_open_and_then_stops_the_answer() -> None:
    with an_app(in_turn([ENDLESS]), built=the_page()) as (app, _), a_view(app) as view:
        view.open(f"#/t/{app.page().thread()}")
        view.say("Begin")
        expect(view.log.get_by_text("word word")).to_be_visible()
        view.field.press("Control+/")
        sheet = view.page.get_by_role("dialog", name=view.word("keys.title"))
        expect(sheet).to_be_visible()
        view.page.keyboard.press("Escape")
        expect(sheet).to_have_count(0)
        expect(view.button("composer.stop")).to_be_visible()
        view.field.press("Escape")
        view.answered()


@in_a_browser
def test_the_arrow_up_in_an_empty_field_edits_the_last_message() -> None:
    answers = in_turn([Answer(text="First answer."), Answer(text="Second answer.")])
    with an_app(answers, built=the_page()) as (app, _), a_view(app) as view:
        page = app.page()
        thread = page.thread()
        page.say(thread, "Tell me of boots")
        view.thread(thread)
        view.field.fill("x")
        view.field.press("ArrowUp")
        box = view.log.get_by_role("textbox")
        expect(box).to_have_count(0)
        view.field.fill("")
        view.field.press("ArrowUp")
        expect(box).to_be_focused()
        expect(box).to_have_value("Tell me of boots")
        box.fill("Tell me of boats")
        box.press("Enter")
        expect(view.log.get_by_text("Second answer.")).to_be_visible()


#: A key as an input method sends it: while a word is composed, and (229) at its end in Safari.
COMPOSED = """(field, [composing, code]) => field.dispatchEvent(new KeyboardEvent("keydown",
    {key: "Enter", isComposing: composing, keyCode: code, bubbles: true, cancelable: true}))"""


@in_a_browser
def test_enter_that_ends_a_chinese_word_never_sends() -> None:
    with an_app(built=the_page()) as (app, server), a_view(app, language="zh-CN") as view:
        view.open(f"#/t/{app.page().thread()}")
        expect(view.field).to_have_attribute("placeholder", view.word("composer.placeholder"))
        view.field.fill("你好")
        for composing, code in ((True, 229), (False, 229), (True, 13)):
            view.field.evaluate(COMPOSED, [composing, code])
        expect(view.field).to_have_value("你好")
        view.field.press("Shift+Enter")
        expect(view.field).to_have_value("你好\n")
        view.field.press("Enter")
        expect(view.field).to_have_value("")
        expect(view.log.get_by_text("你好").first).to_be_visible()
        view.answered()
        assert len(server.requests) == 1


@in_a_browser
def test_on_a_phone_enter_makes_a_new_line_and_the_button_sends() -> None:
    with an_app(built=the_page()) as (app, _), a_view(app, size=PHONE) as view:
        view.open(f"#/t/{app.page().thread()}")
        view.field.fill("one")
        low = view.field.evaluate("it => it.clientHeight")
        for _ in range(3):
            view.field.press("Enter")
        view.field.press_sequentially("two")
        expect(view.field).to_have_value("one\n\n\ntwo")
        assert view.field.evaluate("it => it.clientHeight") > 2 * low  # it grows with its text
        expect(view.field).to_have_attribute("placeholder", view.word("composer.placeholder_touch"))
        view.button("composer.send").click()
        expect(view.field).to_have_value("")
        expect(view.log.get_by_text("two").first).to_be_visible()


PASTE = """(field, text) => { const data = new DataTransfer(); data.setData("text/plain", text);
    const event = new ClipboardEvent("paste", {clipboardData: data, bubbles: true, cancelable: true});
    if (field.dispatchEvent(event)) { field.setRangeText(text, field.selectionStart, field.selectionEnd, "end");
        field.dispatchEvent(new Event("input", {bubbles: true})); } }"""


@in_a_browser
@pytest.mark.parametrize(("size", "language"), [(WIDE, "en-US"), (PHONE, "zh-CN")])
def test_a_long_text_that_is_pasted_may_go_along_as_a_file(size: tuple[int, int], language: str) -> None:
    with an_app(built=the_page()) as (app, server), a_view(app, size=size, language=language) as view:
        view.open(f"#/t/{app.page().thread()}")
        view.field.fill("Look at this: ")
        view.field.evaluate(PASTE, "short")
        offer = view.button("composer.paste_as_file")
        expect(offer).to_have_count(0)
        view.field.evaluate(PASTE, "line of a log\n" * 500)
        offer.click()
        expect(view.field).to_have_value("Look at this: short")
        attached = view.page.get_by_role("list", name=view.word("composer.attached")).get_by_role("listitem")
        expect(attached).to_contain_text(view.word("composer.pasted_name"))
        expect(offer).to_have_count(0)
        view.button("composer.send").click()
        view.answered()
        expect(attached).to_have_count(0)
        assert "line of a log" in server.requests[0].body.decode()
