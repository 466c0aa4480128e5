"""What the engine works with: the store, the settings, the clock, and who is told what happens."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from everlong.core import Event, EventKind
from everlong.engine.live import Lives
from everlong.engine.settings import DEFAULT_SETTINGS, Settings
from everlong.engine.threads import Threads
from everlong.windows import Registry

__all__ = ["Journal", "Means", "Observer"]

#: Told of every event of a thread, after it was kept. It must not wait; what it raises is logged and goes no further.
Observer = Callable[[str, Event], None]

log = logging.getLogger("everlong.observers")


def _now() -> datetime:
    return datetime.now(UTC)


def _new_id() -> str:
    return uuid4().hex


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """Handed to everything the engine does. `registry` None is the bundled one."""

    threads: Threads
    settings: Settings = DEFAULT_SETTINGS
    registry: Registry | None = None
    clock: Callable[[], datetime] = _now
    new_id: Callable[[], str] = _new_id
    observers: Sequence[Observer] = ()
    lives: Lives = field(default_factory=Lives)

    def journal(self, thread: str) -> "Journal":
        """A journal of what happens to the thread now."""
        return Journal(self, thread)


class Journal:
    """Events of one piece of work, kept together when it is done, also when it failed."""

    def __init__(self, means: Means, thread: str) -> None:
        self._means = means
        self._thread = thread
        self._events: list[Event] = []

    def note(self, kind: EventKind, *, parent: str = "", **figures: Any) -> str:
        """Take down an event; its id."""
        event = Event(id=self._means.new_id(), kind=kind, time=self._means.clock(), parent=parent, **figures)
        self._events.append(event)
        return event.id

    def __enter__(self) -> "Journal":
        return self

    def __exit__(self, *_: object) -> None:
        events, self._events = self._events, []
        if not events:
            return
        self._means.threads.record(self._thread, events)
        for event in events:
            for observer in self._means.observers:
                _tell(observer, self._thread, event)


def _tell(observer: Observer, thread: str, event: Event) -> None:
    try:
        observer(thread, event)
    except Exception:  # an observer is somebody else's code; a turn does not fail for who looks on
        log.exception("an observer failed at %s of %s", event.kind.value, thread)
