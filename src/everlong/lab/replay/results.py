"""The results of a replay: plain values that the terminal, the page, JSON and tests all read.

Knows nothing about how a conversation is replayed, priced or drawn.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

__all__ = ["Kind", "Paid", "Played", "ProbeOutcome", "Recorded", "ReplayResult", "SessionFacts"]

STORM = 0.4  # of what compaction can move; less than this between two compactions is a storm

#: answer: the next answer of the conversation. summary: a call for a summary. reading: lost text is read again.
Kind: TypeAlias = Literal["answer", "summary", "reading"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Paid:
    """One request and its bill. `at` is the message that it led to; the rest are tokens and US dollars.

    `read` and `written` are parts of `prompt`: what came from the provider's cache and what went into it. `cut`: the
    policy shortened what it had sent before. `reset`: the request does not begin with the whole previous one. `over`:
    it is too long for the window. `problems`: what else a provider would refuse, or why nothing could be sent; in that
    case nothing was paid. `new`, for a cut after another one: what requests gained between the two, as a share of what
    compaction could move at the first.
    """

    at: int
    kind: Kind
    output: int
    prompt: int = 0
    read: int = 0
    written: int = 0
    dollars: float = 0.0
    cut: bool = False
    reset: bool = False
    over: bool = False
    problems: tuple[str, ...] = ()
    new: float | None = None

    @property
    def storm(self) -> bool:
        """Return whether this cut came too soon after the previous one."""
        return self.new is not None and self.new < STORM


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeOutcome:
    """Whether a string that the agent used at message `at` was still there.

    `kept`: anywhere in the request. `literal`: outside lists of names and summaries. `likely`: the probability that it
    was there if a model wrote the summary: 1 if it was kept, else the share that real summaries keep of its kind.
    """

    at: int
    kind: str
    kept: bool
    literal: bool
    likely: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """The requests that were really made with one model, as its file records them.

    `dollars` is None without a price.
    """

    model: str
    requests: int
    prompt: int
    read: int
    written: int
    output: int
    dollars: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFacts:
    """The facts about one conversation: where it comes from, how long it is, and what its file says it cost."""

    id: str
    source: str
    messages: int
    tokens: int
    #: Seconds from its first message to its last; None if the file has no times.
    seconds: float | None = None
    recorded: tuple[Recorded, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """One conversation under one policy, window, prompt overhead and tariff: every request in order, every probe."""

    session: SessionFacts
    policy: str
    window: int
    front: int
    tariff: str
    paid: tuple[Paid, ...]
    probes: tuple[ProbeOutcome, ...]

    @property
    def dollars(self) -> float:
        """Return what all requests cost."""
        return sum(paid.dollars for paid in self.paid)

    def fits(self, window: int) -> bool:
        """Return whether every request fits that window together with its answer."""
        return all(paid.prompt + paid.output <= window for paid in self.paid)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayResult:
    """All conversations under one policy, window, overhead and tariff. `uncut` is their cost if nothing is cut.

    `broken` counts requests that changed what was sent before although nothing was cut; `dearer` counts the
    conversations that cost over one percent more than uncut, and `needless` those of them that would have fitted the
    window uncut; `storms` counts the cuts that came too soon after another; `invalid` counts the requests that would be
    refused for another reason than length. Probes are counts; `likely` is a sum of shares.
    """

    policy: str
    window: int
    front: int
    tariff: str
    played: tuple[Played, ...]
    requests: int
    prompt: int
    read: int
    written: int
    output: int
    dollars: float
    uncut: float
    summaries: int
    summary_dollars: float
    readings: int
    reading_dollars: float
    cuts: int
    resets: int
    broken: int
    over: int
    invalid: int
    storms: int
    dearer: int
    needless: tuple[str, ...]
    probes: int
    kept: int
    literal: int
    likely: float

    @property
    def ratio(self) -> float:
        """Return the cost as a share of the uncut cost; 1 if there was nothing to pay."""
        return self.dollars / self.uncut if self.uncut else 1.0

    @property
    def kept_percent(self) -> float:
        """Return the probes that were anywhere in the request, in percent; 100 if there are none."""
        return 100 * self.kept / self.probes if self.probes else 100.0

    @property
    def literal_percent(self) -> float:
        """Return the probes that were there word for word, in percent; 100 if there are none."""
        return 100 * self.literal / self.probes if self.probes else 100.0

    @property
    def likely_percent(self) -> float:
        """Return the probes that were there, with credit for a model's summary, in percent; 100 if there are none."""
        return 100 * self.likely / self.probes if self.probes else 100.0
