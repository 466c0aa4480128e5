"""What happens to a conversation, as values: each turn, compaction, summary, overflow and cost.

Work that takes time is a start and exactly one outcome, which names its start as `parent`. Stores keep these
beside the messages; user interfaces, logs, telemetry and tests read the same values.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from everlong.core.messages import JsonText

__all__ = ["OUTCOMES", "STARTS", "Event", "EventKind", "starts"]


class EventKind(StrEnum):
    """What happened."""

    TURN_STARTED = "turn.started"
    TURN_FINISHED = "turn.finished"
    TURN_FAILED = "turn.failed"
    CONTEXT_WARNED = "context.warned"
    CONTEXT_COMPRESSED = "context.compressed"
    CONTEXT_RESTORED = "context.restored"
    SUMMARY_STARTED = "summary.started"
    SUMMARY_APPLIED = "summary.applied"
    SUMMARY_SKIPPED = "summary.skipped"
    SUMMARY_FAILED = "summary.failed"
    OVERFLOW_DETECTED = "overflow.detected"
    OVERFLOW_RECOVERED = "overflow.recovered"
    OVERFLOW_FAILED = "overflow.failed"
    WINDOW_LEARNED = "window.learned"
    REPLY_SHORTENED = "reply.shortened"
    USAGE_RECORDED = "usage.recorded"
    RECALLED = "recalled"


#: What each start may end in.
OUTCOMES: dict[EventKind, tuple[EventKind, ...]] = {
    EventKind.TURN_STARTED: (EventKind.TURN_FINISHED, EventKind.TURN_FAILED),
    EventKind.SUMMARY_STARTED: (EventKind.SUMMARY_APPLIED, EventKind.SUMMARY_SKIPPED, EventKind.SUMMARY_FAILED),
    EventKind.OVERFLOW_DETECTED: (EventKind.OVERFLOW_RECOVERED, EventKind.OVERFLOW_FAILED),
}
#: The start that each outcome ends.
STARTS: dict[EventKind, EventKind] = {outcome: start for start, ends in OUTCOMES.items() for outcome in ends}


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One thing that happened in a thread. Figures that do not apply are None; `data` is more of it, as JSON."""

    id: str
    kind: EventKind
    time: datetime
    parent: str = ""
    reason: str = ""
    model: str = ""
    messages_before: int | None = None
    messages_after: int | None = None
    tokens_before: int | None = None
    tokens_after: int | None = None
    cost: float | None = None
    data: JsonText = ""


def starts(kind: EventKind) -> bool:
    """Whether an outcome must follow."""
    return kind in OUTCOMES
