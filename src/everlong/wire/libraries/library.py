"""What the message objects of another library are to us: read into messages, and written again.

A list of such objects is read in units. What a compaction leaves alone goes back as the very objects of its unit; only
what was changed or added is written as new ones.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from everlong.core import History, Message
from everlong.wire.formats import OPENAI_CHAT

__all__ = ["Library", "Unit", "given_back", "origins"]

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
    places = origins(sent, history)
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


def origins(sent: Sequence[Message], history: Sequence[Message]) -> list[int | None]:
    """Return for each message that is sent where it stands in the history; None for one that was changed or added.

    Messages are left out and keep their order. So equal ones are told apart from the end: what was said last is always
    sent. Example: sent [b, x, c] of [a, b, c] -> [1, None, 2]
    """
    known: dict[Message, list[int]] | None = None
    places: list[int | None] = []
    end = len(history)
    for message in reversed(sent):
        if end and (history[end - 1] is message or history[end - 1] == message):
            end -= 1
            places.append(end)
            continue
        known = known if known is not None else _positions(history)
        alike = known.get(message, [])
        before = next((place for place in reversed(alike) if place < end), None)
        if before is not None:
            end = before
        places.append(before if before is not None or not alike else alike[0])  # one that was moved
    return places[::-1]


def _positions(history: Sequence[Message]) -> dict[Message, list[int]]:
    positions: dict[Message, list[int]] = {}
    for place, message in enumerate(history):
        positions.setdefault(message, []).append(place)
    return positions
