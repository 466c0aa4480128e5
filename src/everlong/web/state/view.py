"""Read a thread for the page: rows a page at a time, each with its status, and the reasons. Reads no more than that."""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from threading import Lock

from everlong.core import Edit, JsonObject, Message, Point, Row
from everlong.engine import LEFT_BEFORE, Call, Engine, Prepared
from everlong.errors import BudgetImpossible, Refused
from everlong.web.state.rows import LONGEST, Statuses, full_text, kept_json, message_status, row_json, statuses_of
from everlong.web.state.versions import Versions, mark_versions

__all__ = ["MOST_ROWS", "ThreadView"]

MOST_ROWS = 500
KEPT = 64  # threads whose statuses are remembered
START = 40  # characters by which a shortened message is recognised


class ThreadView:
    """Reads threads for the page. Safe in any operating system thread."""

    def __init__(self, engine: Engine, versions: Versions) -> None:
        self._engine = engine
        self._versions = versions
        self._threads = engine.threads
        self._statuses: OrderedDict[str, tuple[tuple[int, int], Statuses]] = OrderedDict()
        self._arrivals: OrderedDict[str, tuple[tuple[int, str], tuple[Edit, ...]]] = OrderedDict()
        self._lock = Lock()

    def page(
        self, thread: str, *, before: int | None, limit: int, point: int | None = None, call: Call | None = None
    ) -> JsonObject:
        """Return the last `limit` rows before an order; with `point`, of the thread as it was before that compaction.

        With the `call` that would be made next, edits of new messages are included in their statuses.
        """
        stored = self._threads.thread(thread)
        end = min(stored.length, *(order for order in (before, point) if order is not None), stored.length)
        start = max(0, end - max(1, min(limit, MOST_ROWS)))
        if point is None:
            statuses = self.statuses(thread).with_edits(self._arrival_edits(thread, call))
        else:
            statuses = self._statuses_before(thread, min(point, stored.length))
        pinned = self._pinned(thread)
        rows = [row_json(row, statuses, pinned) for row in self._threads.read(thread, start, end)]
        if point is None:
            mark_versions(rows, self._versions.of(thread).forks(thread), thread, last=end == stored.length)
        total = stored.length if point is None else min(point, stored.length)
        return {"rows": [*rows], "first": start == 0, "total": total}

    def rows(self, thread: str, start: int) -> list[JsonObject]:
        """Return the rows from an order on, one for each order."""
        statuses, pinned = self.statuses(thread).with_edits(self._arrival_edits(thread, None)), self._pinned(thread)
        rows = [row_json(row, statuses, pinned) for row in self._threads.read(thread, start)]
        mark_versions(rows, self._versions.of(thread).forks(thread), thread, last=False)
        return rows

    def statuses(self, thread: str) -> Statuses:
        """Return the present statuses; computed again only when a compaction was added or undone."""
        stored = self._threads.thread(thread)
        if not stored.points:
            return Statuses()
        # The last figure grows with every undo. Recalled rows are counted in it too, which does no harm.
        key = (stored.points, stored.length - stored.messages - stored.points)
        with self._lock:
            remembered = self._statuses.get(thread)
        if remembered is not None and remembered[0] == key:
            return remembered[1]
        statuses = statuses_of(self._threads.points(thread))
        with self._lock:
            self._statuses[thread] = (key, statuses)
            self._statuses.move_to_end(thread)
            while len(self._statuses) > KEPT:
                self._statuses.popitem(last=False)
        return statuses

    def _arrival_edits(self, thread: str, call: Call | None) -> Sequence[Edit]:
        """Return the edits of messages since the newest compaction: as last sent, else as they would be sent."""
        state = self._engine.blocking.context.states.get(thread)
        if state is not None and state.view is not None:
            if not state.view.edits:
                return ()
            orders = state.view_orders
            placed = ((edit, orders[edit.at]) for edit in state.view.edits if edit.at < len(orders))
            return [replace(edit, at=order) for edit, order in placed if order != LEFT_BEFORE]
        length = self._threads.thread(thread).length
        if call is None or not length:
            return ()
        with self._lock:
            remembered = self._arrivals.get(thread)
        if remembered is None or remembered[0] != (length, call.model):
            try:
                remembered = ((length, call.model), self._next_request(thread, call).edits)
            except BudgetImpossible:
                return ()
            with self._lock:
                self._arrivals[thread] = remembered
                while len(self._arrivals) > KEPT:
                    self._arrivals.popitem(last=False)
        return remembered[1]

    def _statuses_before(self, thread: str, before: int) -> Statuses:
        newest = self._threads.open(thread, before).point
        if newest is None:
            return Statuses()
        points = self._threads.points(thread)
        return statuses_of([(row, row.order == newest.order or stands) for row, stands in points if row.order < before])

    def _pinned(self, thread: str) -> frozenset[int]:
        return frozenset(pin.order for pin in self._threads.pins(thread) if pin.order is not None)

    def row(self, thread: str, order: int) -> Row:
        """Return one row. Raises Refused if there is none."""
        row = next(iter(self._threads.read(thread, order, order + 1)), None)
        if row is None:
            raise Refused("there is no such row", status=404, kind="no_row")
        return row

    def why(self, thread: str, order: int, call: Call) -> JsonObject:
        """Return the status of one message, each edit with its reason, the text as sent and the original."""
        row = self.row(thread, order)
        if not isinstance(row.entry, Message):
            raise Refused("that row is not a message", status=404, kind="no_message")
        try:
            prepared = self._next_request(thread, call)
        except BudgetImpossible:
            prepared = None
        statuses = self.statuses(thread)
        if prepared is not None:
            statuses = statuses.with_edits(prepared.edits)
        status = message_status(order, row.entry, statuses, self._pinned(thread))
        sent = row.entry if status == "whole" else None
        if status == "shortened" and prepared is not None:
            sent = _as_sent(row.entry, prepared.request.messages)
        return {
            "sent": status,
            "edits": [_edit(edit) for edit in statuses.edits.get(order, ())],
            "as_sent": None if sent is None else full_text(sent)[:LONGEST],
            "original": full_text(row.entry)[:LONGEST],
        }

    def kept(self, thread: str, order: int) -> JsonObject:
        """Return what a compaction left of the messages that it covers. Raises Refused for any other row."""
        row = self.row(thread, order)
        if not isinstance(row.entry, Point):
            raise Refused("that row is not a compaction", status=404, kind="no_compaction")
        return {"kept": kept_json(row.entry)}

    def _next_request(self, thread: str, call: Call) -> Prepared:
        """Return the next request as it would be sent, before any compaction. Stores and reports nothing."""
        return self._engine.blocking.preview(thread, call).prepared

    def can_undo(self, thread: str) -> bool:
        """Return whether a compaction is in force."""
        return self.statuses(thread).newest is not None


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
    """Return a message as it was sent, recognised by its calls and results, else by its first characters."""
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
