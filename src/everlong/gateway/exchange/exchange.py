"""One request from a client to its answer: prepared by the engine, forwarded, recovered before the first byte.

Everything about a request is decided here. `preparation` finds its conversation and asks the engine what to send,
`body` writes it, `delivery` sends it to the upstream, `answer` forwards the bytes of the answer.
"""

import asyncio
from dataclasses import dataclass, field
from functools import partial

from everlong.core import Json, Message
from everlong.engine import FAR, Finished, Prepared, Turn, may_recover, whole
from everlong.errors import BudgetImpossible, ProviderError, Refused
from everlong.gateway.chains.continuation import Continuation, continuation_of
from everlong.gateway.clients import Client
from everlong.gateway.conversations.canonical import UNREADABLE
from everlong.gateway.exchange.answer import AnswerForwarder, Refusal
from everlong.gateway.exchange.compaction import (
    as_the_model_reads,
    asks_for_compaction,
    send_compacted,
    without_asking,
)
from everlong.gateway.exchange.delivery import Delivery
from everlong.gateway.exchange.preparation import Preparation, call_of, options_of, takes_no_time
from everlong.gateway.exchange.response import Headers, ResponseWriter
from everlong.gateway.exchange.usage import PromptSizes
from everlong.gateway.operations.reports import Report
from everlong.gateway.operations.services import Services
from everlong.gateway.recall.exchange import RecallExchange, with_earlier, with_tool
from everlong.gateway.recall.history import Round
from everlong.gateway.recall.tool import without_recall
from everlong.gateway.request import ModelRequest, Piece
from everlong.gateway.upstreams.connections import UpstreamResponse
from everlong.gateway.upstreams.routing import Upstream

__all__ = ["Exchange"]

#: Why a request is not managed.
TURNED_OFF = "mode off"
HELD_ELSEWHERE = "the provider stores part of the conversation"
LEFT_TO_PROVIDER = "compaction is left to the provider"
EMPTY = "no messages"
SINGLE = "a single prompt: there is nothing to shorten"
UNREAD = "its messages cannot be read"


@dataclass(slots=True, kw_only=True)
class Exchange:
    """One request in progress. `name` is the client's own name for the conversation, if any."""

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
    #: How the request of the current answer is prepared.
    _preparation: Preparation | None = None
    _recall: RecallExchange | None = None
    _continues: bool = False
    _continuation: Continuation | None = None
    _compacts: bool = False
    _delivery: Delivery = field(init=False)
    #: The messages as the client sent them.
    _sent: tuple[Piece, ...] = ()
    #: The window that the request asks for, if it asks for one.
    _asked: int | None = None

    async def run(self) -> None:
        """Answer the client. Errors that the client must see are raised."""
        self._read_window()
        self._delivery = Delivery(
            services=self.services,
            client=self.client,
            upstream=self.upstream,
            writer=self.writer,
            headers=self.headers,
            query=self.query,
            started=self.started,
            report=self.report,
        )
        self._sent = self.request.messages
        self.request = as_the_model_reads(self.request, managed=self.mode != "off")
        self._compacts = asks_for_compaction(self.request)
        if self.mode != "off":
            await self._find_past()
        self._delivery.choose_site(self.request, self.name, self._continuation)
        await self._manage()

    async def _manage(self) -> None:
        """Answer the client, with a managed request if possible."""
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
        """Answer a managed request; if it cannot be read, it is forwarded unchanged."""
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
            # The upstream may read what we cannot, or refuse it. Without the recall tool: nobody here would answer its
            # calls.
            self.request, self._recall, self.report.unmanaged = original, None, UNREAD
            if self._continuation is not None:
                self.request, self._continuation = self._continuation.asked, None
            await self._forward_unchanged()

    def _read_window(self) -> None:
        """Record the window that the request asks for. The format's maker gets the request with its own model name."""
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
        """Whether we compact if a client asks its provider to compact."""
        return self.services.config.provider_compaction == "ours"

    async def _answer_compacted(self) -> None:
        """Answer with the conversation that the engine compacted."""
        turn = Turn(self.services.engine, quick=True)
        self.request = self.request.with_messages(
            self.request.messages[: None if self.request.address.surface.compacts else -1]
        )
        try:
            self._preparation = await self._preparation_of(compacts=True)
            await self._delivery.with_comments(self.request, whole(self._prepare(turn)))
            self._continuation = None
            body = await self._prepared_body(turn.request)
        finally:
            self._leave()
            turn.abandon()
        await send_compacted(self.writer, self.request, self._sent, body, self.report.headers())
        self.complete = True

    # --- what the provider stores ------------------------------------------------------------------

    async def _find_past(self) -> None:
        """Find what the request continues, and add it if all of it is known."""
        chains, scope, upstream = self.services.chains, self.client.scope, self.upstream.name
        if self.services.state_store.near:
            self._continuation = continuation_of(chains, scope, upstream, self.request)
        else:
            self._continuation = await asyncio.to_thread(continuation_of, chains, scope, upstream, self.request)
        if self._continuation is not None:
            self.request = self._continuation.with_past()

    async def _forward_unseen(self, continuation: Continuation) -> None:
        """Forward a request whose past is unknown here; if it is too long, ask the provider for its past."""
        refusal = await self._attempt_unseen()
        if refusal is None:
            return
        asks = bool(self.request.messages) and continuation.needs_past(refusal.error, refusal.body or b"")
        provider = self._delivery.provider(self.request, continuation)
        if asks and await self._delivery.with_comments(self.request, continuation.fetch(provider)):
            self.request = continuation.with_past()
            await self._manage()
        else:
            await self._delivery.forward_refusal(refusal, refusal.error)

    async def _attempt_unseen(self) -> Refusal | None:
        """Forward the request and the answer unchanged; return the refusal if it is one."""
        try:
            answer = await self._delivery.send(self.request, self.request.body)
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
        """Whether the messages are sent outside the provider's conversation."""
        return self._continuation is not None and self._continuation.apart

    async def _complete_conversation(self, continuation: Continuation) -> None:
        """Add what was sent outside the provider's conversation to it, one answer at a time."""
        if continuation.kept is None:
            return
        name, items = continuation.conversation, continuation.kept.items
        async with self.services.chains.order(self.client.scope, name):
            await self._delivery.provider(self.request, continuation).add(name, items)

    # --- requests that are forwarded unchanged -----------------------------------------------------

    async def _forward_unchanged(self) -> None:
        """Forward the request and the answer unchanged.

        A single prompt that is too long is refused by the server, not cut.
        """
        if self.report.unmanaged == SINGLE:
            uncut = self.request.format.api.uncut.items()
            missing = {name: value for name, value in uncut if name not in self.request.fields}
            self.request = self.request.with_fields(self.request.changed(missing))
        answer = await self._delivery.send(self.request, self.request.body)
        forwarder = self._forwarder(PromptSizes())
        try:
            await forwarder.forward_unchanged(answer)
        finally:
            answer.close()
            self.complete = forwarder.finished is not None
            self._report_answer(forwarder.finished)
            self._report_broken(forwarder)

    # --- requests that the engine prepares ---------------------------------------------------------

    async def _answer(self) -> bool:
        """Get one answer from the model; return whether the request continues with a recall."""
        self._continues = False
        turn = Turn(self.services.engine, quick=True)
        try:
            self._preparation = await self._preparation_of()
            turn.prepared = await self._preparation.by_sizes()
            if turn.prepared is None:
                turn.prepared = self._preparation.at_once()
            if turn.prepared is None:
                await self._delivery.with_comments(self.request, whole(self._prepare(turn)))
            refusal = await self._attempt(turn)
            while refusal is not None:
                refusal = await self._delivery.with_comments(self.request, self._try_again(turn, refusal))
        finally:
            self._leave()
            turn.abandon()
        return self._continues

    async def _preparation_of(self, *, compacts: bool = False) -> Preparation:
        """Return the preparation of the current request."""
        return Preparation(
            services=self.services,
            client=self.client,
            request=self.request,
            call=await call_of(self._delivery, self.request, self._asked, recalls=self._recall is not None),
            options=options_of(self.services.config, self.request, self.mode),
            name=self.name,
            size=self._size,
            report=self.report,
            continuation=None if compacts else self._continuation,
            recalls=self._recall is not None,
            compacts=compacts,
        )

    async def _attempt(self, turn: Turn) -> Refusal | None:
        """Send the prepared request and forward its answer; return the refusal if nothing was forwarded."""
        try:
            write = partial(self._prepared_body, turn.request)
            rewrite = None if self._continuation is None else write
            answer = await self._delivery.send(self.request, await write(), rewrite)
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
            if forwarder.finished is not None:  # the client has everything and did not wait for the connection to close
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

    async def _prepare(self, turn: Turn) -> None:
        """Prepare the request of a turn with its conversation held whole."""
        turn.prepared = await self._planned.whole()

    @property
    def _planned(self) -> Preparation:
        assert self._preparation is not None, "a request that is managed"
        return self._preparation

    async def _prepared_body(self, prepared: Prepared) -> bytes:
        """Return what is sent for a prepared request."""
        if self._continuation is not None:
            self._continuation.upstream = self._delivery.site.held_as  # another address holds nothing of it
        return await self._planned.body(prepared)

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
        preparation = self._planned
        if preparation.sketch is not None and may_recover(refusal.error):
            await self._look_into(turn, str(refusal.error))
        try:
            if preparation.sketch is not None:
                await turn.failed(str(refusal.error))
                raise refusal.error
            await turn.refused(refusal.error)
        except (ProviderError, BudgetImpossible) as final:
            await self._delivery.forward_refusal(refusal, final)
            return None
        await preparation.recovered(turn.request)
        return await self._attempt(turn)

    async def _look_into(self, turn: Turn, refused: str) -> None:
        """Prepare the refused request again with its conversation held in full, because it must become smaller."""
        self._planned.forget_sketch()
        await turn.failed(refused)
        turn.ended, turn.prepared = False, None
        await whole(self._prepare(turn))

    def _forwarder(self, sizes: PromptSizes) -> AnswerForwarder:
        return AnswerForwarder(
            format=self.request.format,
            writer=self.writer,
            headers=self.report.headers,
            sizes=sizes,
            opening=self._leave,
            ending=self._keep_answer,
            settle=self.services.state_store.settle,
            recall=self._recall,
        )

    def _keep_answer(self, message: Message, name: str) -> None:
        """Keep the parts of an answer that the client may drop or name, before the client has all of it."""
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
        whole_request = None if rounds or self.report.unmanaged else self._planned.transcript
        self._continuation.keep([*names, name], answers, whole_request)

    def _sizes(self, prepared: Prepared) -> PromptSizes:
        original = self.services.config.usage == "original"
        return PromptSizes(
            added=max(0, self.report.before - prepared.tokens) if original else 0,
            window=prepared.window.context,
            prompt=prepared.tokens,
            wants=self.request.wants_usage or not self.request.stream,
        )

    # --- afterwards --------------------------------------------------------------------------------

    async def _finish(self, turn: Turn, forwarder: AnswerForwarder) -> None:
        """Record the cost of a forwarded answer, and start what is due after a turn."""
        finished = forwarder.finished
        if finished is None:
            await turn.failed(forwarder.broken or "the answer could not be read")
        elif not turn.ended and await turn.answered(finished) is not None:
            await turn.failed("the server did not read all of it, and the answer had begun")
        self._report_answer(finished, turn.request)
        if finished is None:
            return
        self._planned.anchor(turn.request, finished.usage)
        if self._recall is not None:
            await self._recall_results(self._recall, turn, forwarder, finished)
        self.complete = True
        if self._apart and self._continuation is not None and not self._continues:
            await self._complete_conversation(self._continuation)
        if not self._far_from_full(turn.request):
            model = self._delivery.own_model(self.request)
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
        """Add the recall tool to the request, and put back what earlier answers recalled."""
        if takes_no_time(self.services, self._size):
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
        """Recall what the model asks for: now, if it called nothing else, or for the client's next request."""
        message = finished.message
        results = await recall.results(self.services.engine, turn.request.thread, message)
        round_ = Round(message, results, forwarder.response)
        self._continues = forwarder.continues
        if forwarder.continues:
            self.request = recall.continued(self.request, round_)
        else:
            self.services.opaque.keep(self.client.scope, self.request.model, recall.notes(round_))

    # --- helpers -----------------------------------------------------------------------------------

    @property
    def _size(self) -> int:
        """Bytes of the request, including what its provider stores."""
        return self.report.bytes_in + (0 if self._continuation is None else self._continuation.size)

    def _leave(self) -> None:
        """Release the conversation to other requests: from here on nothing is recovered."""
        if self._preparation is not None:
            self._preparation.leave()

    def _report_broken(self, forwarder: AnswerForwarder) -> None:
        """Report an answer that broke off at the upstream."""
        if forwarder.broken:
            self.report.end_early("upstream", 502, "upstream_broke_off", forwarder.broken)

    def _report_answer(self, finished: Finished | None, prepared: Prepared | None = None) -> None:
        if finished is not None:
            self.report.usage = finished.usage
        if prepared is not None:
            self.report.recovered = prepared.attempt
