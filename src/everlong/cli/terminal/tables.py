"""How figures and tables look on a terminal. rich is loaded when something is drawn, not before."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

__all__ = ["amount", "bar", "console", "pairs", "percent", "print_listing", "progress", "table", "thousands"]

EIGHTHS = " ▏▎▍▌▋▊▉"
FULL = "█"
SHORTEST_TITLE = 16


def console(*, stderr: bool = False) -> "Console":
    """Return a console on standard output or error; it has colours only on a terminal.

    Texts are printed unchanged: with rich's markup, "everlong[server]" would lose its brackets.
    """
    from rich.console import Console  # noqa: PLC0415 - 30 ms that `--json` and errors do not need

    return Console(highlight=False, markup=False, soft_wrap=False, stderr=stderr)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> "Table":
    """Return a plain table: the first column left-aligned, figures right-aligned."""
    from rich import box  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    drawn = Table(box=box.SIMPLE, pad_edge=False, header_style="dim")
    for at, title in enumerate(head):
        drawn.add_column(title, justify="left" if at == 0 else "right", overflow="fold")
    for row in rows:
        drawn.add_row(*row)
    return drawn


def print_listing(
    out: "Console", head: Sequence[str], rows: Sequence[Sequence["Text"]], *, title: int, left: int = 0
) -> None:
    """Print a table whose last column has ids, complete, so that they can be copied; only titles are shortened.

    `title` is the column of titles. Of the columns between it and the ids, the last `left` are left-aligned and the
    others are figures. If a terminal is too narrow, each id is on a separate line.
    """
    from rich import box  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    widths = [max(cell.cell_len for cell in (Text(name), *cells)) for name, *cells in zip(head, *rows, strict=True)]
    room = out.width - sum(widths) + widths[title] - 3 * len(widths) + 1
    if room < SHORTEST_TITLE:
        for row in rows:
            taken = sum(cell.cell_len + 2 for at, cell in enumerate(row[:-1]) if at != title and cell.plain)
            row[title].truncate(max(SHORTEST_TITLE, out.width - taken), overflow="ellipsis")
            out.print(Text("  ").join(cell for cell in row[:-1] if cell.plain), soft_wrap=True)
            out.print(Text("  ").append_text(row[-1]), soft_wrap=True)
        return
    drawn = Table(box=box.SIMPLE, pad_edge=False, header_style="dim")
    for at, name in enumerate(head):
        figures = at < title or title < at < len(head) - 1 - left
        cut = {"overflow": "ellipsis", "max_width": room} if at == title else {}
        drawn.add_column(name, justify="right" if figures else "left", no_wrap=True, **cut)
    for row in rows:
        drawn.add_row(*row)
    out.print(drawn)


def pairs(rows: Iterable[tuple[str, str]]) -> "Table":
    """Return a table of names and figures, a line each."""
    from rich.table import Table  # noqa: PLC0415

    drawn = Table.grid(padding=(0, 3, 0, 1))
    for row in rows:
        drawn.add_row(*row)
    return drawn


def amount(number: int) -> str:
    """Return a figure in groups of three. Example: 12345 -> 12,345"""
    return f"{number:,}"


def thousands(tokens: int) -> str:
    """Return a short form of a round figure. Example: 12_000 -> 12k, 1_500_000 -> 1.5M"""
    for size, unit in ((1_000_000, "M"), (1_000, "k")):
        if tokens >= size:
            return f"{tokens / size:.1f}".removesuffix(".0") + unit if tokens < 10 * size else f"{tokens // size}{unit}"
    return str(tokens)


def percent(part: int, whole: int) -> str:
    """Return a share as a percentage; "–" if the whole is 0."""
    return f"{100 * part / whole:.1f} %" if whole else "–"


def bar(part: int, whole: int, width: int) -> str:
    """Return a bar of at most `width` cells. Example: bar(1, 2, 4) -> two full cells"""
    eighths = round(8 * width * part / whole) if whole else 0
    return FULL * (eighths // 8) + EIGHTHS[eighths % 8].strip()


@contextmanager
def progress(what: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """Show a bar on standard error during work, if a person watches; call the result with the progress made.

    Without a total, the bar only shows that work is in progress.
    """
    out = console(stderr=True)
    if not out.is_terminal:
        yield lambda _: None
        return
    from rich.progress import Progress  # noqa: PLC0415 - only where it is seen

    with Progress(console=out, transient=True) as bars:
        task = bars.add_task(what, total=total)
        yield lambda done: bars.advance(task, done)
