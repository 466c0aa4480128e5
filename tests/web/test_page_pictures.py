"""Pictures of messages and of tools' results, shown large: by a press or a key, with zoom and their neighbours."""

import pytest
from playwright.sync_api import Locator, expect

from everlong.cli.demo_app import picture
from everlong.core import CallId, Image, Message, Role, Text, ToolCall, ToolResult
from tests.web.browser import WIDE, View, a_view, in_a_browser, the_page
from tests.web.running import RunningApp, an_app

PHONE = (390, 844)
LOOKS = {"wide, light": (WIDE, False), "phone, dark": (PHONE, True)}
WIDTH = "it => it.getBoundingClientRect().width"


def of(width: int) -> Image:
    """A picture so wide."""
    return Image(data=picture(width), media_type="image/png")


def shows(app: RunningApp, view: View) -> None:
    call = CallId("c1")
    thread = app.page().thread("Pictures")
    history = [
        Message(Role.USER, (Text("Look"), of(160), of(320), Image(url="https://elsewhere.example/a.png"))),
        Message(Role.ASSISTANT, (Text("I call."), ToolCall(call, "draw", "{}"))),
        Message(Role.TOOL, (ToolResult(call, (Text("drawn"), of(200)), name="draw"),)),
        Message(Role.ASSISTANT, (Text("Done."),)),
    ]
    app.state.threads.append(thread, history)
    view.thread(thread)


def large(view: View) -> Locator:
    return view.page.get_by_role("dialog").locator("img")


@in_a_browser
@pytest.mark.parametrize("look", LOOKS)
def test_pictures_enlarge_and_lead_to_their_neighbours(look: str) -> None:
    size, dark = LOOKS[look]
    with an_app(built=the_page()) as (app, _), a_view(app, size=size, dark=dark) as view:
        shows(app, view)
        message = view.log.get_by_role("article", name=view.word("role.user"))
        pictures = message.get_by_role("button", name=view.word("chat.enlarge"))
        expect(pictures).to_have_count(2)
        expect(message.get_by_role("img")).to_have_count(2)
        expect(message.get_by_role("link")).to_have_text("https://elsewhere.example/a.png")
        first, second = (one.get_attribute("src") for one in message.get_by_role("img").all())
        pictures.first.focus()
        view.page.keyboard.press("Enter")
        expect(large(view)).to_have_attribute("src", str(first))
        expect(view.page.get_by_role("dialog")).to_contain_text("1")
        view.page.keyboard.press("ArrowRight")
        expect(large(view)).to_have_attribute("src", str(second))
        view.page.keyboard.press("ArrowRight")
        expect(large(view)).to_have_attribute("src", str(first))
        view.button("chat.enlarged.previous").click()
        expect(large(view)).to_have_attribute("src", str(second))
        fits = large(view).evaluate(WIDTH)
        view.button("chat.enlarged.in").click()
        expect(view.button("chat.enlarged.fit")).to_have_text("150 %")
        assert large(view).evaluate(WIDTH) == pytest.approx(fits * 1.5, rel=0.05)
        view.page.keyboard.press("0")
        expect(view.button("chat.enlarged.fit")).to_have_text("100 %")
        assert fits <= size[0]
        view.page.keyboard.press("Escape")
        expect(view.page.get_by_role("dialog")).to_have_count(0)
        expect(pictures.first).to_be_focused()


@in_a_browser
def test_a_picture_of_a_tools_result_enlarges_too() -> None:
    with an_app(built=the_page()) as (app, _), a_view(app) as view:
        shows(app, view)
        view.log.get_by_role("button").filter(has_text="draw").first.click()
        view.log.get_by_role("button", name=view.word("chat.enlarge")).last.click()
        expect(large(view)).to_be_visible()
        expect(view.button("chat.enlarged.next")).to_have_count(0)
        view.button("app.close").click()
        expect(view.page.get_by_role("dialog")).to_have_count(0)
