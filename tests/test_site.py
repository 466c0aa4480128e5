"""The documentation site: it builds without a warning, holds every page, and its search finds both languages."""

import json
import re
import threading
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import expect
from scripts import docs_site as site

import everlong
from tests.web.browser import a_view, in_a_browser

VERSION = everlong.__version__


@dataclass(frozen=True)
class Site:
    """A built site, and the port at which it is served."""

    folder: Path
    port: int


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("site")
    (folder / "en" / "0.0.9").mkdir(parents=True)  # a version that was published before
    for language in site.LANGUAGES:
        site.build(language, folder, "https://docs.example.org")
    with site.served(folder) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield Site(folder, server.server_port)
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("language", site.LANGUAGES)
def test_every_page_of_the_docs_is_in_the_menu(language: str) -> None:
    sections = tomllib.loads((site.DOCS / "site.toml").read_text("utf-8"))["languages"][language]["sections"]
    pages = {place for place in site.placed(language).values() if place.endswith(".md")}
    shown = [page for section in site.navigation(sections, pages) for names in section.values() for page in names]
    assert sorted(shown) == sorted(pages)


@pytest.mark.parametrize("language", site.LANGUAGES)
def test_no_link_of_the_site_leads_nowhere(language: str, built: Site) -> None:
    pages = list((built.folder / language / VERSION).rglob("*.html"))
    assert len(pages) > 5
    for page in pages:
        if page.name == "404.html":
            continue
        for target in re.findall(r'(?:href|src)="?([^"#?> ]+)', page.read_text(encoding="utf-8")):
            if not re.match(r"[a-z]+:|//", target):
                assert (page.parent / target).exists(), f"{page.relative_to(built.folder)} leads to {target}"


def test_older_versions_stay_in_the_menu(built: Site) -> None:
    versions = json.loads((built.folder / "en" / "versions.json").read_text("utf-8"))
    assert [(one["version"], one["aliases"]) for one in versions] == [(VERSION, ["latest"]), ("0.0.9", [])]
    assert f"https://docs.example.org/en/{VERSION}/" in (built.folder / "en" / VERSION / "sitemap.xml").read_text()


@pytest.mark.parametrize(
    ("language", "text"), [("en", "overflow"), ("en", "压缩"), ("zh", "压缩"), ("zh", "前缀"), ("zh", "everlong wrap")]
)
def test_search_finds(language: str, text: str, built: Site) -> None:
    @in_a_browser
    def look() -> None:
        with a_view(built) as view:
            page = view.open(f"{language}/{VERSION}/")
            page.keyboard.press("/")
            page.get_by_role("combobox", name="Search").fill(text)
            expect(page.get_by_role("listbox", name="Search results").get_by_role("option").first).to_be_visible()

    look()
