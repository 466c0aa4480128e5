"""The results of runs as Markdown: a table of all clients, and on the page of each client its own rows.

The pages are the record. A row stands in them until its client is run again in that mode and window, so it carries the
day it was run; a run that the table of clients has and the pages do not is shown as not run.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from everlong.errors import EverlongError
from everlong.lab.clients.table import CLIENTS, ClientRow
from everlong.lab.clients.verdict import Verdict
from everlong.lab.speed.tables import Table

__all__ = ["CLOSE", "OPEN", "run_table", "write_runs"]

#: What stands between them on a page is written anew.
OPEN, CLOSE = "<!-- runs, written by `everlong lab clients --write` -->", "<!-- end of runs -->"
BLOCK = re.compile(f"{re.escape(OPEN)}\n(.*?){re.escape(CLOSE)}", re.DOTALL)
OVERVIEW = "README.md"
SIZES = ("tasks", "requests", "asked", "sent", "window", "errors")
HEAD = ("client", "version", "mode", *SIZES, "compactions", "breaks", "summaries", "task", "ok")
NONE = "–"
NOT_RUN, LEFT_OUT = "not run", "left out"
#: The name of a client, as it is or as a link to its page.
NAMED = re.compile(r"\[?([\w.-]+)\]?(?:\([^)]*\))?$")
NOTED = re.compile(r"- (\S+) (.*?), (\S+): (.*)$")


@dataclass(frozen=True, slots=True)
class _Run:
    """A row and what is noted below the table. `cells` are those of the head and the day."""

    cells: tuple[str, ...]
    notes: tuple[str, ...] = ()

    @property
    def key(self) -> tuple[str, str, str]:
        """Client, mode and window: a run of the same key replaces this one."""
        return self.cells[0], self.cells[HEAD.index("mode")], self.cells[HEAD.index("window")]


def run_table(title: str, verdicts: Sequence[Verdict]) -> Table:
    """Return runs as a table, with every fault below it."""
    runs = [_run(verdict, "") for verdict in verdicts]
    return Table(title, HEAD, tuple(run.cells[:-1] for run in runs), tuple(_notes(runs)))


def write_runs(folder: Path, verdicts: Iterable[Verdict], day: str) -> None:
    """Write the runs of a day into the pages of a folder: README.md and one page for each client.

    Raises EverlongError if a page is missing, or the marks on it.
    """
    overview = folder / OVERVIEW
    known = {run.key: run for run in _runs(_block(overview))}
    for verdict in verdicts:
        run = _run(verdict, day)
        known[run.key] = run
    rows = [run for client in CLIENTS.values() for run in _in_order(client, known)]
    texts = {overview: _page(overview, ("client", *HEAD[1:], "run"), rows, linked=True)}
    for name in CLIENTS:
        page = folder / f"{name}.md"
        texts[page] = _page(page, (*HEAD[1:], "run"), [run for run in rows if run.cells[0] == name])
    for page, text in texts.items():
        page.write_text(text, encoding="utf-8")


def _in_order(client: ClientRow, known: dict[tuple[str, str, str], _Run]) -> list[_Run]:
    """Return the runs of a client, those that were never made too; if there is none, why it was left out."""
    keys = [(client.name, mode, _amount(window)) for mode, window in product(client.modes, client.windows)]
    out = known.get((client.name, NONE, NONE))
    if out is not None and not known.keys() & set(keys):
        return [out]
    return [known.get(key) or _never(key) for key in keys]


def _never(key: tuple[str, str, str]) -> _Run:
    given = dict(zip(("client", "mode", "window"), key, strict=True)) | {"ok": NOT_RUN}
    return _Run((*(given.get(name, NONE) for name in HEAD), NONE))


def _run(verdict: Verdict, day: str) -> _Run:
    if verdict.left_out:
        cells = (verdict.client, *(NONE for _ in HEAD[2:]), LEFT_OUT, day)
        return _Run(cells, (verdict.left_out,))
    sizes = (_amount(size) for size in (verdict.wanted, verdict.largest, verdict.window))
    figures = (str(verdict.turns), str(verdict.requests), *sizes, str(verdict.errors))
    kept = (str(verdict.compactions), str(verdict.breaks), str(verdict.summaries), f"{verdict.task}/{verdict.tasked}")
    ok = "yes" if verdict.ok else "no"
    return _Run((verdict.client, verdict.version or NONE, verdict.mode, *figures, *kept, ok, day), verdict.faults)


def _notes(runs: Iterable[_Run]) -> list[str]:
    return [f"- {run.key[0]} {run.key[1]}, {_closed(run.key[2])}: {note}" for run in runs for note in run.notes]


def _amount(tokens: int) -> str:
    return f"{tokens:,}".replace(",", " ")


def _closed(amount: str) -> str:
    """Return a figure without its spaces, so that it is one word of a note."""
    return amount.replace(" ", "")


# --- pages -----------------------------------------------------------------------------------------


def _block(page: Path) -> str:
    """Return what stands between the marks of a page."""
    if not page.is_file():
        raise EverlongError(f"there is no page {page}; each client of the table needs one")
    found = BLOCK.search(page.read_text(encoding="utf-8"))
    if found is None:
        raise EverlongError(f"{page} has no place for runs; add the lines {OPEN} and {CLOSE}")
    return found[1]


def _page(page: Path, head: tuple[str, ...], runs: Sequence[_Run], *, linked: bool = False) -> str:
    """Return the page with the runs between its marks."""
    _block(page)
    rows = tuple((f"[{run.cells[0]}]({run.cells[0]}.md)", *run.cells[1:]) if linked else run.cells[1:] for run in runs)
    body = Table("", head, rows, tuple(_notes(runs))).body
    return BLOCK.sub(lambda _: f"{OPEN}\n\n{body}\n{CLOSE}", page.read_text(encoding="utf-8"))


def _runs(block: str) -> list[_Run]:
    """Return the runs of the table in a block."""
    notes: dict[tuple[str, ...], list[str]] = {}
    for match in filter(None, map(NOTED.match, block.splitlines())):
        notes.setdefault(match.groups()[:3], []).append(match[4])
    lines = [line.strip().strip("|").split("|") for line in block.splitlines() if line.startswith("|")]
    runs = []
    for line in lines[2:]:  # below the head and the rule
        cells = [cell.strip() for cell in line]
        named = NAMED.match(cells[0])
        if named is None or len(cells) != len(HEAD) + 1 or NOT_RUN in cells:
            continue
        run = _Run((named[1], *cells[1:]))
        runs.append(_Run(run.cells, tuple(notes.get((*run.key[:2], _closed(run.key[2])), ()))))
    return runs
