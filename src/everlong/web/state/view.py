"""A thread as it is shown: a page of rows at a time, each with what becomes of it, and why. Reads no more than that."""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from threading import Lock

from everlong.core import Edit, Json, JsonObject, Message, Point, Role, Row
from everlong.engine import LEFT_BEFORE, Call, Engine, Prepared, prepared_from, refreshed, standing, work_on
from everlong.errors import BudgetImpossible, Refused
from everlong.web.state.rows import LONGEST, Statuses, full_text, row_json, statuses_of

__all__ = ["MOST_ROWS", "ThreadView"]

MOST_ROWS = 500
KEPT = 64  # threads whose fates are known
START = 40  # characters by which a shortened message is known again


class ThreadView:
    """Reads threads for the page. May be used from any thread of the process."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._threads = engine.threads
        self._fates: OrderedDict[str, tuple[tuple[int, int], Statuses]] = OrderedDict()
        self._looks: OrderedDict[str, tuple[tuple[int, str], tuple[Edit, ...]]] = OrderedDict()
        self._mine = Lock()

    def page(
        self, thread: str, *, before: int | None, limit: int, point: int | None = None, call: Call | None = None
    ) -> JsonObject:
        """The last so many rows before an order; with `point`, of the thread as it was before that compaction.

        With the `call` that would be made, also what is done to new messages as they come is known.
        """
        known = self._threads.thread(thread)
        end = min(known.length, *(order for order in (before, point) if order is not None), known.length)
        start = max(0, end - max(1, min(limit, MOST_ROWS)))
        if point is None:
            fates = self.fates(thread).with_news(self._news(thread, call))
        else:
            fates = self._earlier(thread, min(point, known.length))
        pinned = self._pinned(thread)
        rows: list[Json] = [row_json(row, fates, pinned) for row in self._threads.read(thread, start, end)]
        total = known.length if point is None else min(point, known.length)
        return {"rows": rows, "first": start == 0, "total": total}

    def rows(self, thread: str, start: int) -> tuple[list[JsonObject], int]:
        """The rows from an order on, and the order that comes next."""
        fates, pinned = self.fates(thread).with_news(self._news(thread, None)), self._pinned(thread)
        found = list(self._threads.read(thread, start))
        return [row_json(row, fates, pinned) for row in found], start + len(found)

    def fates(self, thread: str) -> Statuses:
        """What becomes of the messages now; made again only when a point was added or withdrawn."""
        known = self._threads.thread(thread)
        if not known.points:
            return Statuses()
        # Withdrawals are among the rows that are neither; what is recalled too, which does no harm.
        key = (known.points, known.length - known.messages - known.points)
        with self._mine:
            kept = self._fates.get(thread)
        if kept is not None and kept[0] == key:
            return kept[1]
        stand = [row for row, stands in self._threads.points(thread) if stands]
        fates = statuses_of(stand)
        with self._mine:
            self._fates[thread] = (key, fates)
            self._fates.move_to_end(thread)
            while len(self._fates) > KEPT:
                self._fates.popitem(last=False)
        return fates

    def _news(self, thread: str, call: Call | None) -> Sequence[Edit]:
        """What was done to messages since the newest point: as last sent, else as it would be."""
        live = self._engine.blocking.means.lives.get(thread)
        if live is not None and live.view is not None:
            if not live.view.edits:
                return ()
            orders = live.orders
            placed = ((edit, orders[edit.at]) for edit in live.view.edits if edit.at < len(orders))
            return [replace(edit, at=order) for edit, order in placed if order != LEFT_BEFORE]
        length = self._threads.thread(thread).length
        if call is None or not length:
            return ()
        with self._mine:
            kept = self._looks.get(thread)
        if kept is None or kept[0] != (length, call.model):
            try:
                kept = ((length, call.model), self._looked(thread, call).edits)
            except BudgetImpossible:
                return ()
            with self._mine:
                self._looks[thread] = kept
                while len(self._looks) > KEPT:
                    self._looks.popitem(last=False)
        return kept[1]

    def _earlier(self, thread: str, before: int) -> Statuses:
        newest = self._threads.open(thread, before).point
        if newest is None:
            return Statuses()
        points = self._threads.points(thread)
        return statuses_of(
            [row for row, stands in points if row.order == newest.order or (stands and row.order < before)]
        )

    def _pinned(self, thread: str) -> frozenset[int]:
        return frozenset(pin.order for pin in self._threads.pins(thread) if pin.order is not None)

    def row(self, thread: str, order: int) -> Row:
        """One row. Raises Refused if there is none."""
        row = next(iter(self._threads.read(thread, order, order + 1)), None)
        if row is None:
            raise Refused("there is no such row", status=404, kind="no_row")
        return row

    def why(self, thread: str, order: int, call: Call) -> JsonObject:
        """What became of one message, each change and its reason, what the model saw and what was said."""
        row = self.row(thread, order)
        if not isinstance(row.entry, Message):
            raise Refused("that row is no message", status=404, kind="no_message")
        try:
            looked = self._looked(thread, call)
        except BudgetImpossible:
            looked = None
        fates = self.fates(thread)
        if looked is not None:
            fates = fates.with_news(looked.edits)
        edits = fates.edits.get(order, ())
        kept = order in self._pinned(thread) or row.entry.role is Role.SYSTEM
        fate = "whole" if kept else fates.of(order)
        seen = row.entry if fate == "whole" else None
        if fate == "shortened" and looked is not None:
            seen = _as_sent(row.entry, looked.request.messages)
        return {
            "sent": fate,
            "edits": [_edit(edit) for edit in edits],
            "as_sent": None if seen is None else full_text(seen)[:LONGEST],
            "original": full_text(row.entry)[:LONGEST],
        }

    def _looked(self, thread: str, call: Call) -> Prepared:
        """The next request as it would be, before any cut. Nothing is kept, nobody is told."""
        means = self._engine.blocking.means
        with means.lives.lock(thread):
            live = refreshed(means.threads, thread, means.lives.get(thread))
            work = work_on(means, live, call, means.journal(thread), "")
            return prepared_from(work, standing(work))

    def can_undo(self, thread: str) -> bool:
        """Whether a compaction stands."""
        return self.fates(thread).newest is not None

    def point(self, thread: str, order: int) -> Point:
        """The compaction at that order. Raises Refused if there is none."""
        entry = self.row(thread, order).entry
        if not isinstance(entry, Point):
            raise Refused("there is no compaction", status=404, kind="no_point")
        return entry


def _edit(edit: Edit) -> JsonObject:
    return {
        "action": edit.action.value,
        "step": edit.step,
        "why": edit.reason,
        "before": edit.before,
        "after": edit.after,
        "ref": edit.ref,
    }


def _as_sent(message: Message, sent: Sequence[Message]) -> Message | None:
    """The message as it stands in a request: known by its calls and results, else by how it begins."""
    ids = {part.id for part in message.calls} | {part.call for part in message.results}
    start = message.text[:START]
    for other in sent:
        if other.role is not message.role:
            continue
        if ids & ({part.id for part in other.calls} | {part.call for part in other.results}):
            return other
        if not ids and start and other.text.startswith(start):
            return other
    return None
