"""Choose which steps stay as messages in a compaction, and which of their texts are abridged.

An abridged text stays in place with its needed parts. The newest steps always stay, at least three; older ones as long
as there is space, in a talk without tools only with the question that they answer. A small result stays whole. A large
one keeps at least a quarter of its tokens if there is space, the newest first. Other text, reasoning and calls stay
unchanged; only as a last resort, long texts in the arguments of calls are replaced by descriptions. Of the older steps,
some with images stay too.
"""

from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, replace

from everlong.compress.draft import OURS, Draft, Step as DraftStep, Task
from everlong.compress.excerpts import Place
from everlong.compress.text.argument_texts import described
from everlong.compress.text.boundaries import fair_cap
from everlong.compress.text.changes import Change, Origins, part_tokens, sealed
from everlong.core import Image, Part, Protection, Role, Step, Text, ToolCall, ToolResult, steps_of
from everlong.relevance import is_reply

__all__ = [
    "Abridged",
    "Standing",
    "before_newest",
    "exchange_share",
    "has_results",
    "last_exchange",
    "movable",
    "stand",
]

LEAST_STEPS = 3
SMALL = 320  # tokens; a text with no more stays whole
LEAST_SHARE = 0.28  # of a large result stays: a quarter, and a little for uninformative lines
STUB_TOKENS = 50  # tokens of an abridged text besides its pieces
LONGEST_ARGUMENT = 1_000  # characters; longer ones are described if arguments must be shortened
ROOMY = 0.4  # of the space; if the newest get less, excerpts are better than abridged older steps
SHORT_EXCHANGE = 0.15  # of the space at most, for the exchange before a short last message
REPLY_EXCHANGE = 0.25  # of the space at most, for the exchange that the last message plainly replies to
SHORT = 20  # tokens; such a message in a talk often means little without what was said just before
MOST_SKIPPED = 3  # steps that are too large even abridged; then no older one is tried
PICTURES_SHARE = 0.25  # of the space, for older steps with images
MOST_PICTURED = 3  # older steps with images that are tried
UNREAD_SHARE = 0.5  # of the space, for unread results that are too large
HELD = 2  # if not even a quarter of each fits, they get 1/HELD of the space: the rest is needed too


@dataclass(frozen=True, slots=True)
class Abridged:
    """A part that keeps only its needed pieces: at least `least` of its `tokens`.

    `place` is its position in the history, `part` its index in the current message.
    """

    place: Place
    part: int
    tokens: int
    least: int
    #: Whether it is a result in a user message.
    framed: bool = False
    #: Whether the model has not read it yet. Then its beginning and end stay.
    unread: bool = False

    @property
    def size(self) -> int:
        """The least tokens that it takes."""
        return min(self.tokens, self.least + STUB_TOKENS)


@dataclass(frozen=True, slots=True)
class Standing:
    """The positions that leave, and what changes in the others. `abridged` has the newest first."""

    gone: tuple[int, ...]
    abridged: tuple[Abridged, ...]
    #: Calls whose long arguments are replaced by descriptions.
    described: tuple[Change, ...] = ()


@dataclass(frozen=True, slots=True)
class _Pieces:
    """Positions that stay together: their tokens, and the parts that may be abridged, newest first."""

    positions: tuple[int, ...]
    tokens: int
    large: tuple[Abridged, ...]

    @property
    def fixed(self) -> int:
        """The tokens of what cannot be abridged."""
        return self.tokens - sum(part.tokens for part in self.large)

    def fitted(self, most: int) -> tuple[Abridged, ...]:
        """Return the parts to abridge so that the whole fits into `most` tokens; the oldest are abridged first."""
        size, chosen = self.tokens, list[Abridged]()
        for part in reversed(self.large):
            if size <= most:
                break
            chosen.insert(0, part)
            size -= part.tokens - part.size
        return tuple(chosen)

    def size(self, abridged: Iterable[Abridged]) -> int:
        """Return the tokens of the whole with these parts abridged."""
        return self.tokens - sum(part.tokens - part.size for part in abridged)


def movable(draft: Draft, task: Task) -> int:
    """Return the tokens of the target that protected steps leave for a compaction to use."""
    firm = _firm(draft, steps_of(draft.messages))
    return task.target - sum(draft.slots[position].tokens for position in firm)


def stand(draft: Draft, task: Task, newest: int, *, unread: Set[int] = frozenset()) -> Standing:
    """Return which steps stay if the newest may take `newest` tokens, or their minimum.

    `unread` are messages with unread results that cannot stay whole.
    """
    steps = steps_of(draft.messages)
    firm = _firm(draft, steps)
    room = task.target - sum(draft.slots[position].tokens for position in firm)
    span = _newest_steps(draft, steps)
    last = _together(_pieces(draft, task, step, words=True) for step in span if step.start not in firm)
    last = _sparing(last, unread, int(room * UNREAD_SHARE)) if unread else last
    changes: tuple[Change, ...] = ()
    if last.fixed > room:
        changes, saved = _described(draft, task, span, last.fixed - room)
        last = _Pieces(last.positions, last.tokens - saved, last.large)
    abridged = last.fitted(min(room, max(newest, last.size(last.large))))
    if last.size(abridged) > room:
        abridged = _within(last, room)
    kept = firm | set(last.positions)
    left = min(newest, room) - last.size(abridged)
    skipped = 0
    units = [unit for unit in _units(draft, steps) if not any(step.start in kept for step in unit)]
    share = exchange_share(draft)
    if units and share:
        exchange = sum(draft.slots[position].tokens for step in units[-1] for position in range(step.start, step.stop))
        left = max(left, exchange) if exchange <= room * share else left
    for unit in reversed(units):
        if left <= 0 or skipped > MOST_SKIPPED:
            break
        piece = _together(_pieces(draft, task, step) for step in unit)
        cut = piece.fitted(left) if newest >= ROOMY * room else ()
        size = piece.size(cut)
        if size > left:
            skipped += 1
            continue
        kept |= set(piece.positions)
        abridged += cut
        left -= size
    shown, cut = _with_pictures(draft, task, [step for step in steps if step.start not in kept], room)
    kept |= shown
    gone = tuple(n for n in range(len(draft.slots)) if n not in kept)
    return Standing(gone, abridged + cut, changes)


def exchange_share(draft: Draft) -> float:
    """Return the share of the space for the exchange before the last message; 0 if that message stands by itself."""
    if has_results(draft):
        return 0.0
    last = draft.slots[-1]
    if is_reply(last.message.text):
        return REPLY_EXCHANGE
    return SHORT_EXCHANGE if last.tokens <= SHORT else 0.0


def last_exchange(draft: Draft) -> frozenset[int]:
    """Return the messages of the history in the last question and its answers before the last message."""
    units = _units(draft, steps_of(draft.messages))
    exchange = units[-2] if len(units) > 1 else ()
    return frozenset(slot.at for step in exchange for slot in draft.slots[step.start : step.stop])


def _with_pictures(draft: Draft, task: Task, steps: Sequence[Step], room: int) -> tuple[set[int], tuple[Abridged, ...]]:
    """Return the newest of these steps with images that fit into their share, and what is abridged in them.

    Text can be quoted after it left the window, images cannot.
    """
    kept: set[int] = set()
    abridged: tuple[Abridged, ...] = ()
    left, tried = int(room * PICTURES_SHARE), 0
    for step in reversed(steps):
        if tried == MOST_PICTURED or not _holds_pictures(draft, step):
            continue
        tried += 1
        piece = _pieces(draft, task, step, words=True)
        cut = piece.fitted(left)
        if piece.size(cut) <= left:
            kept |= set(piece.positions)
            abridged += cut
            left -= piece.size(cut)
    return kept, abridged


def _holds_pictures(draft: Draft, step: Step) -> bool:
    parts = (part for slot in draft.slots[step.start : step.stop] for part in slot.message.parts)
    within = (inner for part in parts for inner in (part.content if isinstance(part, ToolResult) else (part,)))
    return any(isinstance(inner, Image) for inner in within)


def _firm(draft: Draft, steps: Sequence[Step]) -> set[int]:
    """Return the positions of the steps that stay because something in them is protected."""
    return {
        position
        for step in steps
        if any(slot.at in draft.protected for slot in draft.slots[step.start : step.stop])
        for position in range(step.start, step.stop)
    }


def before_newest(step: DraftStep) -> DraftStep:
    """Return the step, limited to messages before the newest steps, which it leaves unchanged."""

    def spared(draft: Draft, task: Task) -> Draft:
        newest = _newest_steps(draft, steps_of(draft.messages))
        places = {draft.slots[n].at for step in newest for n in range(step.start, step.stop)}
        changed = step(replace(draft, protected={**dict.fromkeys(places, Protection.PINNED), **draft.protected}), task)
        return replace(changed, protected=draft.protected)

    return spared


def has_results(draft: Draft) -> bool:
    """Return whether any tool was used, with results in any role; otherwise the conversation is only talk."""
    return any(step.stop - step.start > 1 for step in steps_of(draft.messages)) or any(
        message.calls for message in draft.history
    )


def _newest_steps(draft: Draft, steps: Sequence[Step]) -> tuple[Step, ...]:
    """Return the newest steps that must stay, with the user messages between them.

    In a talk without tools, these are the steps of the current round.
    """
    talk = not has_results(draft)
    found = 0
    for number in range(len(steps) - 1, -1, -1):
        first = draft.slots[steps[number].start]
        if first.message.role is Role.ASSISTANT:
            found += 1
        if found == LEAST_STEPS:
            return tuple(steps[number:])
        if talk and first.message.role is Role.USER:
            return tuple(steps[number + 1 :])
    return tuple(step for step in steps if draft.slots[step.start].message.role is not Role.SYSTEM)


def _units(draft: Draft, steps: Sequence[Step]) -> list[tuple[Step, ...]]:
    """Return the steps that stay or leave together: each alone, or in a talk each question with its answers."""
    if has_results(draft):
        return [(step,) for step in steps]
    units: list[tuple[Step, ...]] = []
    for step in steps:
        answers = draft.slots[step.start].message.role is Role.ASSISTANT
        if answers and units:
            units[-1] += (step,)
        else:
            units.append((step,))
    return units


def _pieces(draft: Draft, task: Task, step: Step, *, words: bool = False) -> _Pieces:
    """Return a step and its parts that may be abridged: results, and with `words` also user texts."""
    positions = tuple(range(step.start, step.stop))
    results = draft.slots[step.start].message.role is Role.ASSISTANT
    large = [part for position in positions for part in _large(draft, task, position, results=results, words=words)]
    return _Pieces(positions, sum(draft.slots[n].tokens for n in positions), tuple(reversed(large)))


def _together(pieces: Iterable[_Pieces]) -> _Pieces:
    """Return several steps as one. They are given oldest first."""
    found = tuple(pieces)
    positions = tuple(position for piece in found for position in piece.positions)
    return _Pieces(
        positions,
        sum(piece.tokens for piece in found),
        tuple(part for piece in reversed(found) for part in piece.large),
    )


def _large(draft: Draft, task: Task, position: int, *, results: bool, words: bool) -> Iterator[Abridged]:
    slot = draft.slots[position]
    if slot.at == OURS or slot.at in draft.protected or slot.tokens <= SMALL:
        return
    origins = Origins(draft)
    for index, part in enumerate(slot.message.parts):
        said = isinstance(part, Text) and slot.message.role is Role.USER and (results or words) and not sealed(part)
        origin = origins.index(slot, index) if said or isinstance(part, ToolResult) else None
        tokens = 0 if origin is None else part_tokens(slot, index, task.counter) - _picture_tokens(part, task)
        if origin is not None and tokens > SMALL:
            yield Abridged((slot.at, origin), index, tokens, int(tokens * LEAST_SHARE), framed=said and results)


def _picture_tokens(part: Part, task: Task) -> int:
    """Return the tokens of the images in a result, which cannot be abridged."""
    content = part.content if isinstance(part, ToolResult) else ()
    return sum(task.counter.part(inner) for inner in content if isinstance(inner, Image))


def _sparing(last: _Pieces, unread: Set[int], room: int) -> _Pieces:
    """Return the pieces with `room` tokens for unread results: the largest are cut to a common size, others stay."""
    cap = fair_cap([part.tokens for part in last.large if part.place[0] in unread], room)
    spared = (
        replace(part, least=max(part.least, cap), unread=True) if part.place[0] in unread else part
        for part in last.large
        if part.place[0] not in unread or part.tokens > cap
    )
    return replace(last, large=tuple(spared))


def _within(last: _Pieces, room: int) -> tuple[Abridged, ...]:
    """Return all parts abridged, cut to a common size if there is no space for a quarter of each."""
    left = (room - last.fixed - STUB_TOKENS * len(last.large)) // HELD
    cap = fair_cap((part.least for part in last.large), left)
    return tuple(replace(part, least=min(part.least, cap)) for part in last.large)


def _described(draft: Draft, task: Task, span: Sequence[Step], excess: int) -> tuple[tuple[Change, ...], int]:
    """Return the calls whose long arguments must be described, oldest first, and the tokens saved."""
    origins = Origins(draft)
    changes: list[Change] = []
    saved = 0
    for position in (n for step in span for n in range(step.start, step.stop)):
        slot = draft.slots[position]
        for index, part in enumerate(slot.message.parts):
            if saved >= excess:
                break
            if isinstance(part, ToolCall) and slot.at != OURS and slot.at not in draft.protected:
                now = described(part, origins.ref(slot, index), LONGEST_ARGUMENT)
                if now is not None:
                    changes.append(Change(position, index, now))
                    saved += task.counter.part(part) - task.counter.part(now)
    return tuple(changes), saved
