"""Have a model write a summary, and accept it only after an audit. Uses no thread, stores nothing.

Whatever goes wrong gives a reason instead of a summary: a model that is silent, refuses, invents things or writes too
much. An answer is read to its end or given up, because of its time, its length or a failure. Calls are bounded: an
author's corrections for each part, one smaller try after an overflow, then the next author.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, replace
from typing import Protocol, TypeAlias, runtime_checkable

from everlong.core import History, Message, Role, Text, expect, expect_list
from everlong.engine.budget import counter_for, window_of
from everlong.engine.contracts import CallGrew, Failed, Finished, Model, Reply, Request, Said, Thought
from everlong.engine.summaries.snapshot import Task
from everlong.engine.usage import cost_of
from everlong.errors import ContextOverflow, EverlongError, ProviderError
from everlong.relevance import in_language
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
)
from everlong.tokens import Counter
from everlong.wire import Usage

__all__ = [
    "NOTHING",
    "Answer",
    "Author",
    "OwnModel",
    "Tried",
    "Watcher",
    "Written",
    "ask_author",
    "by_rules",
    "expect_authors",
    "own_authors",
    "usage_sum",
    "write_summary",
]

NOTHING = Usage()
#: What `authors` must be, for errors.
AUTHORS = 'a list of Authors, such as [Author(model=HttpModel("openai"), name="gpt-4o")]'
MOST_CHARACTERS = 200_000  # of one answer, thoughts included; a longer answer is not a summary
REPLY_SHARE, SUMMARY_SHARE = 4, 8  # divisors of the author's window: the largest answer, the largest summary
THINKING = 2_000  # tokens that a model may think before it writes
SMALLEST_PART = 400  # tokens of conversation; an author whose window leaves less cannot read a part
SPARE = 0.9  # of what is left: counts of models without a known vocabulary are estimates
SPARE_ON_CACHE = 0.98  # the same if the provider has measured the prompt before
CORRECTIONS = 1
MOST_CHUNKS = 24  # calls for one summary; with more parts, parts are merged and read more coarsely
LONGEST_ECHO = 2_000  # characters of an unusable answer that its author sees again
#: Styles whose text is rewritten each time, from the previous summary; in other styles code merges the two.
REWRITTEN: frozenset[Style] = frozenset({"free", "buffer"})
CORRECTION = {
    "en": "This summary cannot be used: {0}. Write it again, from the conversation above alone.",
    "zh": "这份摘要不能使用：{0}。请只依据上面的对话重新写一份。",
}

#: Called with the text of an answer as it arrives.
Watcher = Callable[[str], None]
#: Whether the model of a conversation also writes its summaries. Or a function of its client and name that names models
#: at the same endpoint, in the order to ask them; so no other server reads the conversation.
OwnModel: TypeAlias = bool | Callable[[Model, str], Sequence[str]]


@runtime_checkable
class _Streams(Protocol):
    """The part of a model's client by which a wrong value is recognised."""

    def stream(self, request: Request) -> object: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Author:
    """A model that may write summaries.

    - `model`, `name`: its client and the model's name.
    - `window`: its context window in tokens, if you know better than the registry.
    - `seconds`: how long it may take.
    - `corrections`: how many times it is asked to correct an unusable answer.
    """

    model: Model
    name: str
    window: int | None = None
    seconds: float = 120.0
    corrections: int = CORRECTIONS

    def __post_init__(self) -> None:
        expect("model of an Author", self.model, _Streams, 'a client, such as HttpModel("openai")')


def expect_authors(authors: Sequence[Author]) -> None:
    """Raise InputError unless every item is an Author."""
    expect_list("authors", authors, AUTHORS)
    for author in authors:
        expect("authors", author, Author, AUTHORS)


def own_authors(own: OwnModel, model: Model, name: str, window: int | None = None) -> tuple[Author, ...]:
    """Return the authors at the conversation's own endpoint, which use its own client."""
    names = own(model, name) if callable(own) else (name,) if own else ()
    return tuple(
        Author(model=model, name=each, window=window if each == name else None) for each in dict.fromkeys(names)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer of an author, or the reason why there is none.

    `overflow` says that the prompt was too long, `limit` the window that it exceeded.
    """

    message: Message | None = None
    usage: Usage = NOTHING
    reason: str = ""
    overflow: bool = False
    limit: int | None = None


async def ask_author(author: Author, request: Request, watch: Watcher | None = None) -> Answer:
    """Ask an author once and return the answer."""
    try:
        async with asyncio.timeout(author.seconds):
            return await _read(author.model, request, watch)
    except TimeoutError:
        return Answer(reason=f"no answer within {author.seconds:g} s")
    except EverlongError as error:  # an answer that cannot be read
        return Answer(reason=_described(error))


async def _read(model: Model, request: Request, watch: Watcher | None) -> Answer:
    characters = 0
    async with aclosing(model.stream(request)) as replies:
        async for reply in replies:
            match reply:
                case Finished(message, usage, stop):
                    spent = NOTHING if usage is None else usage
                    if stop == "length":
                        return Answer(usage=spent, reason="the answer was cut off at its length limit")
                    return Answer(message=message, usage=spent)
                case Failed(error):
                    too_long = isinstance(error, ContextOverflow)
                    limit = error.limit if isinstance(error, ContextOverflow) else None
                    return Answer(reason=_described(error), overflow=too_long, limit=limit)
                case _:
                    characters += _characters(reply)
            if characters > MOST_CHARACTERS:
                return Answer(reason=f"an answer of more than {MOST_CHARACTERS:,} characters")
            if watch is not None and isinstance(reply, Said):
                watch(reply.text)
    return Answer(reason="the stream stopped before the answer was complete")


def usage_sum(one: Usage, other: Usage) -> Usage:
    """Return the usage of two calls together."""
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


def _described(error: EverlongError) -> str:
    status = f" {error.status}" if isinstance(error, ProviderError) and error.status else ""
    return f"{type(error).__name__}{status}: {error}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """One author in one attempt: how often it was asked, the cost, and how many answers were not summaries."""

    endpoint: str
    name: str
    calls: int
    wrong: int
    wrote: bool
    usage: Usage = NOTHING
    cost: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """The result: a summary, or the reasons why there is none, one for each author that was tried."""

    summary: Summary | None
    author: str = ""
    reasons: tuple[str, ...] = ()
    #: What the audit took out of it, and why.
    removed: tuple[str, ...] = ()
    tried: tuple[Tried, ...] = ()

    @property
    def cost(self) -> float | None:
        """What all calls cost together; None if no price is known."""
        costs = [one.cost for one in self.tried if one.cost is not None]
        return sum(costs) if costs else None


class _Refused(Exception):
    """This author does not write a summary; the text says why."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.reason)
        self.answer = answer


@dataclass(slots=True)
class _Session:
    """One session with an author: counts calls, adds up their cost, learns how much the author can read."""

    author: Author
    task: Task
    window: int
    watch: Watcher | None
    calls: int = 0
    wrong: int = 0
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
        """Return one answer. Raises _Refused for anything else."""
        self.calls += 1
        self.wrong += 1  # until the audit accepts the answer
        answer = await ask_author(self.author, request, self.watch)
        self.usage = usage_sum(self.usage, answer.usage)
        if answer.message is None:
            raise _Refused(answer)
        return answer.message

    def accept(self, removed: tuple[str, ...]) -> None:
        """Record that the last answer is a summary, and what the audit removed."""
        self.wrong -= 1
        self.removed += removed

    def tried(self, *, wrote: bool) -> Tried:
        """Return the result of the author's attempt."""
        author = self.author
        return Tried(
            endpoint=author.model.endpoint,
            name=author.name,
            calls=self.calls,
            wrong=self.wrong,
            wrote=wrote,
            usage=self.usage,
            cost=cost_of(self.usage, window_of(author.name, author.model.provider).prices),
        )

    def size(self, request: Request) -> int:
        """Return the counted tokens of a request."""
        return self.counter.messages(request.messages) + self.counter.tools(request.tools)

    def too_small(self) -> _Refused:
        return _Refused(Answer(reason=f"its window of {self.window:,} tokens is too small"))


async def write_summary(task: Task, authors: Sequence[Author], watch: Watcher | None = None) -> Written:
    """Return a summary by the first author whose answer passes the audit; none if no answer does."""
    reasons: list[str] = []
    tried: list[Tried] = []
    for author in authors:
        session = _Session(author, task, await _window_of(author), watch)
        try:
            summary = await _by(session)
        except _Refused as refused:
            reasons.append(f"{author.name}: {refused}")
            summary = None
        tried.append(session.tried(wrote=summary is not None))
        if summary is not None:
            return Written(
                summary=summary,
                author=author.name,
                reasons=tuple(reasons),
                removed=session.removed,
                tried=tuple(tried),
            )
    return Written(summary=None, reasons=tuple(reasons), tried=tuple(tried))


def by_rules(task: Task, counter: Counter) -> Summary:
    """Return the summary that needs no model: the facts, and the previous summary."""
    summary = summary_by_rules(_facts(task), task.language, style=task.style)
    return _whole(task, summary, summary.facts, counter)


async def _window_of(author: Author) -> int:
    served = None
    with suppress(TimeoutError, EverlongError):  # if the server does not answer, the registry decides
        async with asyncio.timeout(author.seconds):
            served = None if author.window is not None else await author.model.served_window(author.name)
    return window_of(author.name, author.model.provider, override=author.window, served=served).prompt


async def _by(session: _Session) -> Summary:
    """Return the author's summary with the facts, which code copies. After an overflow, try once more with less."""
    task = session.task
    facts = await asyncio.to_thread(_facts, task)
    try:
        newest = await (_on_the_cache(session, task.cached) if _knows_it(session) else _folded(session))
    except _Refused as refused:
        if not refused.answer.overflow:
            raise
        session.window = min(refused.answer.limit or session.window, session.window // 2)
        newest = await _folded(session)
    return await asyncio.to_thread(_whole, task, newest, facts, session.counter)


def _facts(task: Task) -> Facts:
    return facts_of(task.covered, NO_FACTS if task.previous is None else task.previous.facts)


def _whole(task: Task, newest: Summary, facts: Facts, counter: Counter) -> Summary:
    """Return the newest summary with the facts, merged with the previous one unless its style rewrites the text."""
    whole = newest
    if task.previous is not None and (task.style not in REWRITTEN or newest.source == "rules"):
        whole = merged(task.previous, newest, limit=task.limit, counter=counter)
    if task.style in REWRITTEN:
        whole = replace(whole, context=clipped(whole.context, FREE_LIMIT))
    return replace(whole, facts=facts, focus=task.focus, language=task.language, style=task.style)


def _knows_it(session: _Session) -> bool:
    """Return whether the author's provider has the prefix in its cache."""
    here = (session.author.model.endpoint, session.author.name)
    return session.task.cached is not None and session.task.cached_at == here


async def _on_the_cache(session: _Session, sent: Request | None) -> Summary:
    """Ask with the last request as an unchanged prefix, so that the provider reads it from its cache.

    The request already contains the previous summary. If nothing fits behind it, the conversation is sent as text.
    """
    assert sent is not None, "there is something in the cache"
    task = session.task
    question = _user(instruction(task.style, task.language, focus=task.focus))
    request = replace(sent, messages=(*sent.messages, question))
    left = int(session.window - session.size(request) * task.scale / SPARE_ON_CACHE)
    if left < session.limit // 2:  # most summaries are much shorter than their limit
        return await _folded(session)
    # The sampling temperature of the conversation does not apply to a summary.
    request = replace(request, max_tokens=min(left, max(session.reply, sent.max_tokens or 0)), temperature=None)
    return await _passed(session, request, task.covered, task.previous)


async def _folded(session: _Session) -> Summary:
    """Summarise part after part, each with the summary of the parts before, so that each fits the author's window."""
    task, counter = session.task, session.counter
    so_far = _known_before(session)
    own = counter.text(system(task.style, task.language)) + counter.text(_asking(task, so_far, (99, 99)))
    most = int((session.window - session.reply - max(own, 2 * session.limit)) * SPARE / task.scale)
    if most < SMALLEST_PART:
        raise session.too_small()
    parts = await asyncio.to_thread(_parts, task.covered, counter, most)
    summary: Summary | None = None
    for number, part in enumerate(parts, 1):
        asking = _asking(task, so_far, (number, len(parts)) if len(parts) > 1 else None)
        text = await asyncio.to_thread(transcript, part, counter=counter, limit=most, language=task.language)
        messages = (_system(system(task.style, task.language)), _user(f"{text}\n\n{asking}"))
        request = Request(model=session.author.name, messages=messages, max_tokens=session.reply)
        newest = await _passed(session, request, part, task.previous if summary is None else summary)
        if summary is None or task.style in REWRITTEN:
            summary = newest
        else:
            summary = merged(summary, newest, limit=session.limit, counter=counter)
        so_far = summary
    if summary is None:
        raise _Refused(Answer(reason="there is nothing to summarise"))
    return summary


def _known_before(session: _Session) -> Summary | None:
    """Return the previous summary for the author's prompt; a long one without its facts, because code copies them."""
    previous = session.task.previous
    if previous is None:
        return None
    size = session.counter.text(_asking(session.task, previous, None))
    return previous if size <= session.window // REPLY_SHARE else replace(previous, facts=NO_FACTS)


def _asking(task: Task, previous: Summary | None, part: tuple[int, int] | None) -> str:
    return instruction(task.style, task.language, focus=task.focus, previous=previous, part=part)


def _parts(covered: History, counter: Counter, most: int) -> list[History]:
    parts = chunks(covered, counter=counter, room=most)
    while len(parts) > MOST_CHUNKS:
        parts = [tuple(m for part in parts[at : at + 2] for m in part) for at in range(0, len(parts), 2)]
    return parts


async def _passed(session: _Session, request: Request, covered: History, previous: Summary | None) -> Summary:
    """Return the summary that passes the audit, after the author's corrections if needed and if they fit."""
    task, counter = session.task, session.counter
    check = _Check(task, session.limit, covered, previous, counter)
    problem = ""
    for _ in range(1 + session.author.corrections):
        answer = await session.ask(request)
        verdict = await asyncio.to_thread(check, answer)
        if isinstance(verdict, Summary):
            session.accept(check.removed)
            return verdict
        problem = verdict
        echo = Message(Role.ASSISTANT, (Text(answer.text[:LONGEST_ECHO] or "…"),))
        correction = _user(in_language(CORRECTION, task.language).format(problem))
        request = replace(request, messages=(*request.messages, echo, correction))
        if session.size(request) * task.scale + (request.max_tokens or 0) > session.window:
            break
    raise _Refused(Answer(reason=problem))


@dataclass(slots=True)
class _Check:
    """Audits an answer: returns the summary, or what is wrong with it."""

    task: Task
    limit: int
    covered: History
    previous: Summary | None
    counter: Counter
    removed: tuple[str, ...] = ()

    def __call__(self, answer: Message) -> Summary | str:
        task = self.task
        summary = parsed(answer, task.style, task.language)
        if not isinstance(summary, Summary):
            return summary
        summary = replace(summary, focus=task.focus)
        audit = audited(summary, self.covered, previous=self.previous, counter=self.counter, limit=self.limit)
        audited_summary, self.removed, problems = audit
        return "; ".join(problems) or audited_summary


def _user(text: str) -> Message:
    return Message(Role.USER, (Text(text),))


def _system(text: str) -> Message:
    return Message(Role.SYSTEM, (Text(text),))
