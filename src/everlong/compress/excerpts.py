"""Choosing the excerpts: down the ranking, verbatim, nothing that is sent anyway, until the room is full.

Owns what is chosen and how it reads; where it goes and how it is framed is not known here.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

from everlong.core.messages import History, Message, Text, ToolCall, ToolResult
from everlong.relevance.chunks import Chunk, ChunkKind
from everlong.relevance.index import Index
from everlong.relevance.ranking import ranked
from everlong.relevance.terms import words_of
from everlong.tokens.counter import Counter

__all__ = ["Ledger", "Selection"]

HEADER_TOKENS = 14  # the line that says where an excerpt comes from
SMALLEST_EXCERPT = 24  # tokens; below that the room is full
MISSES = 60  # chunks in a row that did not fit before the room counts as full
LOOKED_AT = 200_000  # characters of what is sent that excerpts are compared with
SHORTEST_NAME = 4  # tokens; with less room left the ledger is full
NAME_CHARACTERS = 3.0  # characters of a name for each token, on the low side
LEDGER_ATTEMPTS = 3  # the length of a name tells its tokens only roughly; one or two corrections fill the room
LEDGER_UNFILLED = 0.04
LONGEST_REQUEST = 3  # chunks of one user message that are taken as its head


@dataclass(frozen=True, slots=True)
class Ledger:
    """Names by file, one line a file."""

    text: str
    tokens: int


class Selection:
    """What was chosen so far from the messages that are not sent. `chosen` is in order of choice.

    `sent` are the messages that are, as they will read, by their index in the history.
    """

    def __init__(self, history: History, index: Index, sent: Mapping[int, Message], counter: Counter) -> None:
        self.tokens = 0
        self.chosen: list[int] = []
        self.is_talk = index.is_talk
        self._index = index
        self._counter = counter
        self._left = [n for n in ranked(index, history) if index.chunks[n].at not in sent]
        self._lines = _lines_sent(sent)
        self._words = set(words_of("\n".join(self._lines)))
        self._costs: dict[int, int] = {}
        self._taken: set[int] = set()

    def take_requests(self, room: int) -> None:
        """The heads of what users asked: the first request, then the newest ones."""
        asked: dict[int, list[int]] = defaultdict(list)
        for number in sorted(self._left):
            if self._index.chunks[number].kind is ChunkKind.USER:
                asked[self._index.chunks[number].at].append(number)
        first, *later = asked.values() or [[]]
        self._take_in_order(
            chain.from_iterable(numbers[:LONGEST_REQUEST] for numbers in (first, *reversed(later))), room
        )

    def take_needed(self, room: int) -> bool:
        """Down the ranking, until the room is full. Whether anything was taken."""
        before = len(self.chosen)
        self._take_in_order(self._left, room)
        return len(self.chosen) > before

    def give_back(self, tokens: int) -> None:
        """Leave out what was chosen last, at least this much."""
        while tokens > 0 and self.chosen:
            number = self.chosen.pop()
            self._taken.discard(number)
            self.tokens -= self._costs[number]
            tokens -= self._costs[number]

    def text(self) -> str:
        """The excerpts in conversation order, neighbours joined under one header."""
        lines: list[str] = []
        before = -1
        for number in sorted(self.chosen):
            chunk = self._index.chunks[number]
            if not (before == number - 1 and _joins(self._index.chunks[before], chunk)):
                lines.append(_header(chunk))
            lines.append(chunk.text)
            before = number
        return "\n".join(lines)

    def exact_tokens(self) -> int:
        """The tokens of the excerpts as they will read; `tokens` corrected, since joined ones share a header."""
        self.tokens = self._counter.text(self.text())
        return self.tokens

    def ledger(self, room: int) -> Ledger:
        """Names down the same ranking that stand nowhere in what is sent."""
        best = Ledger("", 0)
        reckoned = float(room)
        present: dict[str, bool] = {}
        for _ in range(LEDGER_ATTEMPTS):
            text = self._names(reckoned, present)
            ledger = Ledger(text, self._counter.text(text) if text else 0)
            if ledger.tokens <= room:
                best = max(best, ledger, key=lambda tried: tried.tokens)
            if not ledger.tokens or room * (1 - LEDGER_UNFILLED) <= ledger.tokens <= room:
                break
            reckoned *= 0.98 * room / ledger.tokens
        return best

    def _names(self, room: float, present: dict[str, bool]) -> str:
        """One line a file, as many names as `room` tokens hold by their length; `present` is filled on the way."""
        names: dict[str, list[str]] = {}
        taken = [self._index.chunks[number] for number in self._taken]
        seen = {shown for chunk in taken for shown in (chunk.path, chunk.label)}  # their headers show these
        used = 0.0
        for number in self._left:
            if used >= room - SHORTEST_NAME:
                break
            chunk = self._index.chunks[number]
            if number in self._taken:
                continue
            for name in self._index.names(number):
                if name in seen:
                    continue
                cost = 1 + len(name) / NAME_CHARACTERS
                if chunk.path not in names and chunk.path != name:
                    cost += 1 + len(chunk.path) / NAME_CHARACTERS
                if used + cost > room:
                    continue
                seen.add(name)
                if name not in present:
                    present[name] = self._is_present(name)
                if not present[name]:
                    line = names.setdefault(chunk.path, [])
                    line += [name] if name != chunk.path else []
                    used += cost
        return "\n".join(_ledger_line(path, found) for path, found in names.items())

    def _is_present(self, name: str) -> bool:
        """Whether what is sent has the longest word of the name."""
        word = _longest_word(name)
        return word in self._words or any(n in self._taken for n in self._index.chunks_with(word))

    def _take_in_order(self, numbers: Iterable[int], room: int) -> None:
        misses = 0
        for number in numbers:
            if room - self.tokens < SMALLEST_EXCERPT or misses > MISSES:
                return
            misses = 0 if self._take(number, room) else misses + 1

    def _take(self, number: int, room: int) -> bool:
        if number in self._taken:
            return True
        chunk = self._index.chunks[number]
        lines = [line for line in map(str.strip, chunk.text.split("\n")) if line]
        if all(line in self._lines for line in lines):
            return True
        cost = self._costs.get(number)
        if cost is None:
            cost = self._costs[number] = self._counter.text(chunk.text) + HEADER_TOKENS
        if self.tokens + cost > room:
            return False
        self._taken.add(number)
        self.chosen.append(number)
        self.tokens += cost
        self._lines.update(lines)
        return True


def _ledger_line(path: str, names: list[str]) -> str:
    """Example: src/app.py: readFile a1b2c3d"""
    return ": ".join(said for said in (path, " ".join(names)) if said)


@lru_cache(maxsize=50_000)
def _longest_word(name: str) -> str:
    return max(words_of(name), key=len, default=name)


def _joins(one: Chunk, other: Chunk) -> bool:
    same = (one.at, one.kind, one.label, one.path) == (other.at, other.kind, other.label, other.path)
    return same and other.first_line == one.first_line + one.text.count("\n") + 1


def _header(chunk: Chunk) -> str:
    """Example: [12 read_file src/app.py line 41]"""
    where = f" {chunk.path}" if chunk.path else ""
    line = f" line {chunk.first_line}" if chunk.first_line > 1 else ""
    return f"[{chunk.at} {chunk.label}{where}{line}]"


def _lines_sent(sent: Mapping[int, Message]) -> set[str]:
    """The lines that are sent anyway, newest messages first, as far as a bounded look goes."""
    lines: set[str] = set()
    looked = 0
    for at in sorted(sent, reverse=True):
        if looked > LOOKED_AT:
            break
        for text in _texts(sent[at]):
            looked += len(text)
            lines.update(map(str.strip, text.split("\n")))
    return lines


def _texts(message: Message) -> Iterator[str]:
    for part in message.parts:
        match part:
            case Text(text):
                yield text
            case ToolCall(arguments=arguments):
                yield arguments.replace("\\n", "\n")
            case ToolResult():
                yield part.text
            case _:
                continue
