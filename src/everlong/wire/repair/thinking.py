"""Drop thinking that cannot be sent whole and in its place.

The writers leave out the thinking of other providers; here, thinking without its signature is dropped. A block must
come before what it led to, so a block that nothing follows is dropped too. The text of a block is never changed.
"""

from everlong.core import Message, Part, Reasoning, Role
from everlong.wire.formats.format import Rules
from everlong.wire.repair.draft import Change, Draft, Note, Placed

__all__ = ["drop_loose_thinking", "drop_unsigned_thinking"]


def drop_unsigned_thinking(message: Message, rules: Rules) -> Change | None:
    """Drop the provider's own thinking blocks that it cannot verify."""
    if message.origin != rules.fmt or not rules.own_thinking:
        return None
    kept = tuple(part for part in message.parts if not isinstance(part, Reasoning) or _accepted(part, rules))
    if kept == message.parts:
        return None
    return Change((message.with_parts(kept),), ("thinking without a signature cannot be sent",))


def _accepted(part: Reasoning, rules: Rules) -> bool:
    if part.signature.strip() or not rules.signed_thinking:
        return bool(part.signature.strip() or not rules.worded_thinking or part.text.strip())
    return False


def drop_loose_thinking(draft: Draft, rules: Rules) -> Draft:
    """Drop thinking at the end of the assistant's turn that is followed by nothing it led to."""
    if not rules.led_thinking:
        return draft
    placed: list[Placed] = []
    notes: list[Note] = []
    for item in reversed(draft.placed):
        ends = item.message.origin == rules.fmt and not (placed and placed[-1].message.role is Role.ASSISTANT)
        kept = _without_last(item.message.parts) if ends else item.message.parts
        if kept == item.message.parts:
            placed.append(item)
            continue
        notes.append(Note(item.at, "thinking at the end of a message cannot be sent"))
        if kept:
            placed.append(Placed(item.at, item.message.with_parts(kept)))
    return draft.changed(placed[::-1], notes[::-1]) if notes else draft


def _without_last(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    end = len(parts)
    while end and isinstance(parts[end - 1], Reasoning):
        end -= 1
    return parts[:end]
