"""Abridge texts of a draft: each stays in place with only its needed pieces.

A piece that does not directly follow the previous one begins with its line number. The reference returns the whole
text.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from everlong.compress.draft import Draft, Task
from everlong.compress.excerpts import Place, Selection
from everlong.compress.newest_steps import Abridged
from everlong.compress.text.boundaries import Cut, cut_characters
from everlong.compress.text.changes import Cause, Change, Origins, part_tokens, rewrite
from everlong.compress.text.tool_results import PlacedResult, abridged, shortened, texts_at
from everlong.core import Ref, ToolResult
from everlong.relevance import Chunk

__all__ = ["Abridgement"]

SMALLEST_TRIMMED = 100  # tokens; with fewer, head and tail say no more than the marker
WIDE_CHARACTERS = 6  # characters per token, more than in most texts: the first guess for the size that fits
TAIL_SHARE = 1 / 3


@dataclass(frozen=True, slots=True)
class _Text:
    """A text to abridge, as it is in the draft, and its reference."""

    given: Abridged
    found: PlacedResult
    ref: Ref


class Abridgement:
    """The abridged texts of a draft. A `Selection` has the chosen pieces."""

    def __init__(self, draft: Draft, task: Task, cause: Cause, parts: Iterable[Abridged]) -> None:
        self._draft, self._task, self._cause = draft, task, cause
        self._texts = list(_texts(draft, task, parts))
        self._trimmed: dict[Place, int] = {}

    @property
    def places(self) -> frozenset[Place]:
        """The positions of the texts in the history."""
        return frozenset(text.given.place for text in self._texts)

    def emptied(self) -> Draft:
        """Return the draft with only a marker in place of each text."""
        return self._rewritten([self._change(text, []) for text in self._texts])

    def trim(self, part: Abridged) -> None:
        """Make a text keep its head and tail, because its pieces are too large to choose from."""
        self._trimmed[part.place] = part.least

    def filled(self, selection: Selection) -> Draft:
        """Return the draft with the chosen pieces. A text that would not become smaller stays whole."""
        return self._rewritten([self._change(text, selection.pieces(text.given.place)) for text in self._texts])

    def _rewritten(self, changes: list[Change | None]) -> Draft:
        return rewrite(self._draft, self._task, self._cause, [change for change in changes if change is not None])

    def _change(self, text: _Text, pieces: list[Chunk]) -> Change | None:
        counter, whole = self._task.counter, text.found.text
        least = self._trimmed.get(text.given.place, 0)
        if least >= SMALLEST_TRIMMED and not pieces:
            cut = cut_characters(Cut(whole, len(whole), 0), min(least * WIDE_CHARACTERS, len(whole) - 1), TAIL_SHARE)
            said = shortened(cut, text.ref, self._task, least, TAIL_SHARE)
        else:
            kept = counter.text("\n".join(piece.text for piece in pieces)) if pieces else 0
            said = abridged(whole, pieces, max(0, text.given.tokens - kept), text.ref, self._task)
        now = text.found.saying(said)
        if counter.part(now) >= text.found.tokens:
            return None
        return Change(text.found.position, text.found.part, now, text.ref)


def _texts(draft: Draft, task: Task, parts: Iterable[Abridged]) -> Iterator[_Text]:
    origins = Origins(draft)
    positions = {slot.at: position for position, slot in enumerate(draft.slots)}
    for given in parts:
        position = positions[given.place[0]]
        slot = draft.slots[position]
        part = slot.message.parts[given.part]
        if isinstance(part, ToolResult):
            size = part_tokens(slot, given.part, task.counter)
            found = [PlacedResult(position, given.part, slot, part, None, size, open=True)]
        else:
            texts = texts_at(draft, position, task.counter, frame=given.framed)
            found = [text for text in texts if text.part == given.part]
        yield from (_Text(given, one, origins.ref(slot, given.part)) for one in found)
