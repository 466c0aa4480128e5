"""Telling others what happens: logs and OpenTelemetry spans, made of the same events that the store keeps.

No contents are told: events carry names, figures and reasons. Reasons may quote a provider's error text.
"""

import logging
from collections import OrderedDict
from datetime import datetime
from typing import TYPE_CHECKING, Any

from everlong.core import OUTCOMES, Event, EventKind, starts
from everlong.engine.means import Observer
from everlong.errors import InputError

if TYPE_CHECKING:
    from opentelemetry.trace import Span, TracerProvider

__all__ = ["logs_events", "traces_events"]

KEPT_OPEN = 4_096  # spans; one whose end never comes is let go
FAILURES = frozenset({EventKind.TURN_FAILED, EventKind.SUMMARY_FAILED, EventKind.OVERFLOW_FAILED})
FIGURES = ("parent", "reason", "model", "messages_before", "messages_after", "tokens_before", "tokens_after", "cost")
OPERATIONS = {
    EventKind.TURN_STARTED: "chat",
    EventKind.SUMMARY_STARTED: "summarize",
    EventKind.OVERFLOW_DETECTED: "recover",
}


def logs_events(logger: logging.Logger | None = None) -> Observer:
    """One log record an event, its figures as `record.everlong`; failures are warnings, the rest is information."""
    out = logger or logging.getLogger("everlong.events")

    def tell(thread: str, event: Event) -> None:
        level = logging.WARNING if event.kind in FAILURES else logging.INFO
        if out.isEnabledFor(level):
            told = {"thread": thread, "event": event.kind.value, "id": event.id, **_figures(event)}
            out.log(level, "%s", " ".join(f"{name}={value}" for name, value in told.items()), extra={"everlong": told})

    return tell


def traces_events(provider: "TracerProvider | None" = None) -> Observer:
    """A span for every turn, summary and recovery, with `gen_ai.*` attributes; everything else is an event inside.

    Needs the `telemetry` extra. Without a provider the global one of OpenTelemetry is used.
    """
    try:
        from opentelemetry import trace  # noqa: PLC0415 - an extra that only those who trace install
    except ImportError:
        raise InputError("tracing needs OpenTelemetry: pip install 'everlong[telemetry]'") from None
    tracer = trace.get_tracer("everlong", tracer_provider=provider)
    open_spans: OrderedDict[str, Span] = OrderedDict()

    def tell(thread: str, event: Event) -> None:
        parent = open_spans.get(event.parent)
        if starts(event.kind):
            context = None if parent is None else trace.set_span_in_context(parent)
            operation = OPERATIONS[event.kind]
            attributes = {"gen_ai.operation.name": operation, "gen_ai.conversation.id": thread, **_attributes(event)}
            name = f"{operation} {event.model}".strip()
            span = tracer.start_span(name, context=context, start_time=_nanoseconds(event.time), attributes=attributes)
            open_spans[event.id] = span
            while len(open_spans) > KEPT_OPEN:
                open_spans.popitem(last=False)[1].end()
            return
        if parent is None:
            return
        if any(event.kind in ends for ends in OUTCOMES.values()):
            parent.set_attributes(_attributes(event))
            if event.kind in FAILURES:
                parent.set_status(trace.Status(trace.StatusCode.ERROR, event.reason))
            parent.end(end_time=_nanoseconds(event.time))
            open_spans.pop(event.parent, None)
        elif event.kind is EventKind.USAGE_RECORDED:
            parent.set_attributes(
                {
                    "gen_ai.usage.input_tokens": event.tokens_before or 0,
                    "gen_ai.usage.output_tokens": event.tokens_after or 0,
                    **_attributes(event),
                }
            )
        else:
            parent.add_event(event.kind.value, _attributes(event), timestamp=_nanoseconds(event.time))

    return tell


def _figures(event: Event) -> dict[str, Any]:
    told = {name: getattr(event, name) for name in FIGURES}
    return {name: value for name, value in told.items() if value not in (None, "")}


def _attributes(event: Event) -> dict[str, Any]:
    told = {f"everlong.{name}": value for name, value in _figures(event).items() if name not in ("parent", "model")}
    return {"gen_ai.request.model": event.model, **told} if event.model else told


def _nanoseconds(time: datetime) -> int:
    return int(time.timestamp() * 1_000_000_000)
