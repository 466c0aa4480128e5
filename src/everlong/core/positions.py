"""Find the position of each sent message in the history."""

from bisect import bisect_left
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

from everlong.core.messages import Message

__all__ = ["Position", "positions_of"]


@dataclass(frozen=True, slots=True)
class Position:
    """The position of a sent message in the history. `moved` means that the order differs."""

    at: int
    moved: bool = False


def positions_of(
    sent: Sequence[Message], history: Sequence[Message], key: Callable[[Message], Hashable] = lambda message: message
) -> list[Position | None]:
    """Return the position of each sent message in the history; None if it was changed or added.

    Messages keep their order when some are left out, so equal ones are matched from the end: the newest are always
    sent. `key` defines when two messages are the same; with `id` only the same object is. Example: sent [b, x, c] of
    [a, b, c] -> [1, None, 2]
    """
    places: dict[Hashable, list[int]] | None = None
    found: list[Position | None] = []
    end = len(history)
    for message in reversed(sent):
        if end and (history[end - 1] is message or key(history[end - 1]) == key(message)):  # nothing left out between
            end -= 1
            found.append(Position(end))
            continue
        places = places if places is not None else _places(history, key)
        alike = places.get(key(message), [])
        nearest = bisect_left(alike, end) - 1
        if nearest >= 0:
            end = alike[nearest]
            found.append(Position(end))
        else:
            found.append(Position(alike[0], moved=True) if alike else None)
    return found[::-1]


def _places(history: Sequence[Message], key: Callable[[Message], Hashable]) -> dict[Hashable, list[int]]:
    places: dict[Hashable, list[int]] = {}
    for place, message in enumerate(history):
        places.setdefault(key(message), []).append(place)
    return places
