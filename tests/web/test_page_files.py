"""Files that go with a message, in a real browser: what they cost is seen before they are sent."""

import pytest
from playwright.sync_api import FilePayload, expect

from tests.web.browser import PHONE, WIDE, a_view, in_a_browser, the_page
from tests.web.documents import files
from tests.web.running import an_app


def payload(name: str, data: bytes) -> FilePayload:
    return {"name": name, "mimeType": "application/octet-stream", "buffer": data}


@pytest.mark.parametrize(("size", "language"), [(WIDE, "en-US"), (PHONE, "zh-CN")])
@in_a_browser
def test_a_part_of_a_pdf_is_attached_and_its_cost_is_seen_first(size: tuple[int, int], language: str) -> None:
    pages = [f"Page {at}: boat {at} lies at pier {at}." for at in range(1, 8)]
    with an_app(built=the_page()) as (app, server), a_view(app, size=size, language=language) as view:
        view.open(f"#/t/{app.page().thread()}")
        view.page.locator("input[type=file]").set_input_files(payload("harbour.pdf", files.pdf(*pages)))
        chips = view.page.get_by_role("list", name=view.word("composer.attached"))
        expect(chips).to_contain_text("harbour.pdf")
        expect(chips).to_contain_text("token")
        whole = chips.inner_text()
        view.button("composer.part").click()
        dialog = view.page.get_by_role("dialog")
        dialog.get_by_label(view.word("part.from"), exact=True).select_option(index=2)
        dialog.get_by_label(view.word("part.to"), exact=True).select_option(index=3)
        view.button("part.take").click()
        expect(chips).to_contain_text("3–4")
        assert chips.inner_text() != whole
        view.say("Where do they lie?")
        expect(view.log.get_by_text("Where do they lie?").first).to_be_visible()
        expect(view.log.get_by_role("article", name=view.word("role.user"))).to_contain_text("harbour.pdf")
        view.answered()
        sent = server.requests[-1].messages[-1].text
        assert "boat 3" in sent
        assert "boat 4" in sent
        assert "boat 5" not in sent
        assert "boat 2" not in sent
        expect(chips).to_have_count(0)


@in_a_browser
def test_a_file_without_text_says_what_to_do_and_a_large_one_warns() -> None:
    long = "\n".join(f"line {at} of the log" for at in range(9_000)).encode()
    with an_app(built=the_page()) as (app, _), a_view(app, complains=("415",)) as view:
        page = app.page()
        thread = page.thread()
        page.say(thread, "hello")
        view.thread(thread)
        chosen = view.page.locator("input[type=file]")
        chosen.set_input_files(payload("scan.pdf", files.scan()))
        expect(view.page.get_by_text(view.word("composer.no_text").format(name="scan.pdf"))).to_be_visible()
        chosen.set_input_files(payload("server.log", long))
        expect(view.page.get_by_text(view.word("composer.more_than_window"))).to_be_visible()
