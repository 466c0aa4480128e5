"""Measured figures name the command that makes them, so that anybody can make them again."""

import re
from collections.abc import Iterator

import pytest

from tests.docs.pages import DOCS, PAGES, ROOT, Page, Section, read_page

#: The lab, the Makefile, a script of ours.
COMMAND = re.compile(r"everlong lab \w+|\bmake [a-z]+|scripts/\w+\.py|everlong demo")
#: A cell that holds nothing but figures, with their units.
FIGURES = re.compile(r"(?=.*\d)(?:[\d.,%$/()–−+~≈<>±×*\s-]|ms|µs|MiB|MB|GB|s|k)+")
FEWEST = 4  # cells of figures that make a table one of measurements, if they are half of it
PLACES = [path for path in PAGES if path.parent == ROOT or path.is_relative_to(DOCS)]


def is_measured(table: list[list[str]]) -> bool:
    """Whether a table is one of figures: half of its cells and more, heads of columns and rows aside."""
    cells = [cell for row in table[1:] for cell in row[1:]]
    figures = [cell for cell in cells if FIGURES.fullmatch(cell)]
    return len(figures) >= FEWEST and 2 * len(figures) >= len(cells)


def measured_tables(page: Page) -> Iterator[tuple[Page, int, list[str]]]:
    for number, section in enumerate(page.sections):
        yield from ((page, number, table[0]) for table in section.tables if is_measured(table))


def around(page: Page, number: int) -> list[Section]:
    """The section, those that it stands in, and the introduction of the page."""
    found, level = [page.sections[number]], page.sections[number].level
    for section in reversed(page.sections[:number]):
        if section.level < level:
            found.append(section)
            level = section.level
    return [*found, *page.sections[:2]]


CASES = [case for path in PLACES for case in measured_tables(read_page(path))]


@pytest.mark.parametrize(
    ("page", "number", "head"), CASES, ids=[f"{p.name}: {p.sections[n].title}" for p, n, _ in CASES]
)
def test_the_command_of_measured_figures_is_named(page: Page, number: int, head: list[str]) -> None:
    assert any(COMMAND.search(section.text) for section in around(page, number)), head


def test_tables_of_figures_are_told_from_others() -> None:
    assert is_measured([["", "8k", "16k"], ["ours", "**77 %**", "82 %"], ["newest", "29.0", "52 / 7"]])
    assert not is_measured(
        [["setting", "default", ""], ["`port`", "8333", "The port."], ["`grace`", "20.0", "Seconds."]]
    )
