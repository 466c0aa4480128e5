"""Traces: a span for each request, its preparation, each upstream call and each store call.

OpenTelemetry's own variables set them up, if its SDK is installed; otherwise nothing is traced, at no cost. A client's
`traceparent` is used, so that its trace continues here. Spans contain no text of conversations.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import wraps
from importlib.metadata import entry_points
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Protocol, cast

from everlong.engine import Threads
from everlong.errors import InputError

if TYPE_CHECKING:
    from multidict import CIMultiDict
    from opentelemetry.trace import Span, Tracer, TracerProvider

__all__ = ["NO_TRACES", "Traces", "set_up_traces"]

#: Variables that show that somebody collects traces.
ASKED_BY = ("OTEL_TRACES_EXPORTER", "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
EXPORTERS = "opentelemetry_traces_exporter"
PROTOCOLS = {"http/protobuf": "otlp_proto_http", "grpc": "otlp_proto_grpc"}
#: The store calls that take time, and whose number explains how a request went.
STORE_CALLS = frozenset({"append", "branch", "change", "change_fact", "create", "fact", "facts", "keep_fact"})
STORE_CALLS |= {"open", "read", "record", "remove", "search"}
ERROR = 500


class Traced(Protocol):
    """What a span records about a request: the fields of its report."""

    id: str
    method: str
    path: str
    status: int
    kind: str
    model: str
    upstream: str
    before: int
    after: int
    compactions: int
    ended_by: Any


class Traces:
    """Starts spans; without a tracer, none."""

    def __init__(self, tracer: "Tracer | None" = None) -> None:
        self._tracer = tracer

    @contextmanager
    def request(self, headers: Sequence[tuple[bytes, bytes]], report: Traced) -> Iterator[None]:
        """Trace a request as a part of its client's trace, if the client sent one."""
        if self._tracer is None:
            yield
            return
        from opentelemetry import propagate, trace  # noqa: PLC0415 - an extra

        carried = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in headers}
        fields = {name: carried[name] for name in propagate.get_global_textmap().fields if name in carried}
        with self._tracer.start_as_current_span(
            f"{report.method} {report.path}",
            context=propagate.extract(fields),
            kind=trace.SpanKind.SERVER,
            attributes={"http.request.method": report.method, "url.path": report.path, "everlong.request": report.id},
        ) as span:
            try:
                yield
            finally:
                _describe(span, report)

    def step(self, name: str) -> AbstractContextManager[object]:
        """Trace a part of the work."""
        return nullcontext() if self._tracer is None else self._tracer.start_as_current_span(name)

    def upstream(self, name: str, address: str, headers: "CIMultiDict[str] | None") -> AbstractContextManager[object]:
        """Trace an upstream call until the head of its answer; its context is added to `headers`, if given."""
        return nullcontext() if self._tracer is None else self._upstream(self._tracer, name, address, headers)

    @contextmanager
    def _upstream(
        self, tracer: "Tracer", name: str, address: str, headers: "CIMultiDict[str] | None"
    ) -> Iterator[None]:
        from opentelemetry import propagate, trace  # noqa: PLC0415 - an extra

        attributes = {"everlong.upstream": name, "server.address": address}
        with tracer.start_as_current_span(f"upstream {name}", kind=trace.SpanKind.CLIENT, attributes=attributes):
            if headers is not None:
                propagate.inject(headers)
            yield

    def flush(self) -> None:
        """Send the waiting spans before the process ends. Waits for the collector."""
        if self._tracer is None:
            return
        from opentelemetry import trace  # noqa: PLC0415 - an extra

        flush = getattr(trace.get_tracer_provider(), "force_flush", None)  # a provider without the SDK does not have it
        if flush is not None:
            flush()

    def store(self, store: Threads) -> Threads:
        """Return the store with its calls traced."""
        return store if self._tracer is None else cast(Threads, _TracedStore(store, self._tracer))


NO_TRACES = Traces()


class _TracedStore:
    """A store whose calls are spans inside their caller's span."""

    def __init__(self, store: Threads, tracer: "Tracer") -> None:
        self._store = store
        self._tracer = tracer

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        return self._traced(name, found) if name in STORE_CALLS else found

    def _traced(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(call)
        def traced(*values: Any, **named: Any) -> Any:
            with self._tracer.start_as_current_span(f"store {name}", attributes={"db.operation.name": name}):
                return call(*values, **named)

        return traced


def _describe(span: "Span", report: Traced) -> None:
    from opentelemetry import trace  # noqa: PLC0415 - an extra

    span.set_attributes(
        {
            "http.response.status_code": report.status,
            "gen_ai.request.model": report.model,
            "everlong.upstream": report.upstream,
            "everlong.tokens_before": report.before,
            "everlong.tokens_after": report.after,
            "everlong.compactions": report.compactions,
            "everlong.ended_by": report.ended_by,
        }
    )
    if report.status >= ERROR:
        span.set_status(trace.Status(trace.StatusCode.ERROR, report.kind))


# --- setting up -------------------------------------------------------------------------------------


def set_up_traces(environment: Mapping[str, str]) -> Traces:
    """Return traces as OpenTelemetry's variables request them; otherwise NO_TRACES. Raises InputError.

    An existing provider, such as the one of `opentelemetry-instrument`, is used.
    """
    if find_spec("opentelemetry") is None:
        return NO_TRACES
    from opentelemetry import trace  # noqa: PLC0415 - an extra

    if isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        provider = _provider(environment)
        if provider is None:
            return NO_TRACES
        trace.set_tracer_provider(provider)
    return Traces(trace.get_tracer("everlong"))


def _provider(environment: Mapping[str, str]) -> "TracerProvider | None":
    """What collects spans, according to the variables; None if they do not say so, or if the SDK is not installed."""
    asked = any(environment.get(name) for name in ASKED_BY)
    named = environment.get("OTEL_TRACES_EXPORTER", "otlp")
    off = environment.get("OTEL_SDK_DISABLED", "").lower() == "true" or named == "none"
    if not asked or off or find_spec("opentelemetry.sdk") is None:
        return None
    from opentelemetry.sdk.resources import Resource  # noqa: PLC0415 - an extra
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
    from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415

    known = environment.get("OTEL_SERVICE_NAME") or "service.name=" in environment.get("OTEL_RESOURCE_ATTRIBUTES", "")
    provider = TracerProvider(resource=Resource.create({} if known else {"service.name": "everlong"}))
    for name in named.split(","):
        provider.add_span_processor(BatchSpanProcessor(_exporter(name.strip(), environment)))
    return provider


def _exporter(name: str, environment: Mapping[str, str]) -> Any:
    protocol = environment.get("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")
    meant = PROTOCOLS.get(protocol, protocol) if name == "otlp" else name
    installed = entry_points(group=EXPORTERS)
    found = next((each for each in installed if each.name == meant), None)
    if found is None:
        names = ", ".join(sorted(each.name for each in installed))
        raise InputError(
            f"OTEL_TRACES_EXPORTER: the exporter {meant!r} is not installed (available: {names}); "
            "pip install 'everlong[telemetry]' has otlp_proto_http"
        )
    return found.load()()
