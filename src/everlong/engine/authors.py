"""Models that write beside the conversation: who they are, and one question put to one of them.

An answer is read to its end or given up: after its time, after far too many characters, at any failure. Nothing here
tries again.
"""

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass

from everlong.core import Message
from everlong.engine.replies import CallGrew, Failed, Finished, Model, Reply, Request, Said, Thought
from everlong.errors import ContextOverflow, EverlongError
from everlong.wire import Usage

__all__ = ["NOTHING", "Author", "Heard", "Watcher", "added", "heard"]

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
