"""Models that write beside the conversation: who they are, and one question put to one of them.

An answer is read to its end or given up: after its time, after far too many characters, at any failure. Nothing here
tries again.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, replace

from everlong.core import History, Message, Role, Text
from everlong.engine.budget import counter_for, window_of
from everlong.engine.contracts import CallGrew, Failed, Finished, Model, Reply, Request, Said, Thought
from everlong.engine.summaries.snapshot import Task
from everlong.engine.usage import cost_of
from everlong.errors import ContextOverflow, EverlongError
from everlong.summarize import (
    FREE_LIMIT,
    NO_FACTS,
    Facts,
    Style,
    Summary,
    audited,
    chunks,
    clipped,
    facts_of,
    instruction,
    merged,
    parsed,
    summary_by_rules,
    system,
    transcript,
    words_for,
)
from everlong.tokens import Counter
from everlong.wire import Usage

__all__ = ["NOTHING", "Author", "Heard", "Watcher", "Written", "added", "by_rules", "heard", "write_summary"]

NOTHING = Usage()
MOST_CHARACTERS = 200_000  # of one answer, thoughts included; what goes on beyond it is no summary

#: Told the words of an answer as they come.
Watcher = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Author:
    """A model that may write summaries: where it is, its name, and its window if that is known better than by name."""

    model: Model
    name: str
    window: int | None = None
    seconds: float = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """An answer, or the reason why there is none. `overflow` says that the question was too long, `limit` for what."""

    message: Message | None = None
    usage: Usage = NOTHING
    reason: str = ""
    overflow: bool = False
    limit: int | None = None


async def heard(author: Author, request: Request, watch: Watcher | None = None) -> Heard:
    """What the author answers, in one call."""
    try:
        async with asyncio.timeout(author.seconds):
            return await _read(author.model, request, watch)
    except TimeoutError:
        return Heard(reason=f"no answer within {author.seconds:g} s")
    except EverlongError as error:  # an answer that cannot be read
        return Heard(reason=_told(error))


async def _read(model: Model, request: Request, watch: Watcher | None) -> Heard:
    characters = 0
    async with aclosing(model.stream(request)) as replies:
        async for reply in replies:
            match reply:
                case Finished(message, usage, stop):
                    spent = NOTHING if usage is None else usage
                    if stop == "length":
                        return Heard(usage=spent, reason="the answer was cut off at its length limit")
                    return Heard(message=message, usage=spent)
                case Failed(error):
                    too_long = isinstance(error, ContextOverflow)
                    limit = error.limit if isinstance(error, ContextOverflow) else None
                    return Heard(reason=_told(error), overflow=too_long, limit=limit)
                case _:
                    characters += _characters(reply)
            if characters > MOST_CHARACTERS:
                return Heard(reason=f"an answer of more than {MOST_CHARACTERS:,} characters")
            if watch is not None and isinstance(reply, Said):
                watch(reply.text)
    return Heard(reason="the stream ended without an end")


def added(one: Usage, other: Usage) -> Usage:
    """Both together."""
    return Usage(
        prompt=one.prompt + other.prompt,
        cached=one.cached + other.cached,
        cache_written=one.cache_written + other.cache_written,
        output=one.output + other.output,
        reasoning=one.reasoning + other.reasoning,
    )


def _characters(reply: Reply) -> int:
    match reply:
        case Said(text) | Thought(text):
            return len(text)
        case CallGrew(arguments=arguments):
            return len(arguments)
        case _:
            return 0


def _told(error: EverlongError) -> str:
    return f"{type(error).__name__}: {error}"


REPLY_SHARE, SUMMARY_SHARE = 4, 8  # an answer, and a summary, take at most this part of the author's window
THINKING = 2_000  # tokens that a model may think before it writes
SMALLEST_ROOM = 400  # tokens of conversation; an author whose window leaves less cannot read one
SPARE = 0.9  # of what is left: counts of models without a known vocabulary are estimates
SPARE_ON_CACHE = 0.98  # the same, of what a provider has measured before
CORRECTIONS = 1
MOST_CHUNKS = 24  # calls for one summary; beyond it each part is read more coarsely
LONGEST_ECHO = 2_000  # characters of an answer that is shown to its author again
#: Styles whose text is written anew each time, with the one before in sight; the others are merged by code.
REWRITTEN: frozenset[Style] = frozenset({"free", "buffer"})
CORRECTION = (
    "This summary cannot be used: {0}. Write it again, from the conversation above alone.",
    "这份摘要不能使用：{0}。请只依据上面的对话重新写一份。",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What came of it: a summary, or the reasons why there is none, one for each author that was tried."""

    summary: Summary | None
    author: str = ""
    reasons: tuple[str, ...] = ()
    #: What the audit took out of it, and why.
    removed: tuple[str, ...] = ()
    calls: int = 0
    usage: Usage = NOTHING
    cost: float | None = None


class _Refused(Exception):
    """This author gives no summary, and why."""

    def __init__(self, answer: Heard) -> None:
        super().__init__(answer.reason)
        self.answer = answer


@dataclass(slots=True)
class _Sitting:
    """One author at work: counts calls, adds up what they cost, learns how much it can read."""

    author: Author
    task: Task
    window: int
    watch: Watcher | None
    calls: int = 0
    usage: Usage = NOTHING
    removed: tuple[str, ...] = ()

    @property
    def counter(self) -> Counter:
        return counter_for(self.author.name)

    @property
    def limit(self) -> int:
        """Tokens that the summary may take; an author that reads little writes little."""
        return min(self.task.limit, self.window // SUMMARY_SHARE)

    @property
    def reply(self) -> int:
        """Tokens that an answer may take."""
        return min(2 * self.limit + THINKING, self.window // REPLY_SHARE)

    async def ask(self, request: Request) -> Message:
        """One answer. Raises _Refused for everything that is none."""
        self.calls += 1
        answer = await heard(self.author, request, self.watch)
        self.usage = added(self.usage, answer.usage)
        if answer.message is None:
            raise _Refused(answer)
        return answer.message

    def size(self, request: Request) -> int:
        """Counted tokens of a request."""
        return self.counter.messages(request.messages) + self.counter.tools(request.tools)

    def too_small(self) -> _Refused:
        return _Refused(Heard(reason=f"its window of {self.window:,} tokens is too small"))


async def write_summary(task: Task, authors: Sequence[Author], watch: Watcher | None = None) -> Written:
    """A summary by the first author whose words pass the audit; none if no one's do."""
    reasons: list[str] = []
    calls, usage, cost = 0, Usage(), None
    for author in authors:
        sitting = _Sitting(author, task, await _window_of(author), watch)
        try:
            summary = await _by(sitting)
        except _Refused as refused:
            reasons.append(f"{author.name}: {refused}")
            summary = None
        calls += sitting.calls
        usage = added(usage, sitting.usage)
        spent = cost_of(sitting.usage, window_of(author.name, author.model.provider).prices)
        cost = spent if cost is None else cost + (spent or 0.0)
        if summary is not None:
            return Written(
                summary=summary,
                author=author.name,
                reasons=tuple(reasons),
                removed=sitting.removed,
                calls=calls,
                usage=usage,
                cost=cost,
            )
    return Written(summary=None, reasons=tuple(reasons), calls=calls, usage=usage, cost=cost)


def by_rules(task: Task, counter: Counter) -> Summary:
    """The summary that needs no model: the facts, and what was written before about what came before."""
    summary = summary_by_rules(_facts(task), task.language, style=task.style)
    return _whole(task, summary, summary.facts, counter)


async def _window_of(author: Author) -> int:
    served = None
    with suppress(TimeoutError, EverlongError):  # a server that does not tell is asked nothing more
        async with asyncio.timeout(author.seconds):
            served = None if author.window is not None else await author.model.served_window(author.name)
    return window_of(author.name, author.model.provider, override=author.window, served=served).prompt


async def _by(sitting: _Sitting) -> Summary:
    """The author's summary with the facts, which are copied by code. After an overflow once more, with less."""
    task = sitting.task
    facts = await asyncio.to_thread(_facts, task)
    try:
        newest = await (_on_the_cache(sitting, task.cached) if _knows_it(sitting) else _folded(sitting))
    except _Refused as refused:
        if not refused.answer.overflow:
            raise
        sitting.window = min(refused.answer.limit or sitting.window, sitting.window // 2)
        newest = await _folded(sitting)
    return await asyncio.to_thread(_whole, task, newest, facts, sitting.counter)


def _facts(task: Task) -> Facts:
    return facts_of(task.covered, NO_FACTS if task.previous is None else task.previous.facts)


def _whole(task: Task, newest: Summary, facts: Facts, counter: Counter) -> Summary:
    """The newest with what came before it, in the style that was asked for."""
    whole = newest
    if task.previous is not None and (task.style not in REWRITTEN or newest.source == "rules"):
        whole = merged(task.previous, newest, limit=task.limit, counter=counter)
    if task.style in REWRITTEN:
        whole = replace(whole, context=clipped(whole.context, FREE_LIMIT))
    return replace(whole, facts=facts, focus=task.focus, language=task.language, style=task.style)


def _knows_it(sitting: _Sitting) -> bool:
    """Whether it is this author who has the beginning in its cache."""
    here = (sitting.author.model.endpoint, sitting.author.name)
    return sitting.task.cached is not None and sitting.task.cached_at == here


async def _on_the_cache(sitting: _Sitting, sent: Request | None) -> Summary:
    """Asked behind what was sent before, exactly as it was: nothing of it is paid for in full again.

    The summary before stands in it already. If there is no room behind it, the conversation is handed over as text.
    """
    assert sent is not None, "there is something in the cache"
    task = sitting.task
    asking = _user(instruction(task.style, task.language, focus=task.focus))
    request = replace(sent, messages=(*sent.messages, asking))
    left = int(sitting.window - sitting.size(request) * task.scale / SPARE_ON_CACHE)
    if left < sitting.limit // 2:  # most summaries are much shorter than they may be
        return await _folded(sitting)
    request = replace(request, max_tokens=min(left, max(sitting.reply, sent.max_tokens or 0)))
    return await _passed(sitting, request, task.covered, task.previous)


async def _folded(sitting: _Sitting) -> Summary:
    """Part after part, each with the summary of those before it: never more than the author's window takes."""
    task, counter = sitting.task, sitting.counter
    so_far = _known_before(sitting)
    own = counter.text(system(task.style, task.language)) + counter.text(_asking(task, so_far, (99, 99)))
    room = int((sitting.window - sitting.reply - max(own, 2 * sitting.limit)) * SPARE / task.scale)
    if room < SMALLEST_ROOM:
        raise sitting.too_small()
    parts = await asyncio.to_thread(_parts, task.covered, counter, room)
    summary: Summary | None = None
    for number, part in enumerate(parts, 1):
        asking = _asking(task, so_far, (number, len(parts)) if len(parts) > 1 else None)
        said = await asyncio.to_thread(transcript, part, counter=counter, limit=room, language=task.language)
        messages = (_system(system(task.style, task.language)), _user(f"{said}\n\n{asking}"))
        request = Request(model=sitting.author.name, messages=messages, max_tokens=sitting.reply)
        newest = await _passed(sitting, request, part, task.previous if summary is None else summary)
        if summary is None or task.style in REWRITTEN:
            summary = newest
        else:
            summary = merged(summary, newest, limit=sitting.limit, counter=counter)
        so_far = summary
    if summary is None:
        raise _Refused(Heard(reason="there is nothing to summarise"))
    return summary


def _known_before(sitting: _Sitting) -> Summary | None:
    """The summary before as the author is told it; without its facts, which code carries on, where room is short."""
    previous = sitting.task.previous
    if previous is None:
        return None
    size = sitting.counter.text(_asking(sitting.task, previous, None))
    return previous if size <= sitting.window // REPLY_SHARE else replace(previous, facts=NO_FACTS)


def _asking(task: Task, previous: Summary | None, part: tuple[int, int] | None) -> str:
    return instruction(task.style, task.language, focus=task.focus, previous=previous, part=part)


def _parts(covered: History, counter: Counter, room: int) -> list[History]:
    parts = chunks(covered, counter=counter, room=room)
    while len(parts) > MOST_CHUNKS:
        parts = [tuple(m for part in parts[at : at + 2] for m in part) for at in range(0, len(parts), 2)]
    return parts


async def _passed(sitting: _Sitting, request: Request, covered: History, previous: Summary | None) -> Summary:
    """The answer that passes the audit; one corrective try, if there is room for it."""
    task, counter = sitting.task, sitting.counter
    check = _Check(task, sitting.limit, covered, previous, counter)
    problem = ""
    for _ in range(1 + CORRECTIONS):
        answer = await sitting.ask(request)
        found = await asyncio.to_thread(check, answer)
        if isinstance(found, Summary):
            sitting.removed += check.removed
            return found
        problem = found
        said = Message(Role.ASSISTANT, (Text(answer.text[:LONGEST_ECHO] or "…"),))
        correction = _user(CORRECTION[words_for(task.language)].format(problem))
        request = replace(request, messages=(*request.messages, said, correction))
        if sitting.size(request) * task.scale + (request.max_tokens or 0) > sitting.window:
            break
    raise _Refused(Heard(reason=problem))


@dataclass(slots=True)
class _Check:
    """Whether an answer may stand for what it covers: a summary then, else what is wrong with it."""

    task: Task
    limit: int
    covered: History
    previous: Summary | None
    counter: Counter
    removed: tuple[str, ...] = ()

    def __call__(self, answer: Message) -> Summary | str:
        task = self.task
        found = parsed(answer, task.style, task.language)
        if not isinstance(found, Summary):
            return found
        found = replace(found, focus=task.focus)
        audit = audited(found, self.covered, previous=self.previous, counter=self.counter, limit=self.limit)
        summary, self.removed, problems = audit
        return "; ".join(problems) or summary


def _user(text: str) -> Message:
    return Message(Role.USER, (Text(text),))


def _system(text: str) -> Message:
    return Message(Role.SYSTEM, (Text(text),))
