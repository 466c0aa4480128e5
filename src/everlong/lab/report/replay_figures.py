"""The figures that a replay's page shows: sums, means and comparisons of what was played. Nothing is drawn or said."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from everlong.lab.replay.results import Paid, Played, Recorded, ReplayResult, SessionFacts

__all__ = [
    "AnswerCost",
    "Billed",
    "Scene",
    "Threshold",
    "answer_costs",
    "billed",
    "front",
    "growth",
    "is_ours",
    "running_total",
    "scenes",
    "thresholds_of",
    "turn_costs",
]

WHOLE, OURS = "whole", "auto"
BINS = 40  # points of a line over the requests
MOST_POINTS = 120  # of a running total
FEWEST = 10  # an average is drawn as long as one conversation in so many goes on
Points = tuple[tuple[float, float], ...]


def is_ours(policy: str) -> bool:
    """Whether it is everlong's own. Example: "auto", "auto-trim" and "auto@0.6" are; "automatic" is not"""
    return policy.partition("@")[0].partition("-")[0] == OURS


@dataclass(frozen=True, slots=True)
class Scene:
    """Policies side by side: one window, one tariff."""

    window: int
    tariff: str
    results: tuple[ReplayResult, ...]

    @property
    def whole(self) -> ReplayResult | None:
        """Where nothing is cut."""
        return next((one for one in self.results if one.policy == WHOLE), None)

    @property
    def ours(self) -> ReplayResult | None:
        """The one the page is about."""
        named = next((one for one in self.results if one.policy == OURS), None)
        return named or next((one for one in self.results if is_ours(one.policy)), None)

    @property
    def longest(self) -> int:
        """Tokens of the longest request where nothing is cut; 0 if that was not played."""
        if self.whole is None:
            return 0
        return max((paid.prompt for played in self.whole.played for paid in played.paid), default=0)

    @property
    def sessions(self) -> tuple[SessionFacts, ...]:
        """Every conversation, the dearest first."""
        plain = self.whole or self.ours or next(iter(self.results), None)
        played = sorted(plain.played, key=lambda one: -one.dollars) if plain else []
        return tuple(dict.fromkeys(one.session for one in played))


def scenes(results: Iterable[ReplayResult]) -> list[Scene]:
    """The results of each window and tariff, in the order they come."""
    together: dict[tuple[int, str], list[ReplayResult]] = {}
    for result in results:
        together.setdefault((result.window, result.tariff), []).append(result)
    return [Scene(window, tariff, tuple(group)) for (window, tariff), group in together.items()]


@dataclass(frozen=True, slots=True)
class AnswerCost:
    """One answer of a conversation: what it cost with all that was called beside it."""

    dollars: float
    cut: bool
    summaries: int


def answer_costs(played: Played) -> list[AnswerCost]:
    """Every answer in order. What has the same `at` led to the same answer."""
    together: dict[int, list[Paid]] = {}
    for paid in played.paid:
        together.setdefault(paid.at, []).append(paid)
    return [
        AnswerCost(
            sum(paid.dollars for paid in group),
            any(paid.cut for paid in group),
            sum(paid.kind == "summary" for paid in group),
        )
        for _, group in sorted(together.items())
    ]


def turn_costs(result: ReplayResult) -> Points:
    """Request number and what such a request cost on average, over the conversations that have so many.

    Neighbours share a point. The line ends where only one conversation in ten goes on.
    """
    each = [[one.dollars for one in answer_costs(played)] for played in result.played]
    each = sorted((costs for costs in each if costs), key=len)
    if not each:
        return ()
    last = len(each[-max(1, len(each) // FEWEST)])
    wide = math.ceil(last / BINS)
    points = []
    for start in range(0, last, wide):
        end = min(start + wide, last)
        costs = [cost for session in each for cost in session[start:end]]
        points.append(((start + 1 + end) / 2, sum(costs) / len(costs)))
    return tuple(points)


def growth(points: Points) -> tuple[float, float, float] | None:
    """From which request to which, and how many times as much one costs there: the last quarter by the second.

    Example: 16 points that rise from 1 to 16 -> (6.5, 14.5, 2.23). None where there is too little to say.
    """
    quarter = len(points) // 4
    if quarter < 2:
        return None
    early, late = points[quarter : 2 * quarter], points[-quarter:]
    before, after = (sum(value for _, value in part) / quarter for part in (early, late))
    if before <= 0:
        return None
    start, end = (sum(at for at, _ in part) / quarter for part in (early, late))
    return start, end, after / before


def running_total(played: Played) -> Points:
    """Request number and dollars so far; a long conversation is thinned out, its last request stays."""
    totals = list(enumerate(accumulate(one.dollars for one in answer_costs(played)), start=1))
    step = math.ceil(len(totals) / MOST_POINTS) or 1
    kept = totals[::-step][::-1]
    return ((0.0, 0.0), *((float(at), total) for at, total in kept)) if kept else ()


def front(results: Sequence[ReplayResult]) -> set[str]:
    """Policies that no other one beats: none is cheaper and keeps as much, none as cheap and keeps more.

    Requests that a provider refuses win nothing.
    """
    allowed = [one for one in results if not one.over and not one.invalid]
    return {one.policy for one in allowed if not any(_beats(other, one) for other in allowed)}


def _beats(one: ReplayResult, other: ReplayResult) -> bool:
    better = one.ratio < other.ratio or one.literal_percent > other.literal_percent
    return better and one.ratio <= other.ratio and one.literal_percent >= other.literal_percent


@dataclass(frozen=True, slots=True)
class Billed:
    """What the sessions' own files say. `dollars` is None where no price is known at all."""

    sessions: int
    models: tuple[Recorded, ...]

    @property
    def dollars(self) -> float | None:
        """All that has a price."""
        known = [one.dollars for one in self.models if one.dollars is not None]
        return sum(known) if known else None

    @property
    def requests(self) -> int:
        """That were really made."""
        return sum(one.requests for one in self.models)

    @property
    def tokens(self) -> int:
        """Sent and received."""
        return sum(one.prompt + one.output for one in self.models)


def billed(sessions: Iterable[SessionFacts]) -> Billed | None:
    """What was really paid, by model, the dearest first; None where no file keeps it."""
    models: dict[str, Recorded] = {}
    keeping = 0
    for session in sessions:
        keeping += bool(session.recorded)
        for one in session.recorded:
            models[one.model] = _sum(models[one.model], one) if one.model in models else one
    ordered = sorted(models.values(), key=lambda one: (-(one.dollars or 0), -one.requests))
    return Billed(keeping, tuple(ordered)) if keeping else None


def _sum(one: Recorded, other: Recorded) -> Recorded:
    known = [dollars for dollars in (one.dollars, other.dollars) if dollars is not None]
    return Recorded(
        model=one.model,
        requests=one.requests + other.requests,
        prompt=one.prompt + other.prompt,
        read=one.read + other.read,
        written=one.written + other.written,
        output=one.output + other.output,
        dollars=sum(known) if known else None,
    )


@dataclass(frozen=True, slots=True)
class Threshold:
    """What a threshold would have done; `used` is the one that ours stands at, `share` None where none is named."""

    share: float | None
    result: ReplayResult
    used: bool


def thresholds_of(scene: Scene, ours: ReplayResult | None) -> list[Threshold]:
    """The thresholds of a window, lowest first. What has the figures of ours is the one in use."""
    found = [Threshold(_share(one.policy), one, _same(one, ours)) for one in scene.results]
    return sorted(found, key=lambda one: (one.share is None, one.share or 0.0))


def _share(policy: str) -> float | None:
    """Example: "auto@0.6" -> 0.6"""
    try:
        share = float(policy.rpartition("@")[2])
    except ValueError:
        return None
    return share if math.isfinite(share) else None


def _same(one: ReplayResult, ours: ReplayResult | None) -> bool:
    if ours is None or one.policy == ours.policy:
        return ours is not None
    return (one.dollars, one.kept, one.literal, one.cuts) == (ours.dollars, ours.kept, ours.literal, ours.cuts)
