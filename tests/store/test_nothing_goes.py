"""Law 1 in the code itself: no engine changes or removes what was appended, but for `remove` and `erase`."""

import re
from pathlib import Path

import pytest

from everlong import store
from everlong.core import Point, Withdrawal
from everlong.store.jsonl import JsonlThreads
from tests.core.build import assistant, result, user

FOLDER = Path(store.__path__[0])
STATEMENT = re.compile(r"\b(DELETE FROM|UPDATE|INSERT OR REPLACE INTO|TRUNCATE|DROP TABLE)\s+(?:everlong\.)?(\w+)")

#: What may change: what a thread is called and how long it is, pins, what was learned, and the number of a version.
ALLOWED = {
    ("UPDATE", "threads"),
    ("DELETE FROM", "pins"),
    ("DELETE FROM", "version"),
    ("INSERT OR REPLACE INTO", "counts"),
    ("INSERT OR REPLACE INTO", "vectors"),
    ("DELETE FROM", "facts"),
    ("UPDATE", "facts"),
    ("DROP TABLE", "facts"),  # moved into a table with times
    ("DELETE FROM", "erasing"),  # the note that a file has to be rewritten
}
#: A removal marks what it names, and takes it out of the search.
MARKED = {"sqlite": {("UPDATE", "log")}, "postgres": {("UPDATE", "rows"), ("DELETE FROM", "terms")}}
MARK = re.compile(r"UPDATE (?:everlong\.)?(?:log|rows) SET (\w+)")

#: The modules of an engine that take whole threads away, and messages.
REMOVAL, ERASURE = "removal.py", "erasure.py"


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_no_statement_changes_or_removes_a_row(engine: str) -> None:
    code = "\n".join(
        path.read_text(encoding="utf-8")
        for path in (FOLDER / engine).glob("*.py")
        if path.name not in (REMOVAL, ERASURE)
    )
    found = set(STATEMENT.findall(code)) - {("UPDATE", "SET")}  # what an upsert says
    assert ("UPDATE", "threads") in found, "the search itself works"
    assert found <= ALLOWED | MARKED[engine]
    assert set(MARK.findall(code)) == {"removed"}, "the mark, and nothing else of a row"


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_removal_takes_away_and_changes_nothing(engine: str) -> None:
    code = (FOLDER / engine / REMOVAL).read_text(encoding="utf-8")
    assert {what for what, _ in STATEMENT.findall(code)} == {"DELETE FROM"}


def test_a_line_of_a_session_file_stays_as_it_was_written(tmp_path: Path) -> None:
    with JsonlThreads(tmp_path) as kept:
        kept.create("t", title="a")
        kept.append("t", [user("hello"), assistant("你好"), result("1", "x" * 3_000)])
        (file,) = tmp_path.glob("*.jsonl")
        lines = file.read_bytes().splitlines()[1:]
        kept.append("t", [Point(boundary=2, summary=(user("s"),)), user("more")])
        kept.append("t", [Withdrawal(3)])
        kept.pin("t", 0)
        kept.change("t", title="b", archived=True, metadata='{"a": 1}')
        kept.branch("t", 2, "u")
        kept.append("t", [user("last")])
    after = file.read_bytes().splitlines()
    assert [line for line in after if line in lines] == lines
    assert len(after) >= len(lines) + 5
