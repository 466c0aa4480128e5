"""What came out of a run, as values: what each gateway took, and what it adds to going direct."""

from dataclasses import dataclass
from math import ceil
from statistics import median
from typing import Any

__all__ = ["Added", "Rate", "added", "ninetieth", "rate"]

#: What the worker found for one gateway: a kind -> its times.
Found = dict[str, dict[str, Any]]
#: What is timed of a plain answer, and of a stream.
TIMED = ("plain", "streamed")


@dataclass(frozen=True, slots=True)
class Added:
    """Milliseconds above those of going direct: the difference of the medians, and of the ninetieth percentiles."""

    median: float
    ninetieth: float


def ninetieth(times: list[float]) -> float:
    """The time that nine of ten stay within. Example: 1, 2, …, 10 -> 9"""
    return sorted(times)[ceil(len(times) * 0.9) - 1]


def added(found: Found, direct: Found) -> dict[tuple[str, str], Added]:
    """Of each kind, plain and streamed; a kind that was never answered is not there."""
    return {
        (kind, how): Added(
            (median(times[how]) - median(direct[kind][how])) * 1e3,
            (ninetieth(times[how]) - ninetieth(direct[kind][how])) * 1e3,
        )
        for kind, times in found.items()
        for how in TIMED
        if times[how] and direct[kind][how]
    }


@dataclass(frozen=True, slots=True)
class Rate:
    """Requests a second, as a share of going direct, and CPU milliseconds of the gateway for each."""

    each_second: float
    share: float
    cpu: float


def rate(found: dict[str, Any], direct: dict[str, Any]) -> Rate:
    """Of what many clients got answered."""
    each_second = found["answered"] / found["seconds"]
    straight = direct["answered"] / direct["seconds"]
    cpu = found["cpu"] / found["answered"] * 1e3 if found["answered"] else 0.0
    return Rate(each_second, each_second / straight if straight else 0.0, cpu)
