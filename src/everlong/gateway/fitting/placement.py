"""Which input message each message of a view is: unchanged ones go back byte for byte, with their index.

Messages that were changed or added, and those that were joined because the provider wants them as one, are written by
the wire format.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from everlong.core import Edit, History, Json, JsonObject, Message, Position, positions_of
from everlong.gateway.conversations.canonical import grouped
from everlong.gateway.conversations.conversation import Transcript
from everlong.gateway.exchange.body import past_the_head, rendered, torn_runs
from everlong.gateway.request import ModelRequest, Piece

__all__ = ["Given", "Returned"]


@dataclass(frozen=True, slots=True)
class Returned:
    """One message to return, as JSON; `given` is its index in the input, None if it is not from there."""

    raw: bytes
    given: int | None = None


@dataclass(frozen=True, slots=True)
class _Said:
    """A message of the history: which unit of the client it belongs to, and whether it begins that unit."""

    message: Message
    unit: int
    begins: bool


class Given:
    """The input messages as the engine holds them: `opening` is system text, `said` are the units."""

    def __init__(
        self, request: ModelRequest, transcript: Transcript, opening: History, said: Sequence[History]
    ) -> None:
        self._request = request
        leading = len(transcript.leading)
        #: Messages of system text in a separate field, not in the list.
        self._in_field = len(opening) - sum(len(unit.messages) for unit in transcript.leading)
        units = [*((message,) for message in opening[self._in_field :]), *said]
        self._said = [_Said(m, at, not k) for at, unit in enumerate(units) for k, m in enumerate(unit)]
        self._sizes = [len(unit) for unit in units]
        self._opening, self._leading = opening, leading
        self._groups = grouped(request.format, request.messages)
        self._starts = _starts(self._groups)

    @property
    def history(self) -> History:
        """All messages, system text first."""
        return (*self._opening[: self._in_field], *(each.message for each in self._said))

    def returned(self, view: History) -> tuple[list[Returned], dict[str, bytes]]:
        """Return the messages to send for a view, and the other fields that have changed."""
        messages, others = past_the_head(self._request, view, self._opening[: self._in_field])
        return list(self._members(messages)), others

    def pinned(self, index: int) -> list[int]:
        """Return the positions in the history of the messages in an item of the list."""
        unit = next((at for at, start in reversed([*enumerate(self._starts)]) if start <= index), 0)
        return [self._in_field + at for at, each in enumerate(self._said) if each.unit == unit]

    def edit_at(self, edit: Edit, place: int) -> JsonObject:
        """Return an edit for the response. `place` is its message's position in the history; -1 for our own text."""
        at = place - self._in_field
        item: Json = self._starts[self._said[at].unit] if 0 <= at < len(self._said) else None
        return {
            "message": item,
            "action": edit.action.value,
            "step": edit.step,
            "why": edit.reason,
            "before": edit.before,
            "after": edit.after,
            "ref": edit.ref,
        }

    def _members(self, view: Sequence[Message]) -> Iterator[Returned]:
        places = positions_of(view, [each.message for each in self._said], key=id)
        torn = list(torn_runs(self._request, view))
        ours: list[Message] = []
        at = 0
        while at < len(view):
            unit = self._whole_unit(places, at, torn)
            if unit is None:
                ours.append(view[at])
                at += 1
                continue
            yield from self._written(ours, at)
            ours = []
            start = self._starts[unit]
            yield from (Returned(bytes(raw), start + k) for k, raw in enumerate(self._groups[unit]))
            at += self._sizes[unit]
        yield from self._written(ours, at)

    def _whole_unit(self, places: Sequence[Position | None], at: int, torn: Sequence[tuple[int, int]]) -> int | None:
        """The unit that is whole and alone in the view from `at` on; None if there is none."""
        first = places[at]
        if first is None or first.moved or not self._said[first.at].begins:
            return None
        unit = self._said[first.at].unit
        end = at + self._sizes[unit]
        if [*places[at:end]] != [Position(first.at + k) for k in range(self._sizes[unit])]:
            return None
        alone = all((start, stop) == (at, end) for start, stop in torn if start < end and at < stop)
        return unit if alone else None

    def _written(self, ours: Sequence[Message], before: int) -> Iterator[Returned]:
        if ours:
            yield from (Returned(raw) for raw, _ in rendered(self._request, ours, before - len(ours)))


def _starts(groups: Sequence[Sequence[Piece]]) -> list[int]:
    starts, start = [], 0
    for group in groups:
        starts.append(start)
        start += len(group)
    return starts
