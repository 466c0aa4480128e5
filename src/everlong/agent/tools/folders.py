"""The files of the workspace as a tree, as much of it as can be read at a glance."""

import os
import stat
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from everlong.agent.definitions import Place, tool
from everlong.agent.workspace import open_folder
from everlong.errors import InputError

__all__ = ["IGNORED", "MOST_DEPTH", "Entry", "entries", "list_files", "open_below", "walk"]

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


MOST_LISTED = 600
MOST_IN_FOLDER = 120
INDENT = "  "


@tool
def list_files(
    place: Place,
    path: Annotated[str, "a folder, relative to the workspace"] = ".",
    depth: Annotated[int, "how many levels"] = 3,
) -> str:
    """List files and folders as a tree, with sizes. Caches, packages and version control are not looked into."""
    if not 1 <= depth <= MOST_DEPTH:
        raise InputError(f"depth is a number from 1 to {MOST_DEPTH}")
    with open_folder(place, path) as folder:
        lines = _Listing(depth).of(folder)
    return "\n".join(lines) or "(the folder is empty)"


class _Listing:
    """A tree being listed: what is left of the lines that it may have."""

    def __init__(self, depth: int) -> None:
        self.depth = depth
        self.left = MOST_LISTED

    def of(self, folder: int, level: int = 0) -> list[str]:
        """The lines of a folder and what is below it."""
        indent = INDENT * level
        try:
            found = entries(folder)
        except OSError as error:
            return [f"{indent}({error.strerror})"]
        taken = found[: min(MOST_IN_FOLDER, self.left)]
        self.left -= len(taken)
        lines = []
        for entry in taken:
            lines.append(indent + _line(entry))
            if entry.folder and not entry.ignored:
                lines += self._below(folder, entry, level + 1)
        if len(found) > len(taken):
            lines.append(indent + _more(found[len(taken) :]))
        return lines

    def _below(self, folder: int, entry: Entry, level: int) -> list[str]:
        below = open_below(folder, entry.name)
        if below is None:
            return []
        try:
            if level < self.depth and self.left:
                return self.of(below, level)
            with os.scandir(below) as listing:
                return [INDENT * level + "…"] if next(listing, None) is not None else []
        except OSError:
            return []
        finally:
            os.close(below)


def _line(entry: Entry) -> str:
    name = "".join(c if c.isprintable() else repr(c)[1:-1] for c in entry.name)
    if entry.link:
        return f"{name} (link)"
    if entry.folder:
        return f"{name}/" + (" (not looked into)" if entry.ignored else "")
    return f"{name} {_size(entry.size)}"


def _more(left: list[Entry]) -> str:
    kinds = Counter("folders" if entry.folder else "files" for entry in left)
    return "… and " + ", ".join(f"{count:,} {kind}" for kind, count in kinds.items()) + " more"


def _size(size: int) -> str:
    if size < 1_000:
        return f"{size} B"
    return f"{size / 1_000:,.0f} kB" if size < 1_000_000 else f"{size / 1_000_000:,.1f} MB"
