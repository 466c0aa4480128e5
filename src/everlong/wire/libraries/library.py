"""What the message objects of another library are to us: read into messages, and written again.

A list of such objects is read in units. What a compaction leaves alone goes back as the very objects of its unit; only
what was changed or added is written as new ones.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from everlong.core import History, Message, positions_of
from everlong.wire.formats import OPENAI_CHAT

__all__ = ["Library", "Unit", "given_back"]

X = TypeVar("X")


@dataclass(frozen=True, slots=True)
class Unit(Generic[X]):
    """Items of a list that belong together, and the messages that they say."""

    items: tuple[X, ...]
    messages: History


@dataclass(frozen=True, slots=True, kw_only=True)
class Library(Generic[X]):
    """The messages of one library. `name` is the origin of what is read from it.

    `read` puts every item into exactly one unit, in order. `write` makes new items for messages that were changed or
    added; what we do not model travels in `extra` and in opaque parts of messages of this origin.
    """

    name: str
    #: The packages whose objects these are.
    packages: tuple[str, ...]
    read: Callable[[Sequence[X]], list[Unit[X]]]
    write: Callable[[Sequence[Message]], list[X]]
    #: The wire format whose rules hold for its messages when nobody says for whom they are.
    fmt: str = OPENAI_CHAT.name
    #: Puts neighbours of one side together, where its provider takes no two of them.
    join: Callable[[list[X]], list[X]] = list


def given_back(library: Library[X], units: Sequence[Unit[X]], sent: Sequence[Message]) -> list[X]:
    """Return the items of what is sent: the caller's own where all of a unit stands there untouched, else new ones."""
    starts: dict[int | None, Unit[X]] = {}
    at = 0
    for each in units:
        if each.messages:
            starts[at] = each
        at += len(each.messages)
    history = [message for unit in units for message in unit.messages]
    places = [None if place is None else place.at for place in positions_of(sent, history)]
    out: list[X] = []
    changed: list[Message] = []
    at = 0
    while at < len(sent):
        unit = starts.get(places[at])
        if unit is None or not _follows(places, at, len(unit.messages)):
            changed.append(sent[at])
            at += 1
            continue
        if changed:
            out += library.write(changed)
            changed = []
        out += unit.items
        at += len(unit.messages)
    return library.join(out + (library.write(changed) if changed else []))


def _follows(places: Sequence[int | None], at: int, count: int) -> bool:
    """Whether a whole unit stands there, one message after the other."""
    first = places[at]
    return first is not None and list(places[at : at + count]) == list(range(first, first + count))
