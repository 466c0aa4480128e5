"""The pages about concepts and presets: complete, alike in both languages, with the figures of their pictures."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from everlong.compress import PRESETS
from tests.docs.pages import DOCS, ROOT

CHINESE = DOCS / "zh"
CONCEPTS = sorted(path.name for path in (DOCS / "concepts").glob("*.md"))
IN_BOTH = [*(f"concepts/{name}" for name in CONCEPTS), "presets.md", "glossary.md"]
MOST_WORDS = 20
BY_HAND = {"off"}  # nothing to describe


def read(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def pictures(page: Path) -> list[str]:
    return re.findall(r"images/([\w.-]+)\.svg\)", read(page))


def rows(page: Path) -> list[list[str]]:
    """The rows of a page's table, without its head."""
    lines = [line for line in read(page).splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


@pytest.mark.parametrize("name", IN_BOTH)
def test_a_page_has_the_same_pictures_and_examples_in_both_languages(name: str) -> None:
    english, chinese = read(DOCS / name), read(CHINESE / name)
    for fence in ("```python\n", "```console\n"):
        assert english.count(fence) == chinese.count(fence)
    assert pictures(CHINESE / name) == [f"{picture}.zh" for picture in pictures(DOCS / name)]
    assert english.count("\n## ") == chinese.count("\n## ")


@pytest.mark.parametrize("folder", [DOCS, CHINESE], ids=["en", "zh"])
def test_the_page_of_the_laws_names_every_test_of_a_law(folder: Path) -> None:
    page = read(folder / "concepts" / "laws.md")
    tests = sorted(path.name for path in (ROOT / "tests" / "properties").glob("test_law*.py"))
    assert [name for name in tests if name not in page] == []
    assert [int(number) for number in re.findall(r"^\| \*\*(\d+)\. ", page, re.MULTILINE)] == list(range(1, 11))


@pytest.mark.parametrize("folder", [DOCS, CHINESE], ids=["en", "zh"])
def test_every_preset_has_a_section_that_names_its_options(folder: Path) -> None:
    sections = {part.split("\n", 1)[0]: part for part in read(folder / "presets.md").split("\n## ")}
    for name, preset in PRESETS.items():
        if name not in BY_HAND:
            missing = [option.name for option in preset.options if f"`{option.name}`" not in sections[name]]
            assert not missing, f"{name}: {missing}"
            assert f"images/preset-{name}" in sections[name]


def test_the_glossaries_have_the_same_few_words() -> None:
    english, chinese = rows(DOCS / "glossary.md"), rows(CHINESE / "glossary.md")
    assert len(english) <= MOST_WORDS
    assert [row[:2] for row in english] == [[row[1], row[0]] for row in chinese]


@pytest.mark.parametrize(("folder", "ending"), [(DOCS, ".svg"), (CHINESE, ".zh.svg")], ids=["en", "zh"])
def test_the_shares_of_the_cache_are_those_of_the_picture(folder: Path, ending: str) -> None:
    tree = ElementTree.parse(DOCS / "images" / f"concept-compaction{ending}")
    words = " ".join(element.text or "" for element in tree.iter("{http://www.w3.org/2000/svg}text"))
    drawn = re.findall(r"(\d+)%", words)
    page = read(folder / "concepts" / "compaction.md")
    assert len(drawn) == 2
    assert all(f"{share} %" in page for share in drawn)
