"""Finds the conversation that a request continues, by its messages: most clients do not name it.

The longest known prefix decides. A request that extends a conversation is appended to it, so that its compactions,
recalled blocks and summaries stay valid and the forwarded prefix stays the same. The same is done if only the last
message was rewritten, as some clients do in each request. A request that differs earlier starts a new conversation,
with the compactions that still apply. So does a request with other system text that shares no answer of the model: a
side call or a sub-agent may begin with the same words. Clients with different keys never share a conversation.
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import RLock
from uuid import uuid4

from everlong.core import OUTCOMES, Event, EventKind, JsonText, Point, Role, Row
from everlong.engine import SUMMARY, Engine
from everlong.errors import NoThread, Refused
from everlong.gateway.conversations.canonical import (
    Restore,
    Unit,
    Units,
    grouped,
    head_digest,
    head_in_field,
    prefix_digests,
)
from everlong.gateway.conversations.conversation import Conversation, Transcript
from everlong.gateway.conversations.kept_marks import Found, KeptMarks
from everlong.gateway.conversations.marks import Kind, Mark, entry_at, marks_in, with_own_messages
from everlong.gateway.conversations.memory_threads import MemoryFirstThreads
from everlong.gateway.conversations.saved import SavedConversations
from everlong.gateway.conversations.sketches import Match, Sketched, Sketches
from everlong.gateway.conversations.state_store import StateStore
from everlong.gateway.request import ModelRequest, decoded

__all__ = ["OVERTAKEN", "OVERTAKEN_AT_MOST", "Conversations"]

FACTOR = 4  # bytes in memory per byte of a conversation, as measured: its text twice, and the engine's state
LITTLE = 16 * 1024  # bytes; new messages up to this size are counted at once
MAX_CONVERSATIONS = 4_096
OVERTAKEN = "another process continued the conversation in the meantime"
OVERTAKEN_AT_MOST = 3  # times that a request is prepared again because of that
LENT_TOO_LONG = "its client did not report the outcome, and the memory is needed"


class Conversations:
    """The conversations of all clients. A caller that enters one must leave it again."""

    def __init__(
        self,
        engine: Engine,
        state_store: StateStore,
        *,
        room: int,
        new_id: Callable[[], str] = lambda: uuid4().hex,
        began: Callable[[], None] = lambda: None,
    ) -> None:
        self._engine = engine.blocking
        threads = self._engine.context.threads
        assert isinstance(threads, MemoryFirstThreads), "conversations live in memory, in front of a store"
        self._threads = threads
        self._state_store = state_store
        self._texts = SavedConversations(state_store)
        self._marks = KeptMarks(threads, state_store)
        self._room = room
        self._new_id = new_id
        self._began = began
        self._units = Units(room // 8)
        #: Conversations far from their threshold, of which only digests and counts are held.
        self.sketches = Sketches(self._units, room // 2, new_id)
        self._all: OrderedDict[str, Conversation] = OrderedDict()
        self._roots: dict[tuple[str, str], list[Conversation]] = {}
        self._held = 0
        self._mine = RLock()
        threads.listeners.append(self._note)

    def transcript(
        self, request: ModelRequest, scope: str, *, name: str = "", restore: Restore | None = None
    ) -> Transcript:
        """Return the messages of a request. `name` is the client's own name for the conversation."""
        format_ = request.format
        # Restored parts belong to one model; another one would not know them.
        units = self._units.of(format_, f"{scope}/{request.model}", grouped(format_, request.messages), restore)
        leading = _leading(units)
        field = request.fields.get(format_.api.system, b"null")
        in_field = decoded(field)
        digest = head_digest(format_, units[:leading], in_field)
        rest = units[leading:]
        digests = prefix_digests(rest, format_.name.encode())
        first = next((at for at, unit in enumerate(rest) if unit.messages[0].role is Role.USER), len(rest) - 1)
        root = f"name/{name}" if name else (digests[first].hex() if digests else "")
        head = (*head_in_field(request, in_field), *(message for unit in units[:leading] for message in unit.messages))
        size = memoryview(field).nbytes + sum(len(unit.plain) for unit in units[:leading])
        pair = format_.server.canonical.pair
        return Transcript(head, digest, tuple(units[:leading]), tuple(rest), tuple(digests), root, size, pair)

    def follow(self, found: Match, restore: Restore | None, model: str) -> Sketched | None:
        """Return a request whose conversation needs only digests; None if the conversation is or must be held in full.

        `model` is the model whose tokens are counted.
        """
        known, scope = found.sketch, found.scope
        root = self._root(found, restore) if known is None else known.root
        with self._mine:
            whole = (scope, root) in self._roots
        sketched = None
        # Another process may have compacted it; but nothing is ever left out of a single message.
        alone = len(found.request.messages) - found.leading < 2
        if not whole and (alone or not self._state_store.list_of_marks(scope, root)):
            sketched = self.sketches.follow(found, root, restore, model)
        if sketched is None and known is not None:
            self.sketches.forget(known.thread)
        return sketched

    def _root(self, found: Match, restore: Restore | None) -> str:
        """Return the name of a conversation's beginning: everything up to its first user message."""
        request, units = found.request, list[Unit]()
        for raw in request.messages[found.leading :]:
            units += self._units.of(request.format, f"{found.scope}/{request.model}", [(raw,)], restore)
            if units[-1].messages[0].role is Role.USER:
                break
        digests = prefix_digests(units, request.fmt.encode())
        return digests[-1].hex() if digests else ""

    def contexts(self, request: ModelRequest, scope: str) -> list[str]:
        """Return for each message of a request, and for its answer, a name of what comes before.

        System text does not count, and neither does the message directly before: some clients rewrite it each time.
        """
        format_ = request.format
        groups = grouped(format_, request.messages)
        try:
            units = self._units.of(format_, f"{scope}/as sent", groups)
        except Refused:  # the upstream may be able to read it
            return [""] * (len(request.messages) + 1)
        leading = _leading(units)
        names = [digest.hex() for digest in prefix_digests(units[leading:], format_.name.encode())]
        before = [""] * (leading + 2) + names
        return [before[at] for at, group in enumerate((*groups, (b"",))) for _ in group]

    def enter(self, scope: str, transcript: Transcript) -> Conversation:
        """Return the conversation that the request continues, with its messages in the thread. Leave it afterwards."""
        with self._mine:
            found = self._extended_by(scope, transcript)
            if found is not None:
                found.busy += 1
                found.last = transcript.last
                self._all.move_to_end(found.thread)
        if found is not None:
            with found.lock:
                made = self._marks.bring(found, transcript) if self._bring_up_to_date(found, transcript) else None
                if made is not None:
                    self._put(found, transcript, made)
            if made is None:
                self.leave(found)
                if found.stale or found.shared_with(transcript.digests) == len(found.digests):
                    self._forget(found)  # other processes continued it, so it is built again
                found = None
        if found is None:
            found = self._begin(scope, transcript)
        self._make_room()
        return found

    def little_new(self, scope: str, transcript: Transcript) -> str:
        """Return the thread to which the request adds too little for a compaction; "" if it may add enough."""
        with self._mine:
            found = self._extended_by(scope, transcript)
            if found is None or found.busy or found.head != transcript.head_digest:
                return ""
            if found.shared_with(transcript.digests) < len(found.digests):
                return ""
            new = sum(len(unit.plain) for unit in transcript.units[len(found.digests) :])
            return found.thread if new < min(LITTLE, found.quiet) else ""

    def leave(self, conversation: Conversation) -> None:
        """Record that a request of the conversation is over."""
        with self._mine:
            conversation.busy -= 1

    def commit(self, conversation: Conversation) -> bool:
        """Store what was added to the conversation before it is sent, if other processes need it.

        Returns False if another process overtook it; then the request is prepared again.
        """
        if not self._state_store.shared:
            return True
        with suppress(NoThread):
            return not self._marks.name_new(conversation) or self._marks.add(conversation, waits=True)
        return True

    def claim_summary(self, thread: str) -> bool:
        """Return whether this process may start a summary of the thread. Waits for the store."""
        with self._mine:
            conversation = self._all.get(thread)
        return conversation is None or self._marks.claim_summary(conversation)

    def store_learned(self) -> None:
        """Store what was learned since the last time."""
        self._threads.store_all()

    def keep_marks(self, conversation: Conversation) -> None:
        """Store soon what the engine or the client added to the conversation since the last time."""
        with suppress(NoThread):  # dropped meanwhile, which stored everything
            if self._marks.name_new(conversation, answered=True):
                self._state_store.later(lambda: self._marks.add(conversation, waits=False))
            self._texts.keep(conversation)

    def keep_marks_soon(self, conversation: Conversation) -> None:
        """Like `keep_marks`, but in the background if another request holds the lock."""
        if not conversation.lock.acquire(blocking=False):
            self._state_store.later(lambda: self.keep_marks(conversation))
            return
        try:
            self.keep_marks(conversation)
        finally:
            conversation.lock.release()

    def _note(self, thread: str, event: Event) -> None:
        """Count a compaction, which the next request reports.

        Store an applied summary, so that other processes see it.
        """
        with self._mine:
            conversation = self._all.get(thread)
        if conversation is None:
            return
        if event.kind is EventKind.CONTEXT_COMPRESSED:
            conversation.compactions += 1
            conversation.behind += event.reason == SUMMARY
        elif event.kind is EventKind.SUMMARY_APPLIED:
            self._state_store.later(lambda: self.keep_marks(conversation))
        if event.kind in OUTCOMES[EventKind.SUMMARY_STARTED]:
            self._marks.end_summary(conversation)

    def newest(self, scope: str, root: str) -> Conversation | None:
        """Return the last used conversation with this beginning; None if none is in memory."""
        with self._mine:
            alike = self._roots.get((scope, root), [])
            if len(alike) < 2:
                return alike[0] if alike else None
            return next(one for one in reversed(self._all.values()) if (one.scope, one.root) == (scope, root))

    def held(self, thread: str) -> Conversation | None:
        """Return the conversation of a thread; None if it is no longer in memory."""
        with self._mine:
            return self._all.get(thread)

    def points(self, conversation: Conversation) -> list[tuple[Row, bool]]:
        """Return the compaction points of its thread, oldest first, and whether each is in force."""
        return self._threads.points(conversation.thread)

    def set_up(self, conversation: Conversation, settings: JsonText) -> None:
        """Set these settings on its thread."""
        self._threads.change(conversation.thread, settings=settings)
        conversation.settings = settings

    def all(self) -> list[Conversation]:
        """Return the conversations in memory."""
        with self._mine:
            return list(self._all.values())

    def __len__(self) -> int:
        return len(self._all) + len(self.sketches)

    def _extended_by(self, scope: str, transcript: Transcript) -> Conversation | None:
        """Return the longest conversation that the request continues; only its last message may differ.

        While another request of it is in progress, only an equal request may share it: no other may see its messages.
        """
        found, longest = None, (-1, False, False)
        for one in self._roots.get((scope, transcript.root), ()):
            if one.busy:
                if one.head == transcript.head_digest and one.last == transcript.last:
                    return one
                continue
            shared, same = one.shared_with(transcript.digests), one.head == transcript.head_digest
            rank = (shared, shared == len(one.digests), same)
            if rank <= longest or len(one.opening) != len(transcript.head):
                continue
            if not same and not any(unit.messages[0].role is Role.ASSISTANT for unit in transcript.units[:shared]):
                continue
            if rank[1] or self._may_replace_last(one, transcript, shared):
                found, longest = one, rank
        return found

    def _may_replace_last(self, one: Conversation, transcript: Transcript, shared: int) -> bool:
        """Return whether only the last message of a conversation changed, and nothing depends on it."""
        if shared == 0 or shared != len(one.digests) - 1 or shared >= len(transcript.units):
            return False
        if len(one.messages[shared]) != len(transcript.units[shared].messages):
            return False
        point = next((row for row, stands in reversed(self._threads.points(one.thread)) if stands), None)
        return point is None or all(mark.upto <= shared for mark in marks_in([point], one.starts))

    def _bring_up_to_date(self, conversation: Conversation, transcript: Transcript) -> bool:
        """Put what the client rewrote into the thread: its system text, its last message.

        Returns False if a summary of the old version was made meanwhile. The engine must not be working on the thread:
        it reads only what was appended since it last looked.
        """
        with self._engine.context.states.lock(conversation.thread):
            shared = conversation.shared_with(transcript.digests)
            if shared < len(conversation.digests):
                if not self._may_replace_last(conversation, transcript, shared):
                    return False
                self._replace_last(conversation, transcript)
            self._renew(conversation, transcript)
        return True

    def _replace_last(self, conversation: Conversation, transcript: Transcript) -> None:
        """Replace the last message with its new version; everything before it is unchanged."""
        last = len(conversation.digests) - 1
        unit, digest = transcript.units[last], transcript.digests[last]
        self._threads.renew(conversation.thread, unit.messages, conversation.starts[last])
        self._engine.context.states.drop(conversation.thread)
        more = FACTOR * (len(unit.plain) - conversation.last_size)
        conversation.messages[last], conversation.digests[last] = unit.messages, digest
        conversation.counted.clear()
        conversation.size += more
        conversation.last_size = len(unit.plain)
        self._texts.forget(conversation)  # the stored thread with the old version is branched
        with self._mine:
            self._held += more

    def _renew(self, conversation: Conversation, transcript: Transcript) -> None:
        """Replace system text that changed; nothing else depends on it."""
        if conversation.head != transcript.head_digest:
            self._threads.renew(conversation.thread, transcript.head)
            self._engine.context.states.drop(conversation.thread)
            conversation.head, conversation.opening = transcript.head_digest, transcript.head
            conversation.counted.clear()
            self._size_head(conversation, transcript)

    def _begin(self, scope: str, transcript: Transcript) -> Conversation:
        """Begin a new conversation, with the marks of conversations with the same beginning that apply to it too."""
        with self._mine:
            alike = list(self._roots.get((scope, transcript.root), ()))
        conversation = Conversation(
            self._new_id(), scope, transcript.root, transcript.head_digest, opening=transcript.head, busy=1
        )
        conversation.last = transcript.last
        found = self._marks.find(scope, transcript, alike)
        self._threads.create(conversation.thread, owner=scope)
        with conversation.lock:
            if transcript.head:
                self._threads.append(conversation.thread, transcript.head)
            self._size_head(conversation, transcript)
            self._put(conversation, transcript, found)
        with self._mine:
            self._all[conversation.thread] = conversation
            self._roots.setdefault((scope, transcript.root), []).append(conversation)
        if not alike and not found.marks:
            self._began()
        return conversation

    def _put(self, conversation: Conversation, transcript: Transcript, found: Found) -> None:
        """Put the messages of the request into the thread, and the marks at their places."""
        if found.newest:
            conversation.standing, conversation.newest = [*found.names], found.newest
            conversation.compaction = found.compaction
        for mark in found.marks:
            if isinstance(mark.entry, Point):
                self._report_compaction(conversation, mark, found, made_now=mark.at > transcript.before)
            self._append(conversation, transcript, mark.at)
            length = self._threads.thread(conversation.thread).length
            entry = entry_at(mark, conversation.starts, length)
            if isinstance(entry, Point):
                entry = with_own_messages(entry, conversation.messages)
            if isinstance(entry, Point) or mark.upto <= len(conversation.digests):
                self._threads.append(conversation.thread, [entry])
            conversation.marked = self._threads.thread(conversation.thread).length
        self._append(conversation, transcript)

    def _report_compaction(self, conversation: Conversation, mark: Mark, found: Found, *, made_now: bool) -> None:
        """Let the request report a compaction of another process that no request has reported yet.

        That compaction was made after an answer, or for a concurrent request.
        """
        if found.names and found.names[0].kind is Kind.BESIDE:
            return
        behind = isinstance(mark.entry, Point) and mark.entry.reason == SUMMARY
        if (behind and not found.reported) or (made_now and not behind):
            conversation.compactions += 1
            conversation.behind += behind
        if behind and not found.reported and found.names:
            conversation.to_report = found.names[0].reported

    def _append(self, conversation: Conversation, transcript: Transcript, upto: int | None = None) -> None:
        """Append the messages of the request that are not in the thread yet, up to `upto` units."""
        start = len(conversation.digests)
        new = transcript.units[start:upto]
        if not new:
            return
        order = self._threads.thread(conversation.thread).length
        said = [unit.messages for unit in new]
        if transcript.pair is not None:
            said = transcript.pair(conversation.messages, said)
        self._threads.append(conversation.thread, [message for messages in said for message in messages])
        for unit, messages, digest in zip(new, said, transcript.digests[start:], strict=False):
            conversation.starts.append(order)
            conversation.messages.append(messages)
            conversation.digests.append(digest)
            conversation.size += FACTOR * len(unit.plain)
            conversation.last_size = len(unit.plain)
            order += len(unit.messages)
        with self._mine:
            self._held += FACTOR * sum(len(unit.plain) for unit in new)

    def _size_head(self, conversation: Conversation, transcript: Transcript) -> None:
        """Count the size of the system text as it is now."""
        more = FACTOR * (transcript.head_size - conversation.head_size)
        conversation.head_size = transcript.head_size
        conversation.size += more
        with self._mine:
            self._held += more

    def _make_room(self) -> None:
        """Drop the least recently used conversations; their marks are stored."""
        gone = []
        with self._mine:
            for one in list(self._all.values()):
                if self._held <= self._room and len(self._all) <= MAX_CONVERSATIONS:
                    break
                if self._take_out(one):
                    gone.append(one)
        for one in gone:
            self._drop(one)

    def _forget(self, one: Conversation) -> None:
        """Hide the conversation from new requests, and drop it if no work on it is in progress."""
        with self._mine:
            one.stale = True
            self._unlink(one)
            gone = one.thread in self._all and self._take_out(one)
        if gone:
            self._drop(one)

    def _take_out(self, one: Conversation) -> bool:
        """Take a conversation out of memory if no work on it is in progress. The caller holds `_mine`."""
        if one.busy or self._is_at_work(one):
            return False
        del self._all[one.thread]
        self._held -= one.size
        self._unlink(one)
        return True

    def _unlink(self, one: Conversation) -> None:
        alike = self._roots.get((one.scope, one.root), [])
        if one in alike:
            alike.remove(one)
        if not alike:
            self._roots.pop((one.scope, one.root), None)

    def _drop(self, one: Conversation) -> None:
        self.keep_marks(one)
        self._texts.forget(one)
        self._engine.context.states.drop(one.thread)
        self._threads.remove(one.thread)

    def _is_at_work(self, one: Conversation) -> bool:
        """Return whether work on it is in progress. A lent request does not count: it is recorded as failed."""
        if one.lent is not None:
            self._engine.record_failure(one.lent, LENT_TOO_LONG)
            one.lent = None
        return self._threads.under_way(one.thread)


def _leading(units: Sequence[Unit]) -> int:
    """How many units at the beginning are system text."""
    speaks = (at for at, unit in enumerate(units) if any(said.role is not Role.SYSTEM for said in unit.messages))
    return next(speaks, len(units))
