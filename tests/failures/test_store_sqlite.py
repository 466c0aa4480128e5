"""G1, G3 on SQLite: many processes, a compactor beside them, processes killed while they write."""

import os
import random
import subprocess
from collections.abc import Sequence
from pathlib import Path

from everlong.core.points import Point
from everlong.store.sqlite import SqliteThreads
from tests.store.sqlite_writer import ROOT, SHARED, command, turn_of

SOAK = bool(os.environ.get("EVERLONG_SOAK"))
WRITERS = 8
TURNS = 200 if SOAK else 5
KILLS = 50 if SOAK else 4
APPENDS = 1_000 if SOAK else 40  # between two kills, at most


def started(*words: object) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    return subprocess.Popen(command(*words), stdin=pipe, stdout=pipe, stderr=pipe, text=True, cwd=ROOT)


def begin(processes: Sequence[subprocess.Popen[str]]) -> None:
    """All at once, when every one of them is ready."""
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()


def test_G3_eight_processes_and_a_compactor_on_a_new_file(tmp_path: Path) -> None:
    path = tmp_path / "threads.db"
    names = [f"w{number}" for number in range(WRITERS)]
    processes = [started("turns", path, name, TURNS) for name in names] + [started("compact", path, "c", TURNS)]
    begin(processes)
    for process in processes:
        _, errors = process.communicate()
        assert (process.returncode, errors) == (0, "")
    with SqliteThreads(path) as store:
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


def test_G1_kill_9_loses_nothing_that_returned(tmp_path: Path) -> None:
    path = tmp_path / "threads.db"
    dice = random.Random(6)
    length = 0
    for kill in range(1, KILLS + 1):
        process = started("tell", path, "one", kill * APPENDS)
        begin([process])
        assert process.stdout is not None
        told = [process.stdout.readline() for _ in range(dice.randint(1, APPENDS // 2))]
        process.kill()
        told += process.stdout.readlines()
        assert process.communicate()[1] == ""
        whole = [int(line) for line in told if line.endswith("\n")]
        assert whole[-1] > length
        with SqliteThreads(path) as store:
            entries = [row.entry for row in store.read("one")]
            length = len(entries)
        assert whole[-1] <= length <= whole[-1] + 3
        assert entries == [entry for number in range(length // 3) for entry in turn_of("one", number)]
