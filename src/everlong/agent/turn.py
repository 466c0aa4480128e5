"""A turn: ask the model, make its calls and ask again until it makes none. Users, events and sub-agents share it.

Every request goes through `converse`, and every message is appended through the engine. However a turn ends, every
call in the thread has a result. `agent` decides which turn runs when.
"""

import json
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, replace

from everlong.agent.calls import CallContext, close_calls, make_calls
from everlong.agent.events import Entered, Reason, Report, TurnEnded
from everlong.core import History, JsonText, Message, Role, Text
from everlong.engine import Call, Engine, Failed, Finished, Model, converse, whole
from everlong.errors import BudgetImpossible, NotRecovered
from everlong.wire import format_named

__all__ = ["Saying", "Turn"]

LONGEST_UNANSWERED = 6_000  # characters of earlier requests that are repeated


@dataclass(frozen=True, slots=True)
class Saying:
    """A message, and the name of its row: sending it again with the same name adds nothing."""

    message: Message
    name: str


@dataclass(slots=True, kw_only=True)
class Turn:
    """A running turn. `call` assembles the next call with the current standing context.

    `take_pending` returns the messages that arrived during the turn; with True, at the end of the turn, only those that
    no other turn will answer. `unanswered` are the user's messages without an answer yet. The engine protects the last
    one; the earlier ones are repeated at the tail, because a new summary may cover them.
    """

    engine: Engine
    model: Model
    thread: str
    context: CallContext
    call: Callable[[], Awaitable[Call]]
    take_pending: Callable[[bool], "tuple[Saying, ...]"]
    unanswered: History
    report: Report
    most_steps: int
    most_tokens: int | None = None
    #: A note at the end of the first request, which is not stored.
    first_note: str = ""
    steps: int = 0
    tokens: int = 0

    async def run(self) -> TurnEnded:
        """Run until the model is done, a limit is reached or the model fails."""
        while True:
            answer = await self._ask(await self._next_call())
            if answer is None:
                return self._end("failed")
            if answer.calls:
                await make_calls(self.engine, self.thread, answer.calls, self.context, self.report)
            if not await self._enter_pending(last=not answer.calls) and not answer.calls:
                return self._end("done")
            limit = self._limit()
            if limit is not None:
                return await self._conclude(limit)

    async def _next_call(self) -> Call:
        call, earlier = await self.call(), [message.text for message in self.unanswered[:-1] if message.text]
        if self.first_note and not self.steps:
            call = replace(call, tail=(*call.tail, Message(Role.USER, (Text(self.first_note),))))
        if not earlier:
            return call
        text = "\n\n".join((self.context.words.unanswered, *earlier))
        return replace(call, tail=(*call.tail, Message(Role.USER, (Text(text[:LONGEST_UNANSWERED]),))))

    async def _ask(self, call: Call) -> Message | None:
        """Ask for one answer and report every piece of it; None if there is none."""
        self.steps += 1
        answer = None
        try:
            async with aclosing(converse(self.engine, self.model, self.thread, call)) as replies:
                async for reply in replies:
                    if isinstance(reply, Finished):
                        answer = reply.message
                        self.tokens += 0 if reply.usage is None else reply.usage.prompt + reply.usage.output
                    self.report(reply)
        except BudgetImpossible as error:
            self.report(Failed(NotRecovered(str(error), limit=error.limit, parts=error.parts), begun=False))
        return answer

    async def _enter_pending(self, *, last: bool) -> bool:
        """Append the messages that arrived during the turn; return whether there were any."""
        sayings = self.take_pending(last)
        messages = tuple(one.message for one in sayings)
        if messages:
            self.unanswered = messages if last else (*self.unanswered, *messages)
            names = [one.name for one in sayings]
            # nothing else holds these messages: an interrupt must not lose them
            await whole(self.engine.append(self.thread, messages, ids=names))
            for message in messages:
                self.report(Entered(message))
        return bool(messages)

    def _limit(self) -> Reason | None:
        if self.steps >= self.most_steps:
            return "most steps"
        if self.most_tokens is not None and self.tokens >= self.most_tokens:
            return "most tokens"
        return None

    async def _conclude(self, limit: Reason) -> TurnEnded:
        """Ask for a last answer without calls, so that the work is not lost. Calls that come anyway are not made."""
        words = self.context.words
        note = Message(Role.USER, (Text(words.limits[limit].format(steps=self.steps)),))
        call = await self._next_call()
        answer = await self._ask(replace(call, extra=_without_calls(call, self.model.fmt), tail=(*call.tail, note)))
        await close_calls(self.engine, self.thread, words.not_made)
        return self._end("failed" if answer is None else limit)

    def _end(self, reason: Reason) -> TurnEnded:
        return TurnEnded(reason, self.steps, self.tokens)


def _without_calls(call: Call, fmt: str) -> JsonText:
    """Return the extra fields of the call's body, with those that forbid tool calls."""
    if not call.tools:
        return call.extra
    return json.dumps({**json.loads(call.extra or "{}"), **json.loads(format_named(fmt).tools.forbid)})
