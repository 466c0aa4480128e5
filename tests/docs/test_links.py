"""Every link and anchor leads somewhere; every picture is there, is used, and says in words what it shows."""

from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tests.docs.pages import DOCS, PAGES, ROOT, Page, read_page, slug

PICTURES = sorted(path for path in DOCS.rglob("*") if path.suffix in (".gif", ".jpg", ".png", ".svg", ".webp"))


def problem(page: Page, link: str) -> str:
    """What is wrong with a link to another file or place; "" if nothing is, or if it leads out of the repository."""
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return ""
    target = (page.path.parent / unquote(parts.path)).resolve() if parts.path else page.path
    if not target.exists():
        return f"there is no {parts.path}"
    if not target.is_relative_to(ROOT):
        return f"{parts.path} is outside the repository"
    if parts.fragment and target.suffix == ".md" and unquote(parts.fragment) not in read_page(target).anchors:
        return f"{target.relative_to(ROOT)} has no heading for #{unquote(parts.fragment)}"
    return ""


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_and_anchors_lead_somewhere(path: Path) -> None:
    page = read_page(path)
    broken = {link: said for link in page.links if (said := problem(page, link))}
    assert not broken


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_pictures_exist_and_have_words(path: Path) -> None:
    page = read_page(path)
    for image in page.images:
        assert not problem(page, image.file), image.file
        assert image.alt.strip(), f"{image.file} has no text for those who do not see it"


@pytest.mark.parametrize("picture", PICTURES, ids=lambda path: path.name)
def test_every_picture_is_on_a_page(picture: Path) -> None:
    shown = {
        (page.path.parent / unquote(file)).resolve()
        for page in map(read_page, PAGES)
        for file in (*(image.file for image in page.images), *page.links)
        if not urlsplit(file).scheme
    }
    used = picture in shown
    assert used, "no page shows it"


@pytest.mark.parametrize(
    ("title", "anchor"),
    [
        ("What a threshold costs and keeps", "what-a-threshold-costs-and-keeps"),
        ("`Engine.prepare`", "engineprepare"),
        ("open_store", "open_store"),
        ("压缩与前缀缓存：什么时候发生", "压缩与前缀缓存什么时候发生"),
        ("1. Install, then run", "1-install-then-run"),
        ("Redis & Postgres", "redis--postgres"),
    ],
)
def test_anchors_are_those_of_github(title: str, anchor: str) -> None:
    assert slug(title.replace("`", "")) == anchor
