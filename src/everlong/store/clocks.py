"""The clock of a store. Times are kept in UTC, whatever zone a clock says."""

from collections.abc import Callable
from datetime import UTC, datetime

__all__ = ["Clock", "in_utc", "utc_now"]

Clock = Callable[[], datetime]


def utc_now() -> datetime:
    """The machine's time."""
    return datetime.now(UTC)


def in_utc(clock: Clock) -> Clock:
    """The same clock in UTC; a time without a zone is local time."""
    return lambda: clock().astimezone(UTC)
