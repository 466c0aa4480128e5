"""One request from a client to its answer: prepared by the engine, forwarded, recovered before the first byte.

Everything about a request is decided here; `answer` forwards the bytes, `body` writes what is sent.
"""

import asyncio
import json
from collections.abc import Awaitable
from dataclasses import dataclass
from time import perf_counter
from typing import TypeVar

from everlong.core import Json, Message
from everlong.engine import Call, Finished, Prepared, Turn, counter_for, whole, window_hint
from everlong.errors import BudgetImpossible, EverlongError, ProviderError, Refused
from everlong.gateway.chains.continuation import Continuation, continuation_of
from everlong.gateway.chains.provider import Provider
from everlong.gateway.clients import Client
from everlong.gateway.config import Deployment
from everlong.gateway.conversations.canonical import UNREADABLE
from everlong.gateway.conversations.conversations import Conversation, Transcript
from everlong.gateway.exchange.answer import AnswerForwarder, Refusal
from everlong.gateway.exchange.body import forwarded_body, marks_itself
from everlong.gateway.exchange.compaction import (
    as_the_model_reads,
    asks_for_compaction,
    send_compacted,
    without_asking,
)
from everlong.gateway.exchange.response import Headers, ResponseWriter, with_comments
from everlong.gateway.exchange.usage import PromptSizes
from everlong.gateway.operations.reports import Report
from everlong.gateway.operations.services import HEAVY, Services
from everlong.gateway.recall.exchange import RecallExchange, with_earlier, with_tool
from everlong.gateway.recall.history import Round
from everlong.gateway.recall.tool import NAME, without_recall
from everlong.gateway.request import ModelRequest, Piece
from everlong.gateway.upstreams.connections import UpstreamRequest, UpstreamResponse
from everlong.gateway.upstreams.routing import Upstream
from everlong.llm import HttpModel

__all__ = ["Exchange"]

T = TypeVar("T")
#: Why a request is not managed.
TURNED_OFF = "mode off"
HELD_ELSEWHERE = "the provider holds a part of the conversation"
LEFT_TO_PROVIDER = "compaction is left to the provider"
EMPTY = "no messages"
SINGLE = "a single prompt: there is nothing to shorten"
UNREAD = "its messages cannot be read"
MILLION = 1_000_000
FAR = 0.75  # of the threshold; no summary is begun below it
SMALL = 256 * 1024  # bytes; requests up to this size are read in the event loop


@dataclass(slots=True, kw_only=True)
class Exchange:
    """One request under way. `name` is the client's own for the conversation, if it has one."""

    services: Services
    client: Client
    request: ModelRequest
    upstream: Upstream
    writer: ResponseWriter
    headers: Headers
    query: str
    mode: str
    name: str
    started: float
    report: Report
    #: Whether the client has a whole answer.
    complete: bool = False
    _conversation: Conversation | None = None
    _transcript: Transcript | None = None
    _entered: bool = False
    _recall: RecallExchange | None = None
    _continues: bool = False
    _continuation: Continuation | None = None
    _compacts: bool = False
    #: The messages as the client sent them.
    _sent: tuple[Piece, ...] = ()
    #: The window that the request asks for, if it asks for one.
    _asked: int | None = None

    async def run(self) -> None:
        """Answer the client. Errors of ours that it must see are raised."""
        self._read_window()
        self._sent = self.request.messages
        self.request = as_the_model_reads(self.request, managed=self.mode != "off")
        self._compacts = asks_for_compaction(self.request)
        if self.mode != "off":
            await self._find_past()
        await self._manage()

    async def _manage(self) -> None:
        """Answer the client, with a request that is managed if it can be."""
        original = self.request
        if self._offers_recall:
            await self._offer_recall()
        if self._continuation is not None:
            self._continuation.begin(self.request)
        self.report.unmanaged = self._reason_against()
        if self.report.unmanaged == HELD_ELSEWHERE and self._continuation is not None:
            await self._forward_unseen(self._continuation)
        elif self.report.unmanaged:
            await self._forward_unchanged()
        else:
            await self._answer_managed(original)

    async def _answer_managed(self, original: ModelRequest) -> None:
        """Answer a request that is managed; one that turns out not to be readable goes on as it was."""
        if self._ours:
            self.request = without_asking(self.request)
        try:
            if self._compacts:
                await self._answer_compacted()
            else:
                while await self._answer():
                    self.report.recalls += 1
        except Refused as error:
            if error.kind != UNREADABLE or self.writer.begun:
                raise
            # The upstream may read what we cannot, or refuse it; nobody here would answer a call of our tool.
            self.request, self._recall, self.report.unmanaged = original, None, UNREAD
            if self._continuation is not None:
                self.request, self._continuation = self._continuation.asked, None
            await self._forward_unchanged()

    def _read_window(self) -> None:
        """Note the window that the request asks for; the format's maker is asked in the one way that it knows."""
        server, request, endpoint = self.request.format.server, self.request, self.upstream.endpoint
        if server.long_context is None:
            return
        self._asked = server.long_context.asked(request.model, self.headers, request.value(server.long_context.field))
        if endpoint.provider == server.maker:
            name, self.headers = server.long_context.for_maker(request.model, self.headers)
            self.request = request if name == request.model else request.with_model(name)

    def _reason_against(self) -> str:
        """Return why the request is not managed; "" if it is."""
        if self.mode == "off":
            return TURNED_OFF
        if self._compacts and not self._ours:
            return LEFT_TO_PROVIDER
        if self.request.partial:
            return HELD_ELSEWHERE
        if self.request.address.surface.prompts:
            return SINGLE
        return "" if self.request.messages else EMPTY

    @property
    def _ours(self) -> bool:
        """Whether we shorten where a client asks its provider to."""
        return self.services.config.provider_compaction == "ours"

    async def _answer_compacted(self) -> None:
        """Answer with the conversation as the engine compacts it."""
        turn = Turn(self.services.engine, quick=True)
        self.request = self.request.with_messages(
            self.request.messages[: None if self.request.address.surface.compacts else -1]
        )
        try:
            await self._with_comments(whole(self._prepare_turn(turn, await self._call())))
            assert self._transcript is not None
            assert self._conversation is not None
            self._continuation = None
            body = await self._written(self._transcript, self._conversation, turn.request)
        finally:
            self._leave()
            turn.abandon()
        await send_compacted(self.writer, self.request, self._sent, body, self.report.headers())
        self.complete = True

    # --- what the provider holds -------------------------------------------------------------------

    async def _find_past(self) -> None:
        """Find what the request continues, and take it in if all of it was seen."""
        chains, scope, upstream = self.services.chains, self.client.scope, self.upstream.name
        if self.services.state_store.near:
            self._continuation = continuation_of(chains, scope, upstream, self.request)
        else:
            self._continuation = await asyncio.to_thread(continuation_of, chains, scope, upstream, self.request)
        if self._continuation is not None:
            self.request = self._continuation.with_past()

    async def _forward_unseen(self, continuation: Continuation) -> None:
        """Forward a request whose past was not seen here; if it is too long, ask the provider for its past."""
        refusal = await self._attempt_unseen()
        if refusal is None:
            return
        asks = bool(self.request.messages) and continuation.needs_past(refusal.error, refusal.body or b"")
        if asks and await self._with_comments(continuation.fetch(self._provider(continuation))):
            self.request = continuation.with_past()
            await self._manage()
        else:
            await self._forward_refusal(refusal, refusal.error)

    async def _attempt_unseen(self) -> Refusal | None:
        """Forward the request and the answer unchanged; return the refusal if it is one."""
        try:
            answer = await self._send(self.request.body)
        except ProviderError as error:
            return Refusal(error, error.status or 502)
        forwarder = self._forwarder(PromptSizes())
        try:
            if not 200 <= answer.status < 300:
                return await forwarder.read_refusal(answer)
            framing = answer.framing(self.writer.framing)
            if framing is not None:
                refusal = await forwarder.forward_stream(answer, framing)
            else:
                body, refusal = await forwarder.read_plain(answer)
                if refusal is None:
                    await forwarder.forward_plain(answer, body)
        finally:
            answer.close()
            self.complete = forwarder.finished is not None
            self._report_answer(forwarder.finished)
            self._report_broken(forwarder)
        return refusal

    @property
    def _apart(self) -> bool:
        """Whether the provider's conversation does not get what is said."""
        return self._continuation is not None and self._continuation.apart

    async def _complete_conversation(self, continuation: Continuation) -> None:
        """Add to the provider's conversation what was said in it and sent apart from it, one answer after the other."""
        if continuation.kept is None:
            return
        name, items = continuation.conversation, continuation.kept.items
        async with self.services.chains.order(self.client.scope, name):
            await self._provider(continuation).add(name, items)

    def _provider(self, continuation: Continuation) -> Provider:
        base = self.request.address.surface.base
        held, forwarding = continuation.held, self.services.forwarding
        return Provider(forwarding, self.upstream, self.client, self.headers, held, base, self.query)

    # --- what is forwarded as it is ----------------------------------------------------------------

    async def _forward_unchanged(self) -> None:
        """Forward the request and the answer unchanged; what is too long for a single prompt is refused, not cut."""
        if self.report.unmanaged == SINGLE:
            uncut = self.request.format.api.uncut.items()
            missing = {name: value for name, value in uncut if name not in self.request.fields}
            self.request = self.request.with_fields(self.request.changed(missing))
        answer = await self._send(self.request.body)
        forwarder = self._forwarder(PromptSizes())
        try:
            await forwarder.forward_unchanged(answer)
        finally:
            answer.close()
            self.complete = forwarder.finished is not None
            self._report_answer(forwarder.finished)
            self._report_broken(forwarder)

    async def _answer(self) -> bool:
        """Get one answer of the model; return whether the request continues, with what the model wants to recall."""
        self._continues = False
        turn = Turn(self.services.engine, quick=True)
        try:
            call = await self._call()
            turn.prepared = self._prepare_at_once(call)
            if turn.prepared is None:
                await self._with_comments(whole(self._prepare_turn(turn, call)))
            refusal = await self._attempt(turn)
            while refusal is not None:
                refusal = await self._with_comments(self._try_again(turn, refusal))
        finally:
            self._leave()
            turn.abandon()
        return self._continues

    # --- preparing ---------------------------------------------------------------------------------

    async def _call(self) -> Call:
        request, upstream = self.request, self.upstream
        (served, asked), api = await self._windows(), request.format.api
        return Call(
            model=self._deployment.model,
            fmt=request.fmt,
            endpoint=upstream.endpoint.name,
            provider=upstream.endpoint.provider or request.address.surface.cloud,
            served=served,
            asked=asked,
            extra=json.dumps(api.windowed({}, asked)) if api.window and asked else "",  # of summaries on this prefix
            tools=request.tools,
            max_tokens=request.max_tokens,
            thinking=request.thinking,
            recall_tool=NAME if self._recall is not None else "",
            breakpoints=self.services.config.breakpoints == "auto" or marks_itself(request),
        )

    @property
    def _deployment(self) -> Deployment:
        """The model that is meant by the name that is sent."""
        return self.services.config.deployment(self.request.model)

    async def _windows(self) -> tuple[int | None, int | None]:
        """Return the window that the upstream serves, which no cloud tells, and the one that the request asks for."""
        models, request = self.services.models, self.request
        if request.address.surface.cloud:
            return None, self._asked
        if not request.format.api.window:
            return await models.served(self.upstream, self.client, request.fmt, request.model), self._asked
        raised = self.services.config.ollama_num_ctx
        return None, await models.given(self.upstream, self.client, request, raised=raised)

    def _own_model(self) -> HttpModel:
        """Return the client for calls of our own, which go the same way as the client's."""
        return self.services.models.beside(
            self.request,
            self._deployment.model,
            upstream=self.upstream,
            client=self.client,
            headers=self.headers,
            query=self.query,
        )

    def _prepare_at_once(self, call: Call) -> Prepared | None:
        """Return the prepared request if preparing it takes no time; None if it may take some."""
        self._transcript = None
        if not self._takes_no_time:
            return None
        transcript = self._transcript = self._read()
        thread = self.services.conversations.little_new(self.client.scope, transcript)
        lock = self.services.engine.blocking.context.states.lock(thread)
        if not thread or not lock.acquire(blocking=False):
            return None
        try:
            return self._prepare(call)
        finally:
            lock.release()

    async def _prepare_turn(self, turn: Turn, call: Call) -> None:
        async with self.services.turn(self._size):
            turn.prepared = await asyncio.to_thread(self._prepare, call)

    def _read(self) -> Transcript:
        services, scope, request = self.services, self.client.scope, self.request
        restore = services.opaque.restorer(request.format, scope, request.model)
        return services.conversations.transcript(request, scope, name=self.name, restore=restore)

    def _prepare(self, call: Call) -> Prepared:
        """Find the conversation, add what is new, prepare the request. Not in the event loop if it may take long."""
        services, scope = self.services, self.client.scope
        self._transcript = self._transcript or self._read()
        self._conversation = conversation = services.conversations.enter(scope, self._transcript)
        self._entered = True
        with conversation.lock:
            self._set_options(conversation)
            if self._compacts:
                services.engine.blocking.compact(conversation.thread, call)
            prepared = services.engine.blocking.prepare(conversation.thread, call)
            self.report.before = _original_tokens(conversation, prepared)
            conversation.quiet = 0 if prepared.compactions else (prepared.threshold - prepared.tokens) // 2
        self._report_prepared(prepared)
        return prepared

    def _set_options(self, conversation: Conversation) -> None:
        """Set on its thread the mode that the request asks for, and the window that the operator knows of."""
        usual, window = self.services.config.engine, self._deployment.window
        options = ({} if self.mode == usual.mode else {"mode": self.mode}) | ({"window": window} if window else {})
        settings = json.dumps(options)
        if conversation.settings != settings:
            self.services.engine.threads.change(conversation.thread, settings=settings)
            conversation.settings = settings

    # --- sending -----------------------------------------------------------------------------------

    async def _attempt(self, turn: Turn) -> Refusal | None:
        """Send what is prepared and forward its answer; return the refusal if nothing was forwarded."""
        assert self._transcript is not None
        assert self._conversation is not None
        try:
            body = await self._written(self._transcript, self._conversation, turn.request)
            answer = await self._send(body)
        except ProviderError as error:
            return Refusal(error, error.status or 502)
        forwarder = self._forwarder(self._sizes(turn.request))
        try:
            if not 200 <= answer.status < 300:
                return await forwarder.read_refusal(answer)
            framing = answer.framing(self.writer.framing)
            if framing is not None:
                refusal = await forwarder.forward_stream(answer, framing)
            else:
                refusal = await self._forward_plain(turn, forwarder, answer)
        except asyncio.CancelledError:
            if forwarder.finished is not None:  # the client has all of it, and did not wait for the connection's end
                await whole(self._finish(turn, forwarder))
            raise
        finally:
            answer.close()
            self._report_broken(forwarder)
        if refusal is None:
            finishing = self._finish(turn, forwarder)
            at_once = forwarder.finished is not None and self._recall is None and not self._apart
            await (finishing if at_once else whole(finishing))
        return refusal

    async def _written(self, transcript: Transcript, conversation: Conversation, prepared: Prepared) -> bytes:
        """Return what is sent; a heavy body is written beside the event loop."""
        if self._size <= HEAVY:
            return forwarded_body(self.request, transcript, conversation, prepared, self._continuation)
        return await asyncio.to_thread(
            forwarded_body, self.request, transcript, conversation, prepared, self._continuation
        )

    async def _forward_plain(self, turn: Turn, forwarder: AnswerForwarder, answer: UpstreamResponse) -> Refusal | None:
        body, refusal = await forwarder.read_plain(answer)
        if refusal is None and forwarder.finished is not None:
            overflow = await turn.answered(forwarder.finished)
            if overflow is not None:
                return Refusal(overflow, answer.status, answer.headers, body)
        if refusal is None:
            await forwarder.forward_plain(answer, body)
        return refusal

    async def _try_again(self, turn: Turn, refusal: Refusal) -> Refusal | None:
        """Send another, smaller request; if there is none, forward the upstream's refusal unchanged."""
        if self._continuation is not None and self._continuation.gives_up(refusal.error, refusal.body or b""):
            return await self._attempt(turn)
        try:
            await turn.refused(refusal.error)
        except (ProviderError, BudgetImpossible) as final:
            await self._forward_refusal(refusal, final)
            return None
        self._report_prepared(turn.request)
        return await self._attempt(turn)

    async def _forward_refusal(self, refusal: Refusal, final: EverlongError) -> None:
        self.report.error = str(final)
        headers = self.report.headers()
        if refusal.body is None or not refusal.readable:
            self.report.ended_by = "upstream"
            status = refusal.status if refusal.status >= 400 else 502
            await self.writer.send_error(status, "upstream_refused", str(final), headers)
        elif self.writer.begun:
            await self.writer.send_error(refusal.status, "upstream_refused", str(final), headers)
        else:
            await self.writer.send_whole(refusal.status, [*refusal.headers, *headers], refusal.body)

    async def _send(self, body: bytes) -> UpstreamResponse:
        self.report.added_ms = (perf_counter() - self.started) * 1000 - self.report.waited_ms
        before = perf_counter()
        address = self.request.address
        request = UpstreamRequest("POST", address.path, self.query, self.headers, body, address.surface.base)
        try:
            answer = await self.services.forwarding.send(self.upstream, self.client, request)
        finally:
            self.report.waited_ms += (perf_counter() - before) * 1000
        if answer.empty:
            answer.close()
            raise ProviderError(f"{self.upstream.name} answers without content (status {answer.status})", status=502)
        return answer

    def _forwarder(self, sizes: PromptSizes) -> AnswerForwarder:
        return AnswerForwarder(
            format=self.request.format,
            writer=self.writer,
            headers=self.report.headers,
            sizes=sizes,
            opening=self._leave,
            ending=self._keep_answer,
            recall=self._recall,
        )

    def _keep_answer(self, message: Message, name: str) -> None:
        """Remember an answer before its client has all of it and asks again: what it may drop, and what it may name."""
        request = self.request
        shown = message if self._recall is None else without_recall(message)
        self.services.opaque.keep_answer(request.format, self.client.scope, request.model, shown)
        if self._continuation is None or not name:
            return
        rounds = [] if self._recall is None else self._recall.rounds
        shown_before = [without_recall(round_.message) for round_ in rounds]
        resent = request.format.server.tool.resent
        answers: list[list[Json]] = [[*resent(each)] for each in (*shown_before, shown)]
        names = [round_.response for round_ in rounds if round_.response]
        whole_request = None if rounds or self.report.unmanaged else self._transcript
        self._continuation.keep([*names, name], answers, whole_request)

    def _sizes(self, prepared: Prepared) -> PromptSizes:
        original = self.services.config.usage == "original"
        return PromptSizes(
            added=max(0, self.report.before - prepared.tokens) if original else 0,
            window=prepared.window.context,
            prompt=prepared.tokens,
            wants=self.request.wants_usage or not self.request.stream,
        )

    async def _with_comments(self, work: Awaitable[T]) -> T:
        """Return the result of the work, with comments to a client that waits for a stream."""
        if not self.request.stream:
            return await work
        config, send = self.services.config, self.writer.send_comment
        return await with_comments(work, send, after=config.keepalive_after, every=config.keepalive_every)

    # --- afterwards --------------------------------------------------------------------------------

    async def _finish(self, turn: Turn, forwarder: AnswerForwarder) -> None:
        """Record what a forwarded answer cost, and start what is due after a turn."""
        finished = forwarder.finished
        if finished is None:
            await turn.failed(forwarder.broken or "the answer could not be read")
        elif not turn.ended and await turn.answered(finished) is not None:
            await turn.failed("the server did not read all of it, and the answer had begun")
        self._report_answer(finished, turn.request)
        if finished is None:
            return
        if self._recall is not None:
            await self._recall_results(self._recall, turn, forwarder, finished)
        self.complete = True
        if self._apart and self._continuation is not None and not self._continues:
            await self._complete_conversation(self._continuation)
        if not self._far_from_full(turn.request):
            model = self._own_model()
            for observer in self.services.engine.after_turn:
                observer(turn.request, model)

    def _far_from_full(self, prepared: Prepared) -> bool:
        """Whether nothing will be due soon. Always False for presets that count turns."""
        by_tokens = self.services.config.engine.rules.due_by_tokens
        return by_tokens and prepared.tokens < FAR * prepared.threshold

    # --- the recall tool ---------------------------------------------------------------------------

    @property
    def _offers_recall(self) -> bool:
        if self.mode == "off" or self._compacts or not (self.request.messages or self.request.partial):
            return False
        wanted = self.client.recall
        return self.services.config.recall_tool if wanted is None else wanted

    async def _offer_recall(self) -> None:
        """Put the tool into the request, and what earlier answers recalled."""
        if self._takes_no_time:
            self._add_recall_tool()
        else:
            await asyncio.to_thread(self._add_recall_tool)

    def _add_recall_tool(self) -> None:
        offering, scope = with_tool(self.request), self.client.scope
        *contexts, last = self.services.conversations.contexts(self.request, scope)
        if offering is not self.request:
            self._recall = RecallExchange(self.request.format, last)
        find = self.services.opaque.finder(scope, self.request.model)
        self.request = with_earlier(offering, find, contexts)

    async def _recall_results(
        self, recall: RecallExchange, turn: Turn, forwarder: AnswerForwarder, finished: Finished
    ) -> None:
        """Recall what the model wants: now, if it waits for nothing else, or for the client's next request."""
        message = finished.message
        results = await recall.results(self.services.engine, turn.request.thread, message)
        round_ = Round(message, results, forwarder.response)
        self._continues = forwarder.continues
        if forwarder.continues:
            self.request = recall.continued(self.request, round_)
        else:
            self.services.opaque.keep(self.client.scope, self.request.model, recall.notes(round_))

    # --- pieces ------------------------------------------------------------------------------------

    @property
    def _takes_no_time(self) -> bool:
        """Whether reading the request and what is kept of it may be done in the event loop."""
        return self._size <= SMALL and self.services.state_store.near

    @property
    def _size(self) -> int:
        """Bytes of the request with what its provider holds."""
        return self.report.bytes_in + (0 if self._continuation is None else self._continuation.size)

    def _leave(self) -> None:
        """Let others continue the conversation: from here on nothing is recovered."""
        if self._entered and self._conversation is not None:
            self._entered = False
            self.services.conversations.leave(self._conversation)
            self.services.conversations.keep_marks_soon(self._conversation)

    def _report_prepared(self, prepared: Prepared) -> None:
        report = self.report
        report.thread = prepared.thread
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
        if self._conversation is not None:
            report.messages = len(self._conversation.digests)
            report.compactions += self._conversation.compactions
            report.behind += self._conversation.behind
            self._conversation.compactions = self._conversation.behind = 0
        price = prepared.window.prices.input or 0.0
        report.saved_dollars = max(0, report.before - report.after) * price / MILLION

    def _report_broken(self, forwarder: AnswerForwarder) -> None:
        """Report an answer that its upstream did not end."""
        if forwarder.broken:
            self.report.end_early("upstream", 502, "upstream_broke_off", forwarder.broken)

    def _report_answer(self, finished: Finished | None, prepared: Prepared | None = None) -> None:
        if finished is not None:
            self.report.usage = finished.usage
        if prepared is not None:
            self.report.recovered = prepared.attempt


def _original_tokens(conversation: Conversation, prepared: Prepared) -> int:
    """Return what the client's own messages would have taken, as the provider counts."""
    if not prepared.edits and not prepared.compactions:
        return prepared.tokens
    counter = counter_for(prepared.call.model)
    known = conversation.counted.get(prepared.call.model, (0, counter.messages(conversation.opening)))
    new = conversation.messages[known[0] :]
    total = known[1] + sum(counter.message(message) for unit in new for message in unit)
    conversation.counted[prepared.call.model] = (len(conversation.messages), total)
    return prepared.tokens + max(0, total - prepared.counted)
