"""G1, G3 on files: many processes, a compactor beside them, writers killed. Longer with EVERLONG_SOAK."""

import os
import random
from pathlib import Path

import pytest

from everlong.core import Point
from everlong.store import open_store
from tests.store.writer import SHARED, begin, started, turn_of

SOAK = bool(os.environ.get("EVERLONG_SOAK"))
WRITERS = 8
TURNS = 200 if SOAK else 3
KILLS = 50 if SOAK else 3
APPENDS = 1_000 if SOAK else 40  # between two kills, at most

STORES = {"sqlite": "sqlite:///{}/threads.db", "jsonl": "jsonl:{}/sessions"}


@pytest.fixture(params=list(STORES.values()), ids=list(STORES))
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A store that nobody ever opened."""
    return str(request.param).format(tmp_path)


def test_G3_eight_processes_and_a_compactor_on_a_new_store(url: str) -> None:
    names = [f"w{number}" for number in range(WRITERS)]
    processes = [started("turns", url, name, TURNS) for name in names] + [started("compact", url, "c", TURNS)]
    begin(processes)
    for process in processes:
        _, errors = process.communicate()
        assert (process.returncode, errors) == (0, "")
    with open_store(url) as store:
        for name in names:
            own = [row.entry for row in store.read(name)]
            assert own == [entry for number in range(TURNS) for entry in turn_of(name, number)]
        rows = list(store.read(SHARED))
        assert [row.order for row in rows] == list(range(len(rows)))
        assert len(rows) == 3 * WRITERS * TURNS + TURNS
        said = [row.entry for row in rows if not isinstance(row.entry, Point)]
        turns = [tuple(said[at : at + 3]) for at in range(0, len(said), 3)]
        for name in names:
            expected = [tuple(turn_of(name, number)) for number in range(TURNS)]
            assert [turn for turn in turns if turn in expected] == expected
        points = [row for row in rows if isinstance(row.entry, Point)]
        assert [row.order for row in points] == [row.entry.boundary for row in points]  # type: ignore[union-attr]
        assert [row for row, stands in store.points(SHARED) if stands] == points


def test_G1_kill_9_loses_nothing_that_returned(url: str, tmp_path: Path) -> None:
    dice = random.Random(6)
    length = 0
    for kill in range(1, KILLS + 1):
        process = started("tell", url, "one", kill * APPENDS)
        begin([process])
        assert process.stdout is not None
        told = [process.stdout.readline() for _ in range(dice.randint(1, APPENDS // 2))]
        process.kill()
        told += process.stdout.readlines()
        assert process.communicate()[1] == ""
        whole = [int(line) for line in told if line.endswith("\n")]
        assert whole[-1] > length
        if kill % 2:  # what is derived may be lost with the process
            (tmp_path / "sessions" / ".everlong-index.db").unlink(missing_ok=True)
        with open_store(url) as store:
            entries = [row.entry for row in store.read("one")]
            length = len(entries)
        assert whole[-1] <= length <= whole[-1] + 3
        assert entries == [entry for number in range(length // 3) for entry in turn_of("one", number)]
