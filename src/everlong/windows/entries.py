"""One model at one provider as a public table lists it, with implausible figures removed.

Tables contain zeros, placeholders and typos. A figure that cannot be true becomes None here, so that no other code has
to check again.
"""

from dataclasses import dataclass
from math import isfinite
from typing import NamedTuple

from everlong.core import Json

__all__ = ["MODELS_DEV", "NO_PRICES", "Entry", "Prices", "consistent", "dollars", "entry_of", "tokens"]

MODELS_DEV = "models.dev"

MOST_TOKENS = 16_000_000  # the largest real window is 10,485,760; tables also hold 99,999,999
LEAST_OUTPUT = 256  # embedding models are listed with an output of 1


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices in USD per million tokens; None if unknown."""

    input: float | None = None
    output: float | None = None
    cache_read: float | None = None
    cache_write: float | None = None


NO_PRICES = Prices()


class Entry(NamedTuple):
    """One row of a table of models. A tuple, because thousands are created at once.

    `context` is the whole window. `input` is the largest prompt; some tables list only that. `inferred` means that the
    table has no limits for this row and uses those of the same model elsewhere.
    """

    provider: str
    id: str
    table: str
    date: str
    context: int | None = None
    input: int | None = None
    output: int | None = None
    usd_input: float | None = None
    usd_output: float | None = None
    usd_cache_read: float | None = None
    usd_cache_write: float | None = None
    inferred: bool = False

    @property
    def window(self) -> int:
        """The context window according to the table; 0 if unknown."""
        return self.context or self.input or 0

    @property
    def prices(self) -> Prices:
        """The prices."""
        return Prices(self.usd_input, self.usd_output, self.usd_cache_read, self.usd_cache_write)

    @property
    def origin(self) -> str:
        """The table, and whether it has the limits itself. Example: "models.dev, inferred" """
        return f"{self.table}, inferred" if self.inferred else self.table

    @property
    def claimant(self) -> str:
        """The source of the figures. Example: "deepseek (litellm)" """
        return f"{self.provider} ({self.origin})"


def tokens(value: Json) -> int | None:
    """Return a plausible number of tokens, or None.

    Example: 8192, 8192.0 and "8192" -> 8192; 0, -1, True, None -> None.
    """
    if isinstance(value, str) and value.strip().isascii() and value.strip().isdecimal():
        value = int(value) if len(value) < 12 else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        return None
    return int(value) if 1 <= value <= MOST_TOKENS else None


def dollars(value: Json) -> float | None:
    """Return a plausible price; None for a negative one or anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value) or value < 0:
        return None
    return float(value)


def entry_of(provider: str, model: str, table: str, date: str, limits: dict[str, Json], cost: dict[str, Json]) -> Entry:
    """Return a row with plausible figures only."""
    return consistent(
        Entry(
            provider,
            model,
            table,
            date,
            context=tokens(limits.get("context")),
            input=tokens(limits.get("input")),
            output=tokens(limits.get("output")),
            usd_input=dollars(cost.get("input")),
            usd_output=dollars(cost.get("output")),
            usd_cache_read=dollars(cost.get("cache_read")),
            usd_cache_write=dollars(cost.get("cache_write")),
        )
    )


def consistent(entry: Entry) -> Entry:
    """Return the row without impossible limits: a prompt as large as the window, a larger or a tiny output."""
    if entry.context is not None and entry.input is not None and entry.input >= entry.context:
        entry = entry._replace(input=None)
    if entry.output is not None and not LEAST_OUTPUT <= entry.output <= (entry.context or MOST_TOKENS):
        entry = entry._replace(output=None)
    return entry
