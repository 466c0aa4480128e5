"""The clock of a store. Times are kept in UTC, whatever zone a clock says."""

from collections.abc import Callable
from datetime import UTC, datetime

__all__ = ["Clock", "as_utc", "in_utc", "utc_now"]

Clock = Callable[[], datetime]


def utc_now() -> datetime:
    """The machine's time."""
    return datetime.now(UTC)


def in_utc(clock: Clock) -> Clock:
    """The same clock in UTC."""
    return lambda: as_utc(clock())


def as_utc(time: datetime) -> datetime:
    """The same time in UTC; one without a zone is local time."""
    return time.astimezone(UTC)
