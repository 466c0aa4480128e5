"""The pictures of the docs are up to date, well formed, and show the figures of the tables."""

import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).parent.parent
IMAGES = ROOT / "docs" / "images"
TEXT = "{http://www.w3.org/2000/svg}text"
DRAWN = sorted(path.name for path in IMAGES.glob("*.svg") if not path.name.startswith("wrap-"))


@pytest.mark.parametrize("script", ["draw_concepts.py", "draw_readme.py"])
def test_pictures_are_up_to_date(script: str) -> None:
    done = subprocess.run([sys.executable, f"scripts/{script}", "--check"], cwd=ROOT, check=False)
    assert done.returncode == 0, f"run python scripts/{script}"


def texts(picture: str) -> list[str]:
    return [element.text or "" for element in ElementTree.parse(IMAGES / picture).iter(TEXT)]


@pytest.mark.parametrize("picture", DRAWN)
def test_pictures_are_well_formed_and_have_words_of_one_language(picture: str) -> None:
    words = "".join(texts(picture))
    assert words
    assert bool(re.search(r"[\u4e00-\u9fff]", words)) == picture.endswith(".zh.svg")


def cells(page: str, mark: str, name: str) -> list[str]:
    """The cells of a row in the first table behind a mark, without what stands in brackets."""
    table = (ROOT / "docs" / "lab" / page).read_text(encoding="utf-8").split(f"<!-- {mark} -->")[1]
    line = next(line for line in table.splitlines() if re.match(rf"\| \**`?{re.escape(name)}`?\** \|", line))
    return [cell.strip(" *") for cell in line.strip("|").split("|")[1:]]


def shown(picture: str, name: str, count: int) -> list[list[str]]:
    """The figures behind each text of this name."""
    words = texts(picture)
    return [words[at + 1 : at + 1 + count] for at, word in enumerate(words) if word == name]


@pytest.mark.parametrize("picture", ["survives.svg", "survives.zh.svg"])
@pytest.mark.parametrize(
    ("mark", "name", "label", "place"),
    [
        ("assistant-confirming", "auto", "everlong", 0),
        ("assistant-confirming", "bm25", "BM25", 0),
        ("assistant-libraries", "bm25-minilm", "BM25 + MiniLM", 0),
        ("work", "auto", "everlong", 1),
        ("work-libraries", "langmem", "langmem", 0),
        ("work-libraries", "headroom", "headroom", 0),
        ("work-libraries", "strands, sliding window", "strands sliding window", 0),
    ],
)
def test_what_survives_is_drawn_as_the_table_has_it(picture: str, mark: str, name: str, label: str, place: int) -> None:
    expected = [f"{cell.split()[0]} %" for cell in cells("evidence.md", mark, name)[:3]]
    assert [figure.partition(" (")[0] for figure in shown(picture, label, 3)[place]] == expected


@pytest.mark.parametrize("name", ["langmem", "headroom", "pydantic-ai harness, tiered"])
def test_the_share_of_requests_over_the_budget_is_drawn(name: str) -> None:
    expected = [re.findall(r"\(\d+\)", cell)[0] for cell in cells("evidence.md", "work-libraries", name)]
    figures = shown("survives.svg", name.replace(",", ""), 3)[0]
    assert [figure.split(" % ")[1] for figure in figures] == expected


@pytest.mark.parametrize("picture", ["cost.svg", "cost.zh.svg"])
@pytest.mark.parametrize(
    ("name", "labels"),
    [
        ("auto", ("everlong", "everlong")),
        ("auto-trim", ("everlong without summaries", "everlong，不写摘要")),
        ("drop@.95/.3", ("drop old rounds, down to 30 %", "丢弃旧轮次，降到 30 %")),
        ("slide", ("sliding window", "滑动窗口")),
    ],
)
def test_costs_are_drawn_as_the_table_has_them(picture: str, name: str, labels: tuple[str, str]) -> None:
    cell = cells("replay-figures.md", "figures", name)[0]
    cost, _, kept = cell.replace("*", "").partition(", ")
    exact = kept.partition("(")[2].strip(")") or kept
    assert shown(picture, labels[picture.endswith(".zh.svg")], 2)[0] == [cost, f"{exact} %"]
