"""Send the events of a thread to every page that has it open; a page that was away for a moment gets what it missed.

Owns the numbers of events. A page that does not read is dropped: its browser connects again and continues where it was.
Belongs to one event loop.
"""

import asyncio
import json
from collections import OrderedDict, deque
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass, field
from uuid import uuid4

from everlong.core import Json, JsonObject

__all__ = ["KEEP_ALIVE", "Channel", "Hub", "sse"]

KEPT = 4_000  # events of a thread; at 200 words a second, twenty seconds
WAITING = 8_000  # events that a reader may be behind
CHANNELS = 128  # threads whose events are kept; the least recently used one without readers goes first
KEEP_ALIVE = 15.0  # seconds without an event until an empty comment is sent
COMMENT = ": \n\n"


def sse(event: Mapping[str, Json], number: str = "") -> str:
    """Return an event as server-sent text. Example: {"type": "said"}, "a-1" -> "id: a-1\\ndata: {…}\\n\\n" """
    head = f"id: {number}\n" if number else ""
    return f"{head}data: {json.dumps(event, ensure_ascii=False)}\n\n"


@dataclass(slots=True)
class Channel:
    """The events of one thread. `run` names this run of the program; event numbers of another run mean nothing here."""

    run: str
    number: int = 0
    kept: deque[tuple[int, str]] = field(default_factory=lambda: deque(maxlen=KEPT))
    readers: set["asyncio.Queue[str | None]"] = field(default_factory=set)

    @property
    def last(self) -> str:
        """The name of the newest event."""
        return f"{self.run}-{self.number}"

    def publish(self, event: Mapping[str, Json]) -> None:
        """Send an event to every reader."""
        self.number += 1
        text = sse(event, self.last)
        self.kept.append((self.number, text))
        for reader in list(self.readers):
            try:
                reader.put_nowait(text)
            except asyncio.QueueFull:
                self.dismiss(reader)

    def dismiss(self, reader: "asyncio.Queue[str | None]") -> None:
        """End the stream of a reader."""
        self.readers.discard(reader)
        while not reader.empty():
            reader.get_nowait()
        reader.put_nowait(None)

    def missed(self, last: str) -> list[str] | None:
        """Return the events after the one of that name; None if they are no longer kept."""
        run, _, number = last.rpartition("-")
        if run != self.run or not number.isdecimal() or len(number) > len(str(self.number)):
            return None
        seen = int(number)
        first = self.kept[0][0] if self.kept else self.number + 1
        if seen > self.number or seen < first - 1:
            return None
        return [text for at, text in self.kept if at > seen]


class Hub:
    """The channels of all threads."""

    def __init__(self) -> None:
        self._run = uuid4().hex[:8]
        self._channels: OrderedDict[str, Channel] = OrderedDict()

    def channel(self, thread: str) -> Channel:
        """Return the channel of a thread; make it if needed."""
        channel = self._channels.setdefault(thread, Channel(self._run))
        self._channels.move_to_end(thread)
        unread = [name for name, other in self._channels.items() if not other.readers and name != thread]
        for name in unread[: max(0, len(self._channels) - CHANNELS)]:
            del self._channels[name]
        return channel

    def publish(self, thread: str, event: Mapping[str, Json]) -> None:
        """Send an event to every page that has the thread open, and keep it for pages that come back."""
        self.channel(thread).publish(event)

    def close(self) -> None:
        """End all streams."""
        for channel in self._channels.values():
            for reader in list(channel.readers):
                channel.dismiss(reader)

    async def listen(
        self, thread: str, last: str, hello: Callable[[bool], list[JsonObject]]
    ) -> AsyncGenerator[str, None]:
        """Yield the events for one page, from the event named `last` on.

        A new page, or one that was away too long (True), gets the events of `hello` first: the present state.
        """
        channel = self.channel(thread)
        reader: asyncio.Queue[str | None] = asyncio.Queue(WAITING)
        missed = channel.missed(last) if last else None
        if missed is None:
            missed = [sse(event, channel.last) for event in hello(bool(last))]
        channel.readers.add(reader)
        try:
            for text in missed or [COMMENT]:
                yield text
            while True:
                try:
                    text_or_end = await asyncio.wait_for(reader.get(), KEEP_ALIVE)
                except TimeoutError:
                    text_or_end = COMMENT
                if text_or_end is None:
                    return
                yield text_or_end
        finally:
            channel.readers.discard(reader)
