"""Records that name their parent: which record each one follows.

Owns what to do when the names are not in order. Parents are written before their children, so a name means the
nearest earlier record that bears it: repeated ids cannot make a circle. A parent that is not there (its line was
lost) is replaced by the record before, so that one bad line does not cut off everything before it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Link", "parents_of", "path_to"]


@dataclass(frozen=True, slots=True)
class Link:
    """The id of a record, "" if it has none, and its parent's: None at a root, "" if the record does not say."""

    id: str
    parent: str | None = ""


def parents_of(links: Sequence[Link | None], *, fmt: str) -> tuple[tuple[int | None, ...], tuple[str, ...]]:
    """The index of each record's parent, and a warning for each that is missing or each id that comes twice.

    A None among the links is a record outside the tree: nothing follows it.
    Example: a (root), b of a, x of lost, c of a -> None, 0, 1, 0
    """
    newest: dict[str, int] = {}
    parents: list[int | None] = []
    warnings: list[str] = []
    before: int | None = None
    for at, link in enumerate(links):
        if link is None:
            parents.append(None)
            continue
        known = newest.get(link.parent) if link.parent else None
        if link.parent and known is None and before is not None:
            warnings.append(f"{fmt}: parent {link.parent} is missing, the record before is taken (at record {at + 1})")
        parents.append(before if known is None and link.parent is not None else known)
        if link.id and link.id in newest:
            warnings.append(f"{fmt}: id {link.id} comes twice (at record {at + 1})")
        newest[link.id] = before = at
    return tuple(parents), tuple(warnings)


def path_to(last: int, parents: Sequence[int | None]) -> tuple[int, ...]:
    """The indexes from the root to `last`."""
    path: list[int] = []
    at: int | None = last
    while at is not None:
        path.append(at)
        at = parents[at]
    return tuple(reversed(path))
