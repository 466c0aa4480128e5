"""What is left of a client's limits, as the headers of each maker."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

__all__ = ["Allowance", "anthropic_allowances", "openai_allowances"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """How much of a limit is left. `what` is "requests" or "tokens"; the limit resets in `reset` seconds."""

    what: str
    limit: int
    remaining: int
    reset: float


def openai_allowances(allowances: Sequence[Allowance], _: datetime) -> list[tuple[str, str]]:
    """Return the headers that OpenAI and most servers use. Example: x-ratelimit-reset-requests: 6m0s"""
    return [
        (f"x-ratelimit-{name}-{one.what}", value)
        for one in allowances
        for name, value in (
            ("limit", str(one.limit)),
            ("remaining", str(one.remaining)),
            ("reset", _duration(one.reset)),
        )
    ]


def anthropic_allowances(allowances: Sequence[Allowance], now: datetime) -> list[tuple[str, str]]:
    """Return the headers that Anthropic uses. Example: anthropic-ratelimit-requests-reset: 2026-11-16T18:00:00Z"""
    return [
        (f"anthropic-ratelimit-{one.what}-{name}", value)
        for one in allowances
        for name, value in (
            ("limit", str(one.limit)),
            ("remaining", str(one.remaining)),
            ("reset", (now + timedelta(seconds=one.reset)).strftime("%Y-%m-%dT%H:%M:%SZ")),
        )
    ]


def _duration(seconds: float) -> str:
    """Return a duration as OpenAI writes it.

    Example: 0.012 -> "12ms", 59.24 -> "59.24s", 360 -> "6m0s", 5430 -> "1h30m30s"
    """
    if seconds < 1:
        return f"{round(seconds * 1000)}ms"
    whole, rest = divmod(round(seconds, 3), 60)
    hours, minutes = divmod(int(whole), 60)
    return (
        (f"{hours}h" if hours else "") + (f"{minutes}m" if whole else "") + f"{rest:.3f}".rstrip("0").rstrip(".") + "s"
    )
