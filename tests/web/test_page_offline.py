"""The installed app: its manifest and icons, and the page that opens without its server, whole and of one build."""

import json
import shutil
import struct
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect

from tests.web.browser import PHONE, WIDE, View, a_view, in_a_browser, the_page
from tests.web.running import an_app
from tests.web.test_page_tabs import wait_until

NO_SERVER = ("ERR_CONNECTION_REFUSED", "Failed to load resource")
#: Every address that is kept, once the page itself is.
KEPT = """async () => {
    const found = [];
    for (const name of await caches.keys()) {
        for (const request of await (await caches.open(name)).keys()) found.push(request.url);
    }
    return found.some((url) => new URL(url).pathname === "/") ? found : null;
}"""


def kept(view: View) -> list[str]:
    """The addresses that the service worker keeps, once it is there."""
    wait_until(view, lambda: view.page.evaluate(KEPT) is not None)
    return [urlsplit(url).path for url in view.page.evaluate(KEPT)]


def entry(view: View) -> str:
    """The script that the page began with."""
    found: str = view.page.locator("script[src]").get_attribute("src") or ""
    return found


@in_a_browser
@pytest.mark.parametrize(("size", "language"), [(WIDE, "en-US"), (PHONE, "zh-CN")])
def test_without_its_server_the_page_opens_says_so_and_has_the_drafts(size: tuple[int, int], language: str) -> None:
    with ExitStack() as running, ExitStack() as looking:
        app, _ = running.enter_context(an_app(built=the_page()))
        view = looking.enter_context(a_view(app, size=size, language=language, complains=NO_SERVER))
        page = app.page()
        thread, port = page.thread(), app.port
        view.open(f"#/t/{thread}")
        view.field.fill("Written before")
        paths = kept(view)
        assert [path for path in paths if path != "/" and not path.startswith("/assets/")] == []
        running.close()
        view.page.reload()
        expect(view.page.get_by_role("heading", name=view.word("offline.title"))).to_be_visible()
        expect(view.field).to_have_value("Written before")
        view.field.fill("Written before, and on")
        view.page.reload()
        expect(view.field).to_have_value("Written before, and on")
        view.open("#/")
        expect(view.page.get_by_role("link").filter(has_text="Written before, and on")).to_be_visible()
        back, _ = running.enter_context(an_app(built=the_page(), port=port))
        view.button("app.retry").click()
        expect(view.page.get_by_role("heading", name=view.word("offline.title"))).to_have_count(0)
        expect(view.button("composer.send")).to_be_visible()
        looking.close()
        running.close()
        assert back.port == port


@in_a_browser
def test_a_new_build_takes_over_at_the_next_load_and_nothing_of_two_builds_is_mixed(tmp_path: Path) -> None:
    built = tmp_path / "built"
    shutil.copytree(the_page(), built)
    with ExitStack() as running, ExitStack() as looking:
        app, _ = running.enter_context(an_app(built=built))
        view = looking.enter_context(a_view(app, complains=NO_SERVER))
        view.open("#/")
        expect(view.button("composer.send")).to_be_visible()
        kept(view)
        old = entry(view)
        new = old.replace("index-", "index-new")
        (built / old.lstrip("/")).rename(built / new.lstrip("/"))
        index = built / "index.html"
        index.write_text(index.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
        view.page.reload()
        expect(view.button("composer.send")).to_be_visible()
        assert entry(view) == new
        wait_until(view, lambda: new in kept(view) and len(view.page.evaluate("caches.keys()")) == 2)
        running.close()
        view.page.reload()
        expect(view.page.get_by_role("heading", name=view.word("offline.title"))).to_be_visible()
        assert entry(view) == new
        looking.close()


def test_the_manifest_names_icons_that_are_there() -> None:
    with an_app(built=the_page()) as (app, _):
        page = app.page()
        status, body, headers = page.raw("GET", "/manifest.webmanifest")
        manifest = json.loads(body)
        assert (status, headers["content-type"]) == (200, "application/manifest+json")
        assert (manifest["display"], manifest["start_url"], manifest["scope"]) == ("standalone", "/", "/")
        assert {icon["purpose"] for icon in manifest["icons"]} == {"any", "maskable"}
        for icon in manifest["icons"]:
            _, picture, told = page.raw("GET", icon["src"])
            width, height = struct.unpack(">II", picture[16:24])
            assert (told["content-type"], f"{width}x{height}") == ("image/png", icon["sizes"])
        assert page.raw("GET", "/sw.js")[2]["cache-control"] == "no-cache"
