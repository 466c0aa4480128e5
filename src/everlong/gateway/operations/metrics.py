"""The gateway's metrics for Prometheus: requests, the time they took, what was saved and what went wrong."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

from everlong.core import Event, EventKind
from everlong.engine import calls_in
from everlong.gateway.operations.reports import Report
from everlong.gateway.upstreams.circuits import Circuit
from everlong.jobs import Counts

__all__ = ["Metrics"]

SECONDS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)
ADDED = (0.001, 0.002, 0.003, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 5)
MESSAGES = (2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000)
SUMMARIES = {
    EventKind.SUMMARY_APPLIED: "applied",
    EventKind.SUMMARY_SKIPPED: "skipped",
    EventKind.SUMMARY_FAILED: "failed",
}
ENDS = ("done", "failed", "superseded", "taken_over")
#: The variable of the folder in which several processes share their figures; the library reads it itself.
SHARED = "PROMETHEUS_MULTIPROC_DIR"


class _JobFigures:
    """How many background jobs wait and run, and how many ended in which way."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._ended = Counter("everlong_jobs_ended", "Background jobs, by outcome.", ("end",), registry=registry)
        self._now = Gauge(
            "everlong_jobs",
            "Background jobs that are waiting and running; with Postgres, in all processes.",
            ("state",),
            registry=registry,
            multiprocess_mode="livemax",
        )
        self._last = Counts()

    def show(self, counts: Counts) -> None:
        """Show the current figures, and count what has ended since the last call."""
        for state in ("waiting", "running"):
            self._now.labels(state).set(getattr(counts, state))
        for end in ENDS:
            self._ended.labels(end).inc(getattr(counts, end) - getattr(self._last, end))
        self._last = counts


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
        self._tokens = counter("tokens", "Prompt tokens: received from clients, forwarded, saved.", "what")
        self._usage = counter("usage_tokens", "Tokens as providers report them: prompt, cached, output.", "what")
        self._dollars = counter("saved_dollars", "The tokens that were not sent, at the uncached input price.")
        self._overflows = counter("overflows", "Requests that an upstream refused as too long.")
        self._recoveries = counter("recoveries", "Overflows after which a shorter request was accepted.")
        self._lost = counter("overflows_lost", "Overflows that reached a client.")
        self._compactions = counter("compactions", "Compactions, by reason.", "reason")
        self._summaries = counter("summaries", "Summaries, by outcome.", "outcome")
        self._calls = counter("calls", "Model calls: for conversations, summaries and titles.", "what")
        self._spent = counter("spent_dollars", "The cost of model calls, if the price is known.", "what")
        self._recalls = counter("recalls", "Blocks that were recalled for a question.")
        self._conversations = counter("conversations", "Conversations that started.")
        self._refusals = counter("refusals", "Requests that the gateway itself refused, by kind.", "kind")
        self._unmanaged = counter("unmanaged", "Requests that were forwarded unchanged, by reason.", "reason")
        self._gone = counter("clients_gone", "Clients that disconnected before their answer was complete.")
        self._ended = counter("requests_ended", "Requests, by the side that ended them.", "by")
        self._closed = counter("connections_closed", "Connections that were closed early, by reason.", "reason")
        self._addresses = counter(
            "addresses", "Requests to an upstream with several addresses, by address.", "upstream", "address"
        )
        self._failovers = counter("failovers", "Requests that another address of their upstream answered.", "upstream")
        self._under_way = Gauge(
            "everlong_requests_in_flight",
            "Requests that are running, streams included.",
            registry=own,
            multiprocess_mode="livesum",
        )
        self._store_up = Gauge(
            "everlong_store_up", "Whether the store answers: 1, or 0.", registry=own, multiprocess_mode="livemin"
        )
        self._store = Histogram(
            "everlong_store_seconds", "Time of one lookup in the store.", buckets=ADDED, registry=own
        )
        self._circuits = Gauge(
            "everlong_circuit",
            "The circuit of an address: 0 closed, 1 half-open, 2 open.",
            ("upstream", "address"),
            registry=own,
            multiprocess_mode="livemax",
        )
        self._jobs = _JobFigures(own)
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

    def spent(self, dollars: float) -> None:
        """Count the cost of a request that was not managed."""
        self._calls.labels("conversation").inc()
        self._spent.labels("conversation").inc(dollars)

    def began(self) -> None:
        """Count a new conversation."""
        self._conversations.inc()

    def refused(self, kind: str) -> None:
        """Count a request that the gateway refused."""
        self._refusals.labels(kind).inc()

    def gone(self) -> None:
        """Count a client that disconnected."""
        self._gone.inc()

    def closed(self, reason: str) -> None:
        """Count a connection that was closed early because its client was too slow or there were too many."""
        self._closed.labels(reason).inc()

    def circuit(self, circuit: Circuit) -> None:
        """Show the state of a circuit."""
        self._circuits.labels(circuit.upstream, circuit.address).set(circuit.state)

    @contextmanager
    def under_way(self) -> Iterator[None]:
        """Count a request while it is in progress."""
        self._under_way.inc()
        try:
            yield
        finally:
            self._under_way.dec()

    def store_answered(self, seconds: float) -> None:
        """Record how long the store took for a look-up."""
        self._store.observe(seconds)

    def store_is_up(self, up: bool) -> None:
        """Record whether the store answers."""
        self._store_up.set(up)

    def worked(self, counts: Counts) -> None:
        """Show the figures of background jobs."""
        self._jobs.show(counts)

    def answered(self, report: Report) -> None:
        """Count a request that is over."""
        self._requests.labels(report.fmt, report.upstream, str(report.status)).inc()
        self._ended.labels(report.ended_by).inc()
        if report.unmanaged:
            self._unmanaged.labels(report.unmanaged).inc()
        if report.tried:
            self._addresses.labels(report.upstream, report.address).inc()
            if report.tried > 1:
                self._failovers.labels(report.upstream).inc()
        self._seconds.observe(report.seconds)
        self._added.observe(report.added_ms / 1000)
        if report.usage is not None:
            self._usage.labels("prompt").inc(report.usage.prompt or 0)
            self._usage.labels("cached").inc(report.usage.cached or 0)
            self._usage.labels("output").inc(report.usage.output or 0)
        if report.after:
            self._tokens.labels("original").inc(report.before)
            self._tokens.labels("sent").inc(report.after)
            self._tokens.labels("saved").inc(max(0, report.before - report.after))
            self._dollars.inc(report.saved_dollars)
            self._length.observe(report.messages)

    def written(self) -> tuple[bytes, str]:
        """Return all metrics as text, and the content type."""
        registry = self._registry
        if folder := os.environ.get(SHARED):
            _forget_the_dead(Path(folder))
            registry = CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return generate_latest(registry), CONTENT_TYPE_LATEST


def _forget_the_dead(folder: Path) -> None:
    """Delete the gauges of dead processes; otherwise a killed process would show requests in progress forever."""
    for file in folder.glob("gauge_live*_*.db"):
        try:
            os.kill(int(file.stem.rpartition("_")[2]), 0)
        except ProcessLookupError:
            file.unlink(missing_ok=True)
        except PermissionError:
            continue
