"""What is in a folder and below it, in order, without following links or getting lost.

Folders that hold what tools make (caches, packages, version control) are left out, as most searches want it.
Depth, and with it the number of open folders, is limited.
"""

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["IGNORED", "MOST_DEPTH", "Entry", "entries", "open_below", "walk"]

MOST_DEPTH = 40
#: Names that are not looked into.
IGNORED = frozenset(
    (
        *(".git", ".hg", ".svn", ".jj", ".idea", ".everlong", ".DS_Store"),
        *("node_modules", "bower_components", ".venv", "venv", ".tox", ".nox", ".eggs", ".gradle", ".terraform"),
        *("__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".hypothesis", ".cache", ".next", ".nuxt"),
        *(".svelte-kit", "target", "dist", "build", "coverage"),
    )
)
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY


@dataclass(frozen=True, slots=True)
class Entry:
    """A file or folder, by its name and its path below where the walk began."""

    name: str
    path: str
    size: int
    folder: bool = False
    link: bool = False
    ignored: bool = False


def entries(folder: int, above: str = "") -> list[Entry]:
    """What stands in a folder: folders first, then by name. Pipes, sockets and devices are not listed."""
    found = []
    with os.scandir(folder) as listing:
        for item in listing:
            try:
                about = item.stat(follow_symlinks=False)
            except OSError:  # gone since it was listed
                continue
            is_folder, is_link = stat.S_ISDIR(about.st_mode), stat.S_ISLNK(about.st_mode)
            if is_folder or is_link or stat.S_ISREG(about.st_mode):
                path = f"{above}/{item.name}" if above else item.name
                ignored = item.name in IGNORED
                found.append(Entry(item.name, path, about.st_size, is_folder, is_link, ignored))
    return sorted(found, key=lambda entry: (not entry.folder, entry.name))


def walk(folder: int, above: str = "", depth: int = MOST_DEPTH) -> Iterator[tuple[int, Entry]]:
    """(descriptor of its folder, entry) of every file below; what is ignored, links and what cannot be read are not."""
    try:
        here = entries(folder, above)
    except OSError:
        return
    for entry in here:
        if entry.ignored or entry.link:
            continue
        if not entry.folder:
            yield folder, entry
        elif depth > 1:
            below = open_below(folder, entry.name)
            if below is not None:
                try:
                    yield from walk(below, entry.path, depth - 1)
                finally:
                    os.close(below)


def open_below(folder: int, name: str, *, file: bool = False) -> int | None:
    """The descriptor of what has that name in a folder; None if it cannot be opened, or is a link by now."""
    try:
        return os.open(name, FILE if file else FOLDER, dir_fd=folder)
    except OSError:
        return None
