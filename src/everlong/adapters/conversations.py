"""Find the conversation that a list of messages continues, for frameworks without conversation ids.

A conversation is recognised by its first items, and distinguished from others with the same beginning by everything
seen so far.
"""

import json
from collections import OrderedDict
from collections.abc import Sequence
from hashlib import blake2b
from threading import Lock
from typing import Any

__all__ = ["Conversations"]

KEPT = 1_000  # conversations in memory
DIGEST = 12  # bytes


class Conversations:
    """Names for conversations without ids. Different scopes, such as clients' keys, never share a name."""

    def __init__(self) -> None:
        self._seen: OrderedDict[str, tuple[bytes, ...]] = OrderedDict()
        self._mine = Lock()

    def name(self, items: Sequence[Any], *, scope: str = "") -> str:
        """Return the name of the conversation that these items continue, or a new name."""
        digests = tuple(_digest(item) for item in items)
        opening = blake2b(scope.encode() + b"/" + b"".join(digests[:1]), digest_size=DIGEST).hexdigest()
        with self._mine:
            alike = [name for name in self._seen if name.partition("-")[0] == opening]
            known = [name for name in alike if digests[: len(self._seen[name])] == self._seen[name]]
            name = max(known, key=lambda each: len(self._seen[each]), default="")
            if not name:
                name = opening if opening not in alike else f"{opening}-{1 + _last(alike)}"
            self._seen[name] = digests
            self._seen.move_to_end(name)
            while len(self._seen) > KEPT:
                self._seen.popitem(last=False)
        return name


def _digest(item: Any) -> bytes:
    return blake2b(json.dumps(item, sort_keys=True, default=repr).encode(), digest_size=DIGEST).digest()


def _last(names: Sequence[str]) -> int:
    return max(int(name.partition("-")[2] or 1) for name in names)
