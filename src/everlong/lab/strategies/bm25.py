"""Baselines that search: plain BM25 over pieces of text, written independently of everlong's own ranking.

Everlong's ranking is compared with these, so nothing here may change with it.
"""

import math
import re
from collections import Counter as Tally
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from everlong.core import History, Message, Role, Text, ToolCall, ToolResult, last_user_index
from everlong.lab.strategies.baselines import newest_steps, without_reasoning
from everlong.lab.strategies.strategy import counter

__all__ = ["bm25", "bm25_neighbours", "half_bm25", "scores", "terms", "words"]

SATURATION = 1.2
LENGTH_SHARE = 0.75
CHUNK = 1_200  # characters
NEIGHBOURS = 2  # turns on each side
EXCERPTS = "[Excerpts from earlier in this conversation]"

STOP_WORDS = (
    "a an and are as at be been but by did do does for from had has have he her his how i if in is it me my not of "
    "on or our she so that the their they this to was we were what when where which who why with you your"
)
ENDINGS = ("ing", "ed", "es", "s")
SHORTEST_STEM = 3

_WORDS = re.compile(r"[a-z0-9_]+|[^\x00-\x7f]+")
_STOP_WORDS = frozenset(STOP_WORDS.split())


def words(text: str) -> list[str]:
    """Return lower-case words; other scripts as pairs of characters. Example: "Read 上下文" -> [read, 上下, 下文]"""
    pieces: list[str] = []
    for word in _WORDS.findall(text.lower()):
        pieces += [word] if word.isascii() or len(word) < 2 else [word[at : at + 2] for at in range(len(word) - 1)]
    return pieces


def terms(text: str) -> list[str]:
    """Return the words of a text without stop words and common endings. Example: "the dogs" -> [dog]"""
    return [_stem(word) if word.isascii() else word for word in words(text) if word not in _STOP_WORDS]


def _stem(word: str) -> str:
    ending = next((end for end in ENDINGS if word.endswith(end) and len(word) >= len(end) + SHORTEST_STEM), "")
    return word.removesuffix(ending)


def scores(query: Iterable[str], pieces: Sequence[Mapping[str, int]], lengths: Sequence[int]) -> list[float]:
    """Return the BM25 score of each piece, given how often each term occurs in it and how many terms it has."""
    total = [0.0] * len(pieces)
    average = (sum(lengths) / len(pieces) if pieces else 0) or 1.0
    for term in dict.fromkeys(query):
        holders = [(number, piece[term]) for number, piece in enumerate(pieces) if term in piece]
        rarity = math.log(1 + (len(pieces) - len(holders) + 0.5) / (len(holders) + 0.5))
        for number, count in holders:
            norm = SATURATION * (1 - LENGTH_SHARE + LENGTH_SHARE * lengths[number] / average)
            total[number] += rarity * count * (SATURATION + 1) / (count + norm)
    return total


def half_bm25(messages: History, budget: int) -> History:
    """Spend half the budget on the newest steps, and half on the best older chunks, in one message before them."""
    messages = without_reasoning(messages)
    if counter().messages(messages) <= budget:
        return messages
    recent = newest_steps(messages, budget // 2)
    head = sum(1 for message in recent if message.role is Role.SYSTEM)
    older = messages[head : len(messages) - (len(recent) - head)]
    chunks = [chunk for message in older for chunk in _chunks(message)]
    worth = scores(_query(messages), [chunk[1] for chunk in chunks], [chunk[2] for chunk in chunks])
    left = budget - counter().messages(recent) - counter().message(_excerpts(()))
    taken: list[int] = []
    for number in sorted(range(len(chunks)), key=lambda number: -worth[number]):
        cost = _tokens(chunks[number][0]) + 2
        if cost <= left:
            taken.append(number)
            left -= cost
    return (*recent[:head], _excerpts([chunks[number][0] for number in sorted(taken)]), *recent[head:])


def bm25(messages: History, budget: int) -> History:
    """Keep the best turns for the last user message, in order."""
    return _best_turns(messages, budget, 0)


def bm25_neighbours(messages: History, budget: int) -> History:
    """Keep the best turns, each with the two turns before and after it."""
    return _best_turns(messages, budget, NEIGHBOURS)


def _best_turns(messages: History, budget: int, around: int) -> History:
    turns, question = messages[:-1], messages[-1]
    left = budget - counter().message(question)
    pieces = [_counted(_named(turn)) for turn in turns]
    worth = scores(terms(question.text), pieces, [sum(piece.values()) for piece in pieces])
    chosen: set[int] = set()
    for best in sorted(range(len(turns)), key=lambda number: (-worth[number], -number)):
        group = [at for at in range(max(0, best - around), min(len(turns), best + around + 1)) if at not in chosen]
        cost = sum(counter().message(turns[at]) for at in group)
        if cost <= left:
            chosen.update(group)
            left -= cost
    return (*(turns[at] for at in sorted(chosen)), question)


def _query(messages: History) -> list[str]:
    """Return the words of the last user message and of the arguments of the last calls."""
    at = last_user_index(messages)
    calls = next((message.calls for message in reversed(messages) if message.calls), ())
    return words("\n".join([messages[at].text if at is not None else "", *(call.arguments for call in calls)]))


@lru_cache(maxsize=100_000)
def _chunks(message: Message) -> tuple[tuple[str, Mapping[str, int], int], ...]:
    """Return the chunks of a message, each with its terms and their number."""
    texts = []
    for part in message.parts:
        match part:
            case Text(text):
                texts.append(text)
            case ToolResult():
                texts.append(part.text)
            case ToolCall():
                texts.append(f"{part.name} {part.arguments}")
            case _:
                continue
    pieces = [text[at : at + CHUNK] for text in texts for at in range(0, len(text), CHUNK)]
    tallies = [Tally(words(piece)) for piece in pieces]
    return tuple((piece, tally, tally.total()) for piece, tally in zip(pieces, tallies, strict=True))


@lru_cache(maxsize=100_000)
def _counted(text: str) -> Mapping[str, int]:
    return Tally(terms(text))


@lru_cache(maxsize=100_000)
def _tokens(text: str) -> int:
    return counter().text(text)


def _named(turn: Message) -> str:
    return f"{turn.name}: {turn.text}" if turn.name else turn.text


def _excerpts(texts: Sequence[str]) -> Message:
    return Message(Role.USER, (Text("\n\n".join([EXCERPTS, *texts])),))
