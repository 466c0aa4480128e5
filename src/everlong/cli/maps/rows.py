"""The rows of a map: what a terminal, a page and JSON show of each message. Draws nothing.

Owns the categories for the colours of messages, and what a budget does to each message. Edits say what happened; this
module only finds which sent message belongs to which original: untouched messages are the same object, changed ones
keep their order and role, the others were added.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, TypeAlias

from everlong.core import Action, Edit, History, Message, Role
from everlong.engine import FRAMING, Fitted, MessageWeight, TokenMap, message_title
from everlong.tokens import Counter

__all__ = [
    "CATEGORIES",
    "SCHEMAS",
    "Cause",
    "Plan",
    "Row",
    "Segment",
    "State",
    "causes_of",
    "cells_of",
    "plan_of",
    "rows_of",
    "segments_of",
    "states_of",
    "totals_of",
]

SCHEMAS = "schemas"

#: In the order of legends and gauges. Text is coloured by its role, everything else by its kind.
CATEGORIES = (SCHEMAS, "system", "user", "assistant", "reasoning", "calls", "results", "images", "other")

#: The category whose colour is used for a role or kind that is not a category.
NEAREST = {"tool": "results", "text": "assistant", FRAMING: SCHEMAS}

#: A category (or state) and its tokens.
Segment = tuple[str, int]


class State(StrEnum):
    """What a budget does to a message."""

    UNDECIDED = "undecided"  # no budget was given
    STAYS = "stays"
    TRIMMED = "trimmed"
    GOES = "goes"
    OURS = "ours"  # added: not in the history


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A message; the `index` of an added message is that of the message after it.

    `notes` say why it has its state; `sent` is what is sent instead, `after` its tokens.
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
        """The name of the row: its category, or its role if the category says little."""
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
        # Text in a tool message is what the user wrote next to the results.
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
    """Return what a budget does to each message, by size; the part that is cut off counts as left out."""
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
    """Return segments as `cells` equal cells, each with the category of most of its tokens.

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


# --- with a budget -------------------------------------------------------------------------------

#: A message and its tokens.
Weighed: TypeAlias = tuple[Message, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A history brought under a budget: the `rows` of the history, and the `added` ones with their places."""

    budget: int
    before: int
    tokens: int
    edits: tuple[Edit, ...]
    rows: tuple[Row, ...]
    added: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Cause:
    """All edits of one action by one step: their number and tokens."""

    action: Action
    step: str
    edits: int
    before: int
    after: int


def causes_of(edits: Sequence[Edit]) -> tuple[Cause, ...]:
    """Return the edits by action and step; those that save the most come first."""
    groups: dict[tuple[Action, str], list[Edit]] = {}
    for edit in edits:
        groups.setdefault((edit.action, edit.step), []).append(edit)
    causes = [
        Cause(action, step, len(made), sum(edit.before for edit in made), sum(edit.after for edit in made))
        for (action, step), made in groups.items()
    ]
    return tuple(sorted(causes, key=lambda cause: (cause.after - cause.before, cause.step)))


def plan_of(fitted: Fitted[Any], rows: Sequence[Row], counter: Counter, before: int) -> Plan:
    """Return the rows with what happened to them. `before` are the tokens of the original request."""
    edits: dict[int, list[Edit]] = {}
    for edit in fitted.edits:
        if edit.action is not Action.INSERT:
            edits.setdefault(edit.at, []).append(edit)
    inserted = {edit.after: edit.reason for edit in fitted.edits if edit.action is Action.INSERT}
    weighed = [(message, counter.message(message)) for message in fitted.view.messages]
    changed = {at for at, made in edits.items() if not any(_drops_message(edit) for edit in made)}
    sent, ours = _match(fitted.view.history, weighed, changed, set(inserted))
    return Plan(
        budget=fitted.budget,
        before=before,
        tokens=fitted.tokens,
        edits=fitted.edits,
        rows=tuple(_row_after(row, sent.get(row.index), edits.get(row.index, [])) for row in rows),
        added=tuple(_added_row(place, message, tokens, inserted.get(tokens, "")) for place, message, tokens in ours),
    )


def _drops_message(edit: Edit) -> bool:
    """Return whether the edit drops the whole message."""
    return edit.action is Action.DROP and edit.part is None


def _match(
    history: History, sent: Sequence[Weighed], changed: set[int], inserted: set[int]
) -> tuple[dict[int, Weighed], list[tuple[int, Message, int]]]:
    """Return what is sent for each index, and the added messages with the index of the message after each."""
    places = {id(message): at for at, message in enumerate(history)}
    matches: dict[int, Weighed] = {}
    ours: list[tuple[int, Message, int]] = []
    here = 0
    for message, tokens in sent:
        at = places.get(id(message))
        if at is None and tokens not in inserted:
            following = range(here, len(history))
            at = next((n for n in following if n in changed and history[n].role is message.role), None)
        if at is None:
            ours.append((here, message, tokens))
        else:
            matches[at] = (message, tokens)
            here = at + 1
    return matches, ours


def _row_after(row: Row, sent: Weighed | None, edits: Sequence[Edit]) -> Row:
    notes = tuple(dict.fromkeys(edit.reason for edit in edits))
    if sent is None:
        return replace(row, state=State.GOES, notes=notes, after=0)
    message, tokens = sent
    if not edits:
        return replace(row, state=State.STAYS, after=tokens)
    return replace(row, state=State.TRIMMED, notes=notes, after=tokens, sent=message)


def _added_row(place: int, message: Message, tokens: int, note: str) -> Row:
    return Row(
        index=place,
        role=message.role,
        tokens=tokens,
        title=message_title(message),
        category=message.role.value,
        segments=((message.role.value, tokens),),
        state=State.OURS,
        notes=(note,) if note else (),
        after=tokens,
        sent=message,
    )
