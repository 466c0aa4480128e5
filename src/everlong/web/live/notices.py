"""Notifications between the processes of one app: `Notices`, which a shared store provides."""

from collections.abc import Callable
from typing import Protocol, runtime_checkable

from everlong.engine import Threads

__all__ = ["Notices", "notices_of"]


class Notices(Protocol):
    """Sends texts to all other processes of the app. A process that is away misses them. In one event loop."""

    @property
    def shared(self) -> bool:
        """Whether there can be other processes."""

    async def start(self, receive: Callable[[str], None], missed: Callable[[], None]) -> None:
        """Pass the texts of others to `receive` in the order of each sender; `missed` is called if some may be lost."""

    def announce(self, text: str) -> None:
        """Send a text to every other process, soon."""

    async def close(self) -> None:
        """Send the waiting texts, and end."""


class _Nobody:
    """The notices of a process that does not share its store."""

    shared = False

    async def start(self, receive: Callable[[str], None], missed: Callable[[], None]) -> None:
        """Do nothing: there are no other processes."""

    def announce(self, text: str) -> None:
        """Do nothing: there are no other processes."""

    async def close(self) -> None:
        """Do nothing: there is nothing to close."""


@runtime_checkable
class _Shared(Protocol):
    def notices(self) -> Notices: ...


def notices_of(threads: Threads) -> Notices:
    """Return the notices of the processes that share a store; for a store on one machine, notices that go nowhere."""
    return threads.notices() if isinstance(threads, _Shared) else _Nobody()
