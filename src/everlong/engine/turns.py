"""One call of a model from its preparation to its outcome: every turn that starts ends in exactly one.

Shared by all who make calls, whether they read an answer piece by piece or hand its bytes on.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from everlong.core import Message, Reasoning, Text
from everlong.engine.calls import Call, Prepared
from everlong.engine.engine import Engine
from everlong.engine.replies import Finished
from everlong.errors import ContextOverflow, EverlongError, ProviderError

__all__ = ["Turn"]

CANCELLED = "cancelled by the caller"


@dataclass(slots=True)
class Turn:
    """A turn under way. `prepared` is what is to be sent for it, `ended` whether its outcome is written down.

    `quick` says that the store never waits for anything: what takes no time is then done where the turn is.
    """

    engine: Engine
    prepared: Prepared | None = None
    ended: bool = False
    quick: bool = False

    @property
    def request(self) -> Prepared:
        """What is to be sent."""
        assert self.prepared is not None, "a turn is prepared first"
        return self.prepared

    async def prepare(self, thread: str, call: Call) -> None:
        """Make the request for the thread as it stands."""
        self.prepared = await self.engine.prepare(thread, call)

    async def answered(self, finished: Finished) -> ContextOverflow | None:
        """The answer is there. An overflow that came as a success is given back, and the turn is not over."""
        said, usage, stop = _says_something(finished.message), finished.usage, finished.stop
        with self._at_once() as now:
            if now:
                hidden = self.engine.blocking.record_usage(self.request, usage, stop=stop, said=said)
            else:
                hidden = await self.engine.record_usage(self.request, usage, stop=stop, said=said)
        self.ended = hidden is None
        return hidden

    @contextmanager
    def _at_once(self) -> Iterator[bool]:
        """Whether the thread can be had here and now: nobody works on it, and nothing has to be waited for."""
        lock = self.engine.blocking.means.lives.lock(self.request.thread)
        if not self.quick or not lock.acquire(blocking=False):
            yield False
            return
        try:
            yield True
        finally:
            lock.release()

    async def refused(self, error: ProviderError) -> None:
        """Make another request after a refusal. Where there is none it is over; what the caller must hear is raised."""
        try:
            self.prepared = await self.engine.recover(self.request, error)
        except EverlongError:
            self.ended = True
            raise

    async def failed(self, reason: str) -> None:
        """It came to nothing."""
        self.ended = True
        await self.engine.record_failure(self.request, reason)

    def abandon(self) -> None:
        """The caller is gone; a turn without an outcome gets one."""
        if self.prepared is not None and not self.ended:
            self.ended = True
            self.engine.blocking.record_failure(self.prepared, CANCELLED)


def _says_something(message: Message) -> bool:
    """Whether there is anything in it but white space and thoughts."""
    return any(
        bool(part.text.strip()) if isinstance(part, Text) else not isinstance(part, Reasoning) for part in message.parts
    )
