"""How talk is quoted: turns as `name: text`, the day once before what was said on it; notes bare.

Owns the form and what it costs; which turns are quoted is not decided here.
"""

from collections.abc import Container, Iterable

from everlong.core import History
from everlong.relevance import Index, are_notes
from everlong.tokens import Counter

__all__ = ["TalkQuotes"]


class TalkQuotes:
    """The chunks of a talk as they read in an excerpt. `history` begins with the messages that the index holds."""

    def __init__(self, history: History, index: Index, counter: Counter) -> None:
        self._history = history
        self._chunks = index.chunks
        self._counter = counter
        self._are_notes = are_notes(index)

    def cost(self, number: int, days: Container[str]) -> int:
        """The tokens that a chunk adds to an excerpt that shows these days already."""
        day = self.day(number)
        line = f"{self._line(number)}\n"
        return self._counter.text(line if not day or day in days else f"{day}\n{line}")

    def text(self, numbers: Iterable[int]) -> str:
        """These chunks, in conversation order. Example: [2023-05-08]⏎Ann: I moved to Oslo.⏎Ben: When?"""
        lines: list[str] = []
        shown = ""
        before = -1
        for number in sorted(numbers):
            day = self.day(number)
            if day and day != shown:
                lines.append(day)
                shown = day
            chunk = self._chunks[number]
            goes_on = before == number - 1 >= 0 and self._chunks[before].at == chunk.at
            lines.append(chunk.text if goes_on else self._line(number))
            before = number
        return "\n".join(lines)

    def day(self, number: int) -> str:
        """The line that says when it was said; "" where that is not known or each is a note for itself."""
        time = self._history[self._chunks[number].at].time
        return f"[{time.date().isoformat()}]" if time and not self._are_notes else ""

    def _line(self, number: int) -> str:
        chunk = self._chunks[number]
        return chunk.text if self._are_notes else f"{self._history[chunk.at].name or chunk.label}: {chunk.text}"
