"""The turn: ask the model, make its calls, ask again, until it has none. The same for user, event and sub-agent.

Every request goes through `converse`, and every message is appended through the engine. Whatever ends a turn, every
call in the thread has its result. Which turn runs when is decided in `agent`.
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

__all__ = ["Turn"]

LONGEST_UNANSWERED = 6_000  # characters of earlier requests that are repeated


@dataclass(slots=True, kw_only=True)
class Turn:
    """A turn under way. `call` assembles the next call with the standing context as it is now.

    `take_pending` returns the messages that came meanwhile; with True, at the end of the turn, only those that no
    other turn will answer. `unanswered` are the user's messages without an answer yet. The engine protects the last of
    them; the earlier ones are repeated at the tail, because a summary made meanwhile may cover them.
    """

    engine: Engine
    model: Model
    thread: str
    context: CallContext
    call: Callable[[], Awaitable[Call]]
    take_pending: Callable[[bool], History]
    unanswered: History
    report: Report
    most_steps: int
    most_tokens: int | None = None
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
        """Append the messages that came meanwhile; return whether there were any."""
        messages = self.take_pending(last)
        if messages:
            self.unanswered = messages if last else (*self.unanswered, *messages)
            await whole(self.engine.append(self.thread, messages))  # they wait nowhere else: they must not be lost
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
        """Ask for a last answer in words, so that the work is not lost; calls that come nevertheless are not made."""
        words = self.context.words
        note = Message(Role.USER, (Text(words.limits[limit].format(steps=self.steps)),))
        call = await self._next_call()
        answer = await self._ask(replace(call, extra=_without_calls(call, self.model.fmt), tail=(*call.tail, note)))
        await close_calls(self.engine, self.thread, words.not_made)
        return self._end("failed" if answer is None else limit)

    def _end(self, reason: Reason) -> TurnEnded:
        return TurnEnded(reason, self.steps, self.tokens)


def _without_calls(call: Call, fmt: str) -> JsonText:
    """Return the call's own fields of the body, and the ones that forbid calls."""
    if not call.tools:
        return call.extra
    return json.dumps({**json.loads(call.extra or "{}"), **json.loads(format_named(fmt).tools.forbid)})
