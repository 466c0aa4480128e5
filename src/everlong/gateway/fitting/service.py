"""`fit`, `count`, `recall` and pins for programs that call their models themselves.

Without a thread, a conversation is fitted by itself, and the same messages give the same bytes. A thread is a
conversation of the gateway under the name that its client gave it: it grows with what the client sends, its compactions
are found again after a restart and in other processes, and no other key sees it. A request is lent to the client, which
reports its outcome with the next one. What a client reports about its provider counts only for its own key.
"""

import json
from bisect import bisect_right
from dataclasses import dataclass
from functools import partial

from everlong.core import Budget, JsonObject, Message, user_text
from everlong.engine import Call, Mode, Prepared, counter_for, fit_document
from everlong.errors import InputError, NoThread, ProviderError, Refused
from everlong.gateway.clients import Client
from everlong.gateway.conversations.conversation import Conversation, Transcript
from everlong.gateway.conversations.conversations import OVERTAKEN, OVERTAKEN_AT_MOST
from everlong.gateway.fitting.asked import Asked
from everlong.gateway.fitting.pins import Pins, pin_name
from everlong.gateway.fitting.placement import Given, Returned
from everlong.gateway.operations.reports import Report
from everlong.gateway.operations.services import Services
from everlong.gateway.request import encoded
from everlong.wire import Document

__all__ = ["Fitting"]

NAMED = "name/"  # the prefix of the root of a named conversation
OUTSIDE = -1  # the position of anything that is not in the history
NOT_REPORTED = "its client did not report the outcome"
MOST_HITS = 20


@dataclass(frozen=True, slots=True)
class Fitting:
    """The engine as programs use it over HTTP. All methods may block, so none is for the event loop."""

    services: Services
    pins: Pins

    # --- fit ---------------------------------------------------------------------------------------

    def fit(self, client: Client, asked: Asked, mode: Mode, report: Report) -> bytes:
        """Return the messages to send and everything known about them, as JSON."""
        if not asked.request.messages:
            raise InputError("messages is empty: there is nothing to fit")
        report.model, report.mode, report.fmt = asked.model[:200], mode, asked.request.fmt
        return (
            self._in_thread(client, asked, mode, report) if asked.thread else self._alone(client, asked, mode, report)
        )

    def _alone(self, client: Client, asked: Asked, mode: Mode, report: Report) -> bytes:
        transcript = self._transcript(client, asked)
        given = Given(asked.request, transcript, transcript.head, [unit.messages for unit in transcript.units])
        pins = frozenset(place for pin in asked.pins for place in given.pinned(_index(pin, asked)))
        deployment = self.services.config.deployment(asked.model)
        window, budget = asked.window or deployment.window, asked.budget
        if budget is None and window is not None:
            budget = Budget.of(window, requested=asked.max_tokens).available
        document = Document(
            fmt=asked.request.fmt, messages=given.history, tools=asked.request.tools, model=deployment.model, bare=True
        )
        preset = "off" if mode == "off" else asked.preset or self.services.config.engine.rules
        fitted = fit_document(document, budget=budget, preset=preset, pins=pins)
        before = counter_for(deployment.model)
        report.before = before.messages(given.history) + before.tools(document.tools)
        report.after, report.edits = fitted.tokens, fitted.edits
        messages, fields = given.returned(fitted.view.messages)
        edits = [given.edit_at(edit, edit.at) for edit in fitted.edits]
        result: JsonObject = {
            "tokens": fitted.tokens,
            "budget": fitted.budget,
            "compactions": int(any(edit["message"] is not None for edit in edits)),
            "edits": [*edits],
        }
        return _written(asked, messages, fields, result)

    def _in_thread(self, client: Client, asked: Asked, mode: Mode, report: Report) -> bytes:
        warning = self._settle(self._named(client, asked.thread), asked) if asked.refused is None else ""
        transcript = self._transcript(client, asked)
        for _ in range(OVERTAKEN_AT_MOST):
            answer = self._in_conversation(client, transcript, asked, mode, warning, report)
            if answer is not None:
                return answer
        raise Refused("other processes keep continuing this thread; try again", status=503, kind="busy", after=1)

    def _in_conversation(
        self, client: Client, transcript: Transcript, asked: Asked, mode: Mode, warning: str, report: Report
    ) -> bytes | None:
        """Return the response; None if another process has continued the conversation, so it is prepared again."""
        conversations = self.services.conversations
        conversation = conversations.enter(client.scope, transcript)
        try:
            with conversation.lock:
                self._set_up(client, conversation, asked, mode)
                prepared = self._prepared(client, conversation, asked)
                if not conversations.commit(conversation):
                    conversation.lent = None
                    self.services.engine.blocking.record_failure(prepared, OVERTAKEN)
                    return None
                return self._response(conversation, transcript, asked, prepared, warning, report)
        finally:
            conversations.leave(conversation)
            conversations.keep_marks_soon(conversation)

    def _transcript(self, client: Client, asked: Asked) -> Transcript:
        return self.services.conversations.transcript(asked.request, client.scope, name=asked.thread)

    def _named(self, client: Client, thread: str) -> Conversation | None:
        return self.services.conversations.newest(client.scope, NAMED + thread)

    def _settle(self, before: Conversation | None, asked: Asked) -> str:
        """Record the outcome of the previous request; return what to report about it."""
        if before is None:
            return ""
        with before.lock:
            lent, before.lent = before.lent, None
        if lent is None:
            return ""
        engine = self.services.engine.blocking
        hidden = None if asked.usage is None else engine.record_usage(lent, asked.usage)
        if asked.usage is None or hidden is not None:
            engine.record_failure(lent, NOT_REPORTED if hidden is None else str(hidden))
        return "" if hidden is None else f"{hidden}; its window has been learned"

    def _set_up(self, client: Client, conversation: Conversation, asked: Asked, mode: Mode) -> None:
        """Apply what the program asks for to its thread, and pin what it pins."""
        usual, threads = self.services.config.engine, self.services.engine.threads
        window = asked.window or self.services.config.deployment(asked.model).window
        options: JsonObject = {} if mode == usual.mode else {"mode": mode}
        options |= {"preset": asked.preset} if asked.preset else {}
        if asked.budget is not None:  # the whole budget is for messages and tools
            options |= {"window": asked.budget, "reserve": 0}
        elif window:
            options |= {"window": window}
        settings = json.dumps(options)
        if conversation.settings != settings:
            usual.for_thread(settings)  # raises InputError for an invalid setting
            threads.change(conversation.thread, settings=settings)
            conversation.settings = settings
        texts = [pin for pin in asked.pins if isinstance(pin, str)]
        if texts:
            self.pins.add(client.scope, asked.thread, texts)
        self.pins.bring(client.scope, asked.thread, threads, conversation.thread)
        for pin in asked.pins:
            if isinstance(pin, int):
                threads.pin(conversation.thread, _order(conversation, asked, pin))

    def _prepared(self, client: Client, conversation: Conversation, asked: Asked) -> Prepared:
        """Return what to send now; after a refusal, what to send instead."""
        engine = self.services.engine.blocking
        prepared, conversation.lent = conversation.lent, None
        if prepared is not None and asked.refused is None:  # a concurrent caller's request
            engine.record_failure(prepared, NOT_REPORTED)
        if prepared is None or asked.refused is None:
            prepared = engine.prepare(conversation.thread, self._call(client, asked))
        if asked.refused is not None:
            try:
                prepared = engine.recover(prepared, asked.refused)
            except ProviderError as error:
                raise Refused(str(error), status=422, kind="not_recovered") from None
        conversation.lent = prepared
        return prepared

    def _call(self, client: Client, asked: Asked) -> Call:
        return Call(
            model=self.services.config.deployment(asked.model).model,
            fmt=asked.request.fmt,
            # What a client reports about windows and counts is trusted only for its own key.
            endpoint=f"key/{client.scope}",
            provider=asked.provider,
            tools=asked.request.tools,
            max_tokens=asked.max_tokens,
            thinking=asked.request.thinking,
            recall_tool=asked.recall_tool,
            breakpoints=False,
        )

    def _response(
        self,
        conversation: Conversation,
        transcript: Transcript,
        asked: Asked,
        prepared: Prepared,
        warning: str,
        report: Report,
    ) -> bytes:
        given = Given(asked.request, transcript, conversation.opening, conversation.messages)
        messages, fields = given.returned(prepared.request.messages)
        place = partial(_place, conversation)
        counter = counter_for(prepared.call.model)
        report.before = counter.messages(given.history) + prepared.budget.tools
        report.thread, report.after, report.edits = conversation.thread, prepared.tokens, prepared.edits
        report.recovered, report.messages = prepared.attempt, len(conversation.digests)
        report.compactions, conversation.compactions = conversation.compactions, 0
        result: JsonObject = {
            "tokens": prepared.tokens,
            "budget": prepared.budget.available + prepared.budget.tools,
            "window": prepared.window.context,
            "compactions": prepared.compactions,
            "edits": [given.edit_at(edit, place(edit.at)) for edit in prepared.edits],
            "thread": asked.thread,
        }
        if prepared.request.max_tokens is not None and prepared.request.max_tokens != asked.max_tokens:
            result["max_tokens"] = prepared.request.max_tokens
        return _written(asked, messages, fields, result | ({"warning": warning} if warning else {}))

    # --- count -------------------------------------------------------------------------------------

    def count(self, client: Client, asked: Asked, report: Report) -> JsonObject:
        """Return the tokens of messages and tools."""
        transcript = self._transcript(client, asked)
        model = self.services.config.deployment(asked.model).model
        counter = counter_for(model)
        history: tuple[Message, ...] = (
            *transcript.head,
            *(said for unit in transcript.units for said in unit.messages),
        )
        tokens = counter.messages(history) + counter.tools(asked.request.tools)
        report.model, report.fmt, report.before = asked.model[:200], asked.request.fmt, tokens
        return {"tokens": tokens, "exact": not counter.vocabulary.spread, "model": model}

    # --- recall and pins ---------------------------------------------------------------------------

    def recall(self, client: Client, thread: str, what: str, *, limit: int, start: int) -> JsonObject:
        """Return the messages that answer a query, or the original of a reference, for the model and for programs."""
        if not what.strip():
            raise InputError("nothing to recall: send a reference or a few words in `what`")
        conversation, engine = self._named(client, thread), self.services.engine.blocking
        try:
            inside = "" if conversation is None else conversation.thread
            found = engine.recall(inside, what, limit=min(limit, MOST_HITS))
            text = engine.recall_text(inside, what, start=start)
        except NoThread:
            raise Refused(
                "this thread is not in memory: send its messages to /everlong/fit first",
                status=404,
                kind="unknown_thread",
            ) from None
        original = None if found.original is None else found.original.decode("utf-8", "replace")
        hits = [hit.row.entry for hit in found.hits if isinstance(hit.row.entry, Message)]
        return {
            "text": text,
            "original": original,
            "hits": [{"role": said.role.value, "text": _text(said)} for said in hits],
        }

    def listed(self, client: Client, thread: str) -> JsonObject:
        """Return the pins of a thread."""
        return _pins_of(thread, self.pins.of(client.scope, thread))

    def pin(self, client: Client, thread: str, text: str) -> JsonObject:
        """Pin a text."""
        return {"pin": pin_name(text)} | _pins_of(thread, self.pins.add(client.scope, thread, [text]))

    def unpin(self, client: Client, thread: str, name: str) -> JsonObject:
        """Remove a pin."""
        return _pins_of(thread, self.pins.remove(client.scope, thread, name))


def _pins_of(thread: str, texts: tuple[str, ...]) -> JsonObject:
    return {"thread": thread, "pins": [{"pin": pin_name(text), "text": text} for text in texts]}


def _text(message: Message) -> str:
    return user_text(message) or "\n".join([message.text, *(result.text for result in message.results)]).strip()


def _index(pin: int | str, asked: Asked) -> int:
    """Return the index in the list that begins with the added system text."""
    length = len(asked.request.messages) - asked.headed
    if isinstance(pin, str) or not 0 <= pin < length:
        raise InputError(f"there is no message {pin} to pin: messages are numbered from 0 to {length - 1}")
    return pin + asked.headed


def _order(conversation: Conversation, asked: Asked, pin: int) -> int:
    """Return the order in the thread of a message of the list."""
    at = _index(pin, asked) - (len(asked.request.messages) - len(conversation.starts))
    if at < 0:
        raise InputError(f"message {pin} is system text, which is always sent: pin another")
    return conversation.starts[at]


def _place(conversation: Conversation, order: int) -> int:
    """Return the position in the history of the message with this order in the thread."""
    unit = bisect_right(conversation.starts, order) - 1
    if unit < 0:
        return order if order < len(conversation.opening) else OUTSIDE
    inside = order - conversation.starts[unit]
    if inside >= len(conversation.messages[unit]):
        return OUTSIDE
    return len(conversation.opening) + sum(len(said) for said in conversation.messages[:unit]) + inside


def _written(asked: Asked, messages: list[Returned], fields: dict[str, bytes], result: JsonObject) -> bytes:
    """Return the response as JSON; input messages stay byte for byte."""
    if asked.headed and messages and messages[0].given == 0:
        messages = messages[1:]
    given = [None if each.given is None else each.given - asked.headed for each in messages]
    edits = result.get("edits")
    if asked.headed and isinstance(edits, list):
        for edit in edits:
            if isinstance(edit, dict) and isinstance(edit["message"], int):
                edit["message"] = edit["message"] - 1 if edit["message"] else None
    rest = encoded({"from": [*given], **result, "format": asked.request.fmt})
    changed = b",".join(encoded(name) + b":" + raw for name, raw in fields.items())
    listed = b",".join(each.raw for each in messages)
    return b'{"messages":[%b],"fields":{%b},%b' % (listed, changed, rest[1:])
