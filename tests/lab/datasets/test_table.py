"""Every public set: converted through the command from a folder in its own shape, and measured after that."""

import json
from pathlib import Path

import pytest

from everlong.lab.data import rows
from everlong.lab.datasets.table import DATASETS
from tests.cli.running import everlong
from tests.lab.datasets.checkouts import CHECKOUTS


def converted(name: str, tmp_path: Path, target: str = "data") -> Path:
    """Make the folder of a set and convert it; return the data folder."""
    clone = tmp_path / "clone"
    if not clone.exists():
        CHECKOUTS[name](clone)
    ran = everlong("lab", "fetch-data", name, "--from", str(clone), "--data", str(tmp_path / target))
    assert ran.code == 0, ran.err
    return tmp_path / target


def test_every_set_of_the_table_has_a_made_up_folder_here() -> None:
    assert CHECKOUTS.keys() == DATASETS.keys()


@pytest.mark.parametrize("name", DATASETS)
def test_the_evidence_of_every_question_is_a_turn_of_its_conversation(name: str, tmp_path: Path) -> None:
    folder = converted(name, tmp_path) / name
    turns = {row["id"]: {turn["id"] for turn in row["messages"]} for row in rows(folder / "conversations.jsonl")}
    asked = list(rows(folder / "questions.jsonl"))
    assert asked
    for question in asked:
        assert question["evidence"]
        assert turns[question["conversation"]].issuperset(question["evidence"])


@pytest.mark.parametrize("name", DATASETS)
def test_the_same_folder_gives_the_same_bytes(name: str, tmp_path: Path) -> None:
    first, second = (converted(name, tmp_path, target) / name for target in ("one", "two"))
    for file in ("conversations.jsonl", "questions.jsonl"):
        assert (first / file).read_bytes() == (second / file).read_bytes()


def test_a_converted_set_can_be_measured_in_its_halves(tmp_path: Path) -> None:
    folder = converted("beam_100k", tmp_path)
    for half, cases in (("tuning", 4), ("confirming", 2), ("all", 6)):
        ran = everlong("lab", "dialogs", "--data", str(folder), "--strategy", "whole", "--half", half, "--json")
        (result,) = json.loads(ran.out)
        assert (result["total"], result["rows"][0]["hits"]) == (cases, cases)


@pytest.mark.parametrize("name", DATASETS)
def test_a_folder_that_is_not_the_set_is_told_in_one_line(name: str, tmp_path: Path) -> None:
    ran = everlong("lab", "fetch-data", name, "--from", str(tmp_path), "--data", str(tmp_path / "data"))
    assert ran.code != 0
    assert ran.err.count("\n") == 1
    assert f"{tmp_path}: no " in ran.err
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("name", DATASETS)
def test_a_file_that_is_broken_is_named(name: str, tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    CHECKOUTS[name](clone)
    files = [path for path in clone.rglob("*") if path.is_file()]
    for path in files:
        path.write_text("[", encoding="utf-8")
    ran = everlong("lab", "fetch-data", name, "--from", str(clone), "--data", str(tmp_path / "data"))
    assert ran.code != 0
    assert any(str(path) in ran.err for path in files), ran.err


def test_a_pointer_of_git_lfs_is_no_data(tmp_path: Path) -> None:
    (tmp_path / "longmemeval_s_cleaned.json").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:1\n")
    ran = everlong("lab", "fetch-data", "longmemeval", "--from", str(tmp_path), "--data", str(tmp_path / "data"))
    assert "git lfs pull" in ran.err
