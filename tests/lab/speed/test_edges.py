"""The benchmark of attacks: everyone else is served, every time."""

from pathlib import Path

from everlong.lab.environments import Environments
from everlong.lab.speed import edges
from everlong.lab.speed.bench import Bench


def test_every_request_beside_an_attack_is_served(tmp_path: Path) -> None:
    bench = Bench(Environments(tmp_path, lambda _: None), quick=True, peers=False)
    (table,) = edges.run(bench)
    assert [row[0] for row in table.rows] == [
        "nobody else",
        "1,100 half-open connections",
        "an answer of 80 MB, packed",
    ]
    assert all(row[1] == row[2] != "0" for row in table.rows)
