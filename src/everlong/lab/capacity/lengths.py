"""How long real conversations are: the sizes of the requests that agents sent, and how many requests they made.

The table was counted from public recordings (`everlong lab capacity --data DIR` counts them again), so the command runs
without the data. Each assistant message is a request; its size is everything before that message.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from everlong.core import Role
from everlong.engine import counter_for
from everlong.lab.data import agents

__all__ = ["LENGTHS", "QUANTILES", "Lengths", "counted_lengths"]

#: For each figure of the table, the share of the requests, or of the conversations, that do not exceed it.
QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9, 0.99)
MODEL = "gpt-4o"  # the model whose vocabulary is used for counting


@dataclass(frozen=True, slots=True)
class Lengths:
    """The conversations of one source: tokens of a request and requests of a conversation, at each of `QUANTILES`."""

    name: str
    conversations: int
    tokens: tuple[int, ...]
    requests: tuple[int, ...]
    #: Mean requests per conversation, and mean new tokens per request.
    mean_requests: float
    mean_growth: float

    def size_at(self, share: float) -> float:
        """Return the size in tokens that this share of the requests does not exceed, by linear interpolation."""
        points = ((0.0, self.tokens[0] / 2), *zip(QUANTILES, self.tokens, strict=True), (1.0, self.tokens[-1] * 1.1))
        for (left, low), (right, high) in pairwise(points):
            if share <= right:
                return low + (high - low) * (share - left) / (right - left)
        return float(self.tokens[-1])

    def share_above(self, tokens: float) -> float:
        """Return the share of the requests that are larger than this."""
        steps = 1_000
        return sum(self.size_at((step + 0.5) / steps) > tokens for step in range(steps)) / steps


#: Name -> conversations, counted with gpt-4o's vocabulary in a file of the data folder.
LENGTHS = {
    lengths.name: lengths
    for lengths in (
        # claude_code: sessions of a coding agent
        Lengths(
            "coding",
            179,
            (9_700, 27_796, 59_130, 96_416, 145_965, 227_430),
            (9, 20, 45, 93, 169, 257),
            67.5,
            1_026.0,
        ),
        # tau_airline: customers of an airline, and an agent with tools
        Lengths("service", 148, (1_336, 1_716, 2_524, 3_657, 5_030, 7_575), (7, 10, 14, 18, 22, 30), 14.1, 289.0),
        # trail_swe: agents that fix one issue
        Lengths("repair", 17, (4_117, 5_707, 9_518, 15_283, 20_747, 29_480), (14, 19, 27, 37, 39, 39), 27.3, 807.0),
    )
}
#: Name -> the file in agents/ in which it was counted.
FILES = {"coding": "claude_code", "service": "tau_airline", "repair": "trail_swe"}


def counted_lengths(name: str, folder: Path) -> Lengths:
    """Count the conversations of a row of the table again, in the data folder."""
    counter = counter_for(MODEL)
    sizes: list[int] = []
    calls: list[int] = []
    finals: list[int] = []
    for conversation in agents(folder, FILES[name]):
        size = made = 0
        for message in conversation.messages:
            if message.role is Role.ASSISTANT:
                made += 1
                sizes.append(size)
            size += counter.message(message)
        calls.append(made)
        finals.append(size)
    requests = max(1, sum(calls))
    return Lengths(
        name,
        len(calls),
        _quantiles(sizes),
        _quantiles(calls),
        requests / max(1, len(calls)),
        sum(finals) / requests,
    )


def _quantiles(figures: Iterable[int]) -> tuple[int, ...]:
    ordered: Sequence[int] = sorted(figures) or (0,)
    return tuple(ordered[min(len(ordered) - 1, int(share * len(ordered)))] for share in QUANTILES)
