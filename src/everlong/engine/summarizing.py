"""Writing a summary of a thread: asked of a model, audited, and only then allowed to stand.

One attempt reads a snapshot and appends at most one point. Whatever goes wrong on the way leaves the thread as it was:
a model that is silent, refuses, lies or writes too much ends in a reason, never in a summary.
"""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace

from everlong.core.messages import History, Message, Role, Text
from everlong.engine.direct import counter_for
from everlong.engine.recording import cost_of
from everlong.engine.replies import Failed, Finished, Model, Request
from everlong.errors import BudgetImpossible, ProviderError
from everlong.summarize.audit import audited
from everlong.summarize.chunking import chunks
from everlong.summarize.facts import facts_of
from everlong.summarize.merging import merged
from everlong.summarize.parsing import parsed
from everlong.summarize.prompts import instruction, system
from everlong.summarize.summary import NO_FACTS, Style, Summary
from everlong.summarize.transcript import transcript
from everlong.tokens.counter import Counter
from everlong.windows import window
from everlong.wire.usage import Usage

__all__ = ["Author", "Written", "write_summary"]

NOTHING = Usage()
REPLY_SHARE = 4  # a summary may ask for at most this part of its author's window
FRAMING = 512  # tokens of instruction and frame, on the high side
CORRECTIONS = 1
MOST_CHUNKS = 24  # calls for one summary; beyond it each chunk is read more coarsely


@dataclass(frozen=True, slots=True, kw_only=True)
class Author:
    """A model that may write summaries: where it is, its name, and its window if that is known better than by name."""

    model: Model
    name: str
    window: int | None = None
    seconds: float = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What came of it: a summary, or the reasons why there is none, one for each author that was tried."""

    summary: Summary | None
    author: str = ""
    reasons: tuple[str, ...] = ()
    calls: int = 0
    usage: Usage = NOTHING
    cost: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What is to be summarised. `prefix` is the request that the thread's own model has in its cache; () if none."""

    covered: History
    previous: Summary | None
    style: Style
    language: str
    limit: int
    focus: str = ""
    prefix: History = ()
    prefix_author: str = ""


class _Refused(Exception):
    """This author gives no summary, and why."""


@dataclass(slots=True)
class _Sitting:
    """One author at work: counts calls and adds up what they cost."""

    author: Author
    task: Task
    calls: int = 0
    usage: Usage = NOTHING

    @property
    def counter(self) -> Counter:
        return counter_for(self.author.name)

    @property
    def window(self) -> int:
        known = window(self.author.name, provider=self.author.model.provider, override=self.author.window)
        return known.prompt

    async def ask(self, messages: History) -> Message:
        """One answer. Raises _Refused for everything that is none."""
        self.calls += 1
        reply = min(2 * self.task.limit, self.window // REPLY_SHARE)
        request = Request(model=self.author.name, messages=messages, max_tokens=reply)
        try:
            async with asyncio.timeout(self.author.seconds):
                return await self._answer(request)
        except TimeoutError:
            raise _Refused(f"no answer within {self.author.seconds:.0f} s") from None

    async def _answer(self, request: Request) -> Message:
        async with aclosing(self.author.model.stream(request)) as replies:
            async for reply in replies:
                match reply:
                    case Finished(message, usage, stop):
                        self.usage = self.usage if usage is None else _added(self.usage, usage)
                        if stop == "length":
                            raise _Refused("the answer was cut off at its length limit")
                        return message
                    case Failed(error):
                        raise _Refused(_told(error))
                    case _:
                        continue
        raise _Refused("the stream ended without an end")


async def write_summary(task: Task, authors: Sequence[Author]) -> Written:
    """A summary by the first author whose words pass the audit; none if no one's do."""
    reasons: list[str] = []
    calls, usage, cost = 0, Usage(), None
    for author in authors:
        sitting = _Sitting(author, task)
        try:
            summary = await _by(sitting)
        except (_Refused, BudgetImpossible) as refused:
            reasons.append(f"{author.name}: {refused}")
            summary = None
        calls += sitting.calls
        usage = _added(usage, sitting.usage)
        spent = cost_of(sitting.usage, window(author.name, provider=author.model.provider).prices)
        cost = spent if cost is None else cost + (spent or 0.0)
        if summary is not None:
            return Written(
                summary=summary, author=author.name, reasons=tuple(reasons), calls=calls, usage=usage, cost=cost
            )
    return Written(summary=None, reasons=tuple(reasons), calls=calls, usage=usage, cost=cost)


async def _by(sitting: _Sitting) -> Summary:
    task = sitting.task
    facts = facts_of(task.covered, NO_FACTS if task.previous is None else task.previous.facts)
    if task.prefix and task.prefix_author == sitting.author.name and _fits(sitting, task.prefix):
        asking = instruction(task.style, task.language, focus=task.focus, previous=task.previous)
        newest = await _passed(sitting, (*task.prefix, _user(asking)), task.covered, task.previous)
    else:
        newest = await _folded(sitting)
    whole = (
        newest if task.previous is None else merged(task.previous, newest, limit=task.limit, counter=sitting.counter)
    )
    return replace(whole, facts=facts, focus=task.focus, language=task.language, style=task.style)


def _fits(sitting: _Sitting, prefix: History) -> bool:
    """Whether the cached prefix, one instruction and the answer fit the author's window."""
    room = sitting.window - min(2 * sitting.task.limit, sitting.window // REPLY_SHARE)
    return sitting.counter.messages(prefix) + FRAMING + sitting.task.limit <= room


async def _folded(sitting: _Sitting) -> Summary:
    """Part after part, each with the summary of those before it: never more than the author's window takes."""
    task, counter = sitting.task, sitting.counter
    reply = min(2 * task.limit, sitting.window // REPLY_SHARE)
    room = sitting.window - reply - FRAMING - 2 * task.limit
    if room < FRAMING:
        raise _Refused(f"its window of {sitting.window:,} tokens is too small")
    parts = chunks(task.covered, counter=counter, room=room)
    while len(parts) > MOST_CHUNKS:
        parts = [tuple(m for part in parts[at : at + 2] for m in part) for at in range(0, len(parts), 2)]
    so_far = task.previous
    summary = None
    for number, part in enumerate(parts, 1):
        place = (number, len(parts)) if len(parts) > 1 else None
        asking = instruction(task.style, task.language, focus=task.focus, previous=so_far, part=place)
        said = transcript(part, counter=counter, limit=room, language=task.language)
        messages = (_system(system(task.style, task.language)), _user(f"{said}\n\n{asking}"))
        newest = await _passed(sitting, messages, part, so_far)
        summary = newest if summary is None else merged(summary, newest, limit=task.limit, counter=counter)
        so_far = summary
    if summary is None:
        raise _Refused("there is nothing to summarise")
    return summary


async def _passed(sitting: _Sitting, asked: History, covered: History, previous: Summary | None) -> Summary:
    """The answer that passes the audit; one corrective try."""
    task = sitting.task
    problem = ""
    for _ in range(1 + CORRECTIONS):
        answer = await sitting.ask(asked)
        found = parsed(answer, task.style, task.language)
        if isinstance(found, Summary):
            summary, _, problems = audited(found, covered, previous=previous, counter=sitting.counter, limit=task.limit)
            if not problems:
                return summary
            problem = "; ".join(problems)
        else:
            problem = found
        said = answer.text or "…"
        asked = (*asked, Message(Role.ASSISTANT, (Text(said[:4_000]),)), _user(_correction(problem, task.language)))
    raise _Refused(problem)


def _correction(problem: str, language: str) -> str:
    if language == "zh":
        return f"这份摘要不能使用：{problem}。请只依据上面的对话重新写一份。"
    return f"This summary cannot be used: {problem}. Write it again, from the conversation above alone."


def _user(text: str) -> Message:
    return Message(Role.USER, (Text(text),))


def _system(text: str) -> Message:
    return Message(Role.SYSTEM, (Text(text),))


def _added(one: Usage, other: Usage) -> Usage:
    return Usage(
        prompt=one.prompt + other.prompt,
        cached=one.cached + other.cached,
        cache_written=one.cache_written + other.cache_written,
        output=one.output + other.output,
        reasoning=one.reasoning + other.reasoning,
    )


def _told(error: ProviderError) -> str:
    return f"{type(error).__name__}: {error}"
