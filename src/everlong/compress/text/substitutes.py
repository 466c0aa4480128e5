"""Replace parts of a draft by shorter ones without loss: the original is elsewhere or can be rebuilt.

A step lists `Shorter` values; `shorten` applies those that save tokens. Each becomes one edit with the tokens of the
message before and after, and the reference of the original. Images and other blocks of a result stay where they are.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from everlong.compress.draft import Draft, Task
from everlong.core import Action, Edit, Part, Ref, ResultPart, Text, ToolResult, part_ref

__all__ = ["Shorter", "each_text", "is_stub", "open_results", "original", "shorten", "with_stub"]

LONGEST_STUB = 1_000  # characters
STUB = re.compile(r"\[[^\n]*(?:; ref|；引用) [0-9a-f]{16}\b[^\n]*\]")


@dataclass(frozen=True, slots=True)
class Shorter:
    """A shorter `part` for the one at (position, index)."""

    position: int
    index: int
    part: Part
    reason: str


def open_results(draft: Draft) -> Iterator[tuple[int, int, ToolResult]]:
    """Yield (position, part index, result) of every tool result that a step may change, oldest first."""
    for position, slot in draft.open():
        for index, part in enumerate(slot.message.parts):
            if isinstance(part, ToolResult):
                yield position, index, part


def each_text(result: ToolResult, shorter: Callable[[str], str | None]) -> ToolResult | None:
    """Return the result with `shorter` applied to each text block; None if it returns None for all of them."""
    content: list[ResultPart] = []
    changed = False
    for part in result.content:
        words = shorter(part.text) if isinstance(part, Text) else None
        if isinstance(part, Text) and words is not None:
            content.append(replace(part, text=words))
            changed = True
        else:
            content.append(part)
    return replace(result, content=tuple(content)) if changed else None


def with_stub(result: ToolResult, stub: str) -> ToolResult:
    """Return the result with one line in place of all its text."""
    content: list[ResultPart] = []
    said = False
    for part in result.content:
        if not isinstance(part, Text):
            content.append(part)
        elif not said:
            content.append(replace(part, text=stub))
            said = True
    return replace(result, content=tuple(content))


def is_stub(text: str) -> bool:
    """Return whether the text is only a one-line substitute, in any language."""
    return len(text) <= LONGEST_STUB and STUB.fullmatch(text) is not None


def original(draft: Draft, position: int, index: int) -> tuple[int | None, Ref]:
    """Return the index of the original part in the history, and its reference.

    Earlier steps may have changed the part or removed parts before it, so the original is at the same index or a later
    one.
    """
    slot = draft.slots[position]
    part = slot.message.parts[index]
    given = draft.history[slot.at].parts
    if len(given) == len(slot.message.parts):
        return index, part_ref(given[index])
    later = [at for at in range(index, len(given)) if _same_kind(given[at], part)]
    found = next((at for at in later if given[at] == part), later[0] if later else None)
    return found, part_ref(part if found is None else given[found])


def shorten(draft: Draft, task: Task, step: str, wanted: Iterable[Shorter]) -> Draft:
    """Return the draft with the substitutes that save tokens, or the same draft if none does."""
    parts: dict[int, list[Part]] = {}
    tokens: dict[int, int] = {}
    edits: list[Edit] = []
    for change in wanted:
        slot = draft.slots[change.position]
        saved = task.counter.part(slot.message.parts[change.index]) - task.counter.part(change.part)
        if saved <= 0:
            continue
        index, ref = original(draft, change.position, change.index)
        before = tokens.get(change.position, slot.tokens)
        tokens[change.position] = before - saved
        parts.setdefault(change.position, list(slot.message.parts))[change.index] = change.part
        edits.append(
            Edit(
                at=slot.at,
                step=step,
                action=Action.SHORTEN,
                reason=change.reason,
                before=before,
                after=before - saved,
                part=index,
                ref=ref,
            )
        )
    changed = [(at, draft.slots[at].message.with_parts(tuple(new)), tokens[at]) for at, new in parts.items()]
    return draft.with_messages(changed, edits) if edits else draft


def _same_kind(given: Part, part: Part) -> bool:
    if isinstance(part, ToolResult):
        return isinstance(given, ToolResult) and given.call == part.call
    return type(given) is type(part)
