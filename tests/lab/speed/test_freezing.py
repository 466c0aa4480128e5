"""The ruler of `lab speed freezing`: its texts and its table. No time is judged."""

from pathlib import Path

import pytest

from everlong.lab.environments import Environments
from everlong.lab.speed import freezing
from everlong.lab.speed.bench import Bench


@pytest.mark.parametrize("kind", freezing.KINDS)
def test_each_kind_is_as_long_as_it_is_asked_to_be(kind: str) -> None:
    assert 0.8 * 100_000 <= len(freezing.KINDS[kind](100_000).encode()) <= 100_000 + 4


def test_a_run_shows_each_kind_beside_the_machine_by_itself(tmp_path: Path) -> None:
    reports: list[str] = []
    (table,) = freezing.run(Bench(Environments(tmp_path, reports.append), quick=True, peers=False))
    titles = [f"{kind}, {model}" for kind in freezing.KINDS for model in freezing.MODELS]
    assert [row[0] for row in table.rows] == ["nothing", *titles]
    assert {row[-1] for row in table.rows} <= {"200", "400"}
    assert len(table.data["nothing"]["waits"]) >= freezing.ALONE
    assert len(reports) == len(titles)
