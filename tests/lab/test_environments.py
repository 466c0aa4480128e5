"""Environments: where they are, when they are made, and what a peer sees of everlong."""

from pathlib import Path

import pytest

from everlong.lab.environments import CORE, PACKAGE, Environment, Environments, Npm, NpmPackages, folder_from

FOLDERS = [
    ("named", {"EVERLONG_LAB": "kept/here", "XDG_CACHE_HOME": "cache"}, Path("kept/here")),
    ("cache", {"XDG_CACHE_HOME": "cache"}, Path("cache/everlong/lab")),
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


def test_two_copies_of_everlong_share_environments_and_each_peer_sees_its_own(tmp_path: Path) -> None:
    ours = Path(Environments(tmp_path).settings()["PYTHONPATH"])
    other = tmp_path / "other" / "everlong"
    other.mkdir(parents=True)
    theirs = Path(Environments(tmp_path, package=other).settings()["PYTHONPATH"])
    assert (ours / "everlong").resolve() == PACKAGE
    assert (theirs / "everlong").resolve() == other


def test_what_npm_cannot_install_is_told_with_its_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = ("npm error code ETARGET", "npm error notarget No matching version", "npm error A complete log of this run")
    programs = {"node": "echo v24.1.0", "npm": "\n".join(f"echo '{line}' >&2" for line in said) + "\nexit 1"}
    for name, script in programs.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    told: list[str] = []
    packages, where = NpmPackages("npm-none", ("none",)), Environments(tmp_path / "lab", told.append)
    assert Npm(where).installed(packages) == "npm cannot install it here: notarget No matching version"
    peer = Environment("none", (), npm=packages)
    where.home(peer).mkdir(parents=True)
    (where.home(peer) / "installed.txt").touch()  # what pip installs is there: nothing
    assert not where.installed(peer)
    assert told[-1] == "none is left out: npm cannot install it here: notarget No matching version"
