"""The rows of a map: what a terminal, a page and JSON show of each message. Draws nothing.

Owns the categories by which messages are coloured, and the states that a budget gives them.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from everlong.core import Message, Role
from everlong.engine import FRAMING, MessageWeight, TokenMap

__all__ = [
    "CATEGORIES",
    "SCHEMAS",
    "Row",
    "Segment",
    "State",
    "cells_of",
    "rows_of",
    "segments_of",
    "states_of",
    "totals_of",
]

SCHEMAS = "schemas"

#: In the order of legends and gauges. Text is coloured by its role, everything else by its kind.
CATEGORIES = (SCHEMAS, "system", "user", "assistant", "reasoning", "calls", "results", "images", "other")

#: The category whose colour a role or kind takes that is no category itself.
NEAREST = {"tool": "results", "text": "assistant", FRAMING: SCHEMAS}

#: A category (or state) and its tokens.
Segment = tuple[str, int]


class State(StrEnum):
    """What a budget does to a message."""

    UNDECIDED = "undecided"  # no budget was asked for
    STAYS = "stays"
    TRIMMED = "trimmed"
    GOES = "goes"
    OURS = "ours"  # not in the history, but added


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A message; `index` of an added one is the message that it stands before.

    `notes` say why it has its state; `sent` is what is sent in its place, `after` the tokens of that.
    """

    index: int
    role: Role
    tokens: int
    title: str
    category: str
    segments: tuple[Segment, ...]
    protected: str = ""
    state: State = State.UNDECIDED
    notes: tuple[str, ...] = ()
    after: int | None = None
    sent: Message | None = None

    @property
    def label(self) -> str:
        """What to call the row: its category, or its role where the category says little."""
        return self.role.value if self.category in ("images", "other") else self.category


def rows_of(weights: TokenMap) -> tuple[Row, ...]:
    """Return the rows of a history without a budget."""
    return tuple(
        Row(
            index=message.index,
            role=message.role,
            tokens=message.tokens,
            title=message.title,
            category=_category(message.role, message.kind),
            segments=_segments(message),
            protected=message.protected,
        )
        for message in weights.messages
    )


def _category(role: Role, kind: str) -> str:
    if kind in ("text", FRAMING):
        # Text in a tool message is what the user wrote beside the results.
        return "user" if role is Role.TOOL else role.value
    return kind


def _segments(message: MessageWeight) -> tuple[Segment, ...]:
    """Return the pieces of a message; its framing is added to the first, so that they sum up to its tokens."""
    pieces = message.pieces or (("text", 0),)
    framing = message.tokens - sum(tokens for _, tokens in message.pieces)
    first, *rest = [(_category(message.role, kind), tokens) for kind, tokens in pieces]
    return ((first[0], first[1] + framing), *rest)


def segments_of(rows: Iterable[Row]) -> list[Segment]:
    """Return all pieces in order of time."""
    return [segment for row in rows for segment in row.segments]


def states_of(rows: Iterable[Row]) -> list[Segment]:
    """Return what a budget does to each message, by size; what is trimmed away counts as left out."""
    states: list[Segment] = []
    for row in rows:
        if row.state is State.TRIMMED:
            left = min(row.tokens, row.after or 0)
            states += [(State.TRIMMED.value, left), (State.GOES.value, row.tokens - left)]
        else:
            states.append((row.state.value, row.tokens))
    return states


def totals_of(segments: Iterable[Segment]) -> dict[str, int]:
    """Return the tokens of each category that occurs, in the order of `CATEGORIES`."""
    totals: dict[str, int] = defaultdict(int)
    for category, tokens in segments:
        totals[category] += tokens
    return {category: totals[category] for category in CATEGORIES if totals[category]}


def cells_of(segments: Sequence[Segment], cells: int) -> list[str]:
    """Return segments as `cells` equal cells, each named by what most of it is.

    Example: [("user", 1), ("results", 3)] in 4 cells -> user, results, results, results
    """
    total = sum(tokens for _, tokens in segments)
    if not total or cells <= 0:
        return []
    shares: list[dict[str, int]] = [{} for _ in range(cells)]
    start = 0  # in 1/cells of a token, so that all figures are integers
    for name, tokens in segments:
        stop = start + tokens * cells
        for cell in range(start // total, min(cells, -(-stop // total))):
            overlap = min(stop, (cell + 1) * total) - max(start, cell * total)
            if overlap > 0:
                shares[cell][name] = shares[cell].get(name, 0) + overlap
        start = stop
    return [max(share, key=lambda name: share[name]) for share in shares]
