"""What came of the earlier attempts to summarise a thread: who wrote nothing usable is left alone for a while.

An author whose answers are no summaries twice in a row rests, for twice as many rows of the thread as it took to get
there; then it is asked once, without a correction, and each further failure doubles the pause. One accepted summary
ends all that. The outcomes among the events of a thread tell it, so every process and every restart agrees; no clock
decides.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from everlong.core import Event, EventKind, JsonText
from everlong.engine.contracts import Threads
from everlong.engine.summaries.author import Author, Tried

__all__ = ["ENDS", "Past", "attempt_data", "past_of"]

#: How an attempt may end.
ENDS = (EventKind.SUMMARY_APPLIED, EventKind.SUMMARY_SKIPPED, EventKind.SUMMARY_FAILED)
PATIENCE = 2  # answers in a row that are no summaries
GROWTH = 2  # of each pause, by the one before


@dataclass(frozen=True, slots=True)
class Rest:
    """How an author does in one thread: its wrong answers since the last summary, its pause, the row that ends it."""

    wrong: int = 0
    pause: int = 0
    until: int = 0


@dataclass(frozen=True, slots=True)
class Past:
    """The attempts at a thread so far. `rows` is how long the thread was at the last one.

    `awaits` is how many points the thread had then, if the compaction that it was made for has not come yet: it came to
    nothing, or it is kept for the next one. Else None.
    """

    last: str = ""
    rows: int = 0
    awaits: int | None = None
    rests: Mapping[tuple[str, str], Rest] = field(default_factory=dict)

    def after(self, event: Event) -> "Past":
        """Return it with one more outcome; what an earlier version or a crash left says nothing about authors."""
        told = _told(event.data)
        rows, points, authors = told if told is not None else (self.rows, None, ())
        rests = dict(self.rests)
        for place, name, wrong, wrote in authors:
            rest = rests.get((place, name), Rest())
            rests[place, name] = Rest() if wrote else _rested(rest, wrong, rows, rows - self.rows)
        return Past(event.id, rows, points, rests)

    def rest_of(self, author: Author) -> Rest:
        """Return how an author does."""
        return self.rests.get((author.model.endpoint, author.name), Rest())

    def may_ask(self, authors: Sequence[Author], length: int) -> list[Author]:
        """Return the authors that may be asked when the thread has so many rows; who failed before has one try."""
        rests = [(author, self.rest_of(author)) for author in authors]
        return [
            replace(author, corrections=0) if rest.wrong >= PATIENCE else author
            for author, rest in rests
            if length >= rest.until
        ]

    def excuse(self, authors: Sequence[Author], length: int) -> str:
        """Return why none of the authors is asked now."""
        rests = [(author.name, self.rest_of(author)) for author in authors]
        return "; ".join(
            f"{name} wrote no summary {rest.wrong} times and is asked again after {rest.until - length} messages"
            for name, rest in rests
            if length < rest.until
        )


def _rested(rest: Rest, wrong: int, rows: int, since: int) -> Rest:
    if not wrong:
        return rest  # it was not asked, or not to the end
    total = rest.wrong + wrong
    if total < PATIENCE:
        return Rest(total)
    pause = GROWTH * (rest.pause or max(1, since))
    return Rest(total, pause, rows + pause)


def past_of(threads: Threads, thread: str, known: Past | None = None) -> Past:
    """Return the attempts at a thread; only the events since what is known are read."""
    past = known or Past()
    if past.rows > threads.thread(thread).length:
        past = Past()  # another thread of the same name
    for event in threads.events(thread, after=past.last, kinds=ENDS):
        past = past.after(event)
    return past


def attempt_data(rows: int, awaits: int | None, tried: Sequence[Tried]) -> JsonText:
    """Return what an outcome tells later attempts: the rows at its start, what it awaits, how authors did."""
    authors = [[one.endpoint, one.name, one.wrong, one.wrote] for one in tried]
    return json.dumps({"rows": rows, "awaits": awaits, "authors": authors}, ensure_ascii=False)


def _told(data: JsonText) -> tuple[int, int | None, list[tuple[str, str, int, bool]]] | None:
    try:
        read = json.loads(data)
        authors = [(str(place), str(name), int(wrong), bool(wrote)) for place, name, wrong, wrote in read["authors"]]
        awaits = read["awaits"]
        return int(read["rows"]), None if awaits is None else int(awaits), authors
    except (ValueError, KeyError, TypeError):
        return None
