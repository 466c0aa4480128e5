"""Moments as nanobot writes them: local time without a zone. Ours are exact and carry their zone."""

from datetime import UTC, datetime

__all__ = ["exact_text", "local_text", "moment"]


def local_text(time: datetime) -> str:
    """The moment in nanobot's way, always of one length. Example: 2026-01-02T03:04:05.000000"""
    try:
        local = time.astimezone()
    except (OverflowError, ValueError, OSError):  # the first and last days of the calendar
        local = time
    return local.replace(tzinfo=None).isoformat(timespec="microseconds")


def exact_text(time: datetime) -> str:
    """The moment in UTC, so written that texts sort as moments do."""
    return time.astimezone(UTC).isoformat(timespec="microseconds")


def moment(written: object) -> datetime | None:
    """The moment in UTC; None if it is none. Without a zone it is local time."""
    if not isinstance(written, str):
        return None
    try:
        return datetime.fromisoformat(written).astimezone(UTC)
    except (OverflowError, ValueError, OSError):
        return None
