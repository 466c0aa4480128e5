"""How long conversations are: the table, and counting it again."""

import json
from pathlib import Path

import pytest

from everlong.lab import LENGTHS, counted_lengths


@pytest.mark.parametrize("name", sorted(LENGTHS))
def test_sizes_grow_with_the_share_and_pass_through_the_figures(name: str) -> None:
    lengths = LENGTHS[name]
    sizes = [lengths.size_at(step / 100) for step in range(101)]
    assert sizes == sorted(sizes)
    assert lengths.size_at(0.5) == lengths.tokens[2]
    assert list(lengths.requests) == sorted(lengths.requests)


def test_a_file_of_the_data_folder_is_counted_again(tmp_path: Path) -> None:
    said = [{"role": "user", "content": "one two three"}, {"role": "assistant", "content": "four"}]
    (tmp_path / "agents").mkdir()
    rows = [{"id": f"c{number}", "source": "made up", "messages": said * number} for number in (1, 2, 3)]
    lines = "\n".join(map(json.dumps, rows))
    (tmp_path / "agents" / "tau_airline.jsonl").write_text(lines + "\n", encoding="utf-8")
    lengths = counted_lengths("service", tmp_path)
    assert lengths.conversations == 3
    assert lengths.requests == (1, 1, 2, 3, 3, 3)
    assert lengths.mean_requests == 2
    assert lengths.tokens[0] == 7  # three words and a frame
