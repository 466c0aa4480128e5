"""Prepares one request of a client: finds its conversation, adds what is new, and asks the engine what to send.

There are three ways, from the cheapest to the most thorough. A conversation far from its threshold is only a sketch of
sizes and digests. A small addition to a conversation in memory is prepared in the event loop. Everything else is
prepared in a thread.
"""

import asyncio
import json
from dataclasses import dataclass

from everlong.core import JsonText
from everlong.engine import Call, Prepared, anchor_at, counter_for, window_hint
from everlong.gateway.chains.continuation import Continuation
from everlong.gateway.clients import Client
from everlong.gateway.config import GatewayConfig
from everlong.gateway.conversations.conversation import Conversation, Transcript
from everlong.gateway.conversations.conversations import OVERTAKEN, OVERTAKEN_AT_MOST
from everlong.gateway.conversations.sketches import Match, Sketch
from everlong.gateway.exchange.body import forwarded_body, keeps_marks, marks_itself, sketched_body
from everlong.gateway.exchange.delivery import Delivery
from everlong.gateway.operations.reports import Report
from everlong.gateway.operations.services import HEAVY, Services
from everlong.gateway.recall.tool import NAME
from everlong.gateway.request import ModelRequest
from everlong.wire import Usage

__all__ = ["Preparation", "call_of", "options_of", "takes_no_time"]

MILLION = 1_000_000
SMALL = 256 * 1024  # bytes; requests up to this size are read in the event loop


def takes_no_time(services: Services, size: int) -> bool:
    """Whether the event loop may read a request and its stored state: it is small and the store is near."""
    return size <= SMALL and services.state_store.near


async def call_of(delivery: Delivery, request: ModelRequest, asked: int | None, *, recalls: bool) -> Call:
    """Return what the engine is told about a request. `asked` is the window that it asks for, if any."""
    endpoint, config, api = delivery.upstream.endpoint, delivery.services.config, request.format.api
    served, asked = await _windows(delivery, request, asked)
    return Call(
        model=config.deployment(request.model).model,
        fmt=request.fmt,
        endpoint=endpoint.name,
        provider=endpoint.provider or request.address.surface.cloud,
        served=served,
        asked=asked,
        extra=json.dumps(api.windowed({}, asked)) if api.window and asked else "",  # for summaries on this prefix
        tools=request.tools,
        max_tokens=request.max_tokens,
        thinking=request.thinking,
        recall_tool=NAME if recalls else "",
        breakpoints=config.breakpoints == "auto" or marks_itself(request),
    )


async def _windows(delivery: Delivery, request: ModelRequest, asked: int | None) -> tuple[int | None, int | None]:
    """Return the window that the upstream serves (clouds do not say) and the one that the request asks for."""
    models, site, client = delivery.services.models, delivery.site, delivery.client
    if request.address.surface.cloud:
        return None, asked
    if not request.format.api.window:
        return await models.served(site, client, request.fmt, request.model), asked
    return None, await models.given(site, client, request, raised=delivery.services.config.ollama_num_ctx)


def options_of(config: GatewayConfig, request: ModelRequest, mode: str) -> JsonText:
    """Return the settings of the thread that differ from the gateway's."""
    window = config.deployment(request.model).window
    options = ({} if mode == config.engine.mode else {"mode": mode}) | ({"window": window} if window else {})
    return json.dumps(options) if options else "{}"


@dataclass(slots=True, kw_only=True)
class Preparation:
    """How one request is prepared, and what was found on the way. `size` is in bytes, with what its provider holds."""

    services: Services
    client: Client
    request: ModelRequest
    call: Call
    #: The settings of the thread, where they differ from the gateway's.
    options: JsonText
    #: The client's own name for the conversation; "" if it has none.
    name: str
    size: int
    report: Report
    continuation: Continuation | None
    #: Whether the model is offered the recall tool.
    recalls: bool
    #: Whether the client asks for its compacted conversation.
    compacts: bool
    conversation: Conversation | None = None
    transcript: Transcript | None = None
    #: The sketch of the conversation, if only digests of it are held.
    sketch: Sketch | None = None
    _body: bytes = b""
    _entered: bool = False

    async def by_sizes(self) -> Prepared | None:
        """Return the prepared request if its conversation is far from its threshold; None if it must be held whole."""
        if self.name or self.continuation is not None or self.recalls or self.services.keeps_texts:
            return None
        sketches = self.services.conversations.sketches
        found = sketches.find(self.request, self.client.scope)
        if found is None:
            return None
        if sketches.is_quick(found, self.call.model) and self.size <= HEAVY and self.services.state_store.near:
            return self._follow(found)
        async with self.services.turn(self.size):
            return await asyncio.to_thread(self._follow, found)

    def _follow(self, found: Match) -> Prepared | None:
        """Read and count the new messages, and write the body."""
        services, request, call = self.services, self.request, self.call
        restore = services.opaque.restorer(request.format, found.scope, request.model)
        sketched = services.conversations.follow(found, restore, call.model)
        if sketched is None or not keeps_marks(request, sketched):
            return None
        thread = sketched.sketch.thread
        prepared = services.engine.blocking.prepare_by_sizes(thread, call, sketched.sizes, self.options)
        if prepared is None:
            services.conversations.sketches.forget(thread)
            return None
        services.conversations.sketches.keep(sketched.sketch)
        if sketched.first:
            services.metrics.began()
        self.sketch, self._body = sketched.sketch, sketched_body(request, sketched, prepared)
        self.report.before = prepared.tokens
        self._report_prepared(prepared)
        return prepared

    def at_once(self) -> Prepared | None:
        """Return the prepared request if preparing takes no time; None if it may take long."""
        if not takes_no_time(self.services, self.size):
            return None
        transcript = self.transcript = self._read()
        thread = self.services.conversations.little_new(self.client.scope, transcript)
        lock = self.services.engine.blocking.context.states.lock(thread)
        if not thread or not lock.acquire(blocking=False):
            return None
        try:
            with self.services.traces.step("prepare"):
                return self._prepare()
        finally:
            lock.release()

    async def whole(self) -> Prepared:
        """Return the request, prepared in a thread."""
        async with self.services.turn(self.size):
            with self.services.traces.step("prepare"):
                return await asyncio.to_thread(self._prepare)

    def _read(self) -> Transcript:
        services, scope, request = self.services, self.client.scope, self.request
        restore = services.opaque.restorer(request.format, scope, request.model)
        return services.conversations.transcript(request, scope, name=self.name, restore=restore)

    def _prepare(self) -> Prepared:
        """Find the conversation, add what is new, prepare the request. Not in the event loop if it may take long."""
        for _ in range(OVERTAKEN_AT_MOST):
            conversation, prepared = self._prepare_once()
            if self.services.conversations.commit(conversation):
                break
            # Another process compacted the same conversation meanwhile: its compaction is used here too.
            self.services.engine.blocking.record_failure(prepared, OVERTAKEN)
            self.leave()
        else:
            _, prepared = self._prepare_once()
        self._report_prepared(prepared)
        return prepared

    def _prepare_once(self) -> tuple[Conversation, Prepared]:
        services, scope = self.services, self.client.scope
        self.transcript = self.transcript or self._read()
        self.conversation = conversation = services.conversations.enter(scope, self.transcript)
        self._entered = True
        with conversation.lock:
            if conversation.settings != self.options:
                services.conversations.set_up(conversation, self.options)
            if self.compacts:
                services.engine.blocking.compact(conversation.thread, self.call)
            prepared = services.engine.blocking.prepare(conversation.thread, self.call)
            self.report.before = _original_tokens(conversation, prepared)
            conversation.quiet = 0 if prepared.compactions else (prepared.threshold - prepared.tokens) // 2
        return conversation, prepared

    # --- afterwards --------------------------------------------------------------------------------

    async def body(self, prepared: Prepared) -> bytes:
        """Return what is sent for the prepared request; a large body is written outside the event loop."""
        if self.sketch is not None:
            return self._body
        assert self.transcript is not None
        assert self.conversation is not None
        parts = self.request, self.transcript, self.conversation, prepared, self.continuation
        return forwarded_body(*parts) if self.size <= HEAVY else await asyncio.to_thread(forwarded_body, *parts)

    def forget_sketch(self) -> None:
        """Hold the conversation whole from now on: its request was refused and must become smaller."""
        assert self.sketch is not None
        self.services.conversations.sketches.forget(self.sketch.thread)
        self.sketch, self._body = None, b""

    async def recovered(self, prepared: Prepared) -> None:
        """Keep and report the smaller request that follows a refusal."""
        if self.services.state_store.shared and self.conversation is not None:
            # If another process was faster, the next request continues with its result.
            await asyncio.to_thread(self.services.conversations.commit, self.conversation)
        self._report_prepared(prepared)

    def anchor(self, prepared: Prepared, usage: Usage | None) -> None:
        """Note on the sketch what the provider counted."""
        if self.sketch is not None:
            self.services.conversations.sketches.anchor(self.sketch, anchor_at(prepared, usage))

    def leave(self) -> None:
        """Release the conversation to other requests."""
        if self._entered and self.conversation is not None:
            self._entered = False
            self.services.conversations.leave(self.conversation)
            self.services.conversations.keep_marks_soon(self.conversation)

    def _report_prepared(self, prepared: Prepared) -> None:
        report = self.report
        report.thread = prepared.thread
        self.services.keys.assign(prepared.thread, self.client.name)
        window = prepared.window
        report.window, report.window_source = window.context, window.source
        if not window.known:
            preset = self.services.engine.blocking.context.settings.rules
            report.window_hint = window_hint(window, summarises=not preset.summary.needs_window)
        report.after = prepared.tokens
        asked, allowed = self.request.max_tokens, prepared.request.max_tokens
        report.max_tokens = allowed if asked is not None and allowed is not None and allowed < asked else None
        report.edits = prepared.edits
        report.recovered = prepared.attempt
        if self.sketch is not None:
            report.messages = len(self.sketch.forms)
        elif self.conversation is not None:
            report.messages = len(self.conversation.digests)
            report.compactions += self.conversation.compactions
            report.behind += self.conversation.behind
            self.conversation.compactions = self.conversation.behind = 0
        price = prepared.window.prices.input or 0.0
        report.saved_dollars = max(0, report.before - report.after) * price / MILLION


def _original_tokens(conversation: Conversation, prepared: Prepared) -> int:
    """Return the provider's tokens of the client's own messages, as if nothing had been left out."""
    if not prepared.edits and not prepared.compactions:
        return prepared.tokens
    counter = counter_for(prepared.call.model)
    known = conversation.counted.get(prepared.call.model, (0, counter.messages(conversation.opening)))
    new = conversation.messages[known[0] :]
    total = known[1] + sum(counter.message(message) for unit in new for message in unit)
    conversation.counted[prepared.call.model] = (len(conversation.messages), total)
    return prepared.tokens + max(0, total - prepared.counted)
