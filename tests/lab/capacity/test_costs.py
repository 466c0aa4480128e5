"""Costs: between their sizes, to a file and back, and measured with a real gateway."""

from dataclasses import replace
from pathlib import Path

import pytest

from everlong.errors import InputError
from everlong.lab import COST_SIZES, Bench, Environments, measured_costs, read_costs, recorded_costs, write_costs

COSTS = recorded_costs("sqlite")


def test_a_cost_lies_on_the_line_between_two_sizes_and_goes_on_beyond_them() -> None:
    costs = replace(COSTS, growing=(1.0, 4.0, 12.0, 22.0))
    asked = (5_000, 12_500, 20_000, 60_000, 300_000, 0)
    assert [costs.at(costs.growing, tokens) for tokens in asked] == [1.0, 2.5, 4.0, 8.0, 32.0, 0.0]


def test_costs_come_back_from_their_file(tmp_path: Path) -> None:
    write_costs(COSTS, tmp_path / "costs.json")
    assert read_costs(tmp_path / "costs.json") == COSTS


@pytest.mark.parametrize("text", ["", "{}", "[1]"])
def test_a_file_without_costs_is_refused_with_the_remedy(tmp_path: Path, text: str) -> None:
    (tmp_path / "costs.json").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match="--costs measured --save"):
        read_costs(tmp_path / "costs.json")


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        read_costs(tmp_path / "none.json")


def test_costs_are_measured_with_a_gateway_and_its_store(tmp_path: Path) -> None:
    """Bounds, no times: larger requests have larger bodies, everything costs something, and something is stored."""
    told: list[str] = []
    costs = measured_costs(Bench(Environments(tmp_path, told.append), quick=True, peers=False))
    assert costs.store == "sqlite"
    assert all(figure > 0 for row in (costs.growing, costs.new, costs.compaction) for figure in row)
    assert len(costs.growing) == len(COST_SIZES)
    assert list(costs.body) == sorted(costs.body)
    assert costs.bytes_per_compacted_token > 0
    assert costs.idle_megabytes > 10
    assert len(told) == len(COST_SIZES) + 1
