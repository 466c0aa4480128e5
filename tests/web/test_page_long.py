"""A thread of five thousand messages: few rows are drawn, all can be reached, nothing jumps."""

import pytest
from playwright.sync_api import expect

from everlong.core import Message, Role, Text
from tests.web.browser import PHONE, WIDE, a_view, in_a_browser, the_page
from tests.web.running import an_app

MOST_DRAWN = 60
#: Near enough to the top that older rows are asked for. -> the first row in view then
TO_THE_TOP_OF_WHAT_IS_LOADED = """async box => {
  box.scrollTop = 1200;
  for (let frame = 0; frame < 3; frame++) await new Promise(requestAnimationFrame);
  const top = box.getBoundingClientRect().top;
  const rows = [...box.querySelectorAll('[data-key]')];
  return rows.find(row => row.getBoundingClientRect().bottom > top).dataset.key;
}"""
#: The reader scrolls up just before the page takes newer rows over; the browser tells it of the scroll only later.
UP_BEFORE_ROWS_COME = """() => {
  const text = Response.prototype.text;
  Response.prototype.text = async function () {
    const body = await text.call(this);
    if (this.url.includes('/rows')) document.querySelector('main [role=log]').scrollTop -= 900;
    return body;
  };
}"""


def said(number: int) -> Message:
    role = Role.ASSISTANT if number % 2 else Role.USER
    return Message(role, (Text(f"Line {number} of the ship's log. " + "The sea was calm. " * (number % 9)),))


@in_a_browser
@pytest.mark.parametrize(("size", "messages"), [(WIDE, 5_000), (PHONE, 500)], ids=["wide", "phone"])
def test_a_long_thread_opens_at_its_end_and_its_first_message_can_be_reached(
    size: tuple[int, int], messages: int
) -> None:
    with an_app(window=16_384, built=the_page()) as (app, _), a_view(app, size=size) as view:
        thread = app.page().thread("The ship's log")
        app.state.threads.append(thread, [said(number) for number in range(messages)])
        view.thread(thread)
        view.listening()
        rows = view.log.locator("[data-key]")
        expect(view.log.get_by_text(f"Line {messages - 1} of")).to_be_in_viewport()
        assert rows.count() <= MOST_DRAWN

        # Further up the reader keeps the place while older rows are loaded above it.
        key = view.log.evaluate(TO_THE_TOP_OF_WHAT_IS_LOADED)
        view.page.wait_for_function("() => document.querySelector('main [role=log]').scrollTop > 3000")
        expect(view.log.locator(f'[data-key="{key}"]')).to_be_in_viewport()
        view.button("chat.to_end").click()
        expect(view.log.get_by_text(f"Line {messages - 1} of")).to_be_in_viewport()

        view.to_first("Line 0 of")
        expect(view.log.get_by_text("Line 0 of")).to_be_in_viewport()
        assert rows.count() <= MOST_DRAWN
        view.open(f"#/t/{thread}/{messages // 2}")
        expect(view.log.get_by_text(f"Line {messages // 2} of")).to_be_in_viewport()
        assert rows.count() <= MOST_DRAWN


@in_a_browser
def test_a_reader_who_scrolls_up_is_not_taken_back_when_rows_come() -> None:
    with an_app(window=16_384, built=the_page()) as (app, _), a_view(app) as view:
        thread = app.page().thread("The ship's log")
        app.state.threads.append(thread, [said(number) for number in range(100)])
        view.thread(thread)
        view.listening()
        view.page.evaluate(UP_BEFORE_ROWS_COME)
        view.say("Which line is the last?")
        expect(view.button("chat.to_end")).to_be_visible()
        expect(view.log.get_by_text("Which line is the last?").first).not_to_be_in_viewport()
        view.button("chat.to_end").click()
        expect(view.log.get_by_text("Which line is the last?").first).to_be_in_viewport()
