"""The last repair, with the books kept: each change names the message of the history that it concerns.

`wire.repair` knows messages and formats; it counts nothing and does not know where the messages come from.
"""

from collections import Counter as Tally
from collections.abc import Iterator
from dataclasses import dataclass, replace

from everlong.compress import OURS
from everlong.core import Edit, History, message_ref
from everlong.tokens import Counter
from everlong.wire import Repaired, repair_history

__all__ = ["Placed", "mended"]


@dataclass(frozen=True, slots=True)
class Placed:
    """Messages to be sent, for each its index in the history (`OURS` if we added it), and what repairs changed."""

    messages: History
    places: tuple[int, ...]
    edits: tuple[Edit, ...] = ()

    def __add__(self, other: "Placed") -> "Placed":
        return Placed(self.messages + other.messages, self.places + other.places, self.edits + other.edits)


def mended(said: Placed, history: History, counter: Counter, fmt: str) -> Placed:
    """The messages as the provider of `fmt` accepts them."""
    repaired = repair_history(said.messages, fmt)
    if not repaired.edits:
        return said
    places = tuple(said.places[at] if said.places else OURS for at in repaired.places)
    return Placed(repaired.messages, places, tuple(_edits(repaired, said, history, counter)))


def _edits(repaired: Repaired, said: Placed, history: History, counter: Counter) -> Iterator[Edit]:
    """The edits with their tokens; where one message has several, the first accounts for all of them."""
    after: Tally[int] = Tally()
    for at, message in zip(repaired.places, repaired.messages, strict=True):
        after[at] += counter.message(message)
    told: set[int] = set()
    for edit in repaired.edits:
        now = after[edit.at]
        before = now if edit.at in told else counter.messages(said.messages[edit.at : edit.at + 1])
        told.add(edit.at)
        at = _in_history(edit.at, said.places)
        yield replace(edit, at=at, before=before, after=now, ref=message_ref(history[at]))


def _in_history(position: int, places: tuple[int, ...]) -> int:
    """The message that stands there; for one of ours the next that is not."""
    later = (at for at in places[position:] if at != OURS)
    earlier = (at for at in reversed(places[:position]) if at != OURS)
    return next(later, next(earlier, 0))
