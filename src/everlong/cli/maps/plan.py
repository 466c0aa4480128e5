"""What a budget does to each message: the rows of a map with their states, read from a `Fitted`.

Edits say what happened. This module only finds which sent message stands for which original: untouched messages are
the same object, changed ones keep their order and role, the others were added.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from everlong.cli.maps.rows import Row, State
from everlong.core import Action, Edit, History, Message
from everlong.engine import Fitted, message_title
from everlong.tokens import Counter

__all__ = ["Cause", "Plan", "causes_of", "plan_of"]

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
    """All edits that one step made in one way: their number and tokens."""

    action: Action
    step: str
    edits: int
    before: int
    after: int


def causes_of(edits: Sequence[Edit]) -> tuple[Cause, ...]:
    """Return the edits by action and step, those that save most first."""
    groups: dict[tuple[Action, str], list[Edit]] = {}
    for edit in edits:
        groups.setdefault((edit.action, edit.step), []).append(edit)
    causes = [
        Cause(action, step, len(made), sum(edit.before for edit in made), sum(edit.after for edit in made))
        for (action, step), made in groups.items()
    ]
    return tuple(sorted(causes, key=lambda cause: (cause.after - cause.before, cause.step)))


def plan_of(fitted: Fitted, rows: Sequence[Row], counter: Counter, before: int) -> Plan:
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
    """Return what is sent for each index, and the added messages with the index that each stands before."""
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
