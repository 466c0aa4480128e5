"""The figures on the page of a replay: sums, means and comparisons. Nothing is drawn or worded here."""

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
FEWEST = 10  # an average is drawn while one conversation in this many continues
Points = tuple[tuple[float, float], ...]


def is_ours(policy: str) -> bool:
    """Return whether a policy is everlong's own. Example: "auto", "auto-trim" and "auto@0.6" are; "automatic" is not"""
    return policy.partition("@")[0].partition("-")[0] == OURS


@dataclass(frozen=True, slots=True)
class Scene:
    """The results of several policies in one window with one prompt overhead under one tariff."""

    window: int
    front: int
    tariff: str
    results: tuple[ReplayResult, ...]

    @property
    def whole(self) -> ReplayResult | None:
        """Return the result without any cut; None if it was not played."""
        return next((result for result in self.results if result.policy == WHOLE), None)

    @property
    def ours(self) -> ReplayResult | None:
        """Return the result that the page is about: auto, else another of everlong's own."""
        named = next((result for result in self.results if result.policy == OURS), None)
        return named or next((result for result in self.results if is_ours(result.policy)), None)

    @property
    def longest(self) -> int:
        """Return the tokens of the longest request without any cut; 0 if that was not played."""
        if self.whole is None:
            return 0
        return max((paid.prompt for played in self.whole.played for paid in played.paid), default=0)

    @property
    def sessions(self) -> tuple[SessionFacts, ...]:
        """Return every conversation, the most expensive first."""
        plain = self.whole or self.ours or next(iter(self.results), None)
        played = sorted(plain.played, key=lambda conversation: -conversation.dollars) if plain else []
        return tuple(dict.fromkeys(conversation.session for conversation in played))


def scenes(results: Iterable[ReplayResult]) -> list[Scene]:
    """Return the results of each window, overhead and tariff together, in their order."""
    together: dict[tuple[int, int, str], list[ReplayResult]] = {}
    for result in results:
        together.setdefault((result.window, result.front, result.tariff), []).append(result)
    return [Scene(*place, tuple(group)) for place, group in together.items()]


@dataclass(frozen=True, slots=True)
class AnswerCost:
    """The cost of one answer of a conversation, with all calls that were made for it."""

    dollars: float
    cut: bool
    summaries: int


def answer_costs(played: Played) -> list[AnswerCost]:
    """Return the cost of every answer, in order. Requests with the same `at` led to the same answer."""
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
    """Return (number of a request, its mean cost) over the conversations that have that many requests.

    Neighbours share a point. The line ends when only one conversation in ten continues.
    """
    each = [[answer.dollars for answer in answer_costs(played)] for played in result.played]
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
    """Return (from, to, ratio): how many times as much a request costs in the last quarter as in the second.

    Example: 16 points that rise from 1 to 16 -> (6.5, 14.5, 2.23). None if there are too few points.
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
    """Return (number of a request, dollars so far). A long conversation is thinned out; its last request stays."""
    totals = list(enumerate(accumulate(answer.dollars for answer in answer_costs(played)), start=1))
    step = math.ceil(len(totals) / MOST_POINTS) or 1
    thinned = totals[::-step][::-1]
    return ((0.0, 0.0), *((float(at), total) for at, total in thinned)) if thinned else ()


def front(results: Sequence[ReplayResult]) -> set[str]:
    """Return the policies that no other one beats: none is cheaper and keeps as much, or as cheap and keeps more.

    A policy with requests that a provider would refuse does not take part.
    """
    allowed = [result for result in results if not result.over and not result.invalid]
    return {result.policy for result in allowed if not any(_beats(other, result) for other in allowed)}


def _beats(result: ReplayResult, other: ReplayResult) -> bool:
    better = result.ratio < other.ratio or result.literal_percent > other.literal_percent
    return better and result.ratio <= other.ratio and result.literal_percent >= other.literal_percent


@dataclass(frozen=True, slots=True)
class Billed:
    """What the sessions' own files record, by model."""

    sessions: int
    models: tuple[Recorded, ...]

    @property
    def dollars(self) -> float | None:
        """Return the sum of everything with a price; None if nothing has one."""
        known = [usage.dollars for usage in self.models if usage.dollars is not None]
        return sum(known) if known else None

    @property
    def requests(self) -> int:
        """Return the number of requests that were really made."""
        return sum(usage.requests for usage in self.models)

    @property
    def tokens(self) -> int:
        """Return the tokens sent and received."""
        return sum(usage.prompt + usage.output for usage in self.models)


def billed(sessions: Iterable[SessionFacts]) -> Billed | None:
    """Return what was really paid, by model, the most expensive first; None if no file records it."""
    models: dict[str, Recorded] = {}
    keeping = 0
    for session in sessions:
        keeping += bool(session.recorded)
        for usage in session.recorded:
            models[usage.model] = _sum(models[usage.model], usage) if usage.model in models else usage
    ordered = sorted(models.values(), key=lambda usage: (-(usage.dollars or 0), -usage.requests))
    return Billed(keeping, tuple(ordered)) if keeping else None


def _sum(usage: Recorded, other: Recorded) -> Recorded:
    known = [dollars for dollars in (usage.dollars, other.dollars) if dollars is not None]
    return Recorded(
        model=usage.model,
        requests=usage.requests + other.requests,
        prompt=usage.prompt + other.prompt,
        read=usage.read + other.read,
        written=usage.written + other.written,
        output=usage.output + other.output,
        dollars=sum(known) if known else None,
    )


@dataclass(frozen=True, slots=True)
class Threshold:
    """What a threshold would have done. `used` is the one in use; `share` is None if the policy names none."""

    share: float | None
    result: ReplayResult
    used: bool


def thresholds_of(scene: Scene, ours: ReplayResult | None) -> list[Threshold]:
    """Return the thresholds of a window, lowest first. The one with the figures of ours is the one in use."""
    thresholds = [Threshold(_share(result.policy), result, _same(result, ours)) for result in scene.results]
    return sorted(thresholds, key=lambda threshold: (threshold.share is None, threshold.share or 0.0))


def _share(policy: str) -> float | None:
    """Return the threshold that a policy names, or None. Example: "auto@0.6" -> 0.6"""
    try:
        share = float(policy.rpartition("@")[2])
    except ValueError:
        return None
    return share if math.isfinite(share) else None


def _same(result: ReplayResult, ours: ReplayResult | None) -> bool:
    if ours is None or result.policy == ours.policy:
        return ours is not None
    return (result.dollars, result.kept, result.literal, result.cuts) == (
        ours.dollars,
        ours.kept,
        ours.literal,
        ours.cuts,
    )
