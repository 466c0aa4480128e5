"""The gateway's metrics for Prometheus: requests, the time they took, what was saved and what went wrong."""

import os

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

from everlong.core import Event, EventKind
from everlong.engine import calls_in
from everlong.gateway.operations.reports import Report

__all__ = ["Metrics"]

SECONDS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)
ADDED = (0.001, 0.002, 0.003, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 5)
MESSAGES = (2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000)
SUMMARIES = {
    EventKind.SUMMARY_APPLIED: "applied",
    EventKind.SUMMARY_SKIPPED: "skipped",
    EventKind.SUMMARY_FAILED: "failed",
}
#: Several processes share their figures in the folder that this variable names; the library reads it by itself.
SHARED = "PROMETHEUS_MULTIPROC_DIR"


class Metrics:
    """The metrics of one process, or of all processes that share a folder."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        own = self._registry

        def counter(name: str, says: str, *labels: str) -> Counter:
            return Counter(f"everlong_{name}", says, labels, registry=own)

        self._requests = counter(
            "requests", "Requests, by format, upstream and status.", "format", "upstream", "status"
        )
        self._tokens = counter("tokens", "Prompt tokens: as clients sent them, as forwarded, saved.", "what")
        self._dollars = counter("saved_dollars", "Input prices of the tokens that were not sent.")
        self._overflows = counter("overflows", "Requests that an upstream refused as too long.")
        self._recoveries = counter("recoveries", "Overflows after which a shorter request was accepted.")
        self._lost = counter("overflows_lost", "Overflows that reached a client.")
        self._compactions = counter("compactions", "Cuts, by reason.", "reason")
        self._summaries = counter("summaries", "Summaries, by outcome.", "outcome")
        self._calls = counter("calls", "Calls of models: for the conversation, for summaries, for titles.", "what")
        self._spent = counter("spent_dollars", "What they cost, where the price is known.", "what")
        self._recalls = counter("recalls", "Blocks that were brought back for a question.")
        self._conversations = counter("conversations", "Conversations that began.")
        self._refusals = counter("refusals", "Requests that the gateway itself refused, by kind.", "kind")
        self._unmanaged = counter("unmanaged", "Requests that were forwarded as they came, by reason.", "reason")
        self._gone = counter("clients_gone", "Clients that went away before their answer ended.")
        self._ended = counter("requests_ended", "Requests, by who ended them.", "by")
        self._closed = counter("connections_closed", "Connections that were closed early, by reason.", "reason")
        self._seconds = Histogram("everlong_request_seconds", "Whole requests.", buckets=SECONDS, registry=own)
        self._added = Histogram("everlong_added_seconds", "Time added by the gateway.", buckets=ADDED, registry=own)
        self._length = Histogram(
            "everlong_conversation_messages",
            "Messages of a conversation, at each request.",
            buckets=MESSAGES,
            registry=own,
        )

    def observe(self, _thread: str, event: Event) -> None:
        """Count an event of the engine."""
        match event.kind:
            case EventKind.OVERFLOW_DETECTED:
                self._overflows.inc()
            case EventKind.OVERFLOW_RECOVERED:
                self._recoveries.inc()
            case EventKind.OVERFLOW_FAILED:
                self._lost.inc()
            case EventKind.CONTEXT_COMPRESSED:
                self._compactions.labels(event.reason).inc()
            case EventKind.USAGE_RECORDED:
                what = event.reason or "conversation"
                self._calls.labels(what).inc(calls_in(event))
                self._spent.labels(what).inc(event.cost or 0.0)
            case EventKind.RECALLED:
                self._recalls.inc()
            case kind if kind in SUMMARIES:
                self._summaries.labels(SUMMARIES[kind]).inc()
            case _:
                pass

    def began(self) -> None:
        """Count a conversation that was not known before."""
        self._conversations.inc()

    def refused(self, kind: str) -> None:
        """Count a request that the gateway refused."""
        self._refusals.labels(kind).inc()

    def gone(self) -> None:
        """Count a client that went away."""
        self._gone.inc()

    def closed(self, reason: str) -> None:
        """Count a connection that was closed early: its client was too slow, or there were too many."""
        self._closed.labels(reason).inc()

    def answered(self, report: Report) -> None:
        """Count a request that is over."""
        self._requests.labels(report.fmt, report.upstream, str(report.status)).inc()
        self._ended.labels(report.ended_by).inc()
        if report.unmanaged:
            self._unmanaged.labels(report.unmanaged).inc()
        self._seconds.observe(report.seconds)
        self._added.observe(report.added_ms / 1000)
        if report.after:
            self._tokens.labels("original").inc(report.before)
            self._tokens.labels("sent").inc(report.after)
            self._tokens.labels("saved").inc(max(0, report.before - report.after))
            self._dollars.inc(report.saved_dollars)
            self._length.observe(report.messages)

    def written(self) -> tuple[bytes, str]:
        """Return all metrics as text, and the content type."""
        registry = self._registry
        if os.environ.get(SHARED):
            registry = CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return generate_latest(registry), CONTENT_TYPE_LATEST
