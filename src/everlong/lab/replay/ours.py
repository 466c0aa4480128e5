"""Our own engine in a replay: the same `prepare`, `record_usage` and summaries as everywhere, on a store in memory.

The model's answers are those of the conversation. Its summaries are made of the conversation's own words, as long as a
model would write them; they pass the same audit as any.
"""

import asyncio
import json
from bisect import bisect_right
from collections.abc import AsyncGenerator
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from everlong.compress import preset_named
from everlong.core import History, JsonText, Message, Role, Text, head_length
from everlong.engine import (
    DEFAULT_THRESHOLD,
    Call,
    Engine,
    Finished,
    Prepared,
    Reply,
    Request,
    Settings,
    Summaries,
    breakpoints,
    counter_for,
    newest_summary,
    target_share,
)
from everlong.errors import BudgetImpossible
from everlong.lab.replay.caches import shared
from everlong.lab.replay.courses import Beside, Sending, Terms
from everlong.store import MemoryThreads
from everlong.summarize import clipped, one_line
from everlong.tokens import Counter
from everlong.wire import Usage

__all__ = ["Ours", "marks_of", "summary_of"]

MOST_TOKENS = 800  # about what our own instruction asks for: lists of short sentences
LONGEST = 300  # characters of one item


def summary_of(asked: History, counter: Counter) -> Message:
    """The answer to a request for a summary: JSON in the form that is asked for."""
    said = [one_line(message.text) for message in asked if message.role is Role.ASSISTANT and message.text.strip()]
    items: list[str] = []
    left = MOST_TOKENS
    for text in reversed(said):
        item = clipped(text, LONGEST)
        left -= counter.text(item) + 4
        if left < 0:
            break
        items.insert(0, item)
    context = items[-1] if items else "The conversation goes on with the same work as before."
    body = {"context": context, "done": items[:-1], "next": []}
    return Message(Role.ASSISTANT, (Text(json.dumps(body, ensure_ascii=False)),))


THREAD = "replay"
BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)
WORD, LETTER, LETTERS = "tool ", "z", 12  # what the front is filled with, and the rest that no word fits


class _Author:
    """The model of the conversation where it is asked for a summary."""

    fmt = "openai-chat"
    endpoint = "replay"
    provider = ""

    def __init__(self, terms: Terms) -> None:
        self._terms = terms
        self.called: list[Beside] = []

    async def stream(self, request: Request) -> AsyncGenerator[Reply, None]:
        """A summary made of what is to be summarised."""
        message = summary_of(request.messages, self._terms.counter)
        output = self._terms.counter.message(message)
        alone = request.caching is None  # handed over as text, not behind what was sent before
        self.called.append(Beside(messages=request.messages, output=output, marks=marks_of(request), alone=alone))
        prompt = self._terms.counter.messages(request.messages)
        yield Finished(message, Usage(prompt=prompt, output=output), "stop")

    async def served_window(self, model: str) -> int | None:  # noqa: ARG002 - one window for all
        """The window of the replay."""
        return self._terms.window


class Ours:
    """One conversation through the engine."""

    def __init__(
        self, terms: Terms, *, preset: str = "auto", threshold: float | None = None, summaries: bool = True
    ) -> None:
        self._moment = 0.0
        self._author = _Author(terms)
        high = DEFAULT_THRESHOLD if threshold is None else threshold
        settings = Settings(
            mode="auto" if summaries else "trim",
            preset=preset,
            threshold=high,
            # The tariff is that of the replay, whatever the registry says of the model.
            low_mark=target_share(terms.window, terms.budget - terms.front, terms.tariff.prices, high),
            window=terms.window,
            cache_seconds=terms.tariff.rules.seconds,
        )
        self._engine = Engine(
            MemoryThreads(), settings=settings, clock=lambda: BEGINNING + timedelta(seconds=self._moment)
        )
        self._summaries = Summaries(self._engine)
        self._loop = asyncio.new_event_loop()
        self._call = Call(
            model=terms.model,
            fmt=self._author.fmt,
            endpoint=self._author.endpoint,
            tools=_tools_of(terms.model, terms.front),
            max_tokens=terms.reply,
        )
        self._anew = preset_named(preset).every_call
        self._prepared: Prepared | None = None
        self._summarised = False

    @property
    def tools(self) -> tuple[JsonText, ...]:
        """What stands for the front in every request."""
        return self._call.tools

    def say(self, messages: History) -> None:
        """Into the thread."""
        if messages:
            self._engine.blocking.append(THREAD, messages)

    def ask(self, moment: float) -> Sending:
        """What the engine sends."""
        self._moment = moment
        before = self._prepared
        beside, self._author.called = tuple(self._author.called), []
        try:
            prepared = self._prepared = self._engine.blocking.prepare(THREAD, self._call)
        except BudgetImpossible as error:
            return Sending(beside=beside, summarised=self._summarised, refused=str(error))
        if before is None or prepared.cuts != before.cuts:
            self._summarised = newest_summary(self._engine.blocking.means.threads, THREAD) is not None
        return Sending(
            messages=prepared.request.messages,
            cut=before is not None and self._shortened(before, prepared),
            marks=marks_of(prepared.request),
            beside=beside,
            summarised=self._summarised,
        )

    def _shortened(self, before: Prepared, prepared: Prepared) -> bool:
        """Whether what was sent before was replaced, and the engine says so: by its count of cuts, or by its preset."""
        if prepared.cuts == before.cuts and not self._anew:
            return False
        sent = before.request.messages
        return shared(sent, prepared.request.messages) < len(sent)

    def heard(self, usage: Usage, answer: Message) -> None:
        """Learned from and kept; a summary that is due is written before anything else is said."""
        prepared = self._prepared
        assert prepared is not None, "a request is made first"
        self._engine.blocking.record_usage(prepared, usage)
        self.say((answer,))
        self._loop.run_until_complete(self._write_if_due(prepared))

    def close(self) -> tuple[Beside, ...]:
        """The loop ends."""
        self._loop.close()
        return tuple(self._author.called)

    async def _write_if_due(self, prepared: Prepared) -> None:
        self._summaries.after_turn(prepared, self._author)
        await self._summaries.drain()


def marks_of(request: Request) -> tuple[int, ...]:
    """The marks that the request goes out with to Anthropic: behind the system text, and where the engine wants them.

    What hands nothing on to a later request has none.
    """
    if request.caching is None:
        return ()
    return tuple(sorted({head_length(request.messages), *breakpoints(request)}))


@lru_cache(maxsize=64)
def _tools_of(model: str, front: int) -> tuple[JsonText, ...]:
    """A tool whose schema takes as many tokens as the front; none where not even the shortest does."""
    counter = counter_for(model)

    def size(words: int) -> int:
        return counter.tools([_schema(words)])

    words = bisect_right(range(2 * front), front, key=size) - 1
    if words < 0:
        return ()
    letters = next((many for many in range(LETTERS) if counter.tools([_schema(words, many)]) >= front), 0)
    return (_schema(words, letters),)


def _schema(words: int, letters: int = 0) -> JsonText:
    return json.dumps({"name": "everything", "description": WORD * words + LETTER * letters})
