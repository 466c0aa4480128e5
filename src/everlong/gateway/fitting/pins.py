"""Texts that stay in every request of a thread, under the key of the client that pinned them.

They are held in memory and stored, if the gateway stores anything. If other processes serve the same clients, this
happens before the request that pins is answered.
"""

import json
from collections import OrderedDict
from collections.abc import Callable, Sequence
from hashlib import sha256
from threading import Lock

from everlong.engine import Threads
from everlong.errors import InputError
from everlong.gateway.conversations.state_store import StateStore
from everlong.gateway.fitting.asked import MOST_PINS

__all__ = ["Pins", "pin_name"]

KIND = "pins"
FRESH = 30.0  # seconds for which the pins in memory are used without reading the store
MOST_HELD = 4_096  # threads whose pins are held


class Pins:
    """The pinned texts of all clients, by key and thread."""

    def __init__(self, state_store: StateStore, ticks: Callable[[], float]) -> None:
        self._state_store = state_store
        self._ticks = ticks
        self._held: OrderedDict[tuple[str, str], tuple[float, tuple[str, ...]]] = OrderedDict()
        self._mine = Lock()

    def of(self, scope: str, thread: str) -> tuple[str, ...]:
        """Return the texts that are pinned in a thread, oldest first."""
        with self._mine:
            held = self._held.get((scope, thread))
        fresh = 0.0 if self._state_store.shared else FRESH
        if held is not None and (self._ticks() - held[0] < fresh or self._state_store.keep == "nothing"):
            return held[1]
        kept = self._state_store.note(KIND, scope, thread)
        if kept is None and held is not None and self._state_store.away:
            return held[1]
        texts = tuple(json.loads(kept)) if kept else ()
        self._hold(scope, thread, texts)
        return texts

    def add(self, scope: str, thread: str, texts: Sequence[str]) -> tuple[str, ...]:
        """Pin texts that are not pinned yet; return all of them."""
        known = self.of(scope, thread)
        return self._change(scope, thread, tuple(dict.fromkeys((*known, *texts)))) if {*texts} - {*known} else known

    def remove(self, scope: str, thread: str, name: str) -> tuple[str, ...]:
        """Remove the pin with that name; return the others."""
        known = self.of(scope, thread)
        left = tuple(text for text in known if pin_name(text) != name)
        if len(left) == len(known):
            raise InputError(f"there is no pin {name[:60]!r} in this thread: GET /everlong/pins lists the pins")
        return self._change(scope, thread, left)

    def bring(self, scope: str, thread: str, threads: Threads, inside: str) -> None:
        """Give the engine's thread `inside` the pinned texts of the client's thread."""
        wanted = self.of(scope, thread)
        there = {pin.text: pin.id for pin in threads.pins(inside) if pin.order is None}
        for text in wanted:
            if text not in there:
                threads.pin(inside, None, text)
        for text, name in there.items():
            if text not in wanted:
                threads.unpin(inside, name)

    def _change(self, scope: str, thread: str, texts: tuple[str, ...]) -> tuple[str, ...]:
        if len(texts) > MOST_PINS:
            raise InputError(f"a thread has at most {MOST_PINS} pins: remove one with /everlong/unpin")
        self._hold(scope, thread, texts)
        self._state_store.keep_note(KIND, scope, thread, json.dumps(texts), needed=True)
        if self._state_store.shared:
            self._state_store.flush_needed()
        return texts

    def _hold(self, scope: str, thread: str, texts: tuple[str, ...]) -> None:
        with self._mine:
            self._held[scope, thread] = (self._ticks(), texts)
            self._held.move_to_end((scope, thread))
            while len(self._held) > MOST_HELD:
                self._held.popitem(last=False)


def pin_name(text: str) -> str:
    """Return the name of a text's pin, the same wherever it is pinned."""
    return sha256(text.encode("utf-8", "replace")).hexdigest()[:16]
