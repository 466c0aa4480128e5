"""Environments: where they are, when they are made, and what a peer sees of everlong."""

from pathlib import Path

import pytest

from everlong.lab.environments import CORE, Environments, folder_from

FOLDERS = [
    ("named", {"EVERLONG_LAB": "kept/here", "XDG_CACHE_HOME": "cache"}, Path("kept/here")),
    ("cache", {"XDG_CACHE_HOME": "cache"}, Path("cache/everlong/lab")),
    ("windows", {"LOCALAPPDATA": "local"}, Path("local/everlong/lab")),
    ("home", {}, Path.home() / ".cache/everlong/lab"),
]


@pytest.mark.parametrize(("variables", "folder"), [row[1:] for row in FOLDERS], ids=[row[0] for row in FOLDERS])
def test_environments_live_where_they_are_told(variables: dict[str, str], folder: Path) -> None:
    assert folder_from(variables) == folder


def test_an_environment_that_is_there_is_used_again(tmp_path: Path) -> None:
    told: list[str] = []
    home = tmp_path / CORE.name
    home.mkdir()
    (home / "installed.txt").write_text("\n".join(CORE.wanted), encoding="utf-8")
    assert Environments(tmp_path, told.append).installed(CORE)
    assert told == []


def test_a_peer_sees_everlong_and_nothing_that_is_installed_beside_it(tmp_path: Path) -> None:
    where = Environments(tmp_path)
    path = Path(where.settings()["PYTHONPATH"])
    assert [entry.name for entry in path.iterdir()] == ["everlong"]
    assert (path / "everlong" / "__init__.py").is_file()
    assert where.settings()["PYTHONPATH"] == str(path)
