"""What happens to a thread beside the talk, in words: cuts, summaries, overflows, what was learned and recalled."""

from everlong.cli.chat_wording import ChatWording
from everlong.cli.maps.shown_text import one_line
from everlong.cli.terminal import amount
from everlong.core import Event, EventKind
from everlong.engine import SUMMARY

__all__ = ["notice_of"]

#: kind -> the key of its words and their colour. What is not here is nobody's business at a prompt.
NOTICES: dict[EventKind, tuple[str, str]] = {
    EventKind.CONTEXT_COMPRESSED: ("notice_cut", "cyan"),
    EventKind.CONTEXT_RESTORED: ("notice_restored", "cyan"),
    EventKind.CONTEXT_WARNED: ("notice_warned", "yellow"),
    EventKind.SUMMARY_STARTED: ("notice_summary_started", "dim"),
    EventKind.SUMMARY_APPLIED: ("notice_summary", "cyan"),
    EventKind.SUMMARY_SKIPPED: ("notice_summary_skipped", "dim"),
    EventKind.SUMMARY_FAILED: ("notice_summary_failed", "yellow"),
    EventKind.OVERFLOW_DETECTED: ("notice_overflow", "yellow"),
    EventKind.OVERFLOW_RECOVERED: ("notice_recovered", "cyan"),
    EventKind.WINDOW_LEARNED: ("notice_learned", "yellow"),
    EventKind.RECALLED: ("notice_recalled", "cyan"),
}


def notice_of(event: Event, say: ChatWording) -> tuple[str, str] | None:
    """One line and its colour; None if it is not worth one."""
    known = NOTICES.get(event.kind)
    if known is None or (event.kind is EventKind.CONTEXT_COMPRESSED and event.reason == SUMMARY):
        return None  # the second is told by the summary itself
    key, style = known
    if event.kind is EventKind.SUMMARY_APPLIED and event.reason:
        key, style = "notice_summary_by_rules", "yellow"  # the reason is why no model wrote it
    before, after = (("?" if n is None else amount(n)) for n in (event.tokens_before, event.tokens_after))
    return say(key, before=before, after=after, reason=say.reason(one_line(event.reason))), style
