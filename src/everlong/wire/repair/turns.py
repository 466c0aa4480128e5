"""Repair the first and the last turn.

The first message after the system text must be the user's. Anthropic allows no white space at the very end, and system
text in the list only after the user. If turns must alternate, the writers of the formats join neighbours of one side.
"""

from dataclasses import replace

from everlong.core import Message, Opaque, Part, Reasoning, Role, Text
from everlong.wire.fields import pack, unpack
from everlong.wire.formats.format import Rules
from everlong.wire.repair.draft import Draft, Note, Placed

__all__ = ["CONTINUED", "open_with_user", "place_system", "trim_ending"]

CONTINUED = "(continued)"


def open_with_user(draft: Draft, rules: Rules) -> Draft:
    """Add a word from the user if the conversation does not begin with the user."""
    first = 0
    while first < len(draft.placed) and not _speaks(draft.placed[first].message, rules):
        first += 1
    if first < len(draft.placed) and draft.placed[first].message.role is Role.USER:
        return draft
    at = draft.placed[min(first, len(draft.placed) - 1)].at if draft.placed else 0
    opening = Placed(at, Message(Role.USER, (Text(CONTINUED),)))
    placed = [*draft.placed[:first], opening, *draft.placed[first:]]
    return draft.changed(placed, [Note(at, "the first message must be from the user")])


def _speaks(message: Message, rules: Rules) -> bool:
    """Whether a message counts as a turn: not system text, nor items that only the provider can read."""
    carried = rules.opaque_before_user and all(isinstance(part, Opaque) for part in message.parts)
    return message.role is not Role.SYSTEM and not (carried and message.role is Role.ASSISTANT)


def place_system(draft: Draft, rules: Rules) -> Draft:
    """Keep the role `system` in the list only right after the user; elsewhere it becomes plain text."""
    if not rules.system_after_user:
        return draft
    placed: list[Placed] = []
    notes: list[Note] = []
    for item in draft.placed:
        fields, shape = unpack(item.message.extra if item.message.origin == rules.fmt else "")
        listed = item.message.role is Role.SYSTEM and item.message.origin == rules.fmt and "field" not in shape
        if listed and (not placed or placed[-1].message.role not in (Role.USER, Role.TOOL)):
            extra = pack(fields, **{**shape, "field": "system"})
            notes.append(Note(item.at, "system text in the list must follow the user"))
            item = Placed(item.at, replace(item.message, extra=extra))
        placed.append(item)
    return draft.changed(placed, notes) if notes else draft


def trim_ending(draft: Draft, rules: Rules) -> Draft:
    """Remove white space at the end of a final assistant message."""
    if not rules.trimmed_ending or not draft.placed:
        return draft
    item = draft.placed[-1]
    parts = item.message.parts
    at = len(parts) - 1
    while item.message.origin != rules.fmt and at > 0 and _left_out(parts[at]):
        at -= 1
    last = parts[at] if parts else None
    if item.message.role is not Role.ASSISTANT or not isinstance(last, Text) or last.text == last.text.rstrip():
        return draft
    trimmed = item.message.with_parts((*parts[:at], replace(last, text=last.text.rstrip()), *parts[at + 1 :]))
    note = Note(item.at, "the last assistant message must not end in white space")
    return draft.changed([*draft.placed[:-1], Placed(item.at, trimmed)], [note])


def _left_out(part: Part) -> bool:
    """Whether the writers leave out a part of another format's message."""
    return isinstance(part, Reasoning | Opaque) or (isinstance(part, Text) and not part.text.strip())
