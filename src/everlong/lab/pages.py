"""Runs on pages: a table of all of them in README.md, and each client's or framework's rows on its own page.

The pages are the record. A row stays until its run is repeated, so it has the day of the run; a run that is wanted but
was never made is shown as not run.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from everlong.errors import EverlongError
from everlong.lab.speed.tables import Table

__all__ = ["NONE", "Run", "RunPages", "amount"]

OVERVIEW = "README.md"
CLOSE = "<!-- end of runs -->"
NONE = "–"
NOT_RUN, LEFT_OUT = "not run", "left out"
#: The name of a page, plain or as a link to the page.
NAMED = re.compile(r"\[?([\w.-]+)\]?(?:\([^)]*\))?$")
NOTED = re.compile(r"- (\S+) (.*?), (\S+): (.*)$")

#: The name of the page, and two more cells: a run with the same key replaces this one.
Key = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Run:
    """A row and its notes below the table. `cells` are those of the head, without the day."""

    cells: tuple[str, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RunPages:
    """The pages that a command writes. `head` are the columns, the name first; `key` names two more columns.

    `wanted` are the keys of all runs, by the name of their page.
    """

    command: str
    head: tuple[str, ...]
    key: tuple[str, str]
    wanted: Mapping[str, Sequence[Key]]

    @property
    def open(self) -> str:
        """The mark before the generated block; `CLOSE` is the mark after it."""
        return f"<!-- runs, written by `everlong {self.command} --write` -->"

    def left_out(self, name: str, reason: str) -> Run:
        """Return the row of a client or framework that could not be run here."""
        return Run((name, *(NONE for _ in self.head[2:]), LEFT_OUT), (reason,))

    def table(self, title: str, runs: Sequence[Run]) -> Table:
        """Return runs as a table, with every note below it."""
        return Table(title, self.head, tuple(run.cells for run in runs), tuple(self._notes(runs)))

    def write(self, folder: Path, runs: Iterable[Run], day: str) -> None:
        """Write the runs of a day into the pages of a folder. Raises EverlongError if a page or mark is missing."""
        overview = folder / OVERVIEW
        known = {self._key(run): run for run in self._runs(self._block(overview))}
        for name in self.wanted:  # a page may have runs that the overview does not have
            known |= {self._key(run): run for run in self._runs(self._block(folder / f"{name}.md"), name)}
        for run in runs:
            known[self._key(run)] = Run((*run.cells, day), run.notes)
        rows = [run for name in self.wanted for run in self._in_order(name, known)]
        texts = {overview: self._page(overview, rows, linked=True)}
        for name in self.wanted:
            page = folder / f"{name}.md"
            texts[page] = self._page(page, [run for run in rows if run.cells[0] == name])
        for page, text in texts.items():
            page.write_text(text, encoding="utf-8")

    def _key(self, run: Run) -> Key:
        first, second = (run.cells[self.head.index(column)] for column in self.key)
        return run.cells[0], first, second

    def _in_order(self, name: str, known: dict[Key, Run]) -> list[Run]:
        """Return the runs of a page, including those that were never made; if there are none, why it was left out."""
        keys = self.wanted[name]
        out = known.get((name, NONE, NONE))
        if out is not None and not known.keys() & set(keys):
            return [out]
        return [known.get(key) or self._never(key) for key in keys]

    def _never(self, key: Key) -> Run:
        given = dict(zip((self.head[0], *self.key), key, strict=True)) | {self.head[-1]: NOT_RUN}
        return Run((*(given.get(column, NONE) for column in self.head), NONE))

    def _notes(self, runs: Iterable[Run]) -> list[str]:
        keyed = ((self._key(run), note) for run in runs for note in run.notes)
        return [f"- {key[0]} {key[1]}, {_closed(key[2])}: {note}" for key, note in keyed]

    def _block(self, page: Path) -> str:
        """Return what is between the marks of a page."""
        if not page.is_file():
            raise EverlongError(f"there is no page {page}; each {self.head[0]} of the table needs one")
        found = self._marked().search(page.read_text(encoding="utf-8"))
        if found is None:
            raise EverlongError(f"{page} has no place for runs; add the lines {self.open} and {CLOSE}")
        return found[1]

    def _marked(self) -> re.Pattern[str]:
        return re.compile(f"{re.escape(self.open)}\n(.*?){re.escape(CLOSE)}", re.DOTALL)

    def _page(self, page: Path, runs: Sequence[Run], *, linked: bool = False) -> str:
        """Return the page with the runs between its marks."""
        self._block(page)
        head = (*self.head, "run") if linked else (*self.head[1:], "run")
        rows = tuple(_linked(run.cells) if linked else run.cells[1:] for run in runs)
        body = Table("", head, rows, tuple(self._notes(runs))).body
        return self._marked().sub(lambda _: f"{self.open}\n\n{body}\n{CLOSE}", page.read_text(encoding="utf-8"))

    def _runs(self, block: str, page: str = "") -> list[Run]:
        """Return the runs of the table in a block; on a separate page, the column with the name is left out."""
        notes: dict[tuple[str, ...], list[str]] = {}
        for match in filter(None, map(NOTED.match, block.splitlines())):
            notes.setdefault(match.groups()[:3], []).append(match[4])
        lines = [line.strip().strip("|").split("|") for line in block.splitlines() if line.startswith("|")]
        runs = []
        for line in lines[2:]:  # after the head and the rule
            cells = [*([page] if page else []), *(cell.strip() for cell in line)]
            named = NAMED.match(cells[0])
            if named is None or len(cells) != len(self.head) + 1 or NOT_RUN in cells:
                continue
            run = Run((named[1], *cells[1:]))
            name, first, second = self._key(run)
            runs.append(Run(run.cells, tuple(notes.get((name, first, _closed(second)), ()))))
        return runs


def amount(tokens: int) -> str:
    """Return a figure as in the tables. Example: 33877 -> "33 877" """
    return f"{tokens:,}".replace(",", " ")


def _closed(cell: str) -> str:
    """Return a cell without spaces, so that it is one word of a note."""
    return cell.replace(" ", "")


def _linked(cells: tuple[str, ...]) -> tuple[str, ...]:
    return (f"[{cells[0]}]({cells[0]}.md)", *cells[1:])
