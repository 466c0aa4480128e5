"""The data that a job about a thread carries to another process, and how that process opens the thread.

For a thread in the store, its name is enough. Data that only this process has travels with the job.
"""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

import msgspec

from everlong.engine.contracts import Call, Model, Prepared
from everlong.jobs import Jobs

__all__ = ["Asked", "Background", "Carried", "Carrier", "Taken", "asked_in", "packed"]


class Asked(msgspec.Struct, frozen=True):
    """The thread when its summary was requested: its rows and points, and whether it was idle."""

    rows: int
    points: int
    idle: bool = False


@dataclass(frozen=True, slots=True)
class Carried:
    """The key of a job, the same for one conversation in all processes, and the data that goes with it."""

    key: str
    load: bytes = b""


@dataclass(frozen=True, slots=True)
class Taken:
    """A thread that was opened for a job, with the call and the model of its next request."""

    thread: str
    call: Call
    model: Model


class Carrier(Protocol):
    """Packs threads for other processes and opens them there."""

    def pack(self, prepared: Prepared, model: Model) -> Carried | None:
        """Return what another process needs to work on the thread of a request; None if no other process can."""

    def open(self, key: str, load: bytes) -> AbstractAsyncContextManager[Taken | None]:
        """Open what was packed, in this process. None if it is gone or was overtaken.

        Raises NotHere if this process lacks what the thread needs, such as a key.
        """


@dataclass(frozen=True, slots=True)
class Background:
    """Where background work of a conversation runs, and the kinds of its jobs.

    Without a carrier, or if jobs do not outlive the process, everything runs in the process that had the turn. `claim`
    is called with the thread before a summary starts automatically, because another process may be writing it.
    """

    jobs: Jobs
    carrier: Carrier | None = None
    summaries: str = "summary"
    titles: str = "title"
    claim: Callable[[str], bool] = lambda _thread: True

    def __post_init__(self) -> None:
        if not self.jobs.durable:
            object.__setattr__(self, "carrier", None)


def packed(asked: Asked, load: bytes) -> bytes:
    """Return the data of a job."""
    return msgspec.json.encode(asked) + b"\n" + load


def asked_in(load: bytes) -> tuple[Asked, bytes]:
    """Return what was packed."""
    head, _, rest = load.partition(b"\n")
    return msgspec.json.decode(head, type=Asked), rest
