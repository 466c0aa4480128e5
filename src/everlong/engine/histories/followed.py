"""Threads that follow a history that the caller holds, such as the messages of an agent framework.

New messages of the history are appended to its thread. If the history was rewritten, it continues in a branch with the
compactions that still apply, so that as much as possible of the earlier requests stays the same. Leading system text is
not part of the thread: it comes with each call and may change.
"""

import json
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any

from everlong.core import History, Message, Point, head_length
from everlong.engine.contracts import Call, HeldHistory
from everlong.engine.thread import EngineContext
from everlong.errors import NoThread, ThreadExists
from everlong.wire import library_named, library_of

__all__ = ["FollowedHistories", "held_history"]

FACT = "followed"  # the kind of fact that names the branch in which a thread continues
KEPT = 64  # histories in memory


@dataclass(slots=True)
class _Followed:
    """A thread that follows a history: its messages, and the order of the row of each."""

    thread: str
    messages: list[Message] = field(default_factory=list)
    orders: list[int] = field(default_factory=list)


def held_history(items: Sequence[Any], fmt: str, named: str = "") -> HeldHistory:
    """Read a history that the caller holds, of the named library or of the one that its items belong to.

    Plain dicts count as messages of this format.
    """
    library = library_named(named) if named else library_of(items, fmt)
    return HeldHistory(library, tuple(library.read(items)))


class FollowedHistories:
    """The histories that threads of an engine follow."""

    def __init__(self, engine: EngineContext) -> None:
        self._engine = engine
        self._known: OrderedDict[str, _Followed] = OrderedDict()
        self._mine = Lock()

    def current(self, thread: str) -> str:
        """Return the thread that continues this history: the thread itself, or its newest branch."""
        known = self._known.get(thread)
        if known is not None:
            return known.thread
        fact = self._engine.threads.fact(FACT, thread)
        return str(json.loads(fact)["thread"]) if fact else thread

    def follow(self, thread: str, held: HeldHistory, call: Call, *, owner: str | None = None) -> tuple[str, Call]:
        """Bring the thread up to date; return the thread that now holds the history, and the call with its head."""
        history = tuple(message for unit in held.units for message in unit.messages)
        head = head_length(history)
        with self._engine.states.lock(thread):
            followed = self._read(thread, owner)
            shared = _shared(followed.messages, history[head:])
            if shared < len(followed.messages):
                followed = self._branch(thread, followed, shared, owner)
            new = history[head + shared :]
            if new:
                rows = self._engine.threads.append(followed.thread, new)
                followed.messages.extend(new)
                followed.orders.extend(row.order for row in rows)
            self._keep(thread, followed)
        return followed.thread, replace(call, standing=(*history[:head], *call.standing))

    def _read(self, thread: str, owner: str | None) -> _Followed:
        known = self._known.get(thread)
        threads = self._engine.threads
        if known is not None:
            with suppress(NoThread):  # the thread was removed meanwhile
                threads.thread(known.thread)
                return known
        followed = _Followed(self.current(thread) if known is None else thread)
        try:
            for row in threads.read(followed.thread):
                if isinstance(row.entry, Message):
                    followed.messages.append(row.entry)
                    followed.orders.append(row.order)
        except NoThread:
            with suppress(ThreadExists):  # another caller may create it at the same moment
                threads.create(followed.thread, owner=owner or "")
        return followed

    def _branch(self, thread: str, old: _Followed, shared: int, owner: str | None) -> _Followed:
        """Continue in a branch from the last unchanged message, with the newest compaction that does not cover it."""
        threads, name = self._engine.threads, f"{thread}~{self._engine.new_id()}"
        order = old.orders[shared]
        if shared:
            threads.branch(old.thread, order, name)
            standing = [row for row, stands in threads.points(old.thread) if stands and row.order >= order]
            # The last shared message is new to the model again: a compaction that covers it was made for a longer
            # history.
            last = old.orders[shared - 1]
            points = [row.entry for row in standing if isinstance(row.entry, Point) and row.entry.boundary <= last]
            if points:
                threads.append(name, points[-1:])
        else:
            threads.create(name, owner=owner or threads.thread(old.thread).owner)
        threads.keep_fact(FACT, thread, json.dumps({"thread": name}))
        return _Followed(name, old.messages[:shared], old.orders[:shared])

    def _keep(self, thread: str, followed: _Followed) -> None:
        with self._mine:
            self._known[thread] = followed
            self._known.move_to_end(thread)
            while len(self._known) > KEPT:
                self._known.popitem(last=False)


def _shared(known: Sequence[Message], history: History) -> int:
    """Return how many messages at the beginning are unchanged."""
    for at, (before, now) in enumerate(zip(known, history, strict=False)):
        if before is not now and before != now:
            return at
    return min(len(known), len(history))
