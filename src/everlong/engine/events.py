"""Events: what happens to a thread, recorded in the store and reported to observers, logs and traces.

They contain names, figures and reasons, but no message contents. A reason may quote a provider's error.
"""

import json
import logging
from collections import OrderedDict
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from everlong.compress import Preset
from everlong.core import OUTCOMES, Event, EventKind, Figures, JsonText, starts
from everlong.engine.contracts import Threads
from everlong.extras import expect_extras
from everlong.windows import Window

if TYPE_CHECKING:
    from opentelemetry.trace import Span, TracerProvider

__all__ = [
    "ASSEMBLED",
    "CUT_NEAR",
    "Journal",
    "Observer",
    "compression_data",
    "logs_events",
    "narrow_hint",
    "new_id",
    "now",
    "traces_events",
    "window_hint",
]

#: Called with every event of a thread after it was recorded. It must not block; exceptions are only logged.
Observer = Callable[[str, Event], None]

log = logging.getLogger("everlong.observers")

ASSEMBLED = "preset "  # how the reason begins if a preset assembles every request: then no compaction is stored
CUT_NEAR = "a compaction is near"  # the reason of a warning that nobody has to act on


def now() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(UTC)


def new_id() -> str:
    """Return a new random id."""
    return uuid4().hex


class Journal:
    """The events of one piece of work, recorded together when it is done, also when it failed."""

    def __init__(
        self,
        threads: Threads,
        thread: str,
        *,
        observers: Sequence[Observer] = (),
        clock: Callable[[], datetime] = now,
        new_id: Callable[[], str] = new_id,
    ) -> None:
        self._threads = threads
        self._thread = thread
        self._observers = observers
        self._clock = clock
        self._new_id = new_id
        self._events: list[Event] = []

    def note(self, kind: EventKind, *, parent: str = "", **figures: Any) -> str:
        """Note an event; return its id."""
        event = Event(id=self._new_id(), kind=kind, time=self._clock(), parent=parent, **figures)
        self._events.append(event)
        return event.id

    def __enter__(self) -> "Journal":
        return self

    def __exit__(self, *_: object) -> None:
        events, self._events = self._events, []
        if not events:
            return
        self._threads.record(self._thread, events)
        for event in events:
            for observer in self._observers:
                _report(observer, self._thread, event)


def _report(observer: Observer, thread: str, event: Event) -> None:
    try:
        observer(thread, event)
    except Exception:  # an observer is foreign code: its failure must not end a turn
        log.exception("an observer failed on event %s of thread %s", event.kind.value, thread)


KEPT_OPEN = 4_096  # spans; beyond that, a span whose end never comes is dropped
FAILURES = frozenset({EventKind.TURN_FAILED, EventKind.SUMMARY_FAILED, EventKind.OVERFLOW_FAILED})
FIGURES = ("parent", "reason", "model", "messages_before", "messages_after", "tokens_before", "tokens_after", "cost")
OPERATIONS = {
    EventKind.TURN_STARTED: "chat",
    EventKind.SUMMARY_STARTED: "summarize",
    EventKind.OVERFLOW_DETECTED: "recover",
}


def logs_events(logger: logging.Logger | None = None) -> Observer:
    """Return an observer that logs each event, with its figures in `record.everlong`. Failures are warnings."""
    out = logger or logging.getLogger("everlong.events")

    def report(thread: str, event: Event) -> None:
        level = logging.WARNING if event.kind in FAILURES else logging.INFO
        if out.isEnabledFor(level):
            figures = {"thread": thread, "event": event.kind.value, "id": event.id, **_figures(event)}
            line = " ".join(f"{name}={value}" for name, value in figures.items())
            out.log(level, "%s", line, extra={"everlong": figures})

    return report


def traces_events(provider: "TracerProvider | None" = None) -> Observer:
    """Return an observer that makes a span for every turn, summary and recovery, with `gen_ai.*` attributes.

    All other events are events inside a span. Needs the `telemetry` extra. Without a provider, OpenTelemetry's global
    one is used.
    """
    expect_extras("tracing", "telemetry")
    from opentelemetry import trace  # noqa: PLC0415 - an extra that only those who trace install

    tracer = trace.get_tracer("everlong", tracer_provider=provider)
    open_spans: OrderedDict[str, Span] = OrderedDict()

    def report(thread: str, event: Event) -> None:
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

    return report


def _figures(event: Event) -> dict[str, Any]:
    figures = {name: getattr(event, name) for name in FIGURES}
    return {name: value for name, value in figures.items() if value not in (None, "")}


def _attributes(event: Event) -> dict[str, Any]:
    attributes = {
        f"everlong.{name}": value for name, value in _figures(event).items() if name not in ("parent", "model")
    }
    return {"gen_ai.request.model": event.model, **attributes} if event.model else attributes


def _nanoseconds(time: datetime) -> int:
    return int(time.timestamp() * 1_000_000_000)


def compression_data(preset: Preset, before: int, after: int, figures: Figures | None = None) -> JsonText:
    """Return the figures of a compaction, under the names of the context document; null if there is no limit.

    For a stored compaction, they also say how many messages were kept, shortened and left out. Example: the preset
    simple, 40 messages, 12 sent -> max_messages 12, max_chars_per_message 4000
    """
    data = {
        "original_count": before,
        "compressed_count": after,
        "max_messages": preset.history.messages,
        "max_chars_per_message": preset.history.characters,
    }
    if figures is not None:
        data |= {
            "messages": figures.messages,
            "kept": figures.kept,
            "shortened": figures.shortened,
            "left_out": figures.left_out,
        }
    return json.dumps(data)


def window_hint(window: Window, *, summarises: bool = True) -> str:
    """Return what to do about an unknown window. Without `summarises`, it adds that no summary starts until then."""
    off = "" if summarises else "; until then no summary is written automatically"
    return (
        f"the context window of {window.model!r} is unknown, so {window.context:,} tokens are assumed: "
        f"set EVERLONG_WINDOW, or `window` in the thread's settings{off}"
    )


def narrow_hint(movable: int, window: int, parts: Sequence[tuple[str, int]]) -> str:
    """Return what fills the window and what to do about it, for a window of which a compaction can free only little."""
    sizes = ", ".join(f"{name} {size:,}" for name, size in sorted(parts, key=lambda part: -part[1]))
    return (
        f"compaction can free only {movable:,} of the window's {window:,} tokens ({sizes}): "
        "use a model with a larger window, fewer tools or a shorter system text, or ask for a shorter answer"
    )
