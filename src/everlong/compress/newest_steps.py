"""Which steps stay messages at a compaction, and which of their texts are abridged.

An abridged text stays in place with its needed parts. The newest steps always stand, at least three; older ones as far
as the room for the newest goes. A small result stays whole. A large one keeps at least a quarter of its tokens wherever
the room allows, the newest ones first. What was asked, said, thought and called stays as it is; only where there is no
other way, long texts in the arguments of calls are described. Of older steps those with pictures stand first.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from everlong.compress.draft import OURS, Draft, Step as DraftStep, Task
from everlong.compress.excerpts import Place
from everlong.compress.text.argument_texts import described
from everlong.compress.text.boundaries import fair_cap
from everlong.compress.text.changes import Change, Origins, part_tokens, sealed
from everlong.core import Image, Part, Protection, Role, Step, Text, ToolCall, ToolResult, steps_of

__all__ = ["Abridged", "Standing", "before_newest", "has_results", "movable", "stand"]

LEAST_STEPS = 3
SMALL = 320  # tokens; what has no more stays whole
LEAST_SHARE = 0.28  # of a large result stays: a quarter, and a little for lines that say nothing
STUB_TOKENS = 50  # what an abridged text costs beside its parts
LONGEST_ARGUMENT = 1_000  # characters, where arguments have to give way
ROOMY = 0.4  # of the room for the newest; with less, excerpts serve better than parts of older steps in place
MOST_SKIPPED = 3  # steps that are too large even abridged, before no older one is tried
PICTURES_SHARE = 0.25  # of the room, for older steps with pictures
MOST_PICTURED = 3  # older steps with pictures that are tried
HELD = 2  # where not even a quarter of each fits, they get this part of the room: other work is needed too


@dataclass(frozen=True, slots=True)
class Abridged:
    """A part that stays with its needed pieces only: at least `least` tokens of them, of `tokens` of text.

    `place` is where it stands in the history, `part` its index in the message as it is now.
    """

    place: Place
    part: int
    tokens: int
    least: int
    #: Whether it is a result that comes in a user's role.
    framed: bool = False

    @property
    def size(self) -> int:
        """The tokens that it takes at least."""
        return min(self.tokens, self.least + STUB_TOKENS)


@dataclass(frozen=True, slots=True)
class Standing:
    """The positions that leave, and what becomes of the others; `abridged` are the newest first."""

    gone: tuple[int, ...]
    abridged: tuple[Abridged, ...]
    #: Calls whose long arguments are described.
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
        """What has to be abridged for all of it to take `most` tokens, the oldest first to give way."""
        size, chosen = self.tokens, list[Abridged]()
        for part in reversed(self.large):
            if size <= most:
                break
            chosen.insert(0, part)
            size -= part.tokens - part.size
        return tuple(chosen)

    def size(self, abridged: Iterable[Abridged]) -> int:
        """The tokens of all of it with these abridged."""
        return self.tokens - sum(part.tokens - part.size for part in abridged)


def movable(draft: Draft, task: Task) -> int:
    """Return the tokens of the target that what is protected leaves: what a compaction can use."""
    firm = _firm(draft, steps_of(draft.messages))
    return task.target - sum(draft.slots[position].tokens for position in firm)


def stand(draft: Draft, task: Task, newest: int) -> Standing:
    """Return what stays of the steps if the newest ones may take `newest` tokens, or what they take at least."""
    steps = steps_of(draft.messages)
    firm = _firm(draft, steps)
    room = task.target - sum(draft.slots[position].tokens for position in firm)
    span = _newest_steps(draft, steps)
    last = _together(_pieces(draft, task, step, words=True) for step in span if step.start not in firm)
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
    for step in reversed(steps):
        if left <= 0 or skipped > MOST_SKIPPED:
            break
        if step.start in kept:
            continue
        piece = _pieces(draft, task, step)
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


def _with_pictures(draft: Draft, task: Task, steps: Sequence[Step], room: int) -> tuple[set[int], tuple[Abridged, ...]]:
    """The newest of these steps that hold pictures, as far as their share of the room goes, and what is abridged.

    Words can be quoted after they left, pictures cannot.
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
    """The positions of the steps that stay because something in them is protected."""
    return {
        position
        for step in steps
        if any(slot.at in draft.protected for slot in draft.slots[step.start : step.stop])
        for position in range(step.start, step.stop)
    }


def before_newest(step: DraftStep) -> DraftStep:
    """Return the step, run on what stands before the newest steps only: these keep their words as long as they fit."""

    def spared(draft: Draft, task: Task) -> Draft:
        newest = _newest_steps(draft, steps_of(draft.messages))
        places = {draft.slots[n].at for step in newest for n in range(step.start, step.stop)}
        changed = step(replace(draft, protected={**dict.fromkeys(places, Protection.PINNED), **draft.protected}), task)
        return replace(changed, protected=draft.protected)

    return spared


def has_results(draft: Draft) -> bool:
    """Return whether anything was called and answered, in whatever role; else people only talk."""
    return any(step.stop - step.start > 1 for step in steps_of(draft.messages)) or any(
        message.calls for message in draft.history
    )


def _newest_steps(draft: Draft, steps: Sequence[Step]) -> tuple[Step, ...]:
    """The newest steps that have to stand, with what users said between them.

    Where people only talk these are the ones of the running round.
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


def _pieces(draft: Draft, task: Task, step: Step, *, words: bool = False) -> _Pieces:
    """A step as it may be abridged: its results, and with `words` also what a user said."""
    positions = tuple(range(step.start, step.stop))
    results = draft.slots[step.start].message.role is Role.ASSISTANT
    large = [part for position in positions for part in _large(draft, task, position, results=results, words=words)]
    return _Pieces(positions, sum(draft.slots[n].tokens for n in positions), tuple(reversed(large)))


def _together(pieces: Iterable[_Pieces]) -> _Pieces:
    """Several steps as one, given the oldest first."""
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
    """The tokens of the pictures in a result: these cannot be abridged."""
    content = part.content if isinstance(part, ToolResult) else ()
    return sum(task.counter.part(inner) for inner in content if isinstance(inner, Image))


def _within(last: _Pieces, room: int) -> tuple[Abridged, ...]:
    """All of them abridged, to a common size where the room cannot hold a quarter of each."""
    left = (room - last.fixed - STUB_TOKENS * len(last.large)) // HELD
    cap = fair_cap((part.least for part in last.large), left)
    return tuple(replace(part, least=min(part.least, cap)) for part in last.large)


def _described(draft: Draft, task: Task, span: Sequence[Step], excess: int) -> tuple[tuple[Change, ...], int]:
    """The calls that have to say their long arguments shorter, oldest first, and the tokens that saves."""
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
