"""Pair calls and results: every call gets its result right after it.

A result belongs to the nearest call before it with its id. Results move to their calls; what was between comes after
them. A result without a call is dropped, and so is a second result, because the model has read the first. A call
without a result gets a note as its result, until the real one comes.
"""

from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from everlong.core import CallId, Message, Part, Role, Text, ToolCall, ToolResult
from everlong.wire.formats.format import Rules
from everlong.wire.repair.draft import Draft, Note, Placed
from everlong.wire.repair.ids import acceptable_id, distinct_id
from everlong.wire.repair.shapes import as_user

__all__ = ["NO_RESULT", "pair_results"]

NO_RESULT = "[no result: the call was interrupted]"


@dataclass(slots=True)
class _Slot:
    """A call: its index in the input, the id it is sent with, and whether a result has been found."""

    at: int
    call: ToolCall
    sent: CallId
    own: bool
    answered: bool = False

    @property
    def notes(self) -> list[Note]:
        notes = []
        if self.sent != self.call.id:
            notes.append(Note(self.at, f"call id {self.call.id!r} is sent as {self.sent!r}"))
        if not self.answered:
            notes.append(Note(self.at, f"call {self.sent} had no result"))
        return notes


@dataclass(slots=True)
class _Unit:
    """Assistant messages that are answered together; positions are those in the draft."""

    last: int = 0
    slots: list[_Slot] = field(default_factory=list)
    waiting: dict[CallId, deque[_Slot]] = field(default_factory=lambda: defaultdict(deque))
    answers: dict[int, list[ToolResult]] = field(default_factory=dict)
    open: int = 0

    @property
    def unanswered(self) -> list[_Slot]:
        return [slot for slot in self.slots if not slot.answered]


@dataclass(slots=True)
class _Match:
    """Which result answers which call, collected while the draft is read from front to back."""

    units: dict[int, _Unit] = field(default_factory=dict)
    slots: dict[int, list[_Slot]] = field(default_factory=dict)
    newest: dict[CallId, _Unit] = field(default_factory=dict)
    #: Tool messages whose other text may stay with the results, and the unit they answer.
    homes: dict[int, _Unit] = field(default_factory=dict)
    #: Notes from an earlier repair: index in the input, call, unit. A real result replaces them.
    made_before: list[tuple[int, CallId, _Unit]] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    spoken: int = -1
    words_since: bool = False


def pair_results(draft: Draft, rules: Rules) -> Draft:
    """Put every result right after its call. Example: call a, user, result a, result b -> call a, result a, user"""
    match = _matched(draft.placed, rules)
    placed: list[Placed] = []
    for at, item in enumerate(draft.placed):
        if item.message.role is Role.TOOL:
            placed += _left_behind(at, item, match)
            continue
        placed.append(_with_ids(item, match.slots.get(at, [])))
        unit = match.units.get(at)
        if unit is not None and unit.last == at:
            placed += _answers(unit, draft.placed, match, rules)
    return draft.changed(placed, match.notes) if match.notes else draft


# --- finding the pairs ---------------------------------------------------------------------------


def _matched(placed: Sequence[Placed], rules: Rules) -> _Match:
    match = _Match()
    numbers: dict[CallId, int] = {}
    for at, item in enumerate(placed):
        if item.message.role is Role.TOOL:
            _read_answers(at, item, match, rules)
            continue
        if item.message.role is Role.ASSISTANT:
            unit = match.units.get(at - 1) if rules.joins_assistants else None
            if unit is None:
                unit, numbers = _Unit(), numbers if rules.unique_ids else {}
            unit.last, match.units[at] = at, unit
            match.slots[at] = _slots(item, numbers, rules)
            for slot in match.slots[at]:
                unit.slots.append(slot)
                unit.open += 1
                unit.waiting[slot.call.id].append(slot)
                match.newest[slot.call.id] = unit
        match.spoken, match.words_since = at, False
    match.notes += [note for slots in match.slots.values() for slot in slots for note in slot.notes]
    for at, call, unit in match.made_before:
        match.notes.append(
            Note(at, f"call {call} {'still has no result' if unit.waiting[call] else 'now has a result'}")
        )
    return match


def _slots(item: Placed, numbers: dict[CallId, int], rules: Rules) -> list[_Slot]:
    own = item.message.origin == rules.fmt
    return [_Slot(item.at, call, distinct_id(call.id, numbers, rules, own=own), own) for call in item.message.calls]


def _read_answers(at: int, item: Placed, match: _Match, rules: Rules) -> None:
    answered = [unit for result in item.message.results if (unit := _answer(at, item, result, match, rules))]
    moved = any(unit.last != match.spoken for unit in answered)
    if moved:
        match.notes.append(Note(item.at, "results now follow their calls directly"))
    together = answered and all(unit is answered[0] for unit in answered)
    if together and not moved and not match.words_since:
        match.homes[at] = answered[0]
    match.words_since = match.words_since or bool(_beside(item.message))


def _answer(at: int, item: Placed, result: ToolResult, match: _Match, rules: Rules) -> _Unit | None:
    """Put the result into the unit of its call, and return that; None if the result cannot stay."""
    unit = match.newest.get(result.call)
    if unit is None:
        match.notes.append(Note(item.at, f"result {result.call} answers no call"))
        return None
    if result.content == (Text(NO_RESULT),):
        match.made_before.append((item.at, result.call, unit))
        return None
    if not unit.waiting[result.call]:
        match.notes.append(Note(item.at, f"call {result.call} already has a result"))
        return None
    slot = unit.waiting[result.call].popleft()
    slot.answered = True
    unit.open -= 1
    own = item.message.origin == rules.fmt
    if own is not slot.own:
        slot.sent = acceptable_id(slot.sent, rules, own=False)
    name = slot.call.name if rules.results_named and (result.name or own) else result.name
    if (slot.sent, name) != (result.call, result.name):
        match.notes.append(Note(item.at, f"result {result.call!r} now has the id and the name of its call"))
    unit.answers.setdefault(at, []).append(replace(result, call=slot.sent, name=name))
    return unit


# --- writing them --------------------------------------------------------------------------------


def _with_ids(item: Placed, slots: list[_Slot]) -> Placed:
    if all(slot.sent == slot.call.id for slot in slots):
        return item
    ids = iter([slot.sent for slot in slots])
    parts = tuple(replace(part, id=next(ids)) if isinstance(part, ToolCall) else part for part in item.message.parts)
    return Placed(item.at, item.message.with_parts(parts))


def _answers(unit: _Unit, placed: Sequence[Placed], match: _Match, rules: Rules) -> list[Placed]:
    out = []
    for at, results in unit.answers.items():
        message = placed[at].message
        parts = (*results, *_beside(message)) if _keeps_words(at, unit, match) else tuple(results)
        out.append(placed[at] if parts == message.parts else Placed(placed[at].at, message.with_parts(parts)))
    for slot in unit.unanswered:
        made = ToolResult(slot.sent, (Text(NO_RESULT),), slot.call.name, failed=True)
        out.append(Placed(slot.at, Message(Role.TOOL, (made,), origin=rules.fmt if slot.own else "")))
    return out


def _left_behind(at: int, item: Placed, match: _Match) -> list[Placed]:
    """Return the user's text next to results that moved away, were dropped, or are not the last ones."""
    beside, home = _beside(item.message), match.homes.get(at)
    if not beside or (home is not None and _keeps_words(at, home, match)):
        return []
    match.notes.append(Note(item.at, "user text next to results now follows all of them"))
    return [Placed(item.at, as_user(item.message, beside))]


def _keeps_words(at: int, unit: _Unit, match: _Match) -> bool:
    return match.homes.get(at) is unit and at == next(reversed(unit.answers)) and not unit.open


def _beside(message: Message) -> tuple[Part, ...]:
    return tuple(part for part in message.parts if not isinstance(part, ToolResult))
