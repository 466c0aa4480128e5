"""Finds the conversation that a request continues, by its messages: most clients have no name for it.

The longest known prefix decides. A request that extends a conversation is appended to it, so that its compactions,
recalled blocks and summaries stay valid and the forwarded prefix stays as it was; so does one whose last message was
another the time before, as some clients write it anew with each request. A request that differs earlier begins a
conversation of its own, keeping the compactions that still apply. So does one with other system text that shares no
answer of the model: a side call or a sub-agent may begin with the same words. Clients with different keys never share
one.
"""

import json
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from heapq import nlargest
from threading import RLock
from uuid import uuid4

from everlong.core import Event, EventKind, History, Json, JsonObject, Message, Point, Recalled, Role
from everlong.engine import SUMMARY, Engine, Prepared, Threads, text_title
from everlong.errors import NoThread, Refused
from everlong.gateway.conversations.canonical import Restore, Unit, Units, grouped, head_digest, prefix_digests
from everlong.gateway.conversations.persistence import (
    OURS,
    Mark,
    MemoryFirstThreads,
    StateStore,
    encoded_mark,
    entry_at,
    marks_in,
    standing_marks,
)
from everlong.gateway.request import ModelRequest, decoded

__all__ = ["Conversation", "Conversations", "SavedConversations", "Transcript"]

THREADS = "threads"  # the kind of notes on saved threads
FACTOR = 4  # bytes in memory for each byte of a conversation, as measured: its text twice, and what the engine holds
LITTLE = 16 * 1024  # bytes; new messages up to this size are counted at once
MAX_CONVERSATIONS = 4_096
LENT_TOO_LONG = "its client did not tell what became of it, and memory is needed"
COMPARED = 8  # conversations with the same beginning, whose compactions may apply to a new one


@dataclass(frozen=True, slots=True)
class Transcript:
    """The messages of a request: system text, and units with a digest for each prefix. `root` is its beginning."""

    head: History
    head_digest: bytes
    #: Units of system messages in the list; other system text is in a field of its own.
    leading: tuple[Unit, ...]
    units: tuple[Unit, ...]
    digests: tuple[bytes, ...]
    root: str
    #: Bytes of the system text.
    head_size: int = 0
    #: Pairs results with calls that stand in other units, if the format needs it.
    pair: Callable[[Sequence[History], Sequence[History]], list[History]] | None = None

    @property
    def last(self) -> bytes:
        """The digest of all units."""
        return self.digests[-1] if self.digests else b""


@dataclass(slots=True)
class Conversation:
    """A conversation in memory. `starts` is the order of the first row of each unit in its thread."""

    thread: str
    scope: str
    root: str
    head: bytes
    digests: list[bytes] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    messages: list[History] = field(default_factory=list)
    opening: History = ()
    size: int = 0
    #: Bytes of its last unit.
    last_size: int = 0
    #: Bytes of its system text, which are part of its size.
    head_size: int = 0
    #: Requests of it that are under way, and the digest of their messages.
    busy: int = 0
    last: bytes = b""
    #: Rows of the thread whose marks were given to the store, and the newest mark that was seen there.
    marked: int = 0
    newest: str = ""
    #: For each model how many units were counted, and their tokens.
    counted: dict[str, tuple[int, int]] = field(default_factory=dict)
    #: The settings of its thread now.
    settings: str = "{}"
    #: Tokens by which it may grow, from what was last forwarded, before a compaction can be due.
    quiet: int = 0
    #: Compactions that no request has reported yet, and how many of them were made behind an answer, for a summary.
    compactions: int = 0
    behind: int = 0
    #: The request that a client was given to send by itself, until it tells what became of it.
    lent: Prepared | None = None
    lock: RLock = field(default_factory=RLock)

    def shared_with(self, digests: Sequence[bytes]) -> int:
        """Return how many units are the same from the start."""
        ends = range(min(len(self.digests), len(digests)))
        return bisect_left(ends, True, key=lambda at: self.digests[at] != digests[at])


@dataclass(frozen=True, slots=True)
class _SavedThread:
    """A thread that holds the first `units` of a conversation in its first `rows`."""

    thread: str
    units: int
    rows: int


class SavedConversations:
    """Stores whole conversations as threads while they grow, if the gateway is set to keep them.

    They can be listed, searched and exported with `everlong sessions`. A conversation that differs earlier is a branch.
    Everything is written in the background, by the one thread that writes.
    """

    def __init__(self, state_store: StateStore) -> None:
        self._state_store = state_store
        self._last: dict[str, _SavedThread] = {}

    def keep(self, conversation: Conversation) -> None:
        """Store the messages that the conversation has now, soon."""
        units = len(conversation.digests)
        if self._state_store.keep == "text" and units:
            self._state_store.later(lambda: self._write(conversation, units))

    def forget(self, conversation: Conversation) -> None:
        """Note that the conversation left memory; its thread is found again by its messages."""
        self._state_store.later(lambda: self._last.pop(conversation.thread, None))

    def _write(self, conversation: Conversation, units: int) -> None:
        """Store the first `units` of the conversation: they no longer change, even if more are added meanwhile."""
        store = self._state_store.store
        known = self._last.get(conversation.thread) or self._find(conversation, units)
        if known is not None and known.units >= units:
            self._last[conversation.thread] = known
            return
        saved = (known and self._continue(store, known)) or self._begin(store, conversation)
        new = [message for unit in conversation.messages[saved.units : units] for message in unit]
        store.append(saved.thread, new, expected=saved.rows)
        saved = _SavedThread(saved.thread, units, saved.rows + len(new))
        self._last[conversation.thread] = saved
        note = json.dumps({"thread": saved.thread, "rows": saved.rows})
        self._state_store.keep_note(THREADS, _place(conversation), conversation.digests[units - 1].hex(), note)

    def _find(self, conversation: Conversation, units: int) -> _SavedThread | None:
        """Return the thread that holds the longest part of the conversation."""
        notes = self._state_store.notes(THREADS, _place(conversation))
        for length in range(units, 0, -1):
            note = notes.get(conversation.digests[length - 1].hex())
            if note is not None:
                fields = json.loads(note)
                return _SavedThread(fields["thread"], length, fields["rows"])
        return None

    def _continue(self, store: Threads, known: _SavedThread) -> _SavedThread | None:
        """Return the thread if it still ends there, a branch if it has grown differently, None if it was removed."""
        try:
            thread = store.thread(known.thread)
            if thread.length == known.rows:
                return known
            branch = store.branch(known.thread, known.rows, uuid4().hex, title=thread.title)
        except NoThread:
            return None
        return _SavedThread(branch.id, known.units, known.rows)

    def _begin(self, store: Threads, conversation: Conversation) -> _SavedThread:
        messages = [message for unit in conversation.messages for message in unit]
        question = next((message.text for message in messages if message.role is Role.USER and message.text), "")
        thread = store.create(uuid4().hex, owner=OURS + conversation.scope, title=text_title(question))
        store.append(thread.id, conversation.opening)
        return _SavedThread(thread.id, 0, len(conversation.opening))


def _place(conversation: Conversation) -> str:
    return f"{conversation.scope}/{conversation.root}"


class Conversations:
    """The conversations of all clients. A caller that enters one with a request must leave it again."""

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
        self._room = room
        self._new_id = new_id
        self._began = began
        self._units = Units(room // 4)
        self._all: OrderedDict[str, Conversation] = OrderedDict()
        self._roots: dict[tuple[str, str], list[Conversation]] = {}
        self._held = 0
        self._mine = RLock()
        threads.listeners.append(self._note)

    def transcript(
        self, request: ModelRequest, scope: str, *, name: str = "", restore: Restore | None = None
    ) -> Transcript:
        """Return the messages of a request. With `name` the client names the conversation itself."""
        format_ = request.format
        # What is restored belongs to one model: another would not know it.
        units = self._units.of(format_, f"{scope}/{request.model}", grouped(format_, request.messages), restore)
        leading = _leading(units)
        field = request.fields.get(format_.api.system, b"null")
        in_field = decoded(field)
        digest = head_digest(format_, units[:leading], in_field)
        rest = units[leading:]
        digests = prefix_digests(rest, format_.name.encode())
        first = next((at for at, unit in enumerate(rest) if unit.messages[0].role is Role.USER), len(rest) - 1)
        root = f"name/{name}" if name else (digests[first].hex() if digests else "")
        head = (*_head_in_field(request, in_field), *(message for unit in units[:leading] for message in unit.messages))
        size = memoryview(field).nbytes + sum(len(unit.plain) for unit in units[:leading])
        pair = format_.server.canonical.pair
        return Transcript(head, digest, tuple(units[:leading]), tuple(rest), tuple(digests), root, size, pair)

    def contexts(self, request: ModelRequest, scope: str) -> list[str]:
        """Return for each message of a request, and for its answer, a name of what comes before.

        System text does not count, and neither does the message right before: some clients write that anew each time.
        """
        format_ = request.format
        groups = grouped(format_, request.messages)
        try:
            units = self._units.of(format_, f"{scope}/as sent", groups)
        except Refused:  # the upstream may read what we cannot
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
                if self._bring_up_to_date(found, transcript):
                    self._put(found, transcript, self._made_elsewhere(found, transcript))
                else:
                    self.leave(found)
                    found = None
        if found is None:
            found = self._begin(scope, transcript)
        self._make_room()
        return found

    def little_new(self, scope: str, transcript: Transcript) -> str:
        """Return the thread to which the request adds too little for a compaction; "" if it may add more."""
        with self._mine:
            found = self._extended_by(scope, transcript)
            if found is None or found.busy or found.head != transcript.head_digest:
                return ""
            if found.shared_with(transcript.digests) < len(found.digests):
                return ""
            new = sum(len(unit.plain) for unit in transcript.units[len(found.digests) :])
            return found.thread if new < min(LITTLE, found.quiet) else ""

    def leave(self, conversation: Conversation) -> None:
        """Note that a request of the conversation is over."""
        with self._mine:
            conversation.busy -= 1

    def keep_marks(self, conversation: Conversation) -> None:
        """Store what was added to the conversation since the last time, by the engine or by its client."""
        with suppress(NoThread):  # dropped meanwhile, and all of it stored then
            self._store_marks(conversation)

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
        """Note a compaction: the next request reports it. Store a summary: other processes see it at once."""
        with self._mine:
            conversation = self._all.get(thread)
        if conversation is None:
            return
        if event.kind is EventKind.CONTEXT_COMPRESSED:
            conversation.compactions += 1
            conversation.behind += event.reason == SUMMARY
        elif event.kind is EventKind.SUMMARY_APPLIED:
            self._state_store.later(lambda: self.keep_marks(conversation))

    def _store_marks(self, conversation: Conversation) -> None:
        with conversation.lock:
            length = self._threads.thread(conversation.thread).length
            new, conversation.marked = conversation.marked, length
            late = list(self._threads.read(conversation.thread, new, length))
            for mark in marks_in(late, conversation.starts):
                if 0 < mark.upto <= len(conversation.digests):
                    digest = conversation.digests[mark.upto - 1].hex()
                    conversation.newest = self._state_store.keep_mark(
                        conversation.scope, conversation.root, digest, mark
                    )
        self._texts.keep(conversation)

    def newest(self, scope: str, root: str) -> Conversation | None:
        """Return the conversation with this beginning that was used last; None if none is in memory."""
        with self._mine:
            alike = self._roots.get((scope, root), [])
            if len(alike) < 2:
                return alike[0] if alike else None
            return next(one for one in reversed(self._all.values()) if (one.scope, one.root) == (scope, root))

    def all(self) -> list[Conversation]:
        """Return those in memory."""
        with self._mine:
            return list(self._all.values())

    def __len__(self) -> int:
        return len(self._all)

    def _extended_by(self, scope: str, transcript: Transcript) -> Conversation | None:
        """Return the longest conversation that the request continues, unchanged but perhaps for its last message.

        While another request of it is under way, only the same request may share it: no other may see its messages.
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
        """Whether only the last message of a conversation is another one now, and nothing was made of it."""
        if shared == 0 or shared != len(one.digests) - 1 or shared >= len(transcript.units):
            return False
        if len(one.messages[shared]) != len(transcript.units[shared].messages):
            return False
        point = next((row for row, stands in reversed(self._threads.points(one.thread)) if stands), None)
        return point is None or all(mark.upto <= shared for mark in marks_in([point], one.starts))

    def _bring_up_to_date(self, conversation: Conversation, transcript: Transcript) -> bool:
        """Put what the client wrote anew into the thread: its system text, its last message.

        Return False if a summary was made meanwhile of what the client wrote before. The engine must not be at work on
        the thread: it reads only what was appended since it last looked.
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
        """Put the last message as it is now where another one stood; what came before stays as it was sent."""
        last = len(conversation.digests) - 1
        unit, digest = transcript.units[last], transcript.digests[last]
        self._threads.renew(conversation.thread, unit.messages, conversation.starts[last])
        self._engine.context.states.drop(conversation.thread)
        more = FACTOR * (len(unit.plain) - conversation.last_size)
        conversation.messages[last], conversation.digests[last] = unit.messages, digest
        conversation.counted.clear()
        conversation.size += more
        self._texts.forget(conversation)  # the thread that holds the other one is branched
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
        """Begin a new conversation, with the marks of others with the same beginning that apply to it too."""
        with self._mine:
            alike = list(self._roots.get((scope, transcript.root), ()))
        conversation = Conversation(
            self._new_id(), scope, transcript.root, transcript.head_digest, opening=transcript.head, busy=1
        )
        conversation.last = transcript.last
        conversation.newest = self._state_store.newest_mark(scope, transcript.root)
        marks = _better(self._marks_of(alike, transcript), self._marks_kept(scope, transcript))
        self._threads.create(conversation.thread, owner=scope)
        with conversation.lock:
            if transcript.head:
                self._threads.append(conversation.thread, transcript.head)
            self._size_head(conversation, transcript)
            self._put(conversation, transcript, marks)
        with self._mine:
            self._all[conversation.thread] = conversation
            self._roots.setdefault((scope, transcript.root), []).append(conversation)
        if not alike and not marks:
            self._began()
        return conversation

    def _marks_of(self, alike: list[Conversation], transcript: Transcript) -> list[Mark]:
        """Return the marks of conversations in memory that apply to this one."""
        best: list[Mark] = []
        for one in nlargest(COMPARED, alike, key=lambda one: one.shared_with(transcript.digests)):
            with one.lock, suppress(NoThread):  # dropped meanwhile
                shared, units = one.shared_with(transcript.digests), len(transcript.digests)
                best = _better(best, self._standing(one, shared, units))
        return best

    def _marks_kept(self, scope: str, transcript: Transcript) -> list[Mark]:
        """Return the marks in the store that apply to it."""
        hexes = [digest.hex() for digest in transcript.digests]
        kept = [
            mark
            for digest, mark in self._state_store.marks(scope, transcript.root)
            if 0 < mark.upto <= len(hexes) and hexes[mark.upto - 1] == digest
        ]
        return standing_marks(kept, len(hexes), len(hexes))

    def _made_elsewhere(self, conversation: Conversation, transcript: Transcript) -> list[Mark]:
        """Return what another process added to the same conversation and this one lacks."""
        newest = self._state_store.newest_mark(conversation.scope, conversation.root)
        if newest == conversation.newest:
            return []
        self._store_marks(conversation)
        conversation.newest = newest
        units = len(conversation.digests)
        own = self._standing(conversation, units, units)
        kept = self._marks_kept(conversation.scope, transcript)
        if not kept or not own or kept[0].upto > own[0].upto:
            return kept
        if encoded_mark(kept[0]) != encoded_mark(own[0]):
            return []
        return [mark for mark in kept[1:] if isinstance(mark.entry, Recalled) and mark.entry.before >= units]

    def _standing(self, conversation: Conversation, shared: int, units: int) -> list[Mark]:
        if not self._threads.thread(conversation.thread).points:
            return []
        marks = marks_in(list(self._threads.read(conversation.thread)), conversation.starts)
        return standing_marks(marks, shared, units)

    def _put(self, conversation: Conversation, transcript: Transcript, marks: Iterable[Mark]) -> None:
        """Put the messages of the request into the thread, and the marks at their places."""
        for mark in marks:
            self._append(conversation, transcript, mark.at)
            length = self._threads.thread(conversation.thread).length
            entry = entry_at(mark, conversation.starts, length)
            if isinstance(entry, Point) or entry.before < length:
                self._threads.append(conversation.thread, [entry])
            conversation.marked = self._threads.thread(conversation.thread).length
        self._append(conversation, transcript)

    def _append(self, conversation: Conversation, transcript: Transcript, upto: int | None = None) -> None:
        """Append the messages of the request that are not in the thread yet, up to this many units."""
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
        """Drop the conversations that were used longest ago. Their marks are stored."""
        gone = []
        with self._mine:
            for one in list(self._all.values()):
                if self._held <= self._room and len(self._all) <= MAX_CONVERSATIONS:
                    break
                if not one.busy and not self._is_at_work(one):
                    del self._all[one.thread]
                    self._held -= one.size
                    alike = self._roots[one.scope, one.root]
                    alike.remove(one)
                    if not alike:
                        del self._roots[one.scope, one.root]
                    gone.append(one)
        for one in gone:
            self._store_marks(one)
            self._texts.forget(one)
            self._engine.context.states.drop(one.thread)
            self._threads.remove(one.thread)

    def _is_at_work(self, one: Conversation) -> bool:
        """Whether something of it has begun and not ended. For a request that was lent nobody waits here."""
        if one.lent is not None:
            self._engine.record_failure(one.lent, LENT_TOO_LONG)
            one.lent = None
        return self._threads.under_way(one.thread)


def _better(one: list[Mark], other: list[Mark]) -> list[Mark]:
    """Return the row of marks whose point covers more."""
    return other if other and (not one or other[0].upto > one[0].upto) else one


def _leading(units: Sequence[Unit]) -> int:
    """How many units at the beginning are system text."""
    speaks = (at for at, unit in enumerate(units) if any(said.role is not Role.SYSTEM for said in unit.messages))
    return next(speaks, len(units))


def _head_in_field(request: ModelRequest, field: Json) -> tuple[Message, ...]:
    """Return the system text that is in a field of its own."""
    if field is None:
        return ()
    body: JsonObject = {request.format.api.messages: [], request.format.api.system: field}
    return request.format.read_body(body).messages
