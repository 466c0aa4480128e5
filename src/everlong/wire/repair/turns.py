"""Who speaks first and last.

The first message after the system text is the user's. Anthropic wants no white space at the very end,
and system text in the list only after the user. Neighbours of one side are joined by the renderers of
the formats that want turns to alternate.
"""

from dataclasses import replace

from everlong.core import Message, Opaque, Part, Reasoning, Role, Text
from everlong.wire.fields import pack, unpack
from everlong.wire.formats.format import Rules
from everlong.wire.repair.draft import Draft, Note, Placed

__all__ = ["CONTINUED", "open_with_user", "place_system", "trim_ending"]

CONTINUED = "(continued)"


def open_with_user(draft: Draft, rules: Rules) -> Draft:
    """The pass: a word from the user where there is none, before anyone answers."""
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
    """Everything but system text and items that only the provider can read, such as its own compaction."""
    carried = rules.opaque_before_user and all(isinstance(part, Opaque) for part in message.parts)
    return message.role is not Role.SYSTEM and not (carried and message.role is Role.ASSISTANT)


def place_system(draft: Draft, rules: Rules) -> Draft:
    """The pass: role `system` in the list only right after the user; elsewhere it is plain text."""
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
    """The pass: the last words of the assistant do not end in white space."""
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
    note = Note(item.at, "the last words of the assistant must not end in white space")
    return draft.changed([*draft.placed[:-1], Placed(item.at, trimmed)], [note])


def _left_out(part: Part) -> bool:
    """What a renderer does not say of another format's message."""
    return isinstance(part, Reasoning | Opaque) or (isinstance(part, Text) and not part.text.strip())
