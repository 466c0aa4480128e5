"""What becomes of each message in the next request: sent whole, shortened, left out, or covered by a summary.

Read from the points that stand and their edits, the newest first; the work grows with the compactions of a thread, not
with its messages.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from everlong.core import Action, Edit, Point, Row
from everlong.engine import account_in

__all__ = ["Fate", "Fates", "fates_of"]

Fate: TypeAlias = Literal["whole", "shortened", "left out", "covered"]


@dataclass(frozen=True, slots=True)
class Fates:
    """What the standing points did. `covers`: rows before it are told of by the newest summary."""

    boundary: int = 0
    covers: int = 0
    edits: dict[int, tuple[Edit, ...]] = field(default_factory=dict)
    standing: frozenset[int] = frozenset()
    newest: int | None = None
    #: Rows before it are behind a summary that leaves nothing of them, as presets that cut anew for each request have.
    behind: int = 0

    def of(self, order: int) -> Fate:
        """The fate of the message at that order."""
        told = self.edits.get(order, ())
        if any(edit.action is Action.DROP and edit.part is None for edit in told):
            return "covered" if order < self.covers else "left out"
        if not told and order < self.behind:
            return "covered"
        return "shortened" if any(edit.action in (Action.SHORTEN, Action.DROP) for edit in told) else "whole"

    def with_news(self, edits: Sequence[Edit]) -> "Fates":
        """The same with what was done to messages after the boundary as they came."""
        news: dict[int, tuple[Edit, ...]] = {}
        for edit in edits:
            if edit.at >= self.boundary and edit.action is not Action.INSERT:
                news[edit.at] = (*news.get(edit.at, ()), edit)
        return replace(self, edits={**self.edits, **news})


def fates_of(standing: Sequence[Row]) -> Fates:
    """The fates by the points that stand, oldest first."""
    if not standing or not isinstance(standing[-1].entry, Point):
        return Fates()
    edits: dict[int, tuple[Edit, ...]] = {}
    for row in reversed(standing):
        if isinstance(row.entry, Point):
            for order, told in _by_order(row.entry.edits).items():
                edits.setdefault(order, told)
    newest = standing[-1].entry
    account = next((found for row in reversed(standing) if (found := account_in(row)) is not None), None)
    return Fates(
        boundary=newest.boundary,
        covers=0 if account is None else account.covers,
        edits=edits,
        standing=frozenset(row.order for row in standing),
        newest=standing[-1].order,
        behind=newest.boundary if newest.account and not newest.edits else 0,
    )


def _by_order(edits: Sequence[Edit]) -> dict[int, tuple[Edit, ...]]:
    found: dict[int, tuple[Edit, ...]] = {}
    for edit in edits:
        if edit.action is not Action.INSERT:
            found[edit.at] = (*found.get(edit.at, ()), edit)
    return found
