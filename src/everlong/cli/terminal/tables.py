"""How figures and tables look on a terminal. rich is loaded when something is drawn, not before."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

__all__ = ["amount", "bar", "console", "pairs", "percent", "progress", "table", "thousands"]

EIGHTHS = " ▏▎▍▌▋▊▉"
FULL = "█"


def console(*, stderr: bool = False) -> "Console":
    """Return a console on standard output or error; it has colours only on a terminal."""
    from rich.console import Console  # noqa: PLC0415 - 30 ms that `--json` and errors do not need

    return Console(highlight=False, soft_wrap=False, stderr=stderr)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> "Table":
    """Return a plain table: the first column left, figures right."""
    from rich import box  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    drawn = Table(box=box.SIMPLE, pad_edge=False, header_style="dim")
    for at, title in enumerate(head):
        drawn.add_column(title, justify="left" if at == 0 else "right", overflow="fold")
    for row in rows:
        drawn.add_row(*row)
    return drawn


def pairs(rows: Iterable[tuple[str, str]]) -> "Table":
    """Return a table of names and figures, a line each."""
    from rich.table import Table  # noqa: PLC0415

    drawn = Table.grid(padding=(0, 3, 0, 1))
    for row in rows:
        drawn.add_row(*row)
    return drawn


def amount(number: int) -> str:
    """Return a figure in groups of three. Example: 12345 -> 12 345"""
    return f"{number:,}".replace(",", " ")


def thousands(tokens: int) -> str:
    """Return a round figure in short. Example: 12_000 -> 12k, 1_500_000 -> 1.5M"""
    for size, unit in ((1_000_000, "M"), (1_000, "k")):
        if tokens >= size:
            return f"{tokens / size:.1f}".removesuffix(".0") + unit if tokens < 10 * size else f"{tokens // size}{unit}"
    return str(tokens)


def percent(part: int, whole: int) -> str:
    """Return a share as a percentage; "–" of nothing."""
    return f"{100 * part / whole:.1f} %" if whole else "–"


def bar(part: int, whole: int, width: int) -> str:
    """Return a bar of at most `width` cells. Example: bar(1, 2, 4) -> two full cells"""
    eighths = round(8 * width * part / whole) if whole else 0
    return FULL * (eighths // 8) + EIGHTHS[eighths % 8].strip()


@contextmanager
def progress(what: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """Show a bar on standard error while work goes on, if a person looks; call the result with how much more is done.

    Without a total the bar only shows that something goes on.
    """
    out = console(stderr=True)
    if not out.is_terminal:
        yield lambda _: None
        return
    from rich.progress import Progress  # noqa: PLC0415 - only where it is seen

    with Progress(console=out, transient=True) as bars:
        task = bars.add_task(what, total=total)
        yield lambda done: bars.advance(task, done)
