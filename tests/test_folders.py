"""Files of ours are in the system's folders; what earlier versions kept elsewhere is still found."""

from pathlib import Path

import pytest

from everlong.folders import Kind, cache_folder, place
from everlong.store import default_store

HOME = Path("/home/ada")
PLACES: list[tuple[str, Kind, dict[str, str], str]] = [
    ("linux", "data", {}, "/home/ada/.local/share/everlong/x"),
    ("linux", "config", {}, "/home/ada/.config/everlong/x"),
    ("linux", "state", {}, "/home/ada/.local/state/everlong/x"),
    ("linux", "cache", {}, "/home/ada/.cache/everlong/x"),
    ("linux", "config", {"XDG_CONFIG_HOME": "/conf"}, "/conf/everlong/x"),
    ("linux", "data", {"LOCALAPPDATA": "/local"}, "/home/ada/.local/share/everlong/x"),
    ("darwin", "data", {}, "/home/ada/Library/Application Support/everlong/x"),
    ("darwin", "config", {}, "/home/ada/Library/Application Support/everlong/x"),
    ("darwin", "state", {}, "/home/ada/Library/Application Support/everlong/x"),
    ("darwin", "cache", {}, "/home/ada/Library/Caches/everlong/x"),
    ("darwin", "cache", {"XDG_CACHE_HOME": "/cache"}, "/cache/everlong/x"),
    ("win32", "data", {"LOCALAPPDATA": "/local"}, "/local/everlong/x"),
    ("win32", "config", {"LOCALAPPDATA": "/local", "XDG_CONFIG_HOME": "/conf"}, "/local/everlong/x"),
    ("win32", "cache", {"LOCALAPPDATA": "/local"}, "/local/everlong/Cache/x"),
]


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in ("CACHE", "CONFIG", "DATA", "STATE"):
        monkeypatch.delenv(f"XDG_{kind}_HOME", raising=False)


@pytest.mark.parametrize(("platform", "kind", "variables", "path"), PLACES)
def test_a_file_is_in_the_systems_folder(platform: str, kind: Kind, variables: dict[str, str], path: str) -> None:
    assert place(kind, "x", environment={"HOME": str(HOME), **variables}, platform=platform) == Path(path)


@pytest.mark.parametrize("platform", ["darwin", "win32"])
def test_a_file_of_an_earlier_version_is_found_until_there_is_a_newer_one(platform: str, tmp_path: Path) -> None:
    environment = {"HOME": str(tmp_path), "LOCALAPPDATA": str(tmp_path / "local")}
    old = tmp_path / ".config" / "everlong" / "config.toml"
    old.parent.mkdir(parents=True)
    new = place("config", "config.toml", environment=environment, platform=platform)
    assert tmp_path in new.parents
    old.write_text("model = 'old'", encoding="utf-8")
    assert place("config", "config.toml", environment=environment, platform=platform) == old
    assert place("config", "permissions.toml", environment=environment, platform=platform).parent == new.parent
    new.parent.mkdir(parents=True)
    new.write_text("model = 'new'", encoding="utf-8")
    assert place("config", "config.toml", environment=environment, platform=platform) == new


def test_the_cache_is_where_a_variable_says() -> None:
    assert cache_folder({"EVERLONG_CACHE": "/here"}) == Path("/here")
    assert cache_folder({"XDG_CACHE_HOME": "/cache"}) == Path("/cache/everlong")


def test_conversations_stay_where_they_were() -> None:
    assert default_store({"HOME": "/home/ada"}, "darwin") == str(
        HOME / "Library" / "Application Support" / "everlong" / "threads.db"
    )
