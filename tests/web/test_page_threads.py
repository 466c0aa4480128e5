"""Threads in the browser: found, named, put away, branched, deleted; and all of it by key."""

from playwright.sync_api import Locator, Route, expect

from tests.web.browser import View, a_view, in_a_browser, the_page
from tests.web.running import an_app


def line(view: View, title: str) -> Locator:
    """The line of a thread in the list."""
    return view.page.get_by_role("navigation").get_by_role("listitem").filter(has_text=title)


def act(view: View, title: str, key: str) -> None:
    """Choose in the menu of a thread."""
    line(view, title).hover()
    view.choose(line(view, title).get_by_role("button"), key)


@in_a_browser
def test_threads_are_renamed_archived_taken_back_branched_and_deleted() -> None:
    with an_app(built=the_page()) as (app, _), a_view(app) as view:
        page = app.page()
        thread = page.thread("Boats at the pier")
        page.say(thread, "How many boats?")
        page.say(page.thread("Another talk"), "hello")
        view.thread(thread)
        act(view, "Boats at the pier", "threads.rename")
        view.page.get_by_role("textbox", name=view.word("threads.name")).fill("Seven boats")
        view.button("app.save").click()
        expect(line(view, "Seven boats")).to_be_visible()
        expect(view.page).to_have_title("Seven boats · Everlong")

        act(view, "Seven boats", "threads.to_archive")
        expect(line(view, "Seven boats")).to_have_count(0)
        view.page.get_by_role("navigation").get_by_role("button", name=view.word("threads.archive"), exact=True).click()
        line(view, "Seven boats").get_by_role("link").click()
        expect(view.log.get_by_text("How many boats?").first).to_be_visible()
        act(view, "Seven boats", "threads.restore")
        expect(line(view, "Seven boats")).to_have_count(0)
        view.button("threads.back").click()
        expect(line(view, "Seven boats")).to_be_visible()

        act(view, "Seven boats", "threads.branch")
        expect(view.page.get_by_role("navigation").get_by_role("listitem")).to_have_count(3)
        act(view, "Another talk", "threads.delete")
        view.page.get_by_role("dialog").get_by_role("button", name=view.word("threads.delete"), exact=True).click()
        expect(line(view, "Another talk")).to_have_count(0)
        assert len(page.get("/everlong/api/threads")["threads"]) == 2


@in_a_browser
def test_the_keyboard_reaches_everything() -> None:
    with an_app(built=the_page()) as (app, _), a_view(app) as view:
        page = app.page()
        thread = page.thread("Boats at the pier")
        page.say(thread, "The code word is marigold.")
        page.say(page.thread("Another talk"), "hello")
        view.open()
        expect(line(view, "Another talk")).to_be_visible()
        expect(view.field).to_be_focused()
        view.page.keyboard.press("Control+k")
        search = view.page.get_by_role("searchbox").first
        expect(search).to_be_focused()
        view.page.keyboard.type("marigold")
        expect(line(view, "Another talk")).to_have_count(0)
        hits = view.page.get_by_role("navigation").get_by_role("link").filter(has_text="The code word")
        expect(hits.first).to_be_visible()
        view.page.keyboard.press("ArrowDown")
        expect(search).not_to_be_focused()
        view.page.keyboard.press("Enter")
        expect(view.log.get_by_text("The code word is marigold.").first).to_be_visible()
        search.fill("nothing of that kind")
        expect(view.page.get_by_text(view.like("threads.nothing"))).to_be_visible()
        search.press("Escape")
        expect(line(view, "Another talk")).to_be_visible()

        view.page.keyboard.press("Alt+n")
        expect(view.field).to_be_focused()
        view.page.keyboard.type("one line")
        view.page.keyboard.press("Shift+Enter")
        view.page.keyboard.type("and another")
        expect(view.field).to_have_value("one line\nand another")
        view.page.keyboard.press("Enter")
        expect(view.field).to_have_value("")
        expect(view.log.get_by_text("and another").first).to_be_visible()
        view.answered()

        model = view.page.get_by_role("button", name=view.word("model.choose"))
        model.press("Enter")
        expect(view.page.get_by_role("combobox")).to_be_focused()
        view.page.keyboard.press("Escape")
        expect(model).to_be_focused()


def _writes(route: Route) -> bool:
    return route.request.method == "POST"


@in_a_browser
def test_what_is_on_its_way_does_not_take_the_focus_back() -> None:
    with an_app(built=the_page()) as (app, _), a_view(app, complains=("503",)) as view:
        held: list[Route] = []
        view.page.route("**/everlong/api/**", lambda route: held.append(route) if _writes(route) else route.continue_())
        view.open()
        with view.page.expect_request(lambda request: request.method == "POST"):
            view.say("How many boats?")
        model = view.page.get_by_role("button", name=view.word("model.choose"))
        model.press("Enter")
        first = view.page.get_by_role("combobox")
        expect(first).to_be_focused()

        with view.page.expect_request("**/turn"):
            held.pop().continue_()
        expect(view.log.get_by_text("How many boats?").first).to_be_visible()
        expect(first).to_be_focused()
        held.pop().fulfill(status=503, json={"error": {"kind": "input", "message": "away"}})
        expect(view.log.get_by_role("button", name=view.word("unsent.retry"))).to_be_visible()
        expect(first).to_be_focused()
        view.page.keyboard.press("Escape")
        expect(model).to_be_focused()

        view.page.unroute_all()
        view.log.get_by_role("button", name=view.word("unsent.retry")).click()
        expect(view.log.get_by_text("How many boats?")).to_have_count(2)  # it is answered with its own words


@in_a_browser
def test_pins_and_what_was_found_lead_to_their_message() -> None:
    with an_app(built=the_page()) as (app, _), a_view(app) as view:
        page = app.page()
        thread = page.thread()
        page.say(thread, "The code word is marigold.")
        page.say(thread, "The tide comes at six.")
        view.thread(thread)
        message = view.log.get_by_role("article", name=view.word("role.user")).first
        message.hover()
        view.choose(message.get_by_role("button", name=view.word("chat.menu")), "chat.pin")
        expect(message.get_by_text(view.word("chat.pinned"))).to_be_visible()
        expect(view.panel.get_by_role("link", name="The code word is marigold.")).to_be_visible()
        view.panel.get_by_role("searchbox").fill("tide")
        view.panel.get_by_role("searchbox").press("Enter")
        view.panel.get_by_role("button", name=view.like("panel.recall_back_which")).first.click()
        expect(view.panel.get_by_text(view.word("panel.recall_done"))).to_be_visible()
        view.panel.get_by_role("button", name=view.like("panel.unpin_which")).first.click()
        expect(message.get_by_text(view.word("chat.pinned"))).to_have_count(0)
        view.choose(message.get_by_role("button", name=view.word("chat.menu")), "chat.what_sent")
        dialog = view.page.get_by_role("dialog")
        expect(dialog).to_contain_text(view.word("why.whole"))
        expect(dialog.locator("pre")).to_contain_text("marigold")
        view.page.keyboard.press("Escape")
        expect(dialog).to_have_count(0)
