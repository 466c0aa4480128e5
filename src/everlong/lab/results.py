"""What a measure of the lab found: plain values that the terminal, the page, JSON and tests read alike.

Values only. How something is measured or drawn is not known here.
"""

from dataclasses import dataclass

__all__ = ["Group", "Result", "Row"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A part of a row. `of` says by what it was split: "kind", "source", "category"; `name` which part."""

    of: str
    name: str
    hits: int
    strict: int
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One budget: of `total` cases `hits` were still there, `strict` of them without names alone.

    `recall` is the mean share of a question's evidence (dialogs), None elsewhere. `milliseconds` is the median CPU
    time of one selection (on the clock, where another process works); `tokens` the mean of what was sent; `over` how
    many selections passed the budget; `failed` how many gave no messages at all (they count as misses).
    """

    budget: int
    hits: int
    strict: int
    total: int
    recall: float | None = None
    milliseconds: float = 0.0
    tokens: float = 0.0
    over: int = 0
    failed: int = 0
    groups: tuple[Group, ...] = ()

    @property
    def percent(self) -> float:
        """Share of hits, in percent; 0 of nothing."""
        return 100 * self.hits / self.total if self.total else 0.0

    @property
    def strict_percent(self) -> float:
        """Share of strict hits, in percent; 0 of nothing."""
        return 100 * self.strict / self.total if self.total else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One strategy on one data set. `measure`: "probes", "edits" or "dialogs"; `half`: "tuning", "confirming", "all".

    `uncut` is how many of `total` stand in the whole history: more cannot be found. `rows` are in order of budget.
    """

    measure: str
    data: str
    strategy: str
    half: str
    conversations: int
    total: int
    uncut: int
    rows: tuple[Row, ...]
