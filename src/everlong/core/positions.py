"""Where the messages that are sent stand in the history that they come from."""

from bisect import bisect_left
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

from everlong.core.messages import Message

__all__ = ["Position", "positions_of"]


@dataclass(frozen=True, slots=True)
class Position:
    """Where a message that is sent stands in the history; `moved` if it stands in another order there."""

    at: int
    moved: bool = False


def positions_of(
    sent: Sequence[Message], history: Sequence[Message], key: Callable[[Message], Hashable] = lambda message: message
) -> list[Position | None]:
    """Return the position of each message that is sent; None for one that was changed or added.

    Messages are left out and keep their order. So equal ones are told apart from the end: what was said last is always
    sent. `key` says what makes two messages the same; with `id` only one and the same object is.
    Example: sent [b, x, c] of [a, b, c] -> [1, None, 2]
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
