"""The Chinese pages: written in Chinese, in the agreed words, with the names that the app shows."""

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from tests.docs.pages import DOCS, ROOT

CHINESE = DOCS / "zh"
INDEX = CHINESE / "README.md"
PAGES = [ROOT / "README.zh.md", *sorted(CHINESE.rglob("*.md"))]
APP_WORDS = ROOT / "src" / "everlong" / "web" / "page" / "src" / "words" / "zh.ts"

HAN = r"[\u3400-\u9fff]"
#: A word that the glossary does not use, and the one that it does.
OTHER_WORDS = {
    "上下文长度": "上下文窗口",
    "令牌": "token",
    "词元": "token",
    "总结": "摘要",
    "提示词缓存": "提示缓存",
    "服务商": "提供商",
    "供应商": "提供商",
    "临界值": "阈值",
    "置顶": "固定",
}
#: Where Chinese meets Latin letters or digits a space stands between them; ASCII punctuation does not follow Chinese.
TIGHT = re.compile(rf"{HAN}[A-Za-z0-9]|[A-Za-z0-9]{HAN}")
NARROW = re.compile(rf"{HAN}[,;:!?]|{HAN}\.(?:\s|$)|{HAN}\(|\){HAN}")


def prose(page: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines of a page with their numbers, without code, addresses and HTML."""
    text = re.sub(
        r"^( *)```.*?^ *```",
        lambda block: "\n" * block[0].count("\n"),
        page.read_text(encoding="utf-8"),
        flags=re.M | re.S,
    )
    for number, line in enumerate(text.splitlines(), start=1):
        plain = re.sub(r"`[^`]*`|<[^>]*>", " ", line)
        yield number, re.sub(r"\]\([^)]*\)", "]", plain)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_letters_and_digits_stand_apart_from_chinese(page: Path) -> None:
    found = [f"{number}: {line.strip()}" for number, line in prose(page) if TIGHT.search(line) or NARROW.search(line)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("line", ["用fit裁剪", "窗口16,000", "放得下,原样发送", "压缩(可撤销)"])
def test_tight_lines_are_noticed(line: str) -> None:
    assert TIGHT.search(line) or NARROW.search(line)


def test_the_agreed_words_stand_in_the_glossary() -> None:
    glossary = (CHINESE / "glossary.md").read_text(encoding="utf-8")
    assert [word for word in OTHER_WORDS.values() if word not in glossary] == []
    assert [word for word in OTHER_WORDS if word in glossary] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_one_word_for_one_thing(page: Path) -> None:
    for number, line in prose(page):
        for other, agreed in OTHER_WORDS.items():
            assert other not in line, f"{page.name}:{number} says {other}: say {agreed}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_chinese_page_is_chinese_and_a_paragraph_is_one_line(page: Path) -> None:
    lines = [line for _, line in prose(page)]
    assert re.search(HAN, lines[0] + "".join(lines[1:5])), "the page begins in another language"
    for before, after in pairwise(lines):
        broken = re.search(rf"{HAN}$|[，；、]$", before) and re.match(HAN, after)
        assert not broken, f"a line break in a paragraph shows as a space: {before}"


def test_the_index_leads_to_every_chinese_page() -> None:
    linked = {(CHINESE / target).resolve() for target in re.findall(r"\]\(([^)#]+)", INDEX.read_text(encoding="utf-8"))}
    folders = {path.parent for path in linked if path.name == "README.md"}
    missing = [
        page.name
        for page in PAGES
        if page not in (INDEX, ROOT / "README.zh.md") and page not in linked and page.parent not in folders - {CHINESE}
    ]
    assert not missing


def test_what_the_page_of_the_app_names_in_bold_is_written_in_the_app() -> None:
    words = APP_WORDS.read_text(encoding="utf-8")
    page = (CHINESE / "app.md").read_text(encoding="utf-8")
    for name in re.findall(r"\*\*(.+?)\*\*", page):
        assert name in words, f"the app does not say {name}"
