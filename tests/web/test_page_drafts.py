"""What is written is not lost: drafts of each thread, and messages that were not sent, marked on themselves."""

from base64 import b64decode
from collections.abc import Callable

import pytest
from playwright.sync_api import FilePayload, Locator, Route, expect

from everlong.cli.demo_app import picture
from everlong.llm import Answer, in_turn
from tests.web.browser import PHONE, WIDE, View, a_view, in_a_browser, the_page
from tests.web.running import an_app
from tests.web.test_page_tabs import another

FILES: list[FilePayload] = [
    {"name": "sunset.png", "mimeType": "image/png", "buffer": b64decode(picture(16, 16))},
    {"name": "notes.txt", "mimeType": "text/plain", "buffer": b"boats: 7\n"},
]
NOT_LOADED = ("Failed to load resource",)
KEPT = """(text) => Object.keys(localStorage).some((key) =>
    key.startsWith("everlong.draft:") && JSON.parse(localStorage[key]).text === text)"""

#: Writes the draft as another tab does: the tab that runs it is told nothing.
WRITES = """(key) => localStorage.setItem(key,
    JSON.stringify({...JSON.parse(localStorage.getItem(key)), text: "Gone on there", stamp: "of-another-tab"}))"""


def attached(view: View) -> Locator:
    return view.page.get_by_role("list", name=view.word("composer.attached")).get_by_role("listitem")


def kept(view: View, text: str) -> None:
    """Wait until that text is kept."""
    view.page.wait_for_function(KEPT, arg=text)


@in_a_browser
def test_drafts_survive_a_reload_another_thread_and_a_closed_tab() -> None:
    with an_app(built=the_page()) as (app, server), a_view(app) as view:
        page = app.page()
        one, two = page.thread("One"), page.thread("Two")
        view.open(f"#/t/{one}")
        view.field.fill("For the first")
        view.page.locator("input[type=file]").set_input_files(FILES)
        expect(attached(view)).to_have_count(2)
        view.page.get_by_role("link", name="Two").click()
        expect(view.field).to_have_value("")
        view.field.fill("For the second")
        view.open("#/")
        view.field.fill("For a new one")
        kept(view, "For a new one")
        later = another(view)
        view.page.close()
        for place, text in (("#/", "For a new one"), (f"#/t/{two}", "For the second"), (f"#/t/{one}", "For the first")):
            later.open(place)
            later.page.reload()
            expect(later.field).to_have_value(text)
        expect(attached(later)).to_have_count(2)
        later.field.press("Enter")
        expect(later.log.get_by_role("img").first).to_be_visible()
        later.answered()
        later.page.reload()
        expect(later.log.get_by_text("For the first").first).to_be_visible()
        expect(later.field).to_have_value("")
        expect(attached(later)).to_have_count(0)
        assert len(server.requests) == 1


@in_a_browser
def test_what_was_written_at_the_very_end_is_kept_and_goes_with_its_thread() -> None:
    with an_app(built=the_page()) as (app, _), a_view(app) as view:
        thread = app.page().thread("Short lived")
        view.open(f"#/t/{thread}")
        view.field.press_sequentially("to the last key")
        view.page.reload()
        expect(view.field).to_have_value("to the last key")
        line = view.page.get_by_role("listitem").filter(has_text="Short lived")
        line.hover()
        view.choose(line.get_by_role("button"), "threads.delete")
        view.page.get_by_role("dialog").get_by_role("button", name=view.word("threads.delete"), exact=True).click()
        expect(line).to_have_count(0)
        assert not view.page.evaluate(KEPT, "to the last key")


@in_a_browser
@pytest.mark.parametrize("answer", ["draft.take", "draft.keep"])
def test_two_tabs_do_not_overwrite_each_others_draft(answer: str) -> None:
    with an_app(built=the_page()) as (app, _), a_view(app) as view:
        thread = app.page().thread()
        other = another(view)
        for tab in (view, other):
            tab.open(f"#/t/{thread}")
        view.field.fill("Begun here")
        expect(other.field).to_have_value("Begun here")  # who wrote nothing follows
        kept(view, "Begun here")
        view.page.evaluate(WRITES, f"everlong.draft:{thread}")  # the other tab is a moment ahead, unheard
        expect(other.field).to_have_value("Gone on there")
        view.field.fill("Gone on here")
        line = view.page.get_by_text(view.word("draft.elsewhere"))
        expect(line).to_be_visible()
        assert view.page.evaluate(KEPT, "Gone on there")
        view.button(answer).click()
        expect(line).to_have_count(0)
        stands = "Gone on there" if answer == "draft.take" else "Gone on here"
        expect(view.field).to_have_value(stands)
        kept(view, stands)
        expect(other.field).to_have_value(stands)


@in_a_browser
def test_attachments_that_could_not_be_kept_are_named() -> None:
    with an_app(built=the_page()) as (app, _), a_view(app) as view:
        view.page.add_init_script("Object.defineProperty(globalThis, 'indexedDB', {get() { throw new Error('no'); }})")
        view.open(f"#/t/{app.page().thread()}")
        view.page.locator("input[type=file]").set_input_files(FILES)
        expect(attached(view)).to_have_count(2)
        view.field.fill("With files")
        kept(view, "With files")
        view.page.reload()
        expect(view.field).to_have_value("With files")
        told = view.word("draft.not_kept").format(names="sunset.png, notes.txt")
        expect(view.page.get_by_text(told)).to_be_visible()


def unsent(view: View) -> Locator:
    return view.log.get_by_role("article").filter(has_text=view.word("unsent.label"))


def abort(route: Route) -> None:
    route.abort()


def refuse(route: Route) -> None:
    route.fulfill(status=503, json={"error": {"kind": "busy", "message": "the store is busy"}})


@in_a_browser
@pytest.mark.parametrize(
    ("fails", "size", "language"), [(abort, WIDE, "en-US"), (refuse, PHONE, "zh-CN")], ids=["offline", "busy"]
)
def test_a_message_that_was_not_sent_says_so_and_is_sent_again(
    fails: Callable[[Route], None], size: tuple[int, int], language: str
) -> None:
    with (
        an_app(in_turn([Answer(text="Here now.")]), built=the_page()) as (app, server),
        a_view(app, size=size, language=language, complains=NOT_LOADED) as view,
    ):
        page = app.page()
        thread = page.thread()
        view.page.route("**/turn", fails)
        view.open(f"#/t/{thread}")
        view.page.locator("input[type=file]").set_input_files(FILES[1])
        view.field.fill("Can you hear me?")
        view.button("composer.send").click()
        expect(unsent(view)).to_contain_text("Can you hear me?")
        expect(unsent(view)).to_contain_text("notes.txt")
        expect(unsent(view)).to_contain_text(view.word("failure.offline" if fails is abort else "failure.busy"))
        expect(view.field).to_have_value("")
        view.page.reload()
        expect(unsent(view)).to_contain_text("Can you hear me?")
        view.button("unsent.retry").click()  # still no way through
        expect(unsent(view)).to_have_count(1)
        view.page.unroute("**/turn")
        view.button("unsent.retry").click()
        expect(view.log.get_by_text("Here now.")).to_be_visible()
        expect(unsent(view)).to_have_count(0)
        view.page.reload()
        expect(view.log.get_by_text("Here now.")).to_be_visible()
        assert len([row for row in page.rows(thread) if row["role"] == "user"]) == 1
        assert len(server.requests) == 1


@in_a_browser
def test_a_message_whose_answer_was_lost_on_the_way_is_not_doubled() -> None:
    with (
        an_app(in_turn([Answer(text="Here now.")]), built=the_page()) as (app, server),
        a_view(app, complains=NOT_LOADED) as view,
    ):
        page = app.page()
        thread = page.thread()

        def lose(route: Route) -> None:
            page.do("POST", f"/everlong/api/threads/{thread}/turn", route.request.post_data_json)
            route.abort()

        view.page.route("**/turn", lose)
        view.open(f"#/t/{thread}")
        view.say("Can you hear me?")
        expect(view.log.get_by_text("Here now.")).to_be_visible()
        expect(unsent(view)).to_have_count(0)
        assert len(server.requests) == 1


@in_a_browser
def test_an_unsent_message_is_edited_or_discarded_and_a_thread_that_could_not_begin_keeps_it() -> None:
    with (
        an_app(in_turn([Answer(text="Here now.")]), built=the_page()) as (app, _),
        a_view(app, complains=NOT_LOADED) as view,
    ):
        view.page.route(
            "**/everlong/api/threads",
            lambda route: route.abort() if route.request.method == "POST" else route.continue_(),
        )
        view.open("#/")
        view.say("The first words")
        expect(unsent(view)).to_contain_text("The first words")
        view.field.fill("and more")
        view.button("unsent.edit").click()
        expect(view.field).to_have_value("The first words\n\nand more")
        expect(view.page.get_by_text(view.word("unsent.label"))).to_have_count(0)
        view.field.press("Enter")
        expect(unsent(view)).to_contain_text("and more")
        view.page.unroute("**/everlong/api/threads")
        view.button("unsent.retry").click()
        expect(view.log.get_by_text("Here now.")).to_be_visible()
        expect(view.log.get_by_role("article").filter(has_text="and more")).to_have_count(1)
        view.page.route("**/turn", abort)
        view.say("Never mind")
        view.button("unsent.discard").click()
        expect(view.log.get_by_text("Never mind")).to_have_count(0)
        view.page.reload()
        expect(view.log.get_by_text("and more").first).to_be_visible()
        expect(view.log.get_by_text("Never mind")).to_have_count(0)
