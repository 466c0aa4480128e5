"""The folders in which Everlong keeps its files: data, configuration, state and cache.

| kind | contents | Linux | macOS, in ~/Library | Windows, in %LOCALAPPDATA% |
| --- | --- | --- | --- | --- |
| data | conversations | ~/.local/share/everlong | Application Support/everlong | everlong |
| config | settings, permissions, model sources | ~/.config/everlong | Application Support/everlong | everlong |
| state | typed lines, started gateways | ~/.local/state/everlong | Application Support/everlong | everlong |
| cache | files that can be fetched again | ~/.cache/everlong | Caches/everlong | everlong/Cache |

XDG_DATA_HOME, XDG_CONFIG_HOME, XDG_STATE_HOME and XDG_CACHE_HOME choose other folders, on macOS too.
"""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, TypeAlias

__all__ = ["NO_FILE", "cache_folder", "home_folder", "place"]

Kind: TypeAlias = Literal["cache", "config", "data", "state"]

APP = "everlong"
NO_FILE = "none"  # as EVERLONG_CONFIG: no configuration file is read
#: The folders below the home folder that earlier versions used on every system. Files there are still found.
BEFORE: Mapping[Kind, str] = {"cache": ".cache", "config": ".config", "state": ".local/state"}


def place(kind: Kind, *names: str, environment: Mapping[str, str], platform: str = sys.platform) -> Path:
    """Return the path of one of our files or folders.

    This is the system folder of that kind, unless the file exists only where earlier versions kept it. Example:
    "config", "config.toml" -> ~/.config/everlong/config.toml on Linux
    """
    path = _system_folder(kind, environment, platform).joinpath(*names)
    if kind in BEFORE and platform in ("darwin", "win32"):
        before = home_folder(environment).joinpath(BEFORE[kind], APP, *names)
        if _is_there(before) and not _is_there(path):
            return before
    return path


def cache_folder(environment: Mapping[str, str]) -> Path:
    """Return the folder for files that can be fetched again: EVERLONG_CACHE, or the system's cache folder."""
    own = environment.get("EVERLONG_CACHE")
    return Path(own) if own else place("cache", environment=environment)


def home_folder(environment: Mapping[str, str]) -> Path:
    """Return the user's home folder according to the environment."""
    return Path(environment.get("HOME") or environment.get("USERPROFILE") or Path.home())


def _system_folder(kind: Kind, environment: Mapping[str, str], platform: str) -> Path:
    named = environment.get(f"XDG_{kind.upper()}_HOME", "").strip()
    if named and platform != "win32":
        return Path(_at_home(named)) / APP
    local = environment.get("LOCALAPPDATA", "").strip()
    if local and platform == "win32":  # read first, so that a caller can choose another folder
        return Path(local, APP, *(("Cache",) if kind == "cache" else ()))
    folder = _usual_folder(kind, platform)
    ours = Path.home()
    return home_folder(environment) / folder.relative_to(ours) if folder.is_relative_to(ours) else folder


def _usual_folder(kind: Kind, platform: str) -> Path:
    """Return the system's folder when no environment variable names one."""
    from platformdirs import macos, unix, windows  # noqa: PLC0415 - 8 ms that few commands need

    system = {"darwin": macos.MacOS, "win32": windows.Windows}.get(platform, unix.Unix)
    folders = system(APP, appauthor=False)
    match kind:
        case "cache":
            return folders.user_cache_path
        case "config":
            return folders.user_config_path
        case "data":
            return folders.user_data_path
        case "state":
            return folders.user_state_path


def _at_home(path: str) -> Path:
    try:
        return Path(path).expanduser()
    except RuntimeError:  # ~nobody
        return Path(path)


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # another user's folder
        return False
