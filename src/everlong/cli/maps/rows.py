"""What is drawn of each message: a neutral row that a terminal, a page and a table read alike.

Owns the categories by which messages are coloured and the states that a budget gives them. Draws nothing.
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
    "fates_of",
    "rows_of",
    "segments_of",
    "totals_of",
]

SCHEMAS = "schemas"

#: In the order of legends and gauges. Text is told apart by who says it, everything else by what it is.
CATEGORIES = (SCHEMAS, "system", "user", "assistant", "reasoning", "calls", "results", "images", "other")

#: The colour of roles and kinds that are no category themselves.
NEAREST = {"tool": "results", "text": "assistant", FRAMING: SCHEMAS}

#: A category (or state) and its tokens.
Segment = tuple[str, int]


class State(StrEnum):
    """What a budget does to a message."""

    UNDECIDED = "undecided"  # no budget was asked for
    STAYS = "stays"
    TRIMMED = "trimmed"
    GOES = "goes"
    OURS = "ours"  # not in the history: we add it


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One message; of one of ours `index` is the message it stands before.

    `notes` say why it is in its state; `sent` is what goes out in its place, `after` the tokens of that.
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
        """What to call it: by what it is where that tells most, else by who speaks."""
        return self.role.value if self.category in ("images", "other") else self.category


def rows_of(weights: TokenMap) -> tuple[Row, ...]:
    """The rows of a history as it is."""
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
        # Text in a tool message is what the user said beside the results.
        return "user" if role is Role.TOOL else role.value
    return kind


def _segments(message: MessageWeight) -> tuple[Segment, ...]:
    """The pieces of a message, its framing added to the first, so that they add up to its tokens."""
    pieces = message.pieces or (("text", 0),)
    framing = message.tokens - sum(tokens for _, tokens in message.pieces)
    first, *rest = [(_category(message.role, kind), tokens) for kind, tokens in pieces]
    return ((first[0], first[1] + framing), *rest)


def segments_of(rows: Iterable[Row]) -> list[Segment]:
    """All pieces in order of time."""
    return [segment for row in rows for segment in row.segments]


def fates_of(rows: Iterable[Row]) -> list[Segment]:
    """What a budget does, at the place and the size of each message: what is trimmed away counts as gone."""
    fates: list[Segment] = []
    for row in rows:
        if row.state is State.TRIMMED:
            left = min(row.tokens, row.after or 0)
            fates += [(State.TRIMMED.value, left), (State.GOES.value, row.tokens - left)]
        else:
            fates.append((row.state.value, row.tokens))
    return fates


def totals_of(segments: Iterable[Segment]) -> dict[str, int]:
    """Tokens of each category that occurs, in the order of `CATEGORIES`."""
    totals: dict[str, int] = defaultdict(int)
    for category, tokens in segments:
        totals[category] += tokens
    return {category: totals[category] for category in CATEGORIES if totals[category]}


def cells_of(segments: Sequence[Segment], cells: int) -> list[str]:
    """The line of segments in `cells` equal steps, each named by what most of it is.

    Example: [("user", 1), ("results", 3)] in 4 cells -> user, results, results, results
    """
    total = sum(tokens for _, tokens in segments)
    if not total or cells <= 0:
        return []
    shares: list[dict[str, int]] = [{} for _ in range(cells)]
    start = 0  # in 1/cells of a token, so that everything stays whole
    for name, tokens in segments:
        stop = start + tokens * cells
        for cell in range(start // total, min(cells, -(-stop // total))):
            overlap = min(stop, (cell + 1) * total) - max(start, cell * total)
            if overlap > 0:
                shares[cell][name] = shares[cell].get(name, 0) + overlap
        start = stop
    return [max(share, key=lambda name: share[name]) for share in shares]
