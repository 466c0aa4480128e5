"""Which file holds which session, and which folder holds the files.

Session names are data: whatever a name says, its file is a plain name inside the folder. The name of the file is
nanobot's (base64url of the key) where that is possible, a hash where it is not: names too long for a file system, the
empty name, text that is no UTF-8. The key stands inside the file too and decides.
"""

import re
from hashlib import blake2b
from pathlib import Path

from everlong.core import bytes_of
from everlong.errors import InputError
from everlong.wire import SUFFIX, file_name, legacy_file_name, session_key

__all__ = [
    "EVENTS",
    "SUFFIX",
    "candidates",
    "events_beside",
    "hashed_name",
    "is_session",
    "key_by_name",
    "session_folder",
    "usual_name",
]

EVENTS = ".events.jsonl"
#: nanobot adds up to 38 characters for files beside it; file systems take 255.
LONGEST_STEM = 216
_HASHED = "h~"  # no base64 has it
_WORKSPACE = re.compile(r"[0-9a-f]{32}")


def usual_name(key: str) -> str:
    """The file of a new session. Example: cli:direct -> Y2xpOmRpcmVjdA.jsonl; 300 characters -> h~<hash>.jsonl"""
    try:
        name = file_name(key)
    except UnicodeEncodeError:
        return hashed_name(key)
    return name if 0 < len(name) - len(SUFFIX) <= LONGEST_STEM else hashed_name(key)


def hashed_name(key: str) -> str:
    """The file of a session that cannot have nanobot's name, or finds it taken by another."""
    return f"{_HASHED}{blake2b(bytes_of(key), digest_size=20).hexdigest()}{SUFFIX}"


def candidates(key: str) -> tuple[str, ...]:
    """The files that may hold a session, the likeliest first."""
    names = (usual_name(key), hashed_name(key), _legacy_name(key))
    return tuple(dict.fromkeys(name for name in names if name))


def key_by_name(name: str) -> str:
    """The session that a file without a key inside holds."""
    return session_key(name)


def events_beside(path: Path) -> Path:
    """The file that holds the events of a session. Example: a/Y2xp.jsonl -> a/Y2xp.events.jsonl"""
    return path.with_name(path.name.removesuffix(SUFFIX) + EVENTS)


def is_session(name: str) -> bool:
    """Whether a file of this name is a session: no hidden file, no events, nothing of ours."""
    return name.endswith(SUFFIX) and not name.startswith(".") and not name.endswith(EVENTS)


def session_folder(folder: Path) -> Path:
    """Where the session files lie, given their folder, nanobot's folder of all sessions, or a workspace.

    nanobot up to 0.3.0 keeps them in WORKSPACE/sessions, later ones in SESSIONS/<workspace id>.
    """
    if not folder.is_dir() or any(is_session(entry.name) for entry in folder.iterdir()):
        return folder
    spaces = sorted(entry for entry in folder.iterdir() if _WORKSPACE.fullmatch(entry.name) and entry.is_dir())
    if len(spaces) > 1:
        listing = ", ".join(f"{space.name} ({_workspace_of(space)})" for space in spaces)
        raise InputError(f"{folder} holds the sessions of several workspaces; name one of them: {listing}")
    if spaces:
        return spaces[0]
    if (folder / ".nanobot").is_dir() and (folder / "sessions").is_dir():
        return folder / "sessions"
    return folder


def _workspace_of(space: Path) -> str:
    try:
        return (space / ".workspace").read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        return "unknown"


def _legacy_name(key: str) -> str:
    """The old name, if it is a plain name of a bearable length; "" if not."""
    name = legacy_file_name(key)
    stem = name.removesuffix(SUFFIX)
    plain = stem and not stem.startswith(".") and stem.isprintable() and is_session(name)
    return name if plain and len(bytes_of(stem)) <= LONGEST_STEM else ""
