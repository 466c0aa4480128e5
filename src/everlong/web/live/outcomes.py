"""How a compaction ended, for the pages: done, failed or skipped, with a key for the reason that they can show.

The engine's reasons are for logs. A page gets the kind of reason, the model it is about, and the figures of the
compaction. A summary by rules counts as failed, because a model was asked to write it.
"""

import json
import re

from everlong.core import Event, EventKind, JsonObject

__all__ = ["BY_RULES", "outcome_of", "reason_of"]

BY_RULES = "by rules: "  # how the engine marks a summary that no model wrote
STATES = {
    EventKind.SUMMARY_STARTED: "started",
    EventKind.SUMMARY_APPLIED: "done",
    EventKind.SUMMARY_SKIPPED: "skipped",
    EventKind.SUMMARY_FAILED: "failed",
}
#: Word for the page <- what the engine says. The first that matches decides.
REASONS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (word, re.compile(pattern))
    for word, pattern in (
        ("nothing_new", r"nothing worth a summary since|there is nothing to summarise|not due"),
        ("no_gain", r"it would not have saved anything"),
        ("changed", r"the thread was changed meanwhile|the thread kept changing|another process took it over"),
        ("cancelled", r"^cancelled"),
        ("interrupted", r"^interrupted"),
        ("no_author", r"there is no (?:author|model to write it)"),
        ("resting", r"(?:wrote no|failed to write a) summary \d+ times and is asked again"),
        ("slow", r"no answer within"),
        ("length", r"cut off at its length limit|an answer of more than"),
        ("window", r"its window of .* is too small|ContextOverflow|NotRecovered|BudgetImpossible|ReplyLimitExceeded"),
        ("busy", r"^RateLimited|^\w+ (?:429|503|529): "),
        ("key", r"^\w+ (?:401|403): "),
        ("away", r"^\w+ 5\d\d: |^ProviderError: |stream (?:ended without an end|stopped before)"),
        ("refused", r"^[A-Z]\w+(?: \d{3})?: "),
        ("store", r"store|Store"),
    )
)
ERROR = re.compile(r"[A-Z]\w+(?: \d{3})?: ")  # the name of an exception, which means nothing to a reader
LONGEST_DETAIL = 300  # characters of what a server said
WRONG = "wrong"  # the model answered, but not with a summary


def outcome_of(event: Event) -> JsonObject | None:
    """Return what pages get of an event; None if it is not about a summary."""
    state = STATES.get(event.kind)
    if state is None:
        return None
    by_rules = event.kind is EventKind.SUMMARY_APPLIED and event.reason.startswith(BY_RULES)
    ended_badly = state in ("failed", "skipped") or by_rules
    return {
        "state": "failed" if by_rules else state,
        **(reason_of(event.reason.removeprefix(BY_RULES)) if ended_badly else {"reason": ""}),
        "by_rules": by_rules,
        "messages": _messages(event),
        "tokens_before": event.tokens_before if event.tokens_after is not None else None,
        "tokens_after": event.tokens_after,
    }


def reason_of(reason: str) -> JsonObject:
    """Return the word for a reason, the model it is about, and what its server said. Of several, the last one counts.

    Example: "gpt-4o: no answer within 120 s; mini: ProviderError: no key" -> "key", "mini", "no key"
    """
    last = reason.rpartition("; ")[2]
    name, colon, said = last.partition(": ")
    if not colon or " " in name or ERROR.match(last):
        name, said = "", last
    word = next((word for word, pattern in REASONS if pattern.search(said)), WRONG if name else "refused")
    error = ERROR.match(said)
    return {"reason": word, "model": name, "detail": said[error.end() :][:LONGEST_DETAIL] if error else ""}


def _messages(event: Event) -> int | None:
    try:
        messages = json.loads(event.data).get("messages")
    except (ValueError, AttributeError):
        return None
    return messages if isinstance(messages, int) else None
