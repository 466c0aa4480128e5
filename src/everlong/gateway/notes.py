"""Short texts by client and name, in memory: as many as there is room for, the one used longest ago goes first."""

from collections import OrderedDict
from threading import Lock

from everlong.core import JsonText

__all__ = ["Notes"]

ROOM = 16 * 1024 * 1024  # bytes
BESIDE = 200  # bytes that a note takes beside its text and its name


class Notes:
    """Notes of all clients. That there is nothing under a name is a note too."""

    def __init__(self, room: int = ROOM) -> None:
        self._room = room
        self._held = 0
        self._known: OrderedDict[tuple[str, str], JsonText | None] = OrderedDict()
        self._mine = Lock()

    def __contains__(self, place: tuple[str, str]) -> bool:
        """Whether it is known what there is under (scope, name), if anything."""
        return place in self._known

    def __len__(self) -> int:
        return len(self._known)

    def get(self, place: tuple[str, str]) -> JsonText | None:
        """What there is under (scope, name)."""
        with self._mine:
            if place in self._known:
                self._known.move_to_end(place)
            return self._known.get(place)

    def keep(self, place: tuple[str, str], text: JsonText | None) -> None:
        """Hold it, and let go of others where there is no room. Nothing never takes the place of a text."""
        with self._mine:
            if text is None and place in self._known:  # it was written while the store was looked into
                return
            self._drop(place)
            self._known[place] = text
            self._held += _size(place, text)
            while self._held > self._room and len(self._known) > 1:
                self._drop(next(iter(self._known)))

    def _drop(self, place: tuple[str, str]) -> None:
        if place in self._known:
            self._held -= _size(place, self._known.pop(place))


def _size(place: tuple[str, str], text: JsonText | None) -> int:
    return BESIDE + len(place[1]) + len(text or "")
