"""The outcomes of earlier attempts to summarise a thread: an author that failed is paused for a while.

An author that fails twice in a row is paused. The pause is counted in rows of the thread: twice as many as since the
previous attempt. Then the author is asked once, without a correction, and each further failure doubles the pause. One
accepted summary resets it. All of this follows from the events of the thread and not from a clock, so that every
process agrees, also after a restart.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from everlong.core import Event, EventKind, JsonText
from everlong.engine.contracts import Threads
from everlong.engine.summaries.author import Author, Tried

__all__ = ["ENDS", "Past", "attempt_data", "past_of"]

#: The outcomes of an attempt.
ENDS = (EventKind.SUMMARY_APPLIED, EventKind.SUMMARY_SKIPPED, EventKind.SUMMARY_FAILED)
PATIENCE = 2  # unusable answers in a row before a pause
GROWTH = 2  # factor from one pause to the next


@dataclass(frozen=True, slots=True)
class Rest:
    """The record of an author in one thread: unusable answers since its last summary, its pause, the row after it."""

    wrong: int = 0
    pause: int = 0
    until: int = 0


@dataclass(frozen=True, slots=True)
class Past:
    """The attempts to summarise a thread so far. `rows` is the length of the thread at the last attempt.

    `awaits` is how many points the thread had then, if the compaction that the attempt was made for has not come yet,
    because it failed or its summary is kept for the next one. Otherwise None.
    """

    last: str = ""
    rows: int = 0
    awaits: int | None = None
    rests: Mapping[tuple[str, str], Rest] = field(default_factory=dict)

    def after(self, event: Event) -> "Past":
        """Return the attempts with one more outcome.

        An outcome from an earlier version or a crash says nothing about authors.
        """
        attempt = _attempt_in(event.data)
        rows, points, authors = attempt if attempt is not None else (self.rows, None, ())
        rests = dict(self.rests)
        for place, name, wrong, wrote in authors:
            rest = rests.get((place, name), Rest())
            rests[place, name] = Rest() if wrote else _rested(rest, wrong, rows, rows - self.rows)
        return Past(event.id, rows, points, rests)

    def rest_of(self, author: Author) -> Rest:
        """Return the record of an author."""
        return self.rests.get((author.model.endpoint, author.name), Rest())

    def may_ask(self, authors: Sequence[Author], length: int) -> list[Author]:
        """Return the authors that may be asked at this length of the thread; one that failed often gets one try."""
        rests = [(author, self.rest_of(author)) for author in authors]
        return [
            replace(author, corrections=0) if rest.wrong >= PATIENCE else author
            for author, rest in rests
            if length >= rest.until
        ]

    def excuse(self, authors: Sequence[Author], length: int) -> str:
        """Return why none of the authors is asked now, for people."""
        rests = [(author.name, self.rest_of(author)) for author in authors]
        return "; ".join(
            f"{name} failed to write a summary {rest.wrong} times "
            f"and is asked again after {rest.until - length} messages"
            for name, rest in rests
            if length < rest.until
        )


def _rested(rest: Rest, wrong: int, rows: int, since: int) -> Rest:
    if not wrong:
        return rest  # the author was not asked, or the attempt was interrupted
    total = rest.wrong + wrong
    if total < PATIENCE:
        return Rest(total)
    pause = GROWTH * (rest.pause or max(1, since))
    return Rest(total, pause, rows + pause)


def past_of(threads: Threads, thread: str, known: Past | None = None) -> Past:
    """Return the attempts to summarise a thread; only events since `known` are read."""
    past = known or Past()
    if past.rows > threads.thread(thread).length:
        past = Past()  # a new thread with the same name
    for event in threads.events(thread, after=past.last, kinds=ENDS):
        past = past.after(event)
    return past


def attempt_data(rows: int, awaits: int | None, tried: Sequence[Tried], messages: int | None = None) -> JsonText:
    """Return what later attempts need to know: the rows at its start, what it waits for, the authors' records.

    `messages` are the messages of the compaction that the summary made, if it made one.
    """
    authors = [[one.endpoint, one.name, one.wrong, one.wrote] for one in tried]
    data = {"rows": rows, "awaits": awaits, "authors": authors}
    return json.dumps(data if messages is None else data | {"messages": messages}, ensure_ascii=False)


def _attempt_in(data: JsonText) -> tuple[int, int | None, list[tuple[str, str, int, bool]]] | None:
    try:
        read = json.loads(data)
        authors = [(str(place), str(name), int(wrong), bool(wrote)) for place, name, wrong, wrote in read["authors"]]
        awaits = read["awaits"]
        return int(read["rows"]), None if awaits is None else int(awaits), authors
    except (ValueError, KeyError, TypeError):
        return None
