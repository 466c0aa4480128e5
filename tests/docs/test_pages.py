"""What every page keeps to: one title, code that names its language, imports through the doors only."""

import re
from importlib import import_module
from itertools import pairwise
from pathlib import Path

import pytest

from tests.docs.pages import DOCS, PAGES, ROOT, read_page

#: What examples may import: what the reference describes. An adapter's module is a door of its own.
REFERENCE = sorted(path.stem for path in (DOCS / "reference" / "api").glob("*.md"))
DOOR = re.compile(rf"everlong(?:\.(?:errors|adapters\.\w+|{'|'.join(REFERENCE)}))?")
IMPORT = re.compile(r"^\s*(?:from (everlong[\w.]*) import (\([^)]*\)|.*)|import (everlong[\w.]*))", re.MULTILINE)
by_name = pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())


@by_name
def test_a_page_has_one_title(path: Path) -> None:
    titles = [section.title for section in read_page(path).sections if section.level == 1]
    assert len(titles) == 1, titles


@by_name
def test_headings_leave_out_no_level(path: Path) -> None:
    levels = [section.level for section in read_page(path).sections]
    for above, below in pairwise(levels):
        assert below <= above + 1, f"{path.name}: a heading of level {below} stands below one of level {above}"


@by_name
def test_code_names_its_language(path: Path) -> None:
    unnamed = [f"{path.name}:{block.line}" for block in read_page(path).blocks if not block.language]
    assert not unnamed


def shown_by(module: str) -> set[str]:
    """The names that a door shows; an adapter's cannot be imported without its framework."""
    if module.startswith("everlong.adapters."):
        text = (ROOT / "src" / Path(*module.split("."))).with_suffix(".py").read_text(encoding="utf-8")
        return set(re.findall(r"\w+", "".join(re.findall(r"__all__ = \[(.*?)\]", text, re.DOTALL))))
    return set(import_module(module).__all__)


@by_name
def test_examples_import_from_doors_only(path: Path) -> None:
    for block in read_page(path).blocks:
        if block.language not in ("python", "py", "pycon") or block.code.startswith('"""'):
            continue  # what begins with a docstring is a file for the package itself
        for door, names, module in IMPORT.findall(block.code):
            assert DOOR.fullmatch(door or module), f"{path.name}:{block.line} reaches past a door: {door or module}"
            wanted = re.findall(r"\b[A-Za-z]\w*", re.sub(r"#.*| as \w+", "", names))
            missing = set(wanted) - shown_by(door) if door else set()
            assert not missing, f"{path.name}:{block.line}: {door} does not show {missing}"
