"""Turns that run in other processes, as far as this process needs them for its pages.

The store has the running turns and their answers so far; events from the other process bring the rest. Each piece of
text has a position in its answer, so that the stored part and the events are joined without gaps or repetitions.
"""

import asyncio
from dataclasses import dataclass

from everlong.core import JsonObject
from everlong.web.live.hub import Place
from everlong.web.live.leases import Leases

__all__ = ["TurnsElsewhere"]


@dataclass(slots=True)
class _Answer:
    """The answer that is being written: its number in the turn, and what the pages here have received of it."""

    number: int = 0
    said: str = ""
    thought: str = ""


class TurnsElsewhere:
    """The turns of other processes that pages here show. Belongs to one event loop."""

    def __init__(self, leases: Leases, process: str) -> None:
        self._leases = leases
        self._process = process
        self._answers: dict[str, _Answer] = {}
        #: Threads whose summary another process is writing.
        self.compacting: set[str] = set()

    def running(self, thread: str) -> bool:
        """Return whether a turn runs in another process, as far as is known here."""
        return thread in self._answers

    async def look(self, thread: str) -> bool:
        """Read from the store whether a turn runs in another process, and what it has said; return whether it does."""
        lease = await asyncio.to_thread(self._leases.of, thread)
        if lease is None or lease.process == self._process:
            self._answers.pop(thread, None)
            return False
        self._answers[thread] = _Answer(lease.number, lease.text, lease.thinking)
        return True

    def hello(self, thread: str) -> list[JsonObject]:
        """Return the answer so far as events."""
        answer = self._answers.get(thread, _Answer())
        events: list[JsonObject] = [{"type": "thought", "text": answer.thought}] if answer.thought else []
        return [*events, {"type": "said", "text": answer.said}] if answer.said else events

    async def process_event(self, thread: str, event: JsonObject, place: "Place | None") -> list[JsonObject]:
        """Process an event of another process; return what to send to the pages here."""
        match event.get("type"):
            case "running":
                self._answers.pop(thread, None)
                if event.get("running"):
                    self._answers[thread] = _Answer()
            case "compacting":
                (self.compacting.add if event.get("state") in ("started", "words") else self.compacting.discard)(thread)
            case "said" | "thought" as kind if place is not None:
                words = await self._words(thread, kind, str(event.get("text")), place)
                return [{**event, "text": words}] if words else []
            case _:
                pass
        return [event]

    async def _words(self, thread: str, kind: str, words: str, place: Place) -> str:
        """Return the new part of a text at a place of an answer; "" if the pages already have all of it."""
        number, at = place
        answer = self._answers.setdefault(thread, _Answer(number))
        if answer.number != number:
            answer = self._answers[thread] = _Answer(number)
        known = answer.said if kind == "said" else answer.thought
        if at > len(known):  # some words before these were missed
            lease = await asyncio.to_thread(self._leases.of, thread)
            whole = "" if lease is None or lease.number != number else lease.text if kind == "said" else lease.thinking
            new = whole[len(known) :]
        else:
            new = words[len(known) - at :]
        if kind == "said":
            answer.said += new
        else:
            answer.thought += new
        return new
