"""Change parts of messages in a draft and record each change as an edit with its reference.

A step lists `Change` values, and `rewrite` applies them. References are always those of the original, however often a
part is changed. A message that becomes empty goes as a whole.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from everlong.compress.draft import Draft, Slot, Task
from everlong.core import Action, Edit, Message, Part, Reasoning, Ref, Text, ToolCall, ToolResult, message_ref, part_ref
from everlong.tokens import Counter

__all__ = ["Cause", "Change", "Origins", "part_tokens", "rewrite", "sealed"]


@dataclass(frozen=True, slots=True)
class Cause:
    """The step that makes a change, and its reason. All edits of a step have the same cause."""

    step: str
    reason: str


@dataclass(frozen=True, slots=True)
class Change:
    """A new value for a part of the message at `position`; None removes it. The last change of a part wins."""

    position: int
    part: int
    now: Part | None
    #: The reference for the edit, if not that of the original part.
    ref: Ref | None = None


class Origins:
    """Finds the original of a part in the history. Its index may differ because earlier parts were removed."""

    def __init__(self, draft: Draft) -> None:
        self._history = draft.history
        self._gone: defaultdict[int, set[int]] = defaultdict(set)
        for edit in draft.edits:
            if edit.part is not None and edit.action is Action.DROP:
                self._gone[edit.at].add(edit.part)

    def index(self, slot: Slot, part: int) -> int | None:
        """Return the index of the part in the original message; None if it is unknown."""
        given, stands = len(self._history[slot.at].parts), len(slot.message.parts)
        if given == stands:
            return part
        left = [index for index in range(given) if index not in self._gone[slot.at]]
        return left[part] if len(left) == stands else None

    def part(self, slot: Slot, part: int) -> Part | None:
        """Return the original part; None if it is unknown."""
        index = self.index(slot, part)
        return None if index is None else self._history[slot.at].parts[index]

    def ref(self, slot: Slot, part: int, *, dropped: bool = False) -> Ref:
        """Return a reference to the complete original: to the part's content, or to the message if that has more."""
        original = self.part(slot, part)
        if original is None or not _said_by_content(original, dropped=dropped):
            return message_ref(self._history[slot.at])
        return part_ref(original)


def rewrite(draft: Draft, task: Task, cause: Cause, changes: Sequence[Change]) -> Draft:
    """Return the draft with the changes applied and recorded."""
    if not changes:
        return draft
    origins = Origins(draft)
    wanted: defaultdict[int, list[Change]] = defaultdict(list)
    for change in changes:
        wanted[change.position].append(change)
    changed: list[tuple[int, Message, int]] = []
    edits: list[Edit] = []
    gone: list[int] = []
    for position in sorted(wanted):
        slot = draft.slots[position]
        message = _changed(slot.message, wanted[position])
        if _says_nothing(message):
            gone.append(position)
        else:
            changed.append((position, message, task.counter.message(message)))
            edits += _edits(slot, wanted[position], cause, origins, task.counter)
    rewritten = draft.with_messages(changed, edits)
    return rewritten.without(gone, cause.step, cause.reason) if gone else rewritten


def part_tokens(slot: Slot, part: int, counter: Counter) -> int:
    """Return the tokens of a part. A message that is a single result was already counted."""
    message = slot.message
    alone = len(message.parts) == 1 and isinstance(message.parts[0], ToolResult) and not message.name
    return slot.tokens if alone else counter.part(message.parts[part])


def sealed(part: Part) -> bool:
    """Whether the provider signed the part, so that it must stay whole or go (Gemini signs calls and texts)."""
    return isinstance(part, Text | ToolCall) and "signature" in part.extra.lower()


def _changed(message: Message, changes: Sequence[Change]) -> Message:
    parts: list[Part | None] = list(message.parts)
    for change in changes:
        parts[change.part] = change.now
    return message.with_parts(tuple(part for part in parts if part is not None))


def _edits(slot: Slot, changes: Sequence[Change], cause: Cause, origins: Origins, counter: Counter) -> Iterator[Edit]:
    stands: dict[int, int] = {}
    for change in changes:
        before = stands[change.part] if change.part in stands else part_tokens(slot, change.part, counter)
        after = stands[change.part] = 0 if change.now is None else counter.part(change.now)
        yield Edit(
            at=slot.at,
            step=cause.step,
            action=Action.DROP if change.now is None else Action.SHORTEN,
            reason=cause.reason,
            before=before,
            after=after,
            part=origins.index(slot, change.part),
            ref=change.ref or origins.ref(slot, change.part, dropped=change.now is None),
        )


def _says_nothing(message: Message) -> bool:
    return all(isinstance(part, Text) and not part.text.strip() for part in message.parts)


def _said_by_content(part: Part, *, dropped: bool) -> bool:
    """Whether the content of a part is all that a change loses; it lacks signatures, tool names and images."""
    match part:
        case Reasoning(signature=signature):
            return not signature
        case ToolResult(content=content):
            return all(isinstance(inner, Text) for inner in content)
        case ToolCall():
            return not dropped
        case _:
            return True
