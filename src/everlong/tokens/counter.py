"""Count the tokens of messages for one model.

Everything the model reads counts: text, calls, results, reasoning, pictures, tool schemas, and the framing around each
message. Counts are cached per message, by content, so a list that grew by one message costs one count. A counter may be
used from several threads. A `Calibration` learns from reported usage how far the counts are off.
"""

import math
import re
import string
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import assert_never

from everlong.core import Image, JsonText, Message, Opaque, Part, Reasoning, Text, ToolCall, ToolResult
from everlong.tokens.estimates import estimate
from everlong.tokens.exact import Vocabulary, count_exact, vocabulary_of
from everlong.tokens.images import image_rule, image_tokens

__all__ = ["CALL_FRAME", "MESSAGE_FRAME", "TOOL_FRAME", "Calibration", "Counter", "Tally"]

MESSAGE_FRAME = 4  # role and separators around a message or a result
CALL_FRAME = 8  # id, type and separators around a call
TOOL_FRAME = 8  # the namespace around one tool schema
SEALED_CHARACTERS = 5  # encrypted reasoning: base64 characters for each token it stands for

REMEMBERED = 200_000  # counts, about 20 MB; if there are more, the oldest half is dropped

#: In an opaque part, a run of at least this many of these characters is a file, not text.
ENCODED = string.ascii_letters + string.digits + "+/=_-"
LEAST_FILE = 4_096
FLAT_FILE = 1_024  # tokens that such a file counts as
#: Matches only at the beginning of a run: tried inside one, each start would scan the run again.
ENCODED_FILE = re.compile(f"(?<![A-Za-z0-9+/=_-])[A-Za-z0-9+/=_-]{{{LEAST_FILE},}}")
SEARCHED = 65_536  # characters searched at once: a search blocks all other threads


class Counter:
    """Counts tokens for one model. `vocabulary` says how, and how inaccurate the counts may be."""

    def __init__(self, model: str = "", *, vocabulary: Vocabulary | None = None) -> None:
        self.model = model
        self.vocabulary = vocabulary or vocabulary_of(model)
        self._image_rule = image_rule(model)
        self._known: dict[int, int] = {}
        self._rough: _RoughCounter | None = None

    @property
    def exact(self) -> bool:
        """Whether texts are counted with the model's own tokenizer."""
        return self.vocabulary.exact

    def text(self, text: str) -> int:
        """Return the tokens of a plain text, without framing."""
        if self.vocabulary.exact:
            return count_exact(self.vocabulary.name, text)
        return estimate(text, self.vocabulary.name)

    def message(self, message: Message) -> int:
        """Return the tokens of a message with its framing. Equal messages are counted once."""
        # A message is hashed by its content. The cache keeps the 64-bit hash, so that it does not hold the text in
        # memory.
        key = hash(message)
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= REMEMBERED:
                self._forget_oldest()
            known = self._known[key] = self._count(message)
        return known

    def rough(self, message: Message) -> int:
        """Return the approximate tokens of a message, at low cost.

        If the tokens can only be estimated, the estimate looks at only a part of the text.
        """
        if self.exact:
            return self.message(message)
        if self._rough is None:
            self._rough = _RoughCounter(self.model, vocabulary=self.vocabulary)
        return self._rough._count(message)

    def messages(self, messages: Iterable[Message]) -> int:
        """Return the tokens of a list of messages."""
        return sum(map(self.message, messages))

    def tools(self, tools: Iterable[JsonText]) -> int:
        """Return the tokens of tool schemas. Each schema is counted once."""
        return sum(map(self._tool, tools))

    def _tool(self, schema: JsonText) -> int:
        key = hash((TOOL_FRAME, schema))
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= REMEMBERED:
                self._forget_oldest()
            known = self._known[key] = TOOL_FRAME + self.text(schema)
        return known

    def part(self, part: Part) -> int:
        """Return the tokens of one part with its own framing."""
        match part:
            case Text(text):
                return self.text(text)
            case ToolCall(name=name, arguments=arguments):
                return CALL_FRAME + self.text(name) + self.text(arguments)
            case ToolResult(content=content):
                return MESSAGE_FRAME + sum(map(self.part, content))
            case Reasoning(text, signature):
                return self.text(text) if text else len(signature) // SEALED_CHARACTERS
            case Image():
                return image_tokens(part, self._image_rule)
            case Opaque(body=body):
                files, rest = _without_files(body)
                return files * FLAT_FILE + self.text(rest)
            case _:
                assert_never(part)

    def _count(self, message: Message) -> int:
        total = sum(map(self.part, message.parts))
        if message.name:
            total += 1 + self.text(message.name)
        # A result counts its own frame, so a message that is nothing but results needs no other.
        spoken = not message.parts or any(not isinstance(part, ToolResult) for part in message.parts)
        return total + MESSAGE_FRAME if spoken else total

    def _forget_oldest(self) -> None:
        for key in list(self._known)[: REMEMBERED // 2]:
            self._known.pop(key, None)


class _RoughCounter(Counter):
    """A counter that looks at only a part of longer texts."""

    def text(self, text: str) -> int:
        """Estimate the tokens of a plain text."""
        return estimate(text, self.vocabulary.name, rough=True)


class Tally:
    """The running count of a growing history. Adding a message costs only that message."""

    def __init__(self, counter: Counter, messages: Iterable[Message] = ()) -> None:
        self.counter = counter
        self.total = 0
        self.length = 0
        self.extend(messages)

    def add(self, message: Message) -> int:
        """Add a message and return the new total."""
        self.total += self.counter.message(message)
        self.length += 1
        return self.total

    def extend(self, messages: Iterable[Message]) -> int:
        """Add several messages and return the new total."""
        for message in messages:
            self.add(message)
        return self.total


def _without_files(body: JsonText) -> tuple[int, str]:
    if len(body) < LEAST_FILE:
        return 0, body
    files, rest = 0, []
    for piece in _between_files(body):
        kept, found = ENCODED_FILE.subn("", piece)
        files += found
        rest.append(kept)
    return files, "".join(rest)


def _between_files(body: JsonText) -> Iterator[str]:
    """Yield the body in pieces that never split a run. A run that fills a whole piece is yielded shortened."""
    start = 0
    while start < len(body):
        stop = start + SEARCHED
        piece = body[start:stop]
        kept = piece.rstrip(ENCODED) if stop < len(body) else piece
        if kept:
            yield kept
            start += len(kept)
            continue
        while piece and not piece.lstrip(ENCODED):
            start += len(piece)
            piece = body[start : start + SEARCHED]
        yield "=" * LEAST_FILE
        start += len(piece) - len(piece.lstrip(ENCODED))


KEPT = 9  # reports: enough for a median, few enough to follow a provider that changes its framing
SMALLEST = 200  # tokens; below that the provider's hidden framing outweighs the text
LARGEST_RATIO = 4.0  # beyond it, the report belongs to another request
SETTLED = 3  # reports before the measured spread replaces the prior one
LEAST_SPREAD = 0.01
REPORTED_SPREAD = 0.05  # the most to expect once there is a report


@dataclass(frozen=True, slots=True)
class Calibration:
    """Corrects counts by the ratio of reported to counted tokens. `prior` is the error to expect before any report."""

    prior: float = 0.0
    ratios: tuple[float, ...] = ()

    def observe(self, counted: int, reported: int) -> "Calibration":
        """Return a calibration with another report. Implausible reports are ignored."""
        if counted < SMALLEST or reported <= 0:
            return self
        ratio = reported / counted
        if not 1 / LARGEST_RATIO <= ratio <= LARGEST_RATIO:
            return self
        return Calibration(self.prior, (*self.ratios, ratio)[-KEPT:])

    @property
    def factor(self) -> float:
        """The factor for a count. One report alone can only raise an estimate, and never changes an exact count."""
        return _factor_and_spread(self.prior, self.ratios)[0]

    @property
    def spread(self) -> float:
        """The relative error to expect."""
        return _factor_and_spread(self.prior, self.ratios)[1]

    def expected(self, counted: int) -> int:
        """Return the most likely true figure."""
        return round(counted * self.factor)

    def at_most(self, counted: int) -> int:
        """Return a safe upper figure to decide with."""
        return math.ceil(counted * self.factor * (1 + self.spread))


@lru_cache(maxsize=256)
def _factor_and_spread(prior: float, ratios: tuple[float, ...]) -> tuple[float, float]:
    """Return factor and spread. Cached, because each request needs them many times."""
    factor = _factor(prior, ratios)
    if len(ratios) < SETTLED:
        return factor, (min(prior, REPORTED_SPREAD) if ratios else prior)
    deviations = sorted(abs(ratio / factor - 1) for ratio in ratios)
    return factor, max(LEAST_SPREAD, deviations[-2])  # the largest deviation may be a single odd report


def _factor(prior: float, ratios: tuple[float, ...]) -> float:
    if len(ratios) == 1 and prior:
        return max(1.0, ratios[0])
    votes = sorted((1.0, *ratios))
    lower, upper = votes[(len(votes) - 1) // 2], votes[len(votes) // 2]
    return min(lower, upper, key=lambda vote: abs(math.log(vote)))
