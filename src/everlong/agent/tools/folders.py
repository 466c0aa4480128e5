"""The tool `list_files`: the files of a workspace as a tree, and the walk through them that a search uses too.

Folders are opened through their descriptors, and no link is followed. Only names and sizes are read.
"""

import os
import stat
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from everlong.agent.definitions import Place, tool
from everlong.agent.workspace import open_below, open_folder, printable
from everlong.errors import InputError

__all__ = ["Entry", "list_files", "walk"]

MOST_DEPTH = 40
MOST_LISTED = 600
MOST_IN_FOLDER = 120
INDENT = "  "
#: Names whose contents are neither listed nor searched.
IGNORED = frozenset(
    (
        *(".git", ".hg", ".svn", ".jj", ".idea", ".everlong", ".DS_Store"),
        *("node_modules", "bower_components", ".venv", "venv", ".tox", ".nox", ".eggs", ".gradle", ".terraform"),
        *("__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".hypothesis", ".cache", ".next", ".nuxt"),
        *(".svelte-kit", "target", "dist", "build", "coverage"),
    )
)


@dataclass(frozen=True, slots=True)
class Entry:
    """A file or folder, by its name and its path below where the walk began."""

    name: str
    path: str
    size: int
    folder: bool = False
    link: bool = False
    ignored: bool = False


@tool
def list_files(
    place: Place,
    path: Annotated[str, "a folder, relative to the workspace"] = ".",
    depth: Annotated[int, "how many levels to show"] = 3,
) -> str:
    """List files and folders as a tree, with sizes. Contents of caches, packages and version control are not listed."""
    if not 1 <= depth <= MOST_DEPTH:
        raise InputError(f"depth must be a number from 1 to {MOST_DEPTH}")
    with open_folder(place, path) as folder:
        lines = _Listing(depth).lines(folder)
    return "\n".join(lines) or "(the folder is empty)"


class _Listing:
    """A tree being listed, and how many more lines it may have."""

    def __init__(self, depth: int) -> None:
        self.depth = depth
        self.left = MOST_LISTED

    def lines(self, folder: int, level: int = 0) -> list[str]:
        """Return the lines of a folder and of what is below it."""
        indent = INDENT * level
        try:
            entries = _entries(folder)
        except OSError as error:
            return [f"{indent}({error.strerror})"]
        shown = entries[: min(MOST_IN_FOLDER, self.left)]
        self.left -= len(shown)
        lines = []
        for entry in shown:
            lines.append(indent + _line(entry))
            if entry.folder and not entry.ignored:
                lines += self._below(folder, entry, level + 1)
        if len(entries) > len(shown):
            lines.append(indent + _more(entries[len(shown) :]))
        return lines

    def _below(self, folder: int, entry: Entry, level: int) -> list[str]:
        below = open_below(folder, entry.name)
        if below is None:
            return []
        try:
            if level < self.depth and self.left:
                return self.lines(below, level)
            with os.scandir(below) as listing:
                return [INDENT * level + "…"] if next(listing, None) is not None else []
        except OSError:
            return []
        finally:
            os.close(below)


def _line(entry: Entry) -> str:
    name = printable(entry.name)
    if entry.link:
        return f"{name} (link)"
    if entry.folder:
        return f"{name}/" + (" (not listed)" if entry.ignored else "")
    return f"{name} {_size(entry.size)}"


def _more(hidden: list[Entry]) -> str:
    kinds = Counter("folders" if entry.folder else "files" for entry in hidden)
    return "… and " + ", ".join(f"{count:,} {kind}" for kind, count in kinds.items()) + " more"


def _size(size: int) -> str:
    if size < 1_000:
        return f"{size} B"
    return f"{size / 1_000:,.0f} kB" if size < 1_000_000 else f"{size / 1_000_000:,.1f} MB"


def walk(folder: int, above: str = "", depth: int = MOST_DEPTH) -> Iterator[tuple[int, Entry]]:
    """Yield (descriptor of its folder, entry) of every file below, except ignored, linked and unreadable ones."""
    try:
        here = _entries(folder, above)
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


def _entries(folder: int, above: str = "") -> list[Entry]:
    """Return what is in a folder: folders first, then by name. Pipes, sockets and devices are left out."""
    entries = []
    with os.scandir(folder) as listing:
        for item in listing:
            try:
                status = item.stat(follow_symlinks=False)
            except OSError:  # gone since it was listed
                continue
            is_folder, is_link = stat.S_ISDIR(status.st_mode), stat.S_ISLNK(status.st_mode)
            if is_folder or is_link or stat.S_ISREG(status.st_mode):
                path = f"{above}/{item.name}" if above else item.name
                ignored = item.name in IGNORED
                entries.append(Entry(item.name, path, status.st_size, is_folder, is_link, ignored))
    return sorted(entries, key=lambda entry: (not entry.folder, entry.name))
