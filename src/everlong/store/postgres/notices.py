"""Notifications from one process to all others, by LISTEN and NOTIFY of their shared database.

Nothing is stored: a disconnected process misses notifications, and learns of it when it is connected again. The sender
numbers its texts, so that none is received twice and a loss is noticed. Long texts are sent in pieces, because Postgres
accepts less than 8,000 bytes at once. One transaction sends everything that waits, so frequent notifications cost
little.
"""

import asyncio
import logging
import re
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeAlias
from uuid import uuid4

import psycopg

__all__ = ["PostgresNotices"]

CHANNEL = "everlong"
MOST_BYTES = 7_600  # of one piece, without its header
LARGEST = 2_000_000  # characters of a text; a longer one is not sent, and receivers notice a gap
MOST_WAITING = 20_000  # pieces that wait for the server; beyond that the oldest are dropped, which is a gap too
AT_ONCE = 500  # pieces in one transaction
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0  # seconds between attempts to connect
HEAD = re.compile(r"([0-9a-f]{32}) (\d+) (\d+) (\d+)\n", re.ASCII)
SEND = "SELECT pg_notify(%s, piece) FROM unnest(%s::text[]) WITH ORDINALITY AS told(piece, place) ORDER BY place"
#: A server that disappears silently is noticed within half a minute.
SETTINGS: dict[str, Any] = {
    "autocommit": True,
    "connect_timeout": 10,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
}

Receive: TypeAlias = Callable[[str], None]
Missed: TypeAlias = Callable[[], None]
logger = logging.getLogger("everlong.store")


class PostgresNotices:
    """The notices of one process: one connection that listens and one that sends. Belongs to one event loop."""

    shared = True

    def __init__(self, url: str) -> None:
        given = psycopg.conninfo.conninfo_to_dict(url)
        self._url = url
        self._settings = {name: value for name, value in SETTINGS.items() if name not in given}
        self._name = uuid4().hex
        self._number = 0
        self._waiting: deque[str] = deque()
        self._news = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._texts = _Texts(self._name)

    async def start(self, receive: Receive, missed: Missed) -> None:
        """Call `receive` with each text from other processes, and `missed` when some may have been lost.

        Returns when this process listens. After a lost connection it reconnects, without end.
        """
        listening = asyncio.Event()
        self._tasks = [
            asyncio.create_task(self._listen(receive, missed, listening), name="notices: listen"),
            asyncio.create_task(self._send(), name="notices: send"),
        ]
        await listening.wait()

    def announce(self, text: str) -> None:
        """Send a text to every other process, soon and in order."""
        pieces = _pieces(text) if len(text) <= LARGEST else [""]  # too long: only its number is used up
        self._number += 1
        if len(text) > LARGEST:
            return
        for at, piece in enumerate(pieces):
            self._waiting.append(f"{self._name} {self._number} {at} {len(pieces)}\n{piece}")
        while len(self._waiting) > MOST_WAITING:
            self._waiting.popleft()
        self._news.set()

    async def close(self) -> None:
        """Send the waiting notifications if the server accepts them within a second, and end."""
        with suppress(TimeoutError):
            async with asyncio.timeout(1.0):
                while self._waiting:
                    await asyncio.sleep(0.01)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = []

    async def _listen(self, receive: Receive, missed: Missed, listening: asyncio.Event) -> None:
        pause = FIRST_PAUSE
        while True:
            try:
                async with await psycopg.AsyncConnection.connect(self._url, **self._settings) as link:
                    await link.execute(f"LISTEN {CHANNEL}")
                    pause = FIRST_PAUSE
                    if listening.is_set():
                        missed()
                    listening.set()
                    async for notice in link.notifies():
                        for text in self._texts.take(notice.payload, missed):
                            receive(text)
            except (psycopg.Error, OSError) as error:
                logger.info("notifications cannot be received right now: %s", _line(error))
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    async def _send(self) -> None:
        pause = FIRST_PAUSE
        while True:
            try:
                async with await psycopg.AsyncConnection.connect(self._url, **self._settings) as link:
                    pause = FIRST_PAUSE
                    while True:
                        await self._news.wait()
                        self._news.clear()
                        await self._send_all(link)
            except (psycopg.Error, OSError) as error:
                logger.info("notifications cannot be sent right now: %s", _line(error))
            self._news.set()
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    async def _send_all(self, link: "psycopg.AsyncConnection[Any]") -> None:
        """Send the waiting notifications. Each is removed once sent; receivers ignore repetitions after a reconnect."""
        while self._waiting:
            batch = [piece for piece, _ in zip(self._waiting, range(AT_ONCE), strict=False)]
            await link.execute(SEND, (CHANNEL, batch))
            for piece in batch:
                if self._waiting and self._waiting[0] is piece:
                    self._waiting.popleft()


class _Texts:
    """Joins the pieces from other senders, in the order of each sender."""

    def __init__(self, own: str) -> None:
        self._own = own
        #: By sender: the number of the text being received, its pieces, and how many are missing.
        self._received: dict[str, tuple[int, list[str], int]] = {}

    def take(self, payload: str, missed: Missed) -> list[str]:
        """Return the text that this piece completes; `missed` is called if something before it is missing."""
        head = HEAD.match(payload)
        if head is None or head[1] == self._own:
            return []
        sender, number, at, count = head[1], int(head[2]), int(head[3]), int(head[4])
        last, pieces, missing = self._received.get(sender, (number, [], 0))
        if number < last or (number == last and at < len(pieces)):
            return []  # repeated after a lost connection
        expected = (last, len(pieces)) if number == last else (last + 1, 0)
        if (number, at) != expected or (number > last and missing):
            missed()
        # If the beginning of a text is lost, empty pieces replace it, and the text is ignored.
        pieces = [*(pieces if number == last else []), payload[head.end() :]]
        pieces = [""] * (at + 1 - len(pieces)) + pieces
        self._received[sender] = (number, pieces, count - len(pieces))
        return ["".join(pieces)] if len(pieces) == count and all(pieces) else []


def _pieces(text: str) -> list[str]:
    """Return a text in pieces that Postgres accepts, split between characters; lone surrogates are replaced."""
    data = text.replace("\0", "").encode("utf-8", "replace")
    pieces: list[str] = []
    at = 0
    while at < len(data):
        end = min(at + MOST_BYTES, len(data))
        while end < len(data) and data[end] & 0xC0 == 0x80:
            end -= 1
        pieces.append(data[at:end].decode())
        at = end
    return pieces or [" "]


def _line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]
