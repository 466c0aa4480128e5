"""Which conversation a request goes on with: found by what was said, for clients that have no name for it.

The longest known prefix decides. A request that extends a conversation is appended to it, so that its cuts, recalled
blocks and summaries stand and the forwarded prefix stays as it was. One that turns off earlier begins a conversation
of its own with whatever of them is still true. Clients with different keys never meet.
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

from everlong.core import History, Json, JsonObject, Message, Point, Recalled, Role
from everlong.engine import Engine, Threads, text_title
from everlong.errors import NoThread
from everlong.gateway.conversations.canonical import Restore, Unit, Units, grouped, head_digest, prefix_digests
from everlong.gateway.conversations.marks import Mark, encoded_mark, entry_at, marks_in, standing_marks
from everlong.gateway.conversations.persistence import OURS, StateStore
from everlong.gateway.conversations.threads import MemoryFirstThreads
from everlong.gateway.raw_json import decoded
from everlong.gateway.request import ModelRequest

__all__ = ["Conversation", "Conversations", "SavedConversations", "Transcript"]

THREADS = "threads"


@dataclass(frozen=True, slots=True)
class Transcript:
    """What a request says: system text, and units with a digest for each prefix. `root` is how it began."""

    head: History
    head_digest: bytes
    #: Units that are system messages of the list; the others stand in a field of their own.
    leading: tuple[Unit, ...]
    units: tuple[Unit, ...]
    digests: tuple[bytes, ...]
    root: str
    #: Bytes of the system text.
    head_size: int = 0

    @property
    def last(self) -> bytes:
        """The digest of all of it."""
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
    said: list[History] = field(default_factory=list)
    opening: History = ()
    size: int = 0
    #: Bytes of its system text, which are part of its size.
    head_size: int = 0
    #: Requests of it that are under way, and the digest of what they say.
    busy: int = 0
    last: bytes = b""
    #: Rows of the thread whose marks were handed over to be kept, and the newest mark that was seen in the store.
    marked: int = 0
    newest: str = ""
    #: For each model how many units were counted, and their tokens.
    counted: dict[str, tuple[int, int]] = field(default_factory=dict)
    #: What its thread's settings say now.
    settings: str = "{}"
    #: Tokens that it may grow by, from what was last sent on, before anything has to be done about it.
    quiet: int = 0
    lock: RLock = field(default_factory=RLock)

    def shared_with(self, digests: Sequence[bytes]) -> int:
        """How many units are the same from the start."""
        ends = range(min(len(self.digests), len(digests)))
        return bisect_left(ends, True, key=lambda at: self.digests[at] != digests[at])


@dataclass(frozen=True, slots=True)
class _SavedThread:
    """A thread that holds the first `units` of a conversation in its first `rows`."""

    thread: str
    units: int
    rows: int


class SavedConversations:
    """Writes conversations down as they grow."""

    def __init__(self, kept: StateStore) -> None:
        self._kept = kept
        self._last: dict[str, _SavedThread] = {}

    def keep(self, conversation: Conversation) -> None:
        """Write down, soon, what the conversation says now."""
        units = len(conversation.digests)
        if self._kept.keep == "text" and units:
            self._kept.later(lambda: self._write(conversation, units))

    def forget(self, conversation: Conversation) -> None:
        """The conversation left memory; where it is kept is found again by what it says."""
        self._kept.later(lambda: self._last.pop(conversation.thread, None))

    def _write(self, conversation: Conversation, units: int) -> None:
        """The first `units` of the conversation: these do not change any more, whatever is added meanwhile."""
        store = self._kept.store
        known = self._last.get(conversation.thread) or self._found(conversation, units)
        if known is not None and known.units >= units:
            self._last[conversation.thread] = known
            return
        kept = (known and self._continued(store, known)) or self._begun(store, conversation)
        new = [message for unit in conversation.said[kept.units : units] for message in unit]
        store.append(kept.thread, new, expected=kept.rows)
        kept = _SavedThread(kept.thread, units, kept.rows + len(new))
        self._last[conversation.thread] = kept
        note = json.dumps({"thread": kept.thread, "rows": kept.rows})
        self._kept.keep_note(THREADS, _place(conversation), conversation.digests[units - 1].hex(), note)

    def _found(self, conversation: Conversation, units: int) -> _SavedThread | None:
        """The thread that holds the longest part of what is said."""
        notes = self._kept.notes(THREADS, _place(conversation))
        for length in range(units, 0, -1):
            note = notes.get(conversation.digests[length - 1].hex())
            if note is not None:
                said = json.loads(note)
                return _SavedThread(said["thread"], length, said["rows"])
        return None

    def _continued(self, store: Threads, known: _SavedThread) -> _SavedThread | None:
        """The thread itself where it ends there; a branch of it where it went on otherwise; None if it was removed."""
        try:
            thread = store.thread(known.thread)
            if thread.length == known.rows:
                return known
            branch = store.branch(known.thread, known.rows, uuid4().hex, title=thread.title)
        except NoThread:
            return None
        return _SavedThread(branch.id, known.units, known.rows)

    def _begun(self, store: Threads, conversation: Conversation) -> _SavedThread:
        said = [message for unit in conversation.said for message in unit]
        asked = next((message.text for message in said if message.role is Role.USER and message.text), "")
        thread = store.create(uuid4().hex, owner=OURS + conversation.scope, title=text_title(asked))
        store.append(thread.id, conversation.opening)
        return _SavedThread(thread.id, 0, len(conversation.opening))


def _place(conversation: Conversation) -> str:
    return f"{conversation.scope}/{conversation.root}"


FACTOR = 4  # bytes in memory for each byte of a conversation, as measured: its text twice, and what the engine holds
LITTLE = 16 * 1024  # bytes of news that are counted in no time
MOST = 4_096  # conversations
LOOKED_AT = 8  # conversations that began alike, whose cuts may be true of a new one


class Conversations:
    """The conversations of all clients. Whoever places a request here gives it back with `leave`."""

    def __init__(
        self,
        engine: Engine,
        kept: StateStore,
        *,
        room: int,
        new_id: Callable[[], str] = lambda: uuid4().hex,
        began: Callable[[], None] = lambda: None,
    ) -> None:
        self._engine = engine.blocking
        threads = self._engine.means.threads
        assert isinstance(threads, MemoryFirstThreads), "conversations live in memory, in front of a store"
        self._threads = threads
        self._kept = kept
        self._texts = SavedConversations(kept)
        self._room = room
        self._new_id = new_id
        self._began = began
        self._units = Units(room // 4)
        self._all: OrderedDict[str, Conversation] = OrderedDict()
        self._roots: dict[tuple[str, str], list[Conversation]] = {}
        self._held = 0
        self._mine = RLock()
        threads.after_summary.append(self._summarised)

    def transcript(
        self, request: ModelRequest, scope: str, *, name: str = "", restore: Restore | None = None
    ) -> Transcript:
        """What a request says. With `name` the client names the conversation itself."""
        format_ = request.format
        # What is restored is one model's: another would not know it.
        units = self._units.of(format_, f"{scope}/{request.model}", grouped(format_, request.messages), restore)
        leading = 0
        while leading < len(units) and all(message.role is Role.SYSTEM for message in units[leading].messages):
            leading += 1
        field = request.fields.get(format_.api.system, b"null")
        in_field = decoded(field)
        digest = head_digest(units[:leading], format_.server.canonical.system(in_field))
        rest = units[leading:]
        digests = prefix_digests(rest, format_.name.encode())
        first = next((at for at, unit in enumerate(rest) if unit.messages[0].role is Role.USER), len(rest) - 1)
        root = f"name/{name}" if name else (digests[first].hex() if digests else "")
        head = (*_head_in_field(request, in_field), *(message for unit in units[:leading] for message in unit.messages))
        size = memoryview(field).nbytes + sum(len(unit.plain) for unit in units[:leading])
        return Transcript(head, digest, tuple(units[:leading]), tuple(rest), tuple(digests), root, size)

    def enter(self, scope: str, transcript: Transcript) -> Conversation:
        """The conversation that the request goes on with, with all that it says in its thread. Give it back."""
        with self._mine:
            found = self._extended_by(scope, transcript)
            if found is not None:
                found.busy += 1
                found.last = transcript.last
                self._all.move_to_end(found.thread)
        if found is None:
            found = self._begun(scope, transcript)
        else:
            with found.lock:
                self._renew(found, transcript)
                self._put(found, transcript, self._made_elsewhere(found, transcript))
        self._make_room()
        return found

    def little_new(self, scope: str, transcript: Transcript) -> str:
        """The thread that the request adds so little to that no cut can come of it; "" where more may be to do."""
        with self._mine:
            found = self._extended_by(scope, transcript)
            if found is None or found.busy or found.head != transcript.head_digest:
                return ""
            news = sum(len(unit.plain) for unit in transcript.units[len(found.digests) :])
            return found.thread if news < min(LITTLE, found.quiet) else ""

    def leave(self, conversation: Conversation) -> None:
        """The request is over."""
        with self._mine:
            conversation.busy -= 1

    def keep_marks(self, conversation: Conversation) -> None:
        """Hand over what was added to the conversation since the last time, by the engine or by its client."""
        with suppress(NoThread):  # given up meanwhile, and all of it handed over then
            self._hand_over(conversation)

    def keep_marks_soon(self, conversation: Conversation) -> None:
        """The same for who must not wait: where another request works on the conversation it is done behind."""
        if not conversation.lock.acquire(blocking=False):
            self._kept.later(lambda: self.keep_marks(conversation))
            return
        try:
            self.keep_marks(conversation)
        finally:
            conversation.lock.release()

    def _summarised(self, thread: str) -> None:
        """A summary came behind the answers: other processes see it at once, not only after the next request."""
        with self._mine:
            conversation = self._all.get(thread)
        if conversation is not None:
            self._kept.later(lambda: self.keep_marks(conversation))

    def _hand_over(self, conversation: Conversation) -> None:
        with conversation.lock:
            length = self._threads.thread(conversation.thread).length
            new, conversation.marked = conversation.marked, length
            late = list(self._threads.read(conversation.thread, new, length))
            for mark in marks_in(late, conversation.starts):
                if 0 < mark.upto <= len(conversation.digests):
                    digest = conversation.digests[mark.upto - 1].hex()
                    conversation.newest = self._kept.keep_mark(conversation.scope, conversation.root, digest, mark)
        self._texts.keep(conversation)

    def all(self) -> list[Conversation]:
        """Those in memory."""
        with self._mine:
            return list(self._all.values())

    def __len__(self) -> int:
        return len(self._all)

    def _extended_by(self, scope: str, transcript: Transcript) -> Conversation | None:
        """The longest conversation that the request goes on with, just as it is.

        While another request of it is under way only the same one may share it: it must not see what is not its own.
        """
        found, longest = None, (-1, False)
        for one in self._roots.get((scope, transcript.root), ()):
            if one.busy:
                if one.head == transcript.head_digest and one.last == transcript.last:
                    return one
                continue
            length = (len(one.digests), one.head == transcript.head_digest)
            if length <= longest or len(one.opening) != len(transcript.head):
                continue
            if one.shared_with(transcript.digests) == len(one.digests):
                found, longest = one, length
        return found

    def _renew(self, conversation: Conversation, transcript: Transcript) -> None:
        """System text that changed takes the place of what was there; nothing else depends on it."""
        if conversation.head != transcript.head_digest:
            self._threads.renew(conversation.thread, transcript.head)
            self._engine.means.lives.drop(conversation.thread)
            conversation.head, conversation.opening = transcript.head_digest, transcript.head
            conversation.counted.clear()
            self._size_head(conversation, transcript)

    def _begun(self, scope: str, transcript: Transcript) -> Conversation:
        """A new one, with what is known of conversations that began alike and is true of this one too."""
        with self._mine:
            alike = list(self._roots.get((scope, transcript.root), ()))
        conversation = Conversation(
            self._new_id(), scope, transcript.root, transcript.head_digest, opening=transcript.head, busy=1
        )
        conversation.last = transcript.last
        conversation.newest = self._kept.newest_mark(scope, transcript.root)
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
        """What conversations in memory know that is true of this one."""
        best: list[Mark] = []
        for one in nlargest(LOOKED_AT, alike, key=lambda one: one.shared_with(transcript.digests)):
            with one.lock, suppress(NoThread):  # given up meanwhile
                best = _better(best, self._standing(one, one.shared_with(transcript.digests)))
        return best

    def _marks_kept(self, scope: str, transcript: Transcript) -> list[Mark]:
        """What the store knows that is true of it."""
        hexes = [digest.hex() for digest in transcript.digests]
        kept = [
            mark
            for digest, mark in self._kept.marks(scope, transcript.root)
            if 0 < mark.upto <= len(hexes) and hexes[mark.upto - 1] == digest
        ]
        return standing_marks(kept, len(hexes))

    def _made_elsewhere(self, conversation: Conversation, transcript: Transcript) -> list[Mark]:
        """What another process added to the same conversation and this one lacks."""
        newest = self._kept.newest_mark(conversation.scope, conversation.root)
        if newest == conversation.newest:
            return []
        self._hand_over(conversation)
        conversation.newest = newest
        units = len(conversation.digests)
        own, kept = self._standing(conversation, units), self._marks_kept(conversation.scope, transcript)
        if not kept or not own or kept[0].upto > own[0].upto:
            return kept
        if encoded_mark(kept[0]) != encoded_mark(own[0]):
            return []
        return [mark for mark in kept[1:] if isinstance(mark.entry, Recalled) and mark.entry.before >= units]

    def _standing(self, conversation: Conversation, shared: int) -> list[Mark]:
        if not self._threads.thread(conversation.thread).points:
            return []
        return standing_marks(marks_in(list(self._threads.read(conversation.thread)), conversation.starts), shared)

    def _put(self, conversation: Conversation, transcript: Transcript, marks: Iterable[Mark]) -> None:
        """All that the request says into the thread, and marks where they were made."""
        for mark in marks:
            self._append(conversation, transcript, mark.at)
            length = self._threads.thread(conversation.thread).length
            entry = entry_at(mark, conversation.starts, length)
            if isinstance(entry, Point) or entry.before < length:
                self._threads.append(conversation.thread, [entry])
            conversation.marked = self._threads.thread(conversation.thread).length
        self._append(conversation, transcript)

    def _append(self, conversation: Conversation, transcript: Transcript, upto: int | None = None) -> None:
        """What the request says beyond what is in the thread, up to so many units."""
        start = len(conversation.digests)
        new = transcript.units[start:upto]
        if not new:
            return
        order = self._threads.thread(conversation.thread).length
        self._threads.append(conversation.thread, [message for unit in new for message in unit.messages])
        for unit, digest in zip(new, transcript.digests[start:], strict=False):
            conversation.starts.append(order)
            conversation.said.append(unit.messages)
            conversation.digests.append(digest)
            conversation.size += FACTOR * len(unit.plain)
            order += len(unit.messages)
        with self._mine:
            self._held += FACTOR * sum(len(unit.plain) for unit in new)

    def _size_head(self, conversation: Conversation, transcript: Transcript) -> None:
        """Reckon with the system text as it is now."""
        more = FACTOR * (transcript.head_size - conversation.head_size)
        conversation.head_size = transcript.head_size
        conversation.size += more
        with self._mine:
            self._held += more

    def _make_room(self) -> None:
        """Let go of the conversations that were used longest ago. Their marks are kept."""
        gone = []
        with self._mine:
            for one in list(self._all.values()):
                if self._held <= self._room and len(self._all) <= MOST:
                    break
                if not one.busy and not self._threads.under_way(one.thread):
                    del self._all[one.thread]
                    self._held -= one.size
                    alike = self._roots[one.scope, one.root]
                    alike.remove(one)
                    if not alike:
                        del self._roots[one.scope, one.root]
                    gone.append(one)
        for one in gone:
            self._hand_over(one)
            self._texts.forget(one)
            self._engine.means.lives.drop(one.thread)
            self._threads.remove(one.thread)


def _better(one: list[Mark], other: list[Mark]) -> list[Mark]:
    """Of two rows of marks the one whose point covers more."""
    return other if other and (not one or other[0].upto > one[0].upto) else one


def _head_in_field(request: ModelRequest, field: Json) -> tuple[Message, ...]:
    """The system text that stands in a field of its own."""
    if field is None:
        return ()
    body: JsonObject = {request.format.api.messages: [], request.format.api.system: field}
    return request.format.read_body(body).messages
