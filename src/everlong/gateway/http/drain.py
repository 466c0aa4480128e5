"""Ends a serving process without breaking an answer.

On SIGTERM the process first reports that it is not ready, and still accepts requests for a while, because load
balancers notice this later than the process itself. Every answer then closes its connection. After that no request is
accepted, and requests in progress get time to finish. A second signal ends the wait.
"""

import asyncio
import os
import signal
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from everlong.gateway.operations.metrics import SHARED

__all__ = ["Drain", "announce_end"]

CLOSE = (b"connection", b"close")
#: The file in the folder of shared metrics that tells workers that all of them end; without it, a single worker is
#: replaced.
ENDING = "ending"


def announce_end() -> None:
    """Tell the workers of this process that all of them are about to end."""
    Path(os.environ[SHARED], ENDING).touch()


def _is_replaced() -> bool:
    """Return whether other workers accept requests on the same port, so that clients need not go elsewhere."""
    folder = os.environ.get(SHARED)
    return bool(folder) and not Path(str(folder), ENDING).exists()


class Drain:
    """The shutdown of a process. `delay` is for how many seconds it accepts requests after SIGTERM."""

    def __init__(self, delay: float) -> None:
        self._delay = delay
        self._ending: Sequence[Callable[[], None]] = ()
        self._timer: asyncio.TimerHandle | None = None
        #: Whether the shutdown has begun: the process is no longer ready.
        self.begun = False

    @asynccontextmanager
    async def listening(self, ending: Sequence[Callable[[], None]]) -> AsyncIterator[None]:
        """Handle the signals that end the server, in place of the server itself. Call it in the server's event loop.

        `ending` are called when no more requests are accepted, so that endless streams can end.
        """
        self._ending = ending
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        loop, before = asyncio.get_running_loop(), dict[int, Any]()

        def handle(number: int, frame: FrameType | None) -> None:
            loop.call_soon_threadsafe(self._handle_signal, number, lambda: before[number](number, frame))

        for number in (int(signal.SIGTERM), int(signal.SIGINT)):
            if callable(signal.getsignal(number)):  # otherwise the signal does not end this process
                before[number] = signal.signal(number, handle)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            if self._timer is not None:
                self._timer.cancel()

    def _handle_signal(self, number: int, end: Callable[[], None]) -> None:
        waits = number == signal.SIGTERM and self._delay > 0 and not self.begun and not _is_replaced()
        self.begun = self.begun or not _is_replaced()
        if waits:
            self._timer = asyncio.get_running_loop().call_later(self._delay, self._end, end)
        else:
            self._end(end)

    def _end(self, end: Callable[[], None]) -> None:
        for each in self._ending:
            each()
        end()

    def around(self, app: ASGIApp) -> ASGIApp:
        """Return an application whose answers close their connections once the shutdown begins."""

        async def closing(scope: Scope, receive: Receive, send: Send) -> None:
            async def send_closing(message: Message) -> None:
                if message["type"] == "http.response.start" and self.begun:
                    message = {**message, "headers": [*message.get("headers", ()), CLOSE]}
                await send(message)

            await app(scope, receive, send_closing if scope["type"] == "http" else send)

        return closing
