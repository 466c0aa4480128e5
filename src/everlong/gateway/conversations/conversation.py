"""One conversation in memory, and the messages of one request."""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from threading import RLock

from everlong.core import History, Role
from everlong.engine import Prepared
from everlong.gateway.conversations.canonical import Unit
from everlong.gateway.conversations.marks import Listed, Mark

__all__ = ["Conversation", "Transcript"]

IDENTIFYING = 8  # units that distinguish a conversation from others with the same beginning


@dataclass(frozen=True, slots=True)
class Transcript:
    """The messages of a request: system text, and units with a digest for each prefix. `root` names the beginning."""

    head: History
    head_digest: bytes
    #: Units of system messages in the list; other system text is in a separate field.
    leading: tuple[Unit, ...]
    units: tuple[Unit, ...]
    digests: tuple[bytes, ...]
    root: str
    #: Bytes of the system text.
    head_size: int = 0
    #: Pairs results with calls in other units, if the format needs that.
    pair: Callable[[Sequence[History], Sequence[History]], list[History]] | None = None
    #: For a job, whose conversation may have continued meanwhile: the newest name in the list when it was requested.
    asked_after: str | None = None

    @property
    def numbers(self) -> dict[str, int]:
        """The number of units by the digest of their prefix."""
        return {digest.hex(): number for number, digest in enumerate(self.digests, start=1)}

    @property
    def before(self) -> int:
        """How many units the previous request had: those before the model's last answer."""
        said = (at for at in range(len(self.units) - 1, -1, -1) if self.units[at].messages[0].role is Role.ASSISTANT)
        return next(said, 0)

    @property
    def last(self) -> bytes:
        """The digest of all units."""
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
    messages: list[History] = field(default_factory=list)
    opening: History = ()
    size: int = 0
    #: Bytes of the last unit.
    last_size: int = 0
    #: Bytes of the system text, which are part of the size.
    head_size: int = 0
    #: How many of its requests are in progress, and the digest of their messages.
    busy: int = 0
    last: bytes = b""
    #: Rows of the thread whose marks have names, and the marks that are not in the store yet.
    marked: int = 0
    pending: list[tuple[Listed, Mark | None]] = field(default_factory=list)
    #: The names of the marks in force in the thread, and the newest name in the store that was seen.
    standing: list[Listed] = field(default_factory=list)
    newest: str = ""
    #: Whether other processes listed marks before that name that have not been read here.
    unread: bool = False
    #: What a request in progress reports to its client. It is listed when the answer begins: a failed request reports
    #: nothing.
    to_report: Listed | None = None
    #: The name of the compaction behind the last request's bytes, and of the one for which a summary started here.
    compaction: str = ""
    claimed: str | None = None
    #: Whether another process overtook the marks made here: the next request builds the thread again.
    stale: bool = False
    #: By model: how many units were counted, and their tokens.
    counted: dict[str, tuple[int, int]] = field(default_factory=dict)
    #: The current settings of its thread.
    settings: str = "{}"
    #: Tokens by which it may grow since the last request before a compaction can be due.
    quiet: int = 0
    #: Compactions that no request has reported yet, and how many of them were made after an answer, for a summary.
    compactions: int = 0
    behind: int = 0
    #: The request that a client was given to send itself, until it reports the outcome.
    lent: Prepared | None = None
    lock: RLock = field(default_factory=RLock)

    @property
    def identity(self) -> tuple[str, ...]:
        """The digests of its first units, which distinguish it from others with the same beginning."""
        return tuple(digest.hex() for digest in self.digests[:IDENTIFYING][-1:])

    def shared_with(self, digests: Sequence[bytes]) -> int:
        """Return how many leading units are the same."""
        ends = range(min(len(self.digests), len(digests)))
        return bisect_left(ends, True, key=lambda at: self.digests[at] != digests[at])
