"""Tables of figures, as Markdown that also reads well in a terminal."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field

__all__ = ["Shown", "Table", "figure"]


@dataclass(frozen=True, slots=True)
class Shown:
    """The figures of one column that a picture of the table shows: a value and a label for each row."""

    title: str
    values: tuple[float, ...]
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """A title, a head, rows, and notes below. `data` is the source of the rows, `shown` what a picture draws."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    data: object = field(default=None, compare=False)
    shown: Shown | None = None

    @property
    def body(self) -> str:
        """The table and its notes, without the title."""
        lines = [self.head, *self.rows]
        widths = [max(_width(line[column]) for line in lines) for column in range(len(self.head))]
        rule = tuple("-" * width for width in widths)
        body = "\n".join(_line(cells, widths) for cells in (self.head, rule, *self.rows))
        notes = "".join(f"\n{note}" for note in self.notes)
        return f"{body}\n{notes}\n" if notes else f"{body}\n"

    def __str__(self) -> str:
        return f"## {self.title}\n\n{self.body}"


def figure(value: float) -> str:
    """Return a value with three significant figures. Example: 0.01234 -> 0.0123, 12.34 -> 12.3, 1234.5 -> 1,234"""
    if value == 0:
        return "0"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = (cell + " " * (width - _width(cell)) for cell, width in zip(cells, widths, strict=True))
    return f"| {' | '.join(padded)} |"


def _width(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(sign) in "WF" else 1 for sign in text)
