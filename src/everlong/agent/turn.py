"""The turn: ask the model, make its calls, ask again, until it has none. The same for user, event and sub-agent.

Every request goes through `converse`, everything said is appended through the engine. Whatever ends a turn, every call
in the thread has its result.
"""

import json
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, replace

from everlong.agent.calls import Bench, close_calls, make_calls
from everlong.agent.definitions import NO_CALLS
from everlong.agent.events import Entered, Reason, Tell, TurnEnded
from everlong.core import History, JsonText, Message, Role, Text
from everlong.engine import Call, Engine, Failed, Finished, Model, converse, whole
from everlong.errors import BudgetImpossible, NotRecovered

__all__ = ["Turn"]

LIMITS: dict[str, dict[str, str]] = {
    "most steps": {
        "en": "[All {steps} steps of this turn are used. Make no more calls. "
        "Say what is done, what is not, and what comes next.]",
        "zh": "[本轮的 {steps} 个步骤已用完。不要再调用工具。请说明已完成什么、未完成什么、下一步是什么。]",
    },
    "most tokens": {
        "en": "[This turn has used its tokens. Make no more calls. "
        "Say what is done, what is not, and what comes next.]",
        "zh": "[本轮的 token 预算已用完。不要再调用工具。请说明已完成什么、未完成什么、下一步是什么。]",
    },
}
LONGEST_ASKED = 6_000  # characters of earlier requests that are said again
STILL_ASKED = {
    "en": "[Kept by the system: the user asked for this before in this turn, and it has no answer yet]",
    "zh": "[系统保留：用户在本轮中先前提出以下要求，尚未得到回答]",
}
NOT_MADE = {
    "en": "[not made: the turn was at its end.]",
    "zh": "[未执行：本轮已结束。]",
}


@dataclass(slots=True, kw_only=True)
class Turn:
    """A turn under way. `assembled` gives the call with today's standing context, `waiting` what was said meanwhile.

    `asked` is what the user said that has no answer yet. The engine protects the last of it; what came before is said
    again at the tail, because a summary made meanwhile may cover it.
    """

    engine: Engine
    model: Model
    thread: str
    bench: Bench
    assembled: Callable[[], Awaitable[Call]]
    waiting: Callable[[bool], History]
    asked: History
    tell: Tell
    most_steps: int
    most_tokens: int | None = None
    steps: int = 0
    tokens: int = 0

    async def run(self) -> TurnEnded:
        """Until the model is done, a limit is reached or it fails."""
        while True:
            answer = await self._ask(await self._call())
            if answer is None:
                return self._ended("failed")
            if answer.calls:
                await make_calls(self.engine, self.thread, answer.calls, self.bench, self.tell)
            if not await self._enter(last=not answer.calls) and not answer.calls:
                return self._ended("done")
            limit = self._limit()
            if limit is not None:
                return await self._last_words(limit)

    async def _call(self) -> Call:
        call, earlier = await self.assembled(), [message.text for message in self.asked[:-1] if message.text]
        if not earlier:
            return call
        text = "\n\n".join((STILL_ASKED[self.bench.language], *earlier))
        return replace(call, tail=(*call.tail, Message(Role.USER, (Text(text[:LONGEST_ASKED]),))))

    async def _ask(self, call: Call) -> Message | None:
        """One answer, every piece of it told; None if there is none."""
        self.steps += 1
        answer = None
        try:
            async with aclosing(converse(self.engine, self.model, self.thread, call)) as replies:
                async for reply in replies:
                    if isinstance(reply, Finished):
                        answer = reply.message
                        self.tokens += 0 if reply.usage is None else reply.usage.prompt + reply.usage.output
                    self.tell(reply)
        except BudgetImpossible as error:
            self.tell(Failed(NotRecovered(str(error), limit=error.limit, parts=error.parts), begun=False))
        return answer

    async def _enter(self, *, last: bool) -> bool:
        """Take in what was said meanwhile; whether there was anything."""
        said = self.waiting(last)
        if said:
            self.asked = said if last else (*self.asked, *said)
            await whole(self.engine.append(self.thread, said))  # taken from those who wait: it must not be lost
            for message in said:
                self.tell(Entered(message))
        return bool(said)

    def _limit(self) -> Reason | None:
        if self.steps >= self.most_steps:
            return "most steps"
        if self.most_tokens is not None and self.tokens >= self.most_tokens:
            return "most tokens"
        return None

    async def _last_words(self, limit: Reason) -> TurnEnded:
        """An answer in words, so that the work is not lost; calls that come nevertheless are not made."""
        language = self.bench.language
        note = Message(Role.USER, (Text(LIMITS[limit][language].format(steps=self.steps)),))
        call = await self._call()
        answer = await self._ask(replace(call, extra=_without_calls(call, self.model.fmt), tail=(*call.tail, note)))
        await close_calls(self.engine, self.thread, NOT_MADE[language])
        return self._ended("failed" if answer is None else limit)

    def _ended(self, reason: Reason) -> TurnEnded:
        return TurnEnded(reason, self.steps, self.tokens)


def _without_calls(call: Call, fmt: str) -> JsonText:
    """The call's own fields, and that calls are not wanted."""
    if not call.tools or fmt not in NO_CALLS:
        return call.extra
    return json.dumps({**json.loads(call.extra or "{}"), **json.loads(NO_CALLS[fmt])})
