"""Conversations far from their threshold: only digests and counts are held, no messages and no text.

A client sends everything again with each request, so nothing of it has to be kept. A digest of the raw bytes up to each
message finds what was there before; only new messages are read, counted and checked. For each message, one byte says
how its bytes become the forwarded form. If more than that matters (a repair, a client's own name for the conversation,
a compaction by another process), there is no sketch, and the conversation is held in full.
"""

import re
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import pairwise
from threading import Lock

import msgspec

from everlong.core import History, Message, Role, Text
from everlong.engine import Anchor, Sizes, breakpoints, counter_for
from everlong.gateway.conversations.canonical import Restore, Unit, Units, head_in_field
from everlong.gateway.conversations.forms import CHANGES, MARKED, READ, form_of, in_form
from everlong.gateway.request import ModelRequest, Piece, decoded
from everlong.wire import Caching, Format, Request, valid

__all__ = ["Match", "Sketch", "Sketched", "Sketches"]

DIGEST = 16  # bytes
ENDS = 4  # last ends of a conversation from which it may continue: clients rewrite their last messages
BESIDE = 2_000  # bytes of a sketch without the byte for each message
LITTLE = 48 * 1024  # bytes; new messages up to this size are counted at once
MOST_LOADED = 64  # models whose vocabularies are known to be loaded; as many as there are counters
MOST_PARALLEL = 64  # messages of one step that are read again; with more, the conversation is held in full
SYSTEM = frozenset({"system", "developer"})
PLAIN_ID = re.compile(r"[\w.:-]{1,100}", re.ASCII)
#: Stands for everything before the last step, if only that step is checked.
WORD = Message(Role.USER, (Text("…"),))


@dataclass(frozen=True, slots=True)
class End:
    """The end of a prefix of the conversation: the digest of its bytes, its tokens, and where its last step begins.

    `step` is -1 if the model has not answered yet.
    """

    messages: int
    digest: bytes
    counted: int
    step: int
    #: Whether its last message is the user's: clients may rewrite everything after it when the model has answered it.
    asks: bool


@dataclass(frozen=True, slots=True)
class Sketch:
    """The sketch of a conversation. `forms` has a byte for each message, `head` is the digest of its system text."""

    thread: str
    scope: str
    root: str
    head: bytes
    head_forms: bytes
    head_counted: int
    forms: bytes
    ends: tuple[End, ...]
    #: The reported usage of a request, and its number of messages.
    anchored: tuple[int, Anchor] | None = None
    #: Whether its tokens are approximate.
    rough: bool = False

    @property
    def size(self) -> int:
        """The bytes that it takes."""
        return BESIDE + len(self.forms)


@dataclass(frozen=True, slots=True)
class Sketched:
    """A request whose conversation has a sketch: the updated sketch, and the new messages."""

    request: ModelRequest
    sketch: Sketch
    #: The number of leading messages of system text.
    leading: int
    #: The messages that were read, up to the last one, and the number of messages before them.
    units: tuple[Unit, ...]
    start: int
    #: Whether the conversation was unknown until now.
    first: bool
    #: Reads a message that no form describes.
    read: Callable[[Piece], Unit]

    @property
    def sizes(self) -> Sizes:
        """The tokens of the conversation, for the engine."""
        sketch = self.sketch
        anchor = None if sketch.anchored is None else sketch.anchored[1]
        return Sizes(
            counted=sketch.head_counted + sketch.ends[-1].counted, anchor=anchor, first=self.first, rough=sketch.rough
        )

    @property
    def messages(self) -> list[Piece]:
        """The messages as they are forwarded, with the client's own cache marks."""
        format_, before = self.request.format, self.leading + self.start
        forms = (self.sketch.head_forms + self.sketch.forms)[:before]
        earlier = (
            in_form(format_, raw, form & ~MARKED) if form & ~MARKED != READ else self.read(raw).sent
            for raw, form in zip(self.request.messages[:before], forms, strict=True)
        )
        return [*earlier, *(unit.sent for unit in self.units)]

    @property
    def marked(self) -> bool:
        """Whether the client has set cache marks in its messages."""
        return max(self.sketch.forms, default=0) >= MARKED or max(self.sketch.head_forms, default=0) >= MARKED

    @property
    def answered(self) -> bool:
        """Whether the model has answered at all."""
        return self.sketch.ends[-1].step >= 0

    @property
    def places(self) -> list[int]:
        """The indexes of the messages that get our cache marks."""
        step = max(0, self.sketch.ends[-1].step)
        front = (WORD,) if step else ()  # stands for the previous step, which may get a mark too
        said = (*front, *(message for unit in self.units[step - self.start :] for message in unit.messages))
        asked = Request(model="", messages=said, caching=Caching(stable=0, lasting=len(said), seconds=0))
        return [self.leading + step - len(front) + count - 1 for count in breakpoints(asked)]


class Sketches:
    """The sketches of all clients; the least recently used is dropped first."""

    def __init__(self, units: Units, room: int, new_id: Callable[[], str]) -> None:
        self._units = units
        self._room = room
        self._new_id = new_id
        self._held = 0
        self._all: OrderedDict[str, Sketch] = OrderedDict()
        self._ends: dict[bytes, str] = {}
        self._mine = Lock()
        #: Messages that have been counted so far, and models whose vocabularies are loaded.
        self.counted = 0
        self._loaded: set[str] = set()

    def __len__(self) -> int:
        return len(self._all)

    def find(self, request: ModelRequest, scope: str) -> "Match | None":
        """Return what is known of a request's conversation; None if this kind of request has no sketch."""
        format_ = request.format
        server = format_.server
        if server.canonical.of_assistant is not None or format_.api.window:
            return None
        leading = _leading(request.messages)
        chain = _chain(format_, scope, request, leading)
        with self._mine:
            thread = next((name for digest in reversed(chain) if (name := self._ends.get(digest))), None)
            sketch = None if thread is None else self._all[thread]
            if sketch is not None:
                self._all.move_to_end(sketch.thread)
        known = {} if sketch is None else {end.digest: end for end in sketch.ends}
        at = next((known[digest] for digest in reversed(chain) if digest in known), None)
        return Match(request, scope, leading, chain, sketch, at)

    def follow(self, found: "Match", root: str, restore: Restore | None, model: str) -> Sketched | None:
        """Read the new messages of a request and return it with its sketch; None if it must be held in full."""
        reading = _Reading(found, self._units, restore)
        head = reading.head()
        if head is None:
            return None
        start = found.step
        units = reading.units(start)
        if units is None or any(len(unit.messages) != 1 for unit in units) or not (units or found.sketch):
            return None
        new, messages = units[found.known - start :], _paired(found.request.format, units)
        if not _fits(found, head, messages, start):
            return None
        counter = counter_for(model)
        if len(self._loaded) >= MOST_LOADED:
            self._loaded.clear()
        self._loaded.add(model)
        rough = found.rough and not counter.exact
        self.counted += len(new)
        count = counter.rough if rough else counter.message
        forms = found.forms + _forms(found.request.format, found.new, new)
        ends = [*found.ends, *_ends(found, [count(unit.messages[0]) for unit in new], messages, start)]
        old = found.sketch
        anchored = old.anchored if old is not None and old.anchored and old.anchored[0] <= found.known else None
        same_head = old is not None and old.head == found.head
        sketch = Sketch(
            thread=self._new_id() if old is None else old.thread,
            scope=found.scope,
            root=root,
            head=found.head,
            head_forms=old.head_forms if old is not None and same_head else reading.head_forms,
            head_counted=old.head_counted if old is not None and same_head else counter.messages(head),
            forms=forms,
            ends=_last(ends),
            anchored=anchored if same_head else None,
            rough=rough or (old is not None and old.rough),
        )
        return Sketched(
            found.request, sketch, found.leading, tuple(units), start, found.sketch is None, reading.read_again
        )

    def is_quick(self, found: "Match", model: str) -> bool:
        """Whether reading and counting the new messages takes no time."""
        return found.little and model in self._loaded

    def keep(self, sketch: Sketch) -> None:
        """Hold a sketch in place of the conversation's earlier one."""
        with self._mine:
            self._drop(self._all.get(sketch.thread))
            self._all[sketch.thread] = sketch
            self._held += sketch.size
            for end in sketch.ends:
                self._ends[end.digest] = sketch.thread
            while self._held > self._room and len(self._all) > 1:
                self._drop(next(iter(self._all.values())))

    def anchor(self, sketch: Sketch, anchor: Anchor | None) -> None:
        """Record the reported usage of a request, unless its conversation has continued meanwhile."""
        with self._mine:
            if self._all.get(sketch.thread) is sketch:
                anchored = None if anchor is None else (len(sketch.forms), anchor)
                self._all[sketch.thread] = replace(sketch, anchored=anchored)

    def forget(self, thread: str) -> None:
        """Drop a sketch: its conversation is held in full from now on."""
        with self._mine:
            self._drop(self._all.get(thread))

    def _drop(self, sketch: Sketch | None) -> None:
        if sketch is None:
            return
        del self._all[sketch.thread]
        self._held -= sketch.size
        for end in sketch.ends:
            if self._ends.get(end.digest) == sketch.thread:
                del self._ends[end.digest]


class Match:
    """A request compared with its sketch: the digests of its prefixes, and the longest one that is known."""

    def __init__(
        self,
        request: ModelRequest,
        scope: str,
        leading: int,
        chain: Sequence[bytes],
        sketch: Sketch | None,
        at: End | None,
    ) -> None:
        self.request, self.scope, self.leading, self.chain = request, scope, leading, chain
        self.sketch, self.at = sketch, at
        field = request.fields.get(request.format.api.system, b"")
        self.head = sha256(b"\0".join((field, *request.messages[:leading]))).digest()[:DIGEST]

    @property
    def known(self) -> int:
        """How many messages are known."""
        return 0 if self.at is None else self.at.messages

    @property
    def ends(self) -> tuple[End, ...]:
        """The ends of the sketch that the request has too."""
        return () if self.sketch is None else tuple(end for end in self.sketch.ends if end.messages <= self.known)

    @property
    def forms(self) -> bytes:
        """The forms of the known messages."""
        return b"" if self.sketch is None else self.sketch.forms[: self.known]

    @property
    def step(self) -> int:
        """The first message to read: the beginning of the last known step."""
        if self.at is None or self.at.step < 0:
            return 0
        return self.at.step

    @property
    def new(self) -> tuple[Piece, ...]:
        """The messages that are not known yet."""
        return self.request.messages[self.leading + self.known :]

    @property
    def new_bytes(self) -> int:
        """The bytes to read."""
        return sum(map(len, self.request.messages[self.leading + self.step :]))

    @property
    def little(self) -> bool:
        """Whether reading them takes no time."""
        return self.new_bytes <= LITTLE

    @property
    def rough(self) -> bool:
        """Whether its tokens are estimated: it is large and unknown, and the provider's own figure will follow."""
        return self.sketch is None and not self.little

    @property
    def head_changed(self) -> bool:
        """Whether the system text is new or has changed."""
        return self.sketch is None or self.sketch.head != self.head


class _Reading:
    """Reads messages of a request, as few as necessary."""

    def __init__(self, found: Match, units: Units, restore: Restore | None) -> None:
        self._found, self._units, self._restore = found, units, restore
        self.head_forms = b""

    def read_again(self, raw: Piece) -> Unit:
        """Return a message that was read before."""
        return self._read([raw])[0]

    def head(self) -> History | None:
        """Return the system text if it changed, () if it did not; None if the leading messages are not system text."""
        found = self._found
        if not found.head_changed:
            return ()
        raws = found.request.messages[: found.leading]
        units = self._read(raws)
        said = tuple(message for unit in units for message in unit.messages)
        if len(said) != len(units) or any(message.role is not Role.SYSTEM for message in said):
            return None
        self.head_forms = _forms(found.request.format, raws, units)
        field = decoded(found.request.fields.get(found.request.format.api.system, b"null"))
        return (*head_in_field(found.request, field), *said)

    def units(self, start: int) -> list[Unit] | None:
        """Return the messages from `start` on; None if a step has too many messages to be read again."""
        found = self._found
        if found.known - start > MOST_PARALLEL:
            return None
        return self._read(found.request.messages[found.leading + start :])

    def _read(self, raws: Sequence[Piece]) -> list[Unit]:
        request, scope = self._found.request, self._found.scope
        return self._units.of(request.format, f"{scope}/{request.model}", [(raw,) for raw in raws], self._restore)


class _Role(msgspec.Struct):
    role: str | None = None


_role = msgspec.json.Decoder(_Role)


def _leading(messages: Sequence[Piece]) -> int:
    """How many leading messages are system text, by their roles."""
    for at, raw in enumerate(messages):
        try:
            if _role.decode(raw).role not in SYSTEM:
                return at
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return at
    return len(messages)


def _chain(format_: Format, scope: str, request: ModelRequest, leading: int) -> list[bytes]:
    """Return the digest of the bytes up to each message, without system text."""
    rolling = sha256(f"{format_.name}/{scope}/{request.model}/".encode())
    digests = []
    for raw in request.messages[leading:]:
        rolling.update(raw)
        rolling.update(b",")
        digests.append(rolling.copy().digest()[:DIGEST])
    return digests


def _forms(format_: Format, raws: Sequence[Piece], units: Sequence[Unit]) -> bytes:
    """The form of each message, and whether the client set a cache mark in it."""
    order = list(CHANGES)
    return bytes(
        form_of(format_, raw, unit.sent, order) | (0 if unit.sent is unit.plain else MARKED)
        for raw, unit in zip(raws, units, strict=True)
    )


def _ends(found: Match, tokens: Sequence[int], messages: Sequence[Message], start: int) -> Iterator[End]:
    """Yield the ends after each new message. `messages` are those from `start` on."""
    total = 0 if found.at is None else found.at.counted
    step = -1 if found.at is None else found.at.step
    for at, more in enumerate(tokens, found.known):
        total += more
        here = at - start
        if messages[here].role is Role.ASSISTANT and (not here or messages[here - 1].role is not Role.ASSISTANT):
            step = at
        yield End(at + 1, found.chain[at], total, step, messages[here].role is Role.USER)


def _last(ends: Sequence[End]) -> tuple[End, ...]:
    """Return the ends from which the conversation may continue: the last ones, and the last question before them."""
    question = [end for end in ends[:-ENDS] if end.asks][-1:]
    return (*question, *ends[-ENDS:])


def _paired(format_: Format, units: Sequence[Unit]) -> History:
    """Return the messages of units of one message each, with results paired with their calls."""
    said, pair = [unit.messages for unit in units], format_.server.canonical.pair
    return tuple(message for (message,) in (said if pair is None else pair((), said)))


def _fits(found: Match, head: History, messages: History, start: int) -> bool:
    """Return whether the new messages can be sent unchanged: the provider accepts them, none is joined with another.

    `messages` are those from `start` on.
    """
    if any(message.role is Role.SYSTEM for message in messages[: 0 if start else 1]):
        return False
    fmt, format_, context = found.request.fmt, found.request.format, found.known - start
    changed = len(messages) > context or found.head_changed
    if changed and not valid(fmt, (*((WORD,) if start else head), *messages)):
        return False
    if start and found.head_changed and not valid(fmt, (*head, WORD)):
        return False
    if any(_is_torn(format_, one, two) for one, two in pairwise(messages)):
        return False
    return not (start and format_.rules.unique_ids) or not _repeats_calls(found, start, messages[context:])


def _is_torn(format_: Format, one: Message, two: Message) -> bool:
    """Whether the provider may want two neighbouring messages as one."""
    rules = format_.rules
    if rules.voices:
        return rules.voices.get(one.role, one.role) == rules.voices.get(two.role, two.role)
    return one.role is two.role and one.role in rules.joined


def _repeats_calls(found: Match, start: int, new: Sequence[Message]) -> bool:
    """Return whether the id of a new call may also occur earlier."""
    ids = [call.id for message in new for call in message.calls]
    if not ids:
        return False
    if any(PLAIN_ID.fullmatch(name) is None for name in ids):
        return True
    earlier = b"".join(found.request.messages[found.leading : found.leading + start])
    return any(b'"%s"' % name.encode() in earlier for name in ids)
