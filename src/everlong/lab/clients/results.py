"""The results of runs as Markdown: a table of all clients, and each client's rows on its own page."""

from collections.abc import Iterable, Sequence
from itertools import product
from pathlib import Path

from everlong.lab.clients.table import CLIENTS
from everlong.lab.clients.verdict import Verdict
from everlong.lab.pages import NONE, Run, RunPages, amount
from everlong.lab.speed.tables import Table

__all__ = ["CLIENT_PAGES", "run_table", "write_runs"]

SIZES = ("tasks", "requests", "asked", "sent", "window", "errors")
CLIENT_PAGES = RunPages(
    "lab clients",
    ("client", "version", "mode", *SIZES, "compactions", "breaks", "summaries", "task", "ok"),
    ("mode", "window"),
    {
        row.name: [(row.name, mode, amount(window)) for mode, window in product(row.modes, row.windows)]
        for row in CLIENTS.values()
    },
)


def run_table(title: str, verdicts: Sequence[Verdict]) -> Table:
    """Return runs as a table, with every fault below it."""
    return CLIENT_PAGES.table(title, [_run(verdict) for verdict in verdicts])


def write_runs(folder: Path, verdicts: Iterable[Verdict], day: str) -> None:
    """Write the runs of a day into the pages of a folder: README.md and one page for each client.

    Raises EverlongError if a page or its marks are missing.
    """
    CLIENT_PAGES.write(folder, [_run(verdict) for verdict in verdicts], day)


def _run(verdict: Verdict) -> Run:
    if verdict.left_out:
        return CLIENT_PAGES.left_out(verdict.client, verdict.left_out)
    sizes = (amount(size) for size in (verdict.wanted, verdict.largest, verdict.window))
    figures = (str(verdict.turns), str(verdict.requests), *sizes, str(verdict.errors))
    kept = (str(verdict.compactions), str(verdict.breaks), str(verdict.summaries), f"{verdict.task}/{verdict.tasked}")
    ok = "yes" if verdict.ok else "no"
    return Run((verdict.client, verdict.version or NONE, verdict.mode, *figures, *kept, ok), verdict.faults)
