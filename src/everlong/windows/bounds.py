"""Bounds for a limit that the provider does not state: refused sizes are above it, accepted sizes are not.

The first refusal lowers requests to three fifths of the refused size, a later one to two fifths, but never below a size
that was accepted before. These shares apply only to the movable part of the refused request: its fixed part is sent in
any case.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from everlong.core import Json, JsonObject

__all__ = ["Bounds"]

LEAST = 2_000  # tokens besides the fixed part: a guessed limit must not make requests impossible
SHARES = (0.6, 0.4)  # of the refused size: after the first refusal, and after any later one


@dataclass(frozen=True, slots=True)
class Bounds:
    """The smallest size that was refused and the largest that was accepted since; None if there is none.

    `fixed` is the part of the refused size that every request has, and `refusals` the number of refusals.
    """

    refused: int | None = None
    passed: int | None = None
    fixed: int = 0
    refusals: int = 0

    @property
    def limit(self) -> int | None:
        """The most to send from now on; None if nothing was refused."""
        if self.refused is None:
            return None
        fixed = min(self.fixed, self.refused)
        free = self.refused - fixed
        careful = fixed + max(int(SHARES[min(self.refusals, len(SHARES)) - 1] * free), min(free, LEAST))
        return max(1, min(self.refused - 1, max(careful, self.passed or 0)))

    def after_refusal(self, size: int, *, fixed: int = 0, passed: int | None = None) -> "Bounds":
        """Return the bounds after a request of this size was refused.

        `passed` is the size of a request that was accepted just before. Earlier accepted sizes at or above the refused
        one are forgotten.
        """
        known = [one for one in (self.passed, passed) if one is not None and one < size]
        refused = size if self.refused is None else min(size, self.refused)
        return Bounds(refused, max(known, default=None), fixed, self.refusals + 1)

    def after_pass(self, size: int) -> "Bounds":
        """Return the bounds after a request of this size was accepted; the same object if that changes nothing."""
        if self.refused is None or size <= (self.limit or 0):
            return self
        return Bounds(max(self.refused, size + 1), size, self.fixed, self.refusals)

    def encoded(self) -> JsonObject:
        """Return the bounds as JSON."""
        return {"refused": self.refused, "passed": self.passed, "fixed": self.fixed, "refusals": self.refusals}

    @classmethod
    def decoded(cls, value: Json) -> "Bounds":
        """Return stored bounds; empty ones, to be learned again, if they cannot be read."""
        if not isinstance(value, Mapping):
            return cls()
        refused, passed, fixed, refusals = (
            _whole(value.get(name)) for name in ("refused", "passed", "fixed", "refusals")
        )
        return cls(refused, passed, fixed or 0, refusals or 1) if refused is not None else cls()


def _whole(value: Json) -> int | None:
    return value if type(value) is int and value >= 0 else None
