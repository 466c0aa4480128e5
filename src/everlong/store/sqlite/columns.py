"""How values stand in columns: times as microseconds, texts as text, a text that is no valid Unicode as its bytes."""

from datetime import UTC, datetime, timedelta

from everlong.core import bytes_of
from everlong.store.bodies import text_of_bytes

__all__ = ["kept_text", "kept_time", "text_from", "time_from"]

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


def kept_time(time: datetime) -> int:
    """A time as microseconds since 1970, exactly."""
    return (time - EPOCH) // MICROSECOND


def time_from(kept: int) -> datetime:
    """The time that `kept_time` kept."""
    return EPOCH + kept * MICROSECOND


def kept_text(text: str) -> str | bytes:
    """A text as SQLite takes it; one with lone surrogates, which is no valid Unicode, as its bytes."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return bytes_of(text)
    return text


def text_from(kept: str | bytes) -> str:
    """The text that `kept_text` kept."""
    return kept if isinstance(kept, str) else text_of_bytes(kept)
