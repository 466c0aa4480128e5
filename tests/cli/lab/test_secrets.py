"""`everlong lab secrets`: a table of what is hidden, JSON, texts of your own, and both languages."""

import json
from pathlib import Path

from everlong.lab.secrets.corpus import HELD_OUT, KINDS
from tests.cli.running import everlong
from tests.lab.folders import DATA


def test_a_table_has_a_row_for_each_kind_and_one_for_each_text(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("one line\nDB_PASSWORD=correcthorse9\n", encoding="utf-8")
    ran = everlong("lab", "secrets", "--each", "2", "--data", str(DATA), "--files", "office", str(tmp_path))
    assert ran.code == 0, ran.err
    assert ran.err == ""
    assert all(kind.name in ran.out for kind in KINDS)
    assert f"removed in the {len(HELD_OUT)} held-out kinds" in ran.out
    assert "office" in ran.out
    (own,) = [line.split() for line in ran.out.splitlines() if tmp_path.name in line]
    assert own[1:4] == ["33.333", "%", "3"]


def test_every_figure_as_json() -> None:
    ran = everlong("lab", "secrets", "--each", "2", "--kinds", "held-out", "--seed", "7", "--json")
    figures = json.loads(ran.out)
    assert {row["kind"] for row in figures["found"]} == HELD_OUT
    assert all(row["total"] == 2 for row in figures["found"])
    assert [row["data"] for row in figures["alarms"]] == ["ordinary lines"]


def test_the_table_speaks_chinese() -> None:
    ran = everlong("lab", "secrets", "--each", "1", "--kinds", "development", "--lang", "zh")
    assert "编写规则所依据的" in ran.out
    assert "保留不看" not in ran.out


def test_a_data_folder_that_is_not_there_is_one_clear_line(tmp_path: Path) -> None:
    ran = everlong("lab", "secrets", "--each", "1", "--data", str(tmp_path / "none"))
    assert ran.code != 0
    assert "no such folder" in ran.err
