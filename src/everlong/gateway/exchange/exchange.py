"""One request from a client to its answer: prepared by the engine, forwarded, recovered before the first byte.

Whatever is decided about a request is decided here; how bytes are handed on is in `handing`, what is sent in `writing`.
"""

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass
from time import perf_counter
from typing import TypeVar

from everlong.compress import preset_named
from everlong.core import Message
from everlong.engine import Call, Finished, Prepared, Turn, whole
from everlong.errors import BudgetImpossible, EverlongError, ProviderError, Refused
from everlong.gateway.clients import Client
from everlong.gateway.conversations.canonical import UNREADABLE
from everlong.gateway.conversations.conversations import Conversation, Transcript
from everlong.gateway.exchange.body import forwarded_body, marks_itself
from everlong.gateway.exchange.forward import AnswerForwarder, Refusal
from everlong.gateway.exchange.response import Headers, ResponseWriter, with_comments
from everlong.gateway.exchange.usage import PromptSizes
from everlong.gateway.operations.reports import Report
from everlong.gateway.operations.services import Services
from everlong.gateway.recall.exchange import RecallExchange, with_earlier, with_tool
from everlong.gateway.recall.history import Round
from everlong.gateway.recall.tool import NAME, without_recall
from everlong.gateway.request import ModelRequest
from everlong.gateway.upstreams.connections import UpstreamRequest, UpstreamResponse
from everlong.gateway.upstreams.routing import Upstream

__all__ = ["Exchange"]

T = TypeVar("T")
MILLION = 1_000_000
FAR = 0.75  # of the high mark; no summary is begun below it
SMALL = 256 * 1024  # bytes of a request that are read in no time


@dataclass(slots=True, kw_only=True)
class Exchange:
    """One request under way. `name` is the client's own for the conversation, if it has one."""

    services: Services
    client: Client
    asked: ModelRequest
    upstream: Upstream
    outlet: ResponseWriter
    headers: Headers
    query: str
    mode: str
    name: str
    started: float
    report: Report
    #: Whether the client has a whole answer.
    complete: bool = False
    _conversation: Conversation | None = None
    _spoken: Transcript | None = None
    _entered: bool = False
    _recalling: RecallExchange | None = None
    _goes_on: bool = False

    async def run(self) -> None:
        """Answer the client. What it must hear of ours is raised."""
        said = self.asked
        if self._offers_recall:
            await self._offer()
        if self.mode == "off" or self.asked.partial or not self.asked.messages:
            await self._untouched()
            return
        try:
            while await self._answered():
                self.report.recalls += 1
        except Refused as error:
            if error.kind != UNREADABLE or self.outlet.begun:
                raise
            # What we cannot read the upstream may: it is its to refuse, and nobody here would answer a call of ours.
            self.asked, self._recalling = said, None
            await self._untouched()

    async def _answered(self) -> bool:
        """One answer of the model; whether the request goes on, with what the model wanted to recall."""
        self._goes_on = False
        turn = Turn(self.services.engine, quick=True)
        try:
            call = await self._call()
            turn.prepared = self._prepared_at_once(call)
            if turn.prepared is None:
                await self._patiently(whole(self._prepare_turn(turn, call)))
            refusal = await self._attempt(turn)
            while refusal is not None:
                refusal = await self._patiently(self._again(turn, refusal))
        finally:
            self._leave()
            turn.abandon()
        return self._goes_on

    async def _offer(self) -> None:
        """Put the tool into the request, and what earlier answers recalled."""
        if self._takes_no_time:
            self._put_tool()
        else:
            await asyncio.to_thread(self._put_tool)

    def _put_tool(self) -> None:
        offering = with_tool(self.asked)
        if offering is not self.asked:
            self._recalling = RecallExchange(self.asked.fmt)
        self.asked = with_earlier(offering, self.services.finding(self.client.scope, self.asked.model))

    async def _untouched(self) -> None:
        """Off is off: the client's own bytes there and back."""
        answered = await self._send(self.asked.body)
        handing = self._handing(PromptSizes())
        try:
            await handing.untouched(answered)
        finally:
            answered.close()
            self.complete = handing.finished is not None
            self._tell_answered(handing.finished)

    # --- with the engine ---------------------------------------------------------------------------

    async def _call(self) -> Call:
        asked, upstream = self.asked, self.upstream
        return Call(
            model=asked.model,
            fmt=asked.fmt,
            endpoint=upstream.endpoint.name,
            provider=upstream.endpoint.provider,
            served=await self.services.models.served(upstream, self.client, asked.fmt, asked.model),
            tools=asked.tools,
            max_tokens=asked.max_tokens,
            recall_tool=NAME if self._recalling is not None else "",
            breakpoints=self.services.config.breakpoints == "auto" or marks_itself(asked),
        )

    def _prepared_at_once(self, call: Call) -> Prepared | None:
        """The request for the conversation as it is now, where that takes no time; None where it may."""
        self._spoken = None
        if not self._takes_no_time:
            return None
        spoken = self._spoken = self._read()
        thread = self.services.conversations.little_new(self.client.scope, spoken)
        lock = self.services.engine.blocking.means.lives.lock(thread)
        if not thread or not lock.acquire(blocking=False):
            return None
        try:
            return self._prepare(call)
        finally:
            lock.release()

    async def _prepare_turn(self, turn: Turn, call: Call) -> None:
        turn.prepared = await asyncio.to_thread(self._prepare, call)

    def _read(self) -> Transcript:
        services, scope = self.services, self.client.scope
        restore = services.restoring(self.asked.fmt, scope, self.asked.model)
        return services.conversations.spoken(self.asked, scope, name=self.name, restore=restore)

    def _prepare(self, call: Call) -> Prepared:
        """Find the conversation, add what is new, make the request. Where there may be much to count, off the loop."""
        services, scope = self.services, self.client.scope
        self._spoken = self._spoken or self._read()
        self._conversation = conversation = services.conversations.enter(scope, self._spoken)
        self._entered = True
        with conversation.lock:
            services.set_mode(conversation, self.mode)
            prepared = services.engine.blocking.prepare(conversation.thread, call)
            self.report.before = services.original_tokens(conversation, prepared)
            high = int(prepared.budget.room * prepared.budget.high)
            conversation.quiet = 0 if prepared.cuts else (high - prepared.tokens) // 2
        self._tell_prepared(prepared)
        return prepared

    async def _attempt(self, turn: Turn) -> Refusal | None:
        """Send what is prepared and hand its answer on; the refusal, where nothing was handed on."""
        assert self._spoken is not None
        assert self._conversation is not None
        try:
            answered = await self._send(forwarded_body(self.asked, self._spoken, self._conversation, turn.request))
        except ProviderError as error:
            return Refusal(error, error.status or 502)
        handing = self._handing(self._figures(turn.request))
        try:
            if not 200 <= answered.status < 300:
                return await handing.refused(answered)
            if answered.streamed:
                refusal = await handing.streamed(answered)
            else:
                refusal = await self._plain(turn, handing, answered)
        except asyncio.CancelledError:
            if handing.finished is not None:  # the client has all of it, and did not wait for the end of the connection
                await whole(self._finished(turn, handing))
            raise
        finally:
            answered.close()
        if refusal is None:
            finishing = self._finished(turn, handing)
            at_once = handing.finished is not None and self._recalling is None
            await (finishing if at_once else whole(finishing))
        return refusal

    async def _plain(self, turn: Turn, handing: AnswerForwarder, answered: UpstreamResponse) -> Refusal | None:
        body, refusal = await handing.heard(answered)
        if refusal is None and handing.finished is not None:
            hidden = await turn.answered(handing.finished)
            if hidden is not None:
                return Refusal(hidden, answered.status, answered.headers, body)
        if refusal is None:
            await handing.plain(answered, body)
        return refusal

    async def _again(self, turn: Turn, refusal: Refusal) -> Refusal | None:
        """Another, smaller request; where there is none, the upstream's own words as they came."""
        try:
            await turn.refused(refusal.error)
        except (ProviderError, BudgetImpossible) as final:
            await self._hand_on(refusal, final)
            return None
        self._tell_prepared(turn.request)
        return await self._attempt(turn)

    async def _hand_on(self, refusal: Refusal, final: EverlongError) -> None:
        self.report.error = str(final)
        if self.outlet.begun or refusal.body is None:
            await self.outlet.refuse(refusal.status, "upstream_refused", str(final), self._our_headers())
        else:
            await self.outlet.whole(refusal.status, [*refusal.headers, *self._our_headers()], refusal.body)

    async def _finished(self, turn: Turn, handing: AnswerForwarder) -> None:
        """The answer was handed on: write down what it cost, and let others know."""
        finished = handing.finished
        if finished is None:
            await turn.failed(handing.broken or "the answer could not be read")
        elif not turn.ended and await turn.answered(finished) is not None:
            await turn.failed("the server did not read all of it, and the answer had begun")
        self._tell_answered(finished, turn.request)
        if finished is None:
            return
        if self._recalling is not None:
            await self._recall(self._recalling, turn, handing, finished)
        self.complete = True
        if not self._far_from_full(turn.request):
            model = self.services.models.of(self.upstream, self.client, self.asked.fmt)
            for told in self.services.engine.after_turn:
                told(turn.request, model)

    def _far_from_full(self, prepared: Prepared) -> bool:
        """Whether nothing can be due for long: presets of the documents count turns, ours counts tokens."""
        by_tokens = preset_named(self.services.config.preset).due_by_tokens
        return by_tokens and prepared.tokens < FAR * prepared.budget.high_mark

    async def _recall(
        self, recalling: RecallExchange, turn: Turn, handing: AnswerForwarder, finished: Finished
    ) -> None:
        """Bring what the model wants to recall: now, if it waits for nothing else, or for the client's next request."""
        message = finished.message
        results = await recalling.results(self.services.engine, turn.request.thread, message)
        round_ = Round(message, results, handing.response)
        self._goes_on = handing.goes_on
        if handing.goes_on:
            self.asked = recalling.continued(self.asked, round_)
        else:
            self.services.keep_notes(self.client.scope, self.asked.model, recalling.kept(round_))

    # --- pieces ------------------------------------------------------------------------------------

    async def _patiently(self, work: Awaitable[T]) -> T:
        """The work, with signs of life to a client that waits for a stream."""
        if not self.asked.stream:
            return await work
        config = self.services.config
        return await with_comments(
            work, self.outlet.comment, after=config.keepalive_after, every=config.keepalive_every
        )

    async def _send(self, body: bytes) -> UpstreamResponse:
        self.report.added_ms = (perf_counter() - self.started) * 1000 - self.report.waited_ms
        before = perf_counter()
        sent = UpstreamRequest("POST", self.asked.dialect.path, self.query, self.headers, body)
        try:
            return await self.services.forwarding.send(self.upstream, self.client, sent)
        finally:
            self.report.waited_ms += (perf_counter() - before) * 1000

    def _handing(self, figures: PromptSizes) -> AnswerForwarder:
        return AnswerForwarder(
            self.asked.fmt, self.outlet, self._our_headers, figures, self._leave, self._keep_opaque, self._recalling
        )

    def _keep_opaque(self, message: Message) -> None:
        """Remember what a client may drop of an answer, before it has all of it and asks again."""
        said = without_recall(message)
        self.services.keep_opaque(self.asked.fmt, self.client.scope, self.asked.model, said)

    def _figures(self, prepared: Prepared) -> PromptSizes:
        original = self.services.config.usage == "original"
        return PromptSizes(
            added=max(0, self.report.before - prepared.tokens) if original else 0,
            window=prepared.window.context,
            prompt=prepared.tokens,
            asked=self.asked.wants_usage or not self.asked.stream,
        )

    @property
    def _takes_no_time(self) -> bool:
        """Whether reading the request and what is kept of it may be done in the event loop."""
        return self.report.bytes_in <= SMALL and self.services.kept.near

    @property
    def _offers_recall(self) -> bool:
        if self.mode == "off" or not (self.asked.messages or self.asked.partial):
            return False
        wanted = self.client.recall
        return self.services.config.recall_tool if wanted is None else wanted

    def _leave(self) -> None:
        """No recovery any more: others may go on with the conversation."""
        if self._entered and self._conversation is not None:
            self._entered = False
            self.services.conversations.leave(self._conversation)
            self.services.conversations.keep_marks_soon(self._conversation)

    def _our_headers(self) -> list[tuple[bytes, bytes]]:
        return self.report.headers()

    def _tell_prepared(self, prepared: Prepared) -> None:
        report = self.report
        report.thread = prepared.thread
        report.window, report.window_source = prepared.window.context, prepared.window.source
        report.after = prepared.tokens
        report.edits = prepared.edits
        report.recovered = prepared.attempt
        if self._conversation is not None:
            report.messages = len(self._conversation.digests)
        price = prepared.window.prices.input or 0.0
        report.saved_dollars = max(0, report.before - report.after) * price / MILLION

    def _tell_answered(self, finished: Finished | None, prepared: Prepared | None = None) -> None:
        if finished is not None:
            self.report.usage = finished.usage
        if prepared is not None:
            self.report.recovered = prepared.attempt
