"""What one request costs a replica and its database, by its size: recorded figures, or those of a file.

Costs between two sizes are interpolated; below the smallest and above the largest size they are extrapolated.
`calibration` measures them on this machine.
"""

import json
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path

import msgspec

from everlong.errors import InputError

__all__ = ["COST_SIZES", "Costs", "read_costs", "recorded_costs", "write_costs"]

COST_SIZES = (5_000, 20_000, 100_000, 200_000)  # tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """The costs of a request, each at every one of `COST_SIZES` unless it says otherwise."""

    #: When and where they were measured.
    taken: str
    #: The store: sqlite or postgres.
    store: str
    #: CPU milliseconds of the replica: for one more step of a known conversation, and for a new conversation.
    growing: tuple[float, ...]
    new: tuple[float, ...]
    #: CPU milliseconds of a compaction, and of the job that writes a summary, without the model's own work.
    compaction: tuple[float, ...]
    summary: tuple[float, ...]
    #: Bytes of an incoming request; they are held until the answer is complete.
    body: tuple[float, ...]
    #: For one request of any size: transactions (most only read), and bytes in the write-ahead log.
    commits: float
    log_bytes: float
    #: Bytes that stay in the database for each token of a conversation: without a compaction (digests), and with one
    #: (its messages).
    bytes_per_token: float
    bytes_per_compacted_token: float
    #: Megabytes of an idle worker, and kilobytes that it holds for an active conversation.
    idle_megabytes: float
    conversation_kilobytes: float

    def at(self, figures: tuple[float, ...], tokens: float) -> float:
        """Return the cost of a request with that many tokens."""
        steps = list(zip(COST_SIZES, figures, strict=True))
        for (left, low), (right, high) in pairwise(steps):
            if tokens <= right or right == COST_SIZES[-1]:
                return max(0.0, low + (high - low) * (tokens - left) / (right - left))
        raise AssertionError("unreachable: there are at least two sizes")

    def times(self, factor: float) -> "Costs":
        """Return the same costs with all CPU work multiplied by a factor, as on another machine."""
        scaled = {
            name: tuple(figure * factor for figure in getattr(self, name))
            for name in ("growing", "new", "compaction", "summary")
        }
        return Costs(**{**asdict(self), **scaled})


def recorded_costs(store: str) -> Costs:
    """Return the costs that were measured with a store, sqlite or postgres, for this version."""
    return read_costs(Path(__file__).with_name(f"recorded_{store}.json"))


def read_costs(path: Path) -> Costs:
    """Read costs from a file that `everlong lab capacity --save` wrote. Raises InputError for any other file."""
    try:
        costs = msgspec.json.decode(path.read_bytes(), type=Costs)
    except OSError as error:
        raise InputError(f"--costs: {path} cannot be read: {error.strerror}") from error
    except msgspec.MsgspecError as error:
        raise InputError(f"--costs: {path} has no costs: {error}; write one with --costs measured --save") from error
    if any(len(figures) != len(COST_SIZES) for figures in (costs.growing, costs.new, costs.compaction, costs.summary)):
        raise InputError(f"--costs: {path} needs {len(COST_SIZES)} figures per row, for {COST_SIZES} tokens")
    return costs


def write_costs(costs: Costs, path: Path) -> None:
    """Write costs for `read_costs`."""
    path.write_text(json.dumps(asdict(costs), indent=1) + "\n", encoding="utf-8")
