"""The results of runs as Markdown: a table of all frameworks, and each framework's rows on its own page."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from everlong.lab.adapters.table import ADAPTERS
from everlong.lab.adapters.verdict import AdapterVerdict
from everlong.lab.pages import NONE, Run, RunPages, amount
from everlong.lab.speed.tables import Table

__all__ = ["ADAPTER_PAGES", "adapter_table", "write_adapter_runs"]

COUNTS = ("finished", "requests", "refused", "largest", "window", "compactions", "breaks", "kept", "sent", "cached")
ADAPTER_PAGES = RunPages(
    "lab adapters",
    ("framework", "version", "mode", "with", *COUNTS, "ok"),
    ("mode", "with"),
    {row.name: [(row.name, mode, how) for mode, how in row.runs()] for row in ADAPTERS.values()},
)


def adapter_table(verdicts: Sequence[AdapterVerdict]) -> Table:
    """Return runs as a table, with every fault below it."""
    return ADAPTER_PAGES.table("Adapters in their frameworks", [_run(verdict) for verdict in verdicts])


def write_adapter_runs(folder: Path, verdicts: Iterable[AdapterVerdict], day: str) -> None:
    """Write the runs of a day into the pages of a folder: README.md and one page for each framework.

    Raises EverlongError if a page or its marks are missing.
    """
    ADAPTER_PAGES.write(folder, [_run(verdict) for verdict in verdicts], day)


def _run(verdict: AdapterVerdict) -> Run:
    if verdict.left_out:
        return ADAPTER_PAGES.left_out(verdict.framework, verdict.left_out)
    requests = f"{verdict.steps}+{verdict.others}" if verdict.others else str(verdict.steps)
    recalled = f" ({verdict.recalled} recalled)" if verdict.recalled and verdict.kept is not None else ""
    kept = NONE if verdict.kept is None else f"{verdict.kept}/{verdict.facts}{recalled}"
    figures = (
        f"{verdict.finished}/{verdict.tasks}",
        requests,
        str(verdict.refused),
        amount(verdict.largest),
        amount(verdict.window),
        NONE if verdict.compactions is None else str(verdict.compactions),
        str(verdict.breaks),
        kept,
        amount(verdict.sent),
        f"{100 * verdict.cached / verdict.sent:.0f} %" if verdict.sent else NONE,
    )
    ok = "yes" if verdict.ok else "no"
    notes = verdict.faults if verdict.ours else verdict.faults[:1]
    return Run((verdict.framework, verdict.version or NONE, verdict.mode, verdict.how, *figures, ok), notes)
