"""Count the tokens of messages for one model.

Everything the model reads counts: text, calls, results, reasoning, pictures, tool schemas, and the
framing around each message. Counts are remembered per message, by content, so that a list which
grew by one costs one. The same counter may be used from several threads. A `Calibration` learns from
reported usage how far the counts are off.
"""

import math
import re
import string
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
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

REMEMBERED = 200_000  # counts, about 20 MB; the oldest half goes when there are more

#: Inside an opaque part so many of these characters in a row are a file, not text.
ENCODED = string.ascii_letters + string.digits + "+/=_-"
LEAST_FILE = 4_096
FLAT_FILE = 1_024  # tokens of such a file
#: Only where a run begins: tried inside one, each start would scan it again.
ENCODED_FILE = re.compile(f"(?<![A-Za-z0-9+/=_-])[A-Za-z0-9+/=_-]{{{LEAST_FILE},}}")
SEARCHED = 65_536  # characters searched at once: no other thread runs meanwhile


class Counter:
    """Counts tokens for one model. `vocabulary` says how, and how far off the figures may be."""

    def __init__(self, model: str = "", *, vocabulary: Vocabulary | None = None) -> None:
        self.model = model
        self.vocabulary = vocabulary or vocabulary_of(model)
        self._image_rule = image_rule(model)
        self._known: dict[int, int] = {}

    @property
    def exact(self) -> bool:
        """Whether texts are counted with the model's own vocabulary."""
        return self.vocabulary.exact

    def text(self, text: str) -> int:
        """Tokens of a bare text, without framing."""
        if self.vocabulary.exact:
            return count_exact(self.vocabulary.name, text)
        return estimate(text, self.vocabulary.name)

    def message(self, message: Message) -> int:
        """Tokens of a message with its framing; counted once for equal content."""
        # The hash of a message is its content; keeping 64 bits instead of the message keeps no text alive.
        key = hash(message)
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= REMEMBERED:
                self._forget_oldest()
            known = self._known[key] = self._count(message)
        return known

    def messages(self, messages: Iterable[Message]) -> int:
        """Tokens of a list of messages."""
        return sum(map(self.message, messages))

    def tools(self, tools: Iterable[JsonText]) -> int:
        """Tokens of tool schemas; each is counted once."""
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
        """Tokens of one part, with the framing that belongs to it alone."""
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
        # A result brings its own frame, and a tool message is nothing but results.
        spoken = not message.parts or any(not isinstance(part, ToolResult) for part in message.parts)
        return total + MESSAGE_FRAME if spoken else total

    def _forget_oldest(self) -> None:
        for key in list(self._known)[: REMEMBERED // 2]:
            self._known.pop(key, None)


class Tally:
    """The running count of a history that grows at its end: adding a message costs that message."""

    def __init__(self, counter: Counter, messages: Iterable[Message] = ()) -> None:
        self.counter = counter
        self.total = 0
        self.length = 0
        self.extend(messages)

    def add(self, message: Message) -> int:
        """Add a message; return the new total."""
        self.total += self.counter.message(message)
        self.length += 1
        return self.total

    def extend(self, messages: Iterable[Message]) -> int:
        """Add several messages; return the new total."""
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
    """Yield the body in pieces that cut no run; a run that fills more than one of them comes shortened."""
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
LARGEST_RATIO = 4.0  # beyond it the report is about another request
SETTLED = 3  # reports before the measured spread replaces the prior one
LEAST_SPREAD = 0.01
REPORTED_SPREAD = 0.05  # at most, from the first report on


@dataclass(frozen=True, slots=True)
class Calibration:
    """The ratios of reported to counted tokens. `prior` is the spread to expect before any report."""

    prior: float = 0.0
    ratios: tuple[float, ...] = ()

    def observe(self, counted: int, reported: int) -> "Calibration":
        """Return a calibration with this report; reports that cannot be about this request are ignored."""
        if counted < SMALLEST or reported <= 0:
            return self
        ratio = reported / counted
        if not 1 / LARGEST_RATIO <= ratio <= LARGEST_RATIO:
            return self
        return Calibration(self.prior, (*self.ratios, ratio)[-KEPT:])

    @property
    def factor(self) -> float:
        """The factor for a count. One report alone corrects an estimate upwards, and no exact count."""
        if len(self.ratios) == 1 and self.prior:
            return max(1.0, self.ratios[0])
        votes = sorted((1.0, *self.ratios))
        lower, upper = votes[(len(votes) - 1) // 2], votes[len(votes) // 2]
        return min(lower, upper, key=lambda vote: abs(math.log(vote)))

    @property
    def spread(self) -> float:
        """The relative error that is still to be expected."""
        if len(self.ratios) < SETTLED:
            return min(self.prior, REPORTED_SPREAD) if self.ratios else self.prior
        deviations = sorted(abs(ratio / self.factor - 1) for ratio in self.ratios)
        return max(LEAST_SPREAD, deviations[-2])  # the largest may be the one odd report

    def expected(self, counted: int) -> int:
        """The most likely true figure."""
        return round(counted * self.factor)

    def at_most(self, counted: int) -> int:
        """The figure to decide with: too high rather than too low."""
        return math.ceil(counted * self.factor * (1 + self.spread))
