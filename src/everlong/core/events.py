"""The events of a conversation: turns, compactions, summaries, overflows and costs.

Work that takes time has a start and exactly one outcome, which names the start as its `parent`. Stores keep events next
to the messages; user interfaces, logs, telemetry and tests all read the same values.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from everlong.core.messages import JsonText

__all__ = ["OUTCOMES", "STARTS", "Event", "EventKind", "starts"]


class EventKind(StrEnum):
    """The kind of an event."""

    #: A request is being prepared.
    TURN_STARTED = "turn.started"
    #: The model answered. `reason` says why the answer ended.
    TURN_FINISHED = "turn.finished"
    #: There is no whole answer: nothing fits, the provider refused, or the caller stopped. `reason` says why.
    TURN_FAILED = "turn.failed"
    #: A compaction is near, or the window is unknown or too narrow. `reason` says what to do.
    CONTEXT_WARNED = "context.warned"
    #: A compaction was made. `data` counts the messages that were kept, shortened and left out.
    CONTEXT_COMPRESSED = "context.compressed"
    #: A compaction was undone: by hand, or because the window is larger now.
    CONTEXT_RESTORED = "context.restored"
    #: A model was asked for a summary.
    SUMMARY_STARTED = "summary.started"
    #: The summary passed its audit and replaces the messages that it covers.
    SUMMARY_APPLIED = "summary.applied"
    #: The summary was not stored: nothing was new, it saved nothing, or the thread changed meanwhile.
    SUMMARY_SKIPPED = "summary.skipped"
    #: The summary was not usable, or the model gave none. `reason` says why.
    SUMMARY_FAILED = "summary.failed"
    #: The provider refused the request as too long, or cut it silently.
    OVERFLOW_DETECTED = "overflow.detected"
    #: A smaller request was accepted.
    OVERFLOW_RECOVERED = "overflow.recovered"
    #: No smaller request was accepted either.
    OVERFLOW_FAILED = "overflow.failed"
    #: A refusal showed the true window: the size before, and the size now.
    WINDOW_LEARNED = "window.learned"
    #: The window leaves less for the answer than the caller asked for: `max_tokens` before, and now.
    REPLY_SHORTENED = "reply.shortened"
    #: The provider reported the tokens of a call: input before, output after. `cost` is in US dollars.
    USAGE_RECORDED = "usage.recorded"
    #: Something that had left the window was added again, because the question needs it.
    RECALLED = "recalled"


#: The possible outcomes of each start.
OUTCOMES: dict[EventKind, tuple[EventKind, ...]] = {
    EventKind.TURN_STARTED: (EventKind.TURN_FINISHED, EventKind.TURN_FAILED),
    EventKind.SUMMARY_STARTED: (EventKind.SUMMARY_APPLIED, EventKind.SUMMARY_SKIPPED, EventKind.SUMMARY_FAILED),
    EventKind.OVERFLOW_DETECTED: (EventKind.OVERFLOW_RECOVERED, EventKind.OVERFLOW_FAILED),
}
#: The start that each outcome belongs to.
STARTS: dict[EventKind, EventKind] = {outcome: start for start, ends in OUTCOMES.items() for outcome in ends}


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One event in a thread. Figures that do not apply are None; `data` has further figures as JSON."""

    id: str
    kind: EventKind
    time: datetime
    #: The id of the event that this one belongs to: an outcome names its start.
    parent: str = ""
    #: Why it happened, in one line; it may quote a provider's error.
    reason: str = ""
    model: str = ""
    messages_before: int | None = None
    messages_after: int | None = None
    tokens_before: int | None = None
    tokens_after: int | None = None
    #: US dollars.
    cost: float | None = None
    #: More figures, as a JSON object.
    data: JsonText = ""


def starts(kind: EventKind) -> bool:
    """Return whether events of this kind need an outcome."""
    return kind in OUTCOMES
