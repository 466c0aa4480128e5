"""A conversation in memory and what a request says: values that the gateway's parts hand to each other."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import RLock

from everlong.core import History
from everlong.gateway.units import Unit

__all__ = ["Conversation", "Spoken"]


@dataclass(frozen=True, slots=True)
class Spoken:
    """What a request says: system text, and units with a digest for each prefix. `root` is how it began."""

    head: History
    head_digest: bytes
    #: Units that are system messages of the list; the others stand in a field of their own.
    leading: tuple[Unit, ...]
    units: tuple[Unit, ...]
    digests: tuple[bytes, ...]
    root: str
    #: Bytes of the system text.
    head_size: int = 0

    @property
    def last(self) -> bytes:
        """The digest of all of it."""
        return self.digests[-1] if self.digests else b""


@dataclass(slots=True)
class Conversation:
    """A conversation in memory. `starts` is the order of the first row of each unit in its thread."""

    thread: str
    scope: str
    root: str
    head: bytes
    digests: list[bytes] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    said: list[History] = field(default_factory=list)
    opening: History = ()
    size: int = 0
    #: Bytes of its system text, which are part of its size.
    head_size: int = 0
    #: Requests of it that are under way, and the digest of what they say.
    busy: int = 0
    last: bytes = b""
    #: Rows of the thread whose marks were handed over to be kept, and the newest mark that was seen in the store.
    marked: int = 0
    newest: str = ""
    #: For each model how many units were counted, and their tokens.
    counted: dict[str, tuple[int, int]] = field(default_factory=dict)
    #: What its thread's settings say now.
    settings: str = "{}"
    #: Tokens that it may grow by, from what was last sent on, before anything has to be done about it.
    quiet: int = 0
    lock: RLock = field(default_factory=RLock)

    def shared_with(self, digests: Sequence[bytes]) -> int:
        """How many units are the same from the start."""
        ends = range(min(len(self.digests), len(digests)))
        return bisect_left(ends, True, key=lambda at: self.digests[at] != digests[at])
