"""The files of the workspace as a tree, as much of it as can be read at a glance."""

import os
from collections import Counter
from typing import Annotated

from everlong.agent.definitions import Place, tool
from everlong.agent.tools.walking import MOST_DEPTH, Entry, entries, open_below
from everlong.agent.workspace import open_folder
from everlong.errors import InputError

__all__ = ["list_files"]

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
