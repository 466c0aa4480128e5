"""What erasing messages removes from a store, the same for every store. Nothing here reads or writes.

Erasing is permanent: a mark replaces the message, so that every other row keeps its order. Everything that mentions it
is erased too, in each thread that shares the rows: compactions that cover it, recalled text, pins, search terms, token
counts, and the text of failures that quote it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from everlong.core import Event, EventKind, Gone, Message, Removal, Role, Row, Text, going_with
from everlong.errors import StoreError
from everlong.store.bodies import refs_of
from everlong.store.terms import found_by
from everlong.summarize import covered_by

__all__ = ["Erasure", "erasure_of"]

#: Events whose reason comes from others, such as a server that quotes what it refuses.
WITH_FOREIGN_REASON = frozenset(
    {
        EventKind.TURN_FAILED,
        EventKind.SUMMARY_FAILED,
        EventKind.SUMMARY_SKIPPED,
        EventKind.OVERFLOW_DETECTED,
        EventKind.OVERFLOW_FAILED,
    }
)


@dataclass(frozen=True, slots=True)
class Erasure:
    """What is erased from one thread: its rows, and their terms and references."""

    rows: tuple[Row, ...]
    #: The orders of rows that could be read until now: the thread shows that they were erased.
    shown: tuple[int, ...]
    terms: frozenset[str]
    refs: frozenset[str]

    @property
    def orders(self) -> tuple[int, ...]:
        """The orders of the rows."""
        return tuple(row.order for row in self.rows)

    @property
    def messages(self) -> int:
        """How many readable messages are erased."""
        shown = frozenset(self.shown)
        return sum(isinstance(row.entry, Message) and row.order in shown for row in self.rows)

    @property
    def removal(self) -> Removal:
        """The entry that informs every reader of the thread."""
        return Removal(self.shown)

    def scrubbed(self, events: Iterable[Event]) -> Iterator[Event]:
        """Return the events that contain erased words, without their text."""
        for event in events:
            if event.kind in WITH_FOREIGN_REASON and not self.terms.isdisjoint(_terms(f"{event.reason} {event.data}")):
                yield replace(event, reason="", data="")


def erasure_of(thread: str, log: Sequence[Row], orders: Sequence[int], removed: Iterable[int]) -> Erasure:
    """Return what is erased with these messages of a thread.

    `log` are all rows as they are stored, `removed` the orders that are hidden. Raises StoreError for an order that is
    not a message.
    """
    for order in orders:
        if not 0 <= order < len(log) or not isinstance(log[order].entry, Message | Gone):
            raise StoreError(f"thread {thread!r}: there is no message {order} to erase")
    hidden = frozenset(removed)
    going = going_with([row.entry for row in log], orders, covered_by)
    rows = tuple(log[order] for order in going)
    terms = (found_by(row.entry) for row in rows if isinstance(row.entry, Message))
    return Erasure(
        rows,
        tuple(order for order in going if order not in hidden),
        frozenset(term for each in terms for term in each),
        frozenset(ref for row in rows for ref in refs_of(row.entry)),
    )


def _terms(text: str) -> dict[str, float]:
    return found_by(Message(Role.USER, (Text(text),)))
