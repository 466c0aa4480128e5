"""Everlong's engine as a policy: the same `prepare`, `record_usage` and summaries as in production, in memory.

The answers are those of the conversation. The summaries consist of the conversation's own words, are as long as a model
would write them, and pass the same audit as any other.
"""

import asyncio
import json
from bisect import bisect_right
from collections.abc import AsyncGenerator, Callable
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from everlong.compress import preset_named
from everlong.core import History, JsonText, Message, Role, Text, head_length
from everlong.engine import (
    Call,
    Engine,
    Finished,
    Prepared,
    Reply,
    Request,
    Settings,
    Summaries,
    Summarizing,
    breakpoints,
    counter_for,
    newest_summary,
)
from everlong.errors import BudgetImpossible
from everlong.lab.replay.caches import shared
from everlong.lab.replay.courses import Beside, Sending, Terms
from everlong.store import MemoryThreads
from everlong.summarize import clipped, one_line
from everlong.tokens import Counter
from everlong.windows import Entry, Registry
from everlong.wire import OPENAI_CHAT, Usage

__all__ = ["Ours", "marks_of"]

THREAD = "replay"
BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)
WORD, LETTER, LETTERS = "tool ", "z", 12  # filler for the prompt overhead: whole words, then letters for the rest
SUMMARY_TOKENS = 800  # about what our own instruction asks for: lists of short sentences
LONGEST_ITEM = 300  # characters


class _Author:
    """The model that writes summaries in a replay. `called` are its calls since the last request."""

    fmt = OPENAI_CHAT.name
    endpoint = "replay"
    provider = ""

    def __init__(self, terms: Terms) -> None:
        self._terms = terms
        self._overhead = _system_of(terms.model, terms.system)
        self.called: list[Beside] = []

    async def stream(self, request: Request) -> AsyncGenerator[Reply, None]:
        """Answer with a substitute for a summary."""
        message = _stand_in_summary(request.messages, self._terms.counter)
        output = self._terms.counter.message(message)
        alone = request.caching is None  # a transcript as text, not a continuation of what was sent before
        messages, marks = _without(self._overhead, request.messages, marks_of(request))
        self.called.append(Beside(messages=messages, output=output, marks=marks, alone=alone))
        prompt = self._terms.counter.messages(request.messages)
        yield Finished(message, Usage(prompt=prompt, output=output), "stop")

    async def served_window(self, model: str) -> int | None:  # noqa: ARG002 - one window for all
        """Return the window of the replay."""
        return self._terms.window


class Ours:
    """One conversation through the engine; without a choice of `summaries`, in mode trim."""

    def __init__(
        self,
        terms: Terms,
        *,
        preset: str = "auto",
        threshold: float | None = None,
        summaries: Summarizing | None = "auto",
    ) -> None:
        self._moment = 0.0
        self._author = _Author(terms)
        settings = Settings(
            mode="trim" if summaries is None else "auto",
            summaries=summaries or "auto",
            preset=preset,
            threshold=threshold,
            window=terms.window,
            cache_seconds=terms.tariff.rules.seconds,
        )
        self.engine = Engine(
            MemoryThreads(),
            settings=settings,
            registry=_priced(terms),
            clock=lambda: BEGINNING + timedelta(seconds=self._moment),
        )
        self._summaries = Summaries(self.engine)
        self._loop = asyncio.new_event_loop()
        self._call = Call(
            model=terms.model,
            fmt=self._author.fmt,
            endpoint=self._author.endpoint,
            tools=_tools_of(terms.model, terms.front - terms.system),
            max_tokens=terms.reply,
        )
        self._overhead = _system_of(terms.model, terms.system)
        self.say(self._overhead)
        self._every_call = preset_named(preset).every_call
        self._prepared: Prepared | None = None
        self._summarised = False

    @property
    def tools(self) -> tuple[JsonText, ...]:
        """Return the tools that stand for the prompt overhead in every request."""
        return self._call.schemas

    def say(self, messages: History) -> None:
        """Append the messages to the thread."""
        if messages:
            self.engine.blocking.append(THREAD, messages)

    def ask(self, moment: float) -> Sending:
        """Return what the engine sends."""
        self._moment = moment
        before = self._prepared
        beside, self._author.called = tuple(self._author.called), []
        points = self.engine.blocking.context.threads.thread(THREAD).points
        try:
            prepared = self._prepared = self.engine.blocking.prepare(THREAD, self._call)
        except BudgetImpossible as error:
            return Sending(beside=beside, summarised=self._summarised, refused=str(error))
        if before is None or prepared.compactions != before.compactions:
            summary = newest_summary(self.engine.blocking.context.threads, THREAD)
            # A summary by code is searched as text.
            self._summarised = summary is not None and summary.source == "model"
        messages, marks = _without(self._overhead, prepared.request.messages, marks_of(prepared.request))
        return Sending(
            messages=messages,
            cut=before is not None and self._shortened(before, prepared),
            early=prepared.compactions == points,
            marks=marks,
            beside=beside,
            summarised=self._summarised,
        )

    def _shortened(self, before: Prepared, prepared: Prepared) -> bool:
        """Return whether the engine replaced what was sent before: it counted a cut, or its preset cuts each call."""
        if prepared.compactions == before.compactions and not self._every_call:
            return False
        sent = before.request.messages
        return shared(sent, prepared.request.messages) < len(sent)

    def receive(self, usage: Usage, answer: Message) -> None:
        """Record usage and answer. A summary that is due is written before the conversation continues."""
        prepared = self._prepared
        assert prepared is not None, "a reply follows a request"
        self.engine.blocking.record_usage(prepared, usage)
        self.say((answer,))
        self._loop.run_until_complete(self._write_if_due(prepared))

    def close(self) -> tuple[Beside, ...]:
        """Close the event loop; return the calls that have not been paid for yet."""
        self._loop.close()
        return tuple(self._author.called)

    async def _write_if_due(self, prepared: Prepared) -> None:
        self._summaries.after_turn(prepared, self._author)
        await self._summaries.drain()


def _stand_in_summary(messages: History, counter: Counter) -> Message:
    """Return a summary as a model would write it, in JSON, from the newest things that the assistant said."""
    replies = [
        one_line(message.text) for message in messages if message.role is Role.ASSISTANT and message.text.strip()
    ]
    items: list[str] = []
    left = SUMMARY_TOKENS
    for text in reversed(replies):
        item = clipped(text, LONGEST_ITEM)
        left -= counter.text(item) + 4
        if left < 0:
            break
        items.insert(0, item)
    context = items[-1] if items else "The conversation goes on with the same work as before."
    body = {"context": context, "done": items[:-1], "next": []}
    return Message(Role.ASSISTANT, (Text(json.dumps(body, ensure_ascii=False)),))


def marks_of(request: Request) -> tuple[int, ...]:
    """Return the cache marks of a request to Anthropic: after the system text, and where the engine wants them.

    A request that no later one extends has none.
    """
    if request.caching is None:
        return ()
    return tuple(sorted({head_length(request.messages), *breakpoints(request)}))


def _priced(terms: Terms) -> Registry:
    """Return a registry with the replay's prices for the model: they decide how deep compactions go."""
    prices = terms.tariff.prices
    entry = Entry(
        provider="",
        id=terms.model,
        table="replay",
        date="",
        context=terms.window,
        usd_input=prices.input,
        usd_output=prices.output,
        usd_cache_read=prices.cache_read,
        usd_cache_write=prices.cache_write,
    )
    return Registry((entry,))


def _without(overhead: History, messages: History, marks: tuple[int, ...]) -> tuple[History, tuple[int, ...]]:
    """Return messages and cache marks without the system text of the overhead, which the replay counts separately."""
    if not overhead or messages[: len(overhead)] != overhead:
        return messages, marks
    return messages[len(overhead) :], tuple(max(0, mark - len(overhead)) for mark in marks)


@lru_cache(maxsize=64)
def _tools_of(model: str, tokens: int) -> tuple[JsonText, ...]:
    """Return a tool whose schema has this many tokens; none if even the shortest is too long."""
    counter = counter_for(model)
    filled = _filled(tokens, lambda filler: counter.tools([_schema(filler)]))
    return () if filled is None else (_schema(filled),)


@lru_cache(maxsize=64)
def _system_of(model: str, tokens: int) -> History:
    """Return a system message of this many tokens; none if even the shortest is too long."""
    counter = counter_for(model)
    filled = _filled(tokens, lambda filler: counter.message(_system(filler)))
    return () if filled is None else (_system(filled),)


def _filled(tokens: int, size: Callable[[str], int]) -> str | None:
    """Return the filler that gives something that size; None if it is larger without any."""
    words = bisect_right(range(2 * tokens), tokens, key=lambda many: size(WORD * many)) - 1
    if words < 0:
        return None
    letters = next((many for many in range(LETTERS) if size(WORD * words + LETTER * many) >= tokens), 0)
    return WORD * words + LETTER * letters


def _schema(filler: str) -> JsonText:
    return json.dumps({"name": "everything", "description": filler})


def _system(filler: str) -> Message:
    return Message(Role.SYSTEM, (Text(filler),))
