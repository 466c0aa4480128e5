"""The library in the browser: folders, pins, several threads at once, files out and in, branches, what is new."""

import io
import json
import zipfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event

import pytest
from playwright.sync_api import Locator, expect

from everlong.core import Message, Role, Text
from everlong.llm import Answer
from everlong.store import MemoryThreads
from everlong.web.state.settings import OWNER
from tests.web.browser import PHONE, WIDE, View, a_view, in_a_browser, the_page
from tests.web.running import an_app
from tests.wire.sessions.samples import CHATBOX, CHATGPT

API = "/everlong/api"


def nav(view: View) -> Locator:
    return view.page.get_by_role("navigation")


def line(view: View, title: str) -> Locator:
    """The line of a thread in the list."""
    return nav(view).get_by_role("listitem").filter(has_text=title)


def folder(view: View, name: str) -> Locator:
    """The line of a folder."""
    return nav(view).get_by_role("button", name=name).first


def act(view: View, title: str, key: str) -> None:
    """Choose in the menu of a thread."""
    line(view, title).hover()
    view.choose(line(view, title).get_by_role("button"), key)


def act_on_list(view: View, key: str) -> None:
    """Choose in the menu above the list."""
    view.choose(view.button("threads.more_actions"), key)


def show_list(view: View) -> None:
    """On a phone the list is a drawer."""
    view.page.wait_for_function("() => document.querySelector('nav')")
    if view.button("app.sidebar").is_visible() and not view.button("threads.more_actions").is_visible():
        view.button("app.sidebar").click()


def a_store(threads: int) -> MemoryThreads:
    store, now = MemoryThreads(), datetime.now(UTC)
    for number in range(threads):
        at = now - timedelta(minutes=number)
        store.create(f"app-{number:05}", owner=OWNER, title=f"Talk number {number}", at=at)
        store.append(f"app-{number:05}", [Message(Role.USER, (Text(f"pier {number}"),))], at=at)
    return store


@pytest.mark.parametrize(
    ("size", "language"), [(WIDE, "en-US"), (PHONE, "zh-CN")], ids=["wide, English", "phone, Chinese"]
)
@in_a_browser
def test_threads_are_put_into_folders_and_pinned(size: tuple[int, int], language: str) -> None:
    with (
        an_app(built=the_page(), threads=a_store(3)) as (app, _),
        a_view(app, size=size, language=language) as view,
    ):
        view.open()
        show_list(view)
        act_on_list(view, "folders.new")
        view.page.get_by_role("textbox", name=view.word("folders.name")).fill("Sea side")
        view.button("app.save").click()
        expect(view.page.get_by_text(view.word("folders.empty"))).to_be_visible()
        act(view, "Talk number 1", "threads.move")
        view.page.get_by_role("radio", name="Sea side").check()
        view.button("threads.move.short").click()
        expect(folder(view, "Sea side")).to_contain_text("1")
        act(view, "Talk number 2", "threads.pin")
        pinned = nav(view).locator("section").filter(has_text=view.word("threads.pinned"))
        expect(pinned.get_by_role("listitem")).to_have_text(["Talk number 2"])
        # Closed and open again, also after a reload.
        folder(view, "Sea side").click()
        expect(line(view, "Talk number 1")).to_have_count(0)
        view.page.reload()
        show_list(view)
        expect(folder(view, "Sea side")).to_have_attribute("aria-expanded", "false")
        folder(view, "Sea side").press("ArrowRight")
        expect(line(view, "Talk number 1")).to_be_visible()
        view.choose(
            nav(view).get_by_role("button", name=view.word("folders.menu").replace("{name}", "Sea side")),
            "folders.rename",
        )
        view.page.get_by_role("textbox", name=view.word("folders.name")).fill("Harbour")
        view.button("app.save").click()
        expect(folder(view, "Harbour")).to_be_visible()
        view.choose(
            nav(view).get_by_role("button", name=view.word("folders.menu").replace("{name}", "Harbour")),
            "folders.delete",
        )
        view.page.get_by_role("dialog").get_by_role("button", name=view.word("folders.delete"), exact=True).click()
        expect(folder(view, "Harbour")).to_have_count(0)
        expect(line(view, "Talk number 1")).to_be_visible()
        assert app.page().get(f"{API}/threads/app-00001")["folder"] == ""


@in_a_browser
def test_threads_are_dragged_into_a_folder_and_out_of_it() -> None:
    with an_app(built=the_page(), threads=a_store(3)) as (app, _), a_view(app) as view:
        app.page().do("POST", f"{API}/folders", {"name": "Sea"})
        view.open()
        line(view, "Talk number 1").drag_to(folder(view, "Sea"))
        expect(folder(view, "Sea")).to_contain_text("1")
        expect(line(view, "Talk number 1")).to_have_count(0)
        folder(view, "Sea").click()
        line(view, "Talk number 1").drag_to(nav(view).get_by_role("heading", name=view.word("threads.today")))
        expect(folder(view, "Sea")).to_contain_text("0")
        assert app.page().get(f"{API}/threads/app-00001")["folder"] == ""


@in_a_browser
def test_several_threads_are_chosen_moved_exported_archived_and_deleted() -> None:
    with an_app(built=the_page(), threads=a_store(6)) as (app, _), a_view(app) as view:
        view.open()
        line(view, "Talk number 1").get_by_role("link").click(modifiers=["Control"])
        nav(view).get_by_role("checkbox").nth(3).click(modifiers=["Shift"])
        expect(nav(view).get_by_text(view.word("threads.chosen").replace("{count}", "3"))).to_be_visible()
        view.button("threads.export.short").click()
        with view.page.expect_download() as download:
            view.page.get_by_role("link", name=view.word("export.markdown")).click()
        names = zipfile.ZipFile(Path(download.value.path())).namelist()
        assert len(names) == 3
        expect(view.page.get_by_role("dialog")).to_have_count(0)

        act(view, "Talk number 0", "threads.choose")
        view.button("threads.to_archive").click()
        expect(line(view, "Talk number 0")).to_have_count(0)
        act_on_list(view, "threads.choose.many")
        nav(view).get_by_role("checkbox").nth(0).check()
        nav(view).get_by_role("checkbox").nth(1).check()
        view.button("threads.delete").click()
        view.page.get_by_role("dialog").get_by_role("button", name=view.word("threads.delete"), exact=True).click()
        expect(nav(view).get_by_role("listitem")).to_have_count(3)
        assert len(app.page().get(f"{API}/threads")["threads"]) == 3


def drop(view: View, files: dict[str, bytes]) -> None:
    """Drop files on the list, as a person does."""
    listed = [[name, list(data)] for name, data in files.items()]
    handle = view.page.evaluate_handle(
        """(files) => { const carried = new DataTransfer();
        for (const [name, data] of files) carried.items.add(new File([new Uint8Array(data)], name));
        return carried; }""",
        listed,
    )
    for event in ("dragover", "drop"):
        nav(view).dispatch_event(event, {"dataTransfer": handle})


@pytest.mark.parametrize(("size", "dark"), [(WIDE, False), (PHONE, True)], ids=["wide", "phone, dark"])
@in_a_browser
def test_files_that_are_dropped_come_in_once_and_hostile_ones_do_no_harm(size: tuple[int, int], dark: bool) -> None:
    evil = json.loads(json.dumps(CHATGPT).replace("Seven boats", "<img src=x onerror=alert(1)>"))
    evil |= {"id": "../evil", "conversation_id": "../evil"}
    with an_app(built=the_page()) as (app, _), a_view(app, size=size, dark=dark) as view:
        view.open()
        show_list(view)
        archive = io.BytesIO()
        with zipfile.ZipFile(archive, "w") as packed:
            packed.writestr("conversations.json", json.dumps([CHATGPT, evil]))
            packed.writestr("user.json", '{"id": "somebody"}')
        files = {
            "chatgpt.zip": archive.getvalue(),
            "chatbox.json": json.dumps(CHATBOX).encode(),
            "notes.txt": b"<b>no JSON</b>",
        }
        drop(view, files)
        dialog = view.page.get_by_role("dialog")
        expect(dialog.get_by_text(view.word("import.unreadable"))).to_be_visible()
        expect(dialog.get_by_text("ChatGPT", exact=True)).to_be_visible()
        expect(dialog.get_by_text("Chatbox", exact=True)).to_be_visible()
        expect(dialog).to_contain_text(view.word("import.versions").replace("{count}", "2"))
        dialog.locator("footer").get_by_role("button", name=view.word("app.close")).click()
        expect(line(view, "<img src=x onerror=alert(1)>")).to_be_visible()
        listed = len(app.page().get(f"{API}/threads")["threads"])
        drop(view, files)
        expect(dialog).to_contain_text(view.word("import.known").replace("{count}", "4"))
        view.button("import.show").click() if view.button("import.show").count() else dialog.locator(
            "footer"
        ).get_by_role("button", name=view.word("app.close")).click()
        assert len(app.page().get(f"{API}/threads")["threads"]) == listed
        line(view, "<img src=x onerror=alert(1)>").get_by_role("link").click()
        expect(view.log.get_by_text("Eight.")).to_be_visible()


@in_a_browser
def test_the_tree_of_branches_leads_to_each_of_them() -> None:
    with an_app(built=the_page()) as (app, _), a_view(app) as view:
        page = app.page()
        root = page.thread("Boats")
        page.say(root, "How many boats?")
        page.say(root, "And on Sunday?")
        branch = page.do("POST", f"{API}/threads/{root}/branch", {"order": 3, "title": "Another day"})["id"]
        page.say(branch, "And on Monday?")
        view.thread(root)
        act(view, "Boats", "threads.branches")
        tree = view.page.get_by_role("dialog")
        expect(tree.get_by_role("listitem")).to_have_count(2)
        expect(tree.get_by_text(view.word("branches.here"))).to_have_count(1)
        tree.get_by_role("button").filter(has_text="And on Monday?").click()
        expect(view.page).to_have_title("Another day · Everlong")
        expect(view.log.get_by_text("And on Monday?").first).to_be_visible()
        view.listening()
        # An answer that is asked for again is a version, and the tree opens from ‹1/2› too.
        page.do("POST", f"{API}/threads/{branch}/regenerate")
        figure = view.log.get_by_title(view.word("threads.branches")).last
        expect(figure).to_have_text("2/2")
        figure.click()
        expect(tree.get_by_role("listitem")).to_have_count(3)
        tree.get_by_role("button").filter(has_text=view.word("branches.version")).click()
        expect(figure).to_have_text("1/2")


@in_a_browser
def test_thousands_of_threads_are_scrolled_with_few_lines_in_the_page() -> None:
    with an_app(built=the_page(), threads=a_store(3_000)) as (app, _), a_view(app) as view:
        view.open()
        expect(line(view, "Talk number 0")).to_have_count(1)
        view.page.wait_for_function(
            """() => { const box = document.querySelector('nav .list'); box.scrollTop = box.scrollHeight;
            window.most = Math.max(window.most ?? 0, box.querySelectorAll('li').length);
            return box.textContent.includes('Talk number 2999'); }"""
        )
        expect(line(view, "Talk number 2999")).to_be_visible()
        assert view.page.evaluate("window.most") < 80
        line(view, "Talk number 2999").get_by_role("link").focus()
        view.page.keyboard.press("ArrowUp")
        view.page.keyboard.press("Enter")
        expect(view.page).to_have_title("Talk number 2998 · Everlong")


@in_a_browser
def test_an_answer_that_came_elsewhere_is_marked_until_it_is_seen() -> None:
    go_on = Event()

    def slow(*_: object) -> Answer:
        go_on.wait(30)
        return Answer(text="Here it is.")

    with an_app(slow, built=the_page()) as (app, _), a_view(app) as view:
        page = app.page()
        one, two = page.thread("First talk"), page.thread("Second talk")
        view.open(f"#/t/{one}")
        view.say("Tell me")
        expect(line(view, "First talk").get_by_role("img", name=view.word("threads.running"))).to_be_visible()
        view.open(f"#/t/{two}")
        go_on.set()
        expect(line(view, "First talk").get_by_role("img", name=view.word("threads.unread"))).to_be_visible()
        line(view, "First talk").get_by_role("link").click()
        expect(line(view, "First talk").get_by_role("img")).to_have_count(0)
        expect(view.log.get_by_text("Here it is.")).to_be_visible()


@pytest.mark.parametrize("language", ["en-US", "zh-CN"])
@in_a_browser
def test_the_foot_says_where_it_leads_and_nothing_is_wrong_for_a_screen_reader(language: str) -> None:
    axe = (Path(the_page()).parent / "page" / "node_modules" / "axe-core" / "axe.min.js").read_text(encoding="utf-8")
    with an_app(built=the_page(), threads=a_store(30)) as (app, _), a_view(app, size=PHONE, language=language) as view:
        app.page().do("POST", f"{API}/chosen", {"threads": ["app-00003"], "folder": "Sea"})
        app.page().do("PATCH", f"{API}/threads/app-00004", {"pinned": True})
        view.open()
        show_list(view)
        for key in ("app.usage", "app.live.short", "app.settings", "threads.archive", "theme.choose"):
            expect(nav(view).get_by_text(view.word(key), exact=True)).to_be_visible()
        folder(view, "Sea").click()
        expect(line(view, "Talk number 3").first).to_be_visible()

        def faults() -> list[str]:
            found = view.page.evaluate(
                f"async () => {{ {axe}; return (await axe.run('nav, dialog[open]')).violations }}"
            )
            return [f"{fault['id']}: {fault['nodes'][0]['html']}" for fault in found]

        assert faults() == []
        nav(view).get_by_role("searchbox").fill("pier")
        expect(nav(view).get_by_role("group", name=view.word("threads.in"))).to_be_visible()
        expect(nav(view).locator("mark").first).to_be_visible()
        assert faults() == []
        nav(view).get_by_role("searchbox").fill("")
        expect(line(view, "Talk number 3").first).to_be_visible()
        act_on_list(view, "threads.choose.many")
        nav(view).get_by_role("checkbox").first.check()
        view.button("threads.export.short").click()
        expect(view.page.get_by_role("dialog")).to_be_visible()
        assert faults() == []
