"""The account of a thread: the newest summary that a standing point carries, and the message it is sent as."""

from everlong.core import Message, Point, Row
from everlong.engine.threads import Threads
from everlong.errors import InputError
from everlong.summarize import Summary, as_message, decode_summary, written
from everlong.tokens import Counter

__all__ = ["MOST_TOKENS", "account_in", "account_message", "account_of", "summary_limit"]

MOST_TOKENS = 2_000  # of a summary, whatever the window
SHARE = 0.12  # of the room


def summary_limit(room: int) -> int:
    """The tokens that a summary may take in a window of that room."""
    return max(1, min(MOST_TOKENS, int(room * SHARE)))


def account_in(row: Row | None) -> Summary | None:
    """The summary that a point carries, if it carries one."""
    if row is None or not isinstance(row.entry, Point) or not row.entry.account:
        return None
    try:
        return decode_summary(row.entry.account)
    except InputError:  # of a version that we cannot read; its words stand in the point all the same
        return None


def account_of(threads: Threads, thread: str, newest: Row | None = None) -> Summary | None:
    """The newest summary of a thread that was not withdrawn; every cut carries it on, so `newest` has it if any has."""
    if (summary := account_in(newest)) is not None:
        return summary
    for row, stands in reversed(threads.points(thread)):
        summary = account_in(row) if stands else None
        if summary is not None:
            return summary
    return None


def account_message(summary: Summary, counter: Counter, limit: int) -> Message:
    """The summary as it is sent: background, within `limit` tokens, frame included."""
    frame = counter.message(as_message("", summary.language))
    return as_message(written(summary, counter=counter, limit=max(1, limit - frame)), summary.language)
