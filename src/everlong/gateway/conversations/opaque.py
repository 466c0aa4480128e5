"""Parts that upstreams send with their calls and clients may drop, kept until a client resends the call.

The formats define these parts and where they go back. Here they are kept, in memory and in the store.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping
from threading import Lock
from typing import Generic, TypeVar

from everlong.core import JsonObject, JsonText, Message
from everlong.gateway.conversations.canonical import Restore
from everlong.gateway.conversations.state_store import StateStore
from everlong.wire import Find, Format

__all__ = ["Notes", "OpaqueMemory"]

T = TypeVar("T")
KIND = "opaque"  # the kind of notes in the store
CAPACITY = 16 * 1024 * 1024  # bytes
OVERHEAD = 200  # bytes of a note without its text and name


class Notes(Generic[T]):
    """Values by client and name, in memory; the least recently used is dropped first. `size` returns a value's bytes.

    The absence of a value is remembered too.
    """

    def __init__(self, room: int, size: Callable[[T], int]) -> None:
        self._room = room
        self._size_of = size
        self._held = 0
        self._known: OrderedDict[tuple[str, str], T | None] = OrderedDict()
        self._mine = Lock()

    def __contains__(self, place: tuple[str, str]) -> bool:
        """Return whether (scope, name) is known, even if it has no value."""
        return place in self._known

    def __len__(self) -> int:
        return len(self._known)

    def get(self, place: tuple[str, str]) -> T | None:
        """Return the value of (scope, name)."""
        with self._mine:
            if place in self._known:
                self._known.move_to_end(place)
            return self._known.get(place)

    def keep(self, place: tuple[str, str], note: T | None) -> None:
        """Keep a note; drop others if there is no space. A missing value never replaces an existing one."""
        with self._mine:
            if note is None and place in self._known:  # it was stored while we read the store
                return
            self._drop(place)
            self._known[place] = note
            self._held += self._size(place, note)
            while self._held > self._room and len(self._known) > 1:
                self._drop(next(iter(self._known)))

    def forget(self, place: tuple[str, str]) -> None:
        """Drop a note."""
        with self._mine:
            self._drop(place)

    def _drop(self, place: tuple[str, str]) -> None:
        if place in self._known:
            self._held -= self._size(place, self._known.pop(place))

    def _size(self, place: tuple[str, str], note: T | None) -> int:
        return OVERHEAD + len(place[1]) + (0 if note is None else self._size_of(note))


class OpaqueMemory:
    """Opaque parts by the client's scope, the model and the call. Another model could not read them."""

    def __init__(self, store: StateStore) -> None:
        self._store = store
        self._notes: Notes[JsonText] = Notes(CAPACITY, len)

    def finder(self, scope: str, model: str) -> Find:
        """Return a function that finds what was kept of a model's calls for a client."""

        def find(call: str) -> JsonText | None:
            place = (scope, f"{model}/{call}")
            if place not in self._notes:
                note = self._store.note(KIND, *place)
                if note is None and self._store.away:  # the store may have it the next time
                    return None
                self._notes.keep(place, note)
            return self._notes.get(place)

        return find

    def keep(self, scope: str, model: str, notes: Mapping[str, JsonText]) -> None:
        """Keep the parts of a model's answer that the client did not see or may drop."""
        for call, text in notes.items():
            place = (scope, f"{model}/{call}")
            self._notes.keep(place, text)
            self._store.keep_note(KIND, *place, text, needed=True)

    def keep_answer(self, format_: Format, scope: str, model: str, message: Message) -> None:
        """Keep what an upstream sent with the calls of an answer."""
        if message.calls:
            server = format_.server
            self.keep(scope, model, server.opaque.parts([*server.tool.resent(message)], model))

    def restorer(self, format_: Format, scope: str, model: str) -> Restore:
        """Return a function that puts back what a client dropped from its messages."""
        find, opaque = self.finder(scope, model), format_.server.opaque

        def restore(values: list[JsonObject]) -> list[JsonObject]:
            return opaque.restored(values, find)

        return restore
