"""The description of another library's message objects: how they are read into messages and written again.

A list of such objects is read in units. For unchanged messages, the original objects of their unit are returned; only
changed and added messages become new objects.
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
    """Items of a list that belong together, and their messages."""

    items: tuple[X, ...]
    messages: History


@dataclass(frozen=True, slots=True, kw_only=True)
class Library(Generic[X]):
    """The messages of one library, such as LangChain. `name` is the origin of the messages read from it.

    `read` puts every item into exactly one unit, in order. `write` makes new items for messages that were changed or
    added. What we do not model is kept in `extra` and in opaque parts.
    """

    name: str
    #: The packages of these objects.
    packages: tuple[str, ...]
    read: Callable[[Sequence[X]], list[Unit[X]]]
    write: Callable[[Sequence[Message]], list[X]]
    #: The wire format whose rules apply to its messages if the provider is not given.
    fmt: str = OPENAI_CHAT.name
    #: Joins neighbours of one side, if the provider requires alternating sides.
    join: Callable[[list[X]], list[X]] = list


def given_back(library: Library[X], units: Sequence[Unit[X]], sent: Sequence[Message]) -> list[X]:
    """Return the items to send: the caller's own objects if a whole unit is unchanged, otherwise new ones."""
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
    """Whether all messages of a unit follow each other from here."""
    first = places[at]
    return first is not None and list(places[at : at + count]) == list(range(first, first + count))
