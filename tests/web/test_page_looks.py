"""The frame around the talk: a phone's width, light and dark, the first run, the login, its weight and its guards."""

import gzip
import re

import pytest
from playwright.sync_api import expect

from everlong.errors import Refused
from everlong.llm import ScriptedServer, Window
from everlong.store import MemoryThreads
from everlong.web.api.guard import Guard
from everlong.web.app import Setup
from tests.web.boats import TALKS, WINDOW, fill
from tests.web.browser import PHONE, View, a_view, in_a_browser, the_page
from tests.web.running import RunningApp, an_app

HEAVIEST, HEAVIEST_OF_ALL = 250_000, 3_000_000  # bytes, gzipped: at first, and with everything that is loaded later


def test_the_page_weighs_little() -> None:
    """The page and its first script are loaded at once; formulas, colours and diagrams when they are needed."""
    shell = the_page() / "index.html"
    scripts = re.findall(r'<script [^>]*src="/([^"]+)"', shell.read_text(encoding="utf-8"))
    assert len(scripts) == 1
    first = [shell, *(the_page() / name for name in scripts)]
    assert sum(len(gzip.compress(path.read_bytes())) for path in first) < HEAVIEST
    files = [path for path in the_page().rglob("*") if path.is_file() and not path.name.startswith(".")]
    assert sum(len(gzip.compress(path.read_bytes())) for path in files) < HEAVIEST_OF_ALL


def test_the_page_names_nobody_else() -> None:
    shell = (the_page() / "index.html").read_text(encoding="utf-8")
    assert not re.search(r"""(src|href)=["'](https?:)?//""", shell)
    assert not re.search(r'<script(?! type="importmap")(?![^>]*\bsrc=)', shell)


@in_a_browser
@pytest.mark.parametrize("language", ["en-US", "zh-CN"])
def test_on_a_phone_list_and_panel_are_drawers(language: str) -> None:
    with (
        an_app(TALKS, window=WINDOW, built=the_page()) as (app, _),
        a_view(app, size=PHONE, language=language) as view,
    ):
        page = app.page()
        thread = page.thread("Boats at the pier")
        fill(page, thread, 3)
        page.compact(thread)
        view.thread(thread)
        wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        expect(view.panel).not_to_be_in_viewport()
        navigation = view.page.get_by_role("navigation")
        expect(navigation).not_to_be_in_viewport()
        expect(view.field).to_be_in_viewport()

        view.button("app.sidebar").click()
        expect(navigation.get_by_role("link", name="Boats at the pier")).to_be_in_viewport()
        view.page.keyboard.press("Escape")
        expect(navigation).not_to_be_in_viewport()

        view.button("app.panel.show").click()
        expect(view.panel.get_by_role("meter")).to_be_in_viewport()
        assert view.page.evaluate(wide) <= 0
        view.button("panel.close").click()
        expect(view.panel).not_to_be_in_viewport()

        view.say("And now?")
        expect(view.log.get_by_text("And now?")).to_be_attached()
        view.answered()
        expect(view.log.get_by_text("That is the answer number").last).to_be_in_viewport()
        for place in ("#/settings", "#/usage", "#/live"):
            view.open(place)
            expect(view.page.get_by_role("heading").first).to_be_visible()
            expect(view.page.get_by_role("main")).not_to_be_empty()
            assert view.page.evaluate(wide) <= 0, place


@in_a_browser
@pytest.mark.parametrize("size", [(1440, 500), PHONE])
def test_columns_scroll_and_the_page_never_does(size: tuple[int, int]) -> None:
    """What only screen readers read belongs to its column: a window that can scroll shows an empty page below."""
    with an_app(TALKS, window=WINDOW, built=the_page()) as (app, _), a_view(app, size=size) as view:
        page = app.page()
        threads = [page.thread(f"Boats at pier {number}") for number in range(30)]
        fill(page, threads[0], 3)
        places = {f"#/t/{threads[0]}": "article", "#/settings": "[type=range]", "#/usage": "canvas"}
        for place, content in places.items():
            view.open(place)
            expect(view.page.get_by_role("main").locator(content).first).to_be_visible()
            sizes = "(({scrollWidth, scrollHeight}) => [scrollWidth, scrollHeight])(document.documentElement)"
            assert view.page.evaluate(sizes) == list(size), place


def is_dark(view: View, dark: bool) -> None:
    """Wait until the ground of the page is that dark, or that bright."""
    view.page.wait_for_function(
        """dark => { const told = getComputedStyle(document.body).backgroundColor.match(/[\\d.]+/g).map(Number);
        return (told[0] + told[1] + told[2]) / 3 < 128 === dark; }""",
        arg=dark,
    )


@in_a_browser
def test_light_and_dark_follow_the_device_until_one_is_chosen() -> None:
    with an_app(built=the_page()) as (app, _), a_view(app, dark=True) as view:
        view.open("#/settings")
        expect(view.page.get_by_role("slider")).to_be_visible()
        is_dark(view, True)
        view.page.emulate_media(color_scheme="light")
        is_dark(view, False)
        view.page.get_by_text(view.word("settings.theme.dark"), exact=True).click()
        is_dark(view, True)
        view.page.reload()
        expect(view.page.get_by_role("slider")).to_be_visible()
        is_dark(view, True)


@in_a_browser
def test_the_language_is_that_of_the_browser_until_one_is_chosen() -> None:
    with an_app(built=the_page()) as (app, _), a_view(app, language="zh-CN") as view:
        view.open("#/settings")
        heading = view.page.get_by_role("heading", level=1)
        expect(heading).to_have_text(view.word("app.settings"))
        expect(view.page.locator("html")).to_have_attribute("lang", re.compile("^zh"))
        view.page.get_by_text("English", exact=True).click()
        view.language = "en"
        expect(heading).to_have_text(view.word("app.settings"))
        view.page.reload()
        expect(heading).to_have_text(view.word("app.settings"))
        expect(view.page.locator("html")).to_have_attribute("lang", re.compile("^en"))


@in_a_browser
def test_the_first_run_asks_once_where_answers_come_from() -> None:
    with (
        ScriptedServer(window=Window(16_384, told=True), models=("lantern",)) as server,
        an_app(sources=(), built=the_page()) as (app, _),
        a_view(app, complains=("422",)) as view,
    ):
        view.open()
        expect(view.page.get_by_role("heading", name=view.word("first.title"))).to_be_visible()
        expect(view.page.get_by_text("everlong serve --local")).to_be_visible()
        address = view.page.get_by_role("textbox", name=view.word("first.url"))
        address.fill("http://127.0.0.1:1/v1")
        address.press("Enter")
        expect(view.page.get_by_text(view.like("first.failed"))).to_be_visible()
        address.fill(server.url)
        address.press("Enter")
        expect(view.page.get_by_role("heading", name=view.word("welcome.title"))).to_be_visible()
        view.page.get_by_text(view.word("welcome.start.1")).click()
        expect(view.field).to_have_value(view.word("welcome.start.1"))
        view.field.press("Enter")
        expect(view.log.get_by_text(view.word("welcome.start.1"))).to_have_count(2)  # said, and said again by the model


@in_a_browser
def test_a_key_is_typed_once_and_never_seen_again() -> None:
    secret = "sk-never-seen-again-1234"
    with ScriptedServer(models=("lantern",)) as other, an_app(built=the_page()) as (app, _), a_view(app) as view:
        view.open("#/settings")
        view.page.get_by_role("combobox", name=view.word("settings.source_provider")).select_option("")
        view.page.get_by_role("textbox", name=view.word("settings.source_url")).fill(other.url)
        view.page.get_by_role("textbox", name=view.word("settings.source_name")).fill("studio")
        key = view.page.get_by_label(view.word("settings.source_key_optional"))
        expect(key).to_have_attribute("type", "password")
        key.fill(secret)
        view.button("settings.source_test").click()
        source = view.page.get_by_role("listitem").filter(has_text=other.url)
        expect(source).to_contain_text(view.word("settings.source_key"))
        view.page.reload()
        expect(source).to_contain_text("studio")
        assert secret not in view.page.content()
        source.get_by_role("button", name=view.like("settings.source_delete")).click()
        source.get_by_role("button", name=view.word("settings.source_delete_yes"), exact=True).click()
        expect(source).to_have_count(0)


@in_a_browser
@pytest.mark.parametrize("named", ["en-US@posix", "C", "zh_CN.UTF-8"])
def test_figures_are_written_where_the_machine_has_no_language(named: str) -> None:
    """A browser started with LANG=C names a language that no formatter knows."""
    with an_app(built=the_page()) as (app, _), a_view(app) as view:
        page = app.page()
        page.say(page.thread(), "hello")
        view.page.add_init_script(
            f"Object.defineProperty(Navigator.prototype, 'language', {{get: () => '{named}', configurable: true}})"
        )
        view.open("#/usage")
        expect(view.page.locator("canvas").first).to_be_visible()


@in_a_browser
def test_requests_of_a_gateway_with_keys_are_not_shown() -> None:
    def nobody(_: object) -> str:
        raise Refused("this gateway needs a key", status=401, kind="missing_key")

    setup = Setup(threads=MemoryThreads(), watched=nobody)
    with RunningApp(setup, built=the_page()) as app, a_view(app) as view:
        view.open("#/live")
        expect(view.page.get_by_text(view.word("live.by_key"), exact=True)).to_be_visible()


@in_a_browser
def test_beyond_this_machine_the_page_asks_for_its_password() -> None:
    with (
        an_app(guard=Guard(password="open sesame"), built=the_page()) as (app, _),
        a_view(app, complains=("401",)) as view,
    ):
        view.open("#/settings")
        password = view.page.get_by_label(view.word("login.password"))
        password.fill("wrong")
        password.press("Enter")
        expect(view.page.get_by_role("alert")).to_have_text(view.word("login.wrong"))
        password.fill("open sesame")
        view.button("login.enter").click()
        expect(view.page.get_by_role("slider")).to_be_visible()
        assert view.page.evaluate("document.cookie") == ""
        view.button("login.leave").click()
        expect(password).to_be_visible()
        view.page.reload()
        expect(password).to_be_visible()
