"""Send the events of threads to every browser that has them open; one that reconnects gets what it missed.

Owns the numbers of events. A reader may listen to one thread, or to many at once: a browser has few connections, and
one stream serves all its tabs. A reader that does not read is dropped; it reconnects and continues where it stopped.
Belongs to one event loop.
"""

import asyncio
import json
from collections import OrderedDict, deque
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias
from urllib.parse import quote
from uuid import uuid4

from everlong.core import Json, JsonObject

__all__ = ["KEEP_ALIVE", "QUIET", "Channel", "Hub", "Place", "Wanted", "sse"]

KEPT = 4_000  # events of a thread; at 200 words a second, twenty seconds
WAITING = 8_000  # events that a reader may be behind
CHANNELS = 128  # threads whose events are kept; the least recently used one without readers goes first
KEEP_ALIVE = 15.0  # seconds without an event until an empty comment is sent
COMMENT = ": \n\n"


#: The kinds of events that a hidden tab receives: enough to notify about an answer or a waiting question.
QUIET = frozenset({"running", "ended", "failed", "ask", "answered", "moved", "title"})
#: Names of events in a stream of many threads. HELLO has the current state for a new tab; the other tabs know it. ANEW
#: has it for all tabs, because the events that they missed are no longer kept.
HELLO, ANEW = "hello", "anew"

Hello: TypeAlias = Callable[[bool], list[JsonObject]]
#: The number of an answer in its turn, and how many of its characters were published before.
Place: TypeAlias = tuple[int, int]
Outward: TypeAlias = Callable[[str, Mapping[str, Json], "Place | None"], None]


def sse(event: Mapping[str, Json], number: str = "", name: str = "") -> str:
    """Return an event as server-sent text. Example: {"type": "said"}, "a-1" -> "id: a-1\\ndata: {…}\\n\\n" """
    return _sse(json.dumps(event, ensure_ascii=False), number, name)


def _sse(data: str, number: str, name: str = "") -> str:
    head = (f"id: {number}\n" if number else "") + (f"event: {name}\n" if name else "")
    return f"{head}data: {data}\n\n"


@dataclass(frozen=True, slots=True)
class NumberedEvent:
    """An event of a thread: its number, its kind, and its JSON, which is written once for all readers."""

    number: int
    kind: str
    data: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A thread that a reader subscribes to. `last` names the event that it received last.

    `hello` returns the current state as events, for a reader that is new or (argument True) was away too long. `fresh`:
    a tab needs the current state although other tabs of the reader continue from `last`. `quiet`: only the kinds of
    events that a hidden tab needs. `name` is added to the numbers of the events if a reader follows many threads.
    """

    thread: str
    last: str = ""
    hello: Hello = lambda _: []
    fresh: bool = False
    quiet: bool = False
    name: str | None = None

    def wants(self, entry: NumberedEvent) -> bool:
        """Return whether the reader wants the event."""
        return not self.quiet or entry.kind in QUIET

    def numbered(self, number: str) -> str:
        """Return the name of an event in the stream of the reader. Example: "a-1" -> "a-1@app-20260318-091512-4f1c" """
        return number if self.name is None else f"{number}@{quote(self.name, safe='')}"


#: The texts that wait for a reader; None ends its stream.
Reader: TypeAlias = "asyncio.Queue[str | None]"


@dataclass(slots=True)
class Channel:
    """The events of one thread. `run` names this run of the program; event numbers of another run mean nothing here."""

    run: str
    number: int = 0
    kept: deque[NumberedEvent] = field(default_factory=lambda: deque(maxlen=KEPT))
    readers: dict[Reader, Wanted] = field(default_factory=dict)

    @property
    def last(self) -> str:
        """The name of the newest event."""
        return f"{self.run}-{self.number}"

    def publish(self, event: Mapping[str, Json]) -> None:
        """Send an event to every reader."""
        self.number += 1
        entry = NumberedEvent(self.number, str(event.get("type", "")), json.dumps(event, ensure_ascii=False))
        self.kept.append(entry)
        for reader, wanted in list(self.readers.items()):
            if not wanted.wants(entry):
                continue
            try:
                reader.put_nowait(self._text(entry, wanted))
            except asyncio.QueueFull:
                self.dismiss(reader)

    def _text(self, entry: NumberedEvent, wanted: Wanted) -> str:
        return _sse(entry.data, wanted.numbered(f"{self.run}-{entry.number}"))

    def dismiss(self, reader: Reader) -> None:
        """End the stream of a reader."""
        self.readers.pop(reader, None)
        while not reader.empty():
            reader.get_nowait()
        reader.put_nowait(None)

    def missed(self, last: str) -> list[NumberedEvent] | None:
        """Return the events after the one of that name; None if they are no longer kept."""
        run, _, number = last.rpartition("-")
        if run != self.run or not number.isdecimal() or len(number) > len(str(self.number)):
            return None
        seen = int(number)
        first = self.kept[0].number if self.kept else self.number + 1
        if seen > self.number or seen < first - 1:
            return None
        return [entry for entry in self.kept if entry.number > seen]

    def enter(self, reader: Reader, wanted: Wanted) -> list[str]:
        """Subscribe a reader to the thread; return what to send to it first."""
        missed = self.missed(wanted.last) if wanted.last else None
        self.readers[reader] = wanted
        number = wanted.numbered(self.last)
        if missed is None:
            name = "" if wanted.name is None else ANEW if wanted.last else HELLO
            return [sse(event, number, name) for event in wanted.hello(bool(wanted.last))]
        hello = wanted.hello(False) if wanted.fresh else []
        return [
            *(self._text(entry, wanted) for entry in missed if wanted.wants(entry)),
            *(sse(event, number, HELLO) for event in hello),
        ]


class Hub:
    """The channels of all threads. `outward` gets each event of this process, for the pages of other processes."""

    def __init__(self) -> None:
        self._run = uuid4().hex[:8]
        self._channels: OrderedDict[str, Channel] = OrderedDict()
        self.outward: Outward = lambda *_: None
        #: How many streams are open now.
        self.streams = 0

    def channel(self, thread: str) -> Channel:
        """Return the channel of a thread; make it if needed."""
        channel = self._channels.setdefault(thread, Channel(self._run))
        self._channels.move_to_end(thread)
        unread = [name for name, other in self._channels.items() if not other.readers and name != thread]
        for name in unread[: max(0, len(self._channels) - CHANNELS)]:
            del self._channels[name]
        return channel

    def publish(self, thread: str, event: Mapping[str, Json], place: Place | None = None) -> None:
        """Send an event to every page that has the thread open, and keep it for pages that come back.

        `place` is the position of the event's words in their answer.
        """
        self.repeat(thread, event)
        self.outward(thread, event, place)

    def repeat(self, thread: str, event: Mapping[str, Json]) -> None:
        """Send an event of another process to the pages here."""
        self.channel(thread).publish(event)

    def knows(self, thread: str) -> bool:
        """Return whether a page here follows the thread, or may come back to it."""
        return thread in self._channels

    def has_readers(self, thread: str) -> bool:
        """Return whether a page here follows the thread now."""
        return thread in self._channels and bool(self._channels[thread].readers)

    @property
    def known(self) -> list[str]:
        """The threads whose events are kept."""
        return list(self._channels)

    def forget(self, thread: str) -> None:
        """Drop the kept events of a thread. Pages that come back load it again."""
        if thread in self._channels:
            self._channels[thread].kept.clear()

    def close(self) -> None:
        """End all streams."""
        for channel in self._channels.values():
            for reader in list(channel.readers):
                channel.dismiss(reader)

    async def listen(self, wanted: Sequence[Wanted]) -> AsyncGenerator[str, None]:
        """Yield the events of all wanted threads for one reader, each after the last event that it received."""
        reader: Reader = asyncio.Queue(WAITING)
        channels = [self.channel(one.thread) for one in wanted]
        self.streams += 1
        try:
            # Subscribe to all threads before sending anything: events that happen meanwhile wait in the queue.
            first = [text for channel, one in zip(channels, wanted, strict=True) for text in channel.enter(reader, one)]
            for text in first or [COMMENT]:
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
            self.streams -= 1
            for channel in channels:
                channel.readers.pop(reader, None)
