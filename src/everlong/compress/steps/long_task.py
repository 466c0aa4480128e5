"""A long task is shortened in place, once it is no longer the last user message.

It keeps its beginning, its end, and from between what the end of the conversation refers to, word for word; the
reference returns all of it. It stays the same message of the same role at its place. A task that takes no more than a
tenth of what a compaction can move stays whole.
"""

from collections.abc import Iterable, Iterator, Sequence

from everlong.compress.draft import Draft, Slot, Task
from everlong.compress.text.boundaries import fair_cap, head_end, tail_start
from everlong.compress.text.changes import Cause, Change, Origins, rewrite, sealed
from everlong.compress.text.markers import GAP, gaps_in_message
from everlong.core import Message, Protection, Ref, Role, Text
from everlong.relevance import Index, query_of

__all__ = ["long_task"]

CAUSE = Cause("long_task", "the task takes more than a tenth of what can be moved")

SHARE = 10  # of what can be moved, for each task
SMALLEST = 300  # tokens; a task of no more stays whole, however little can be moved
HEAD_SHARE, TAIL_SHARE = 0.4, 0.2  # of what stays; the rest is for the needed parts
ATTEMPTS = 8  # tokens are not spread evenly over a text; each attempt aims lower
AIM = 0.9

Span = tuple[int, int]


def long_task(draft: Draft, task: Task) -> Draft:
    """Shorten the tasks that are larger than a tenth of what is not protected otherwise.

    Example, limit 20 000, 4 000 of them protected: a first message of 9 000 tokens -> about 1 600 of them
    """
    tasks = [(n, slot) for n, slot in enumerate(draft.slots) if draft.protected.get(slot.at) is Protection.TASK]
    if not tasks:
        return draft
    guarded = sum(slot.tokens for slot in draft.slots if slot.at in draft.protected)
    movable = (task.limit or task.target) - guarded + sum(slot.tokens for _, slot in tasks)
    most = max(SMALLEST, movable // SHARE)
    query = query_of(draft.history)
    origins = Origins(draft)
    changes = []
    for position, slot in tasks:
        for index, part, cap in _too_long(slot, task, most):
            ref = origins.ref(slot, index)
            now = Text(_shortened(part.text, cap, query, ref, task), part.extra)
            if task.counter.part(now) < task.counter.part(part):
                changes.append(Change(position, index, now, ref))
    return rewrite(draft, task, CAUSE, changes)


def _too_long(slot: Slot, task: Task, most: int) -> Iterator[tuple[int, Text, int]]:
    """The texts to shorten, each with its index and the tokens that it may have; short ones stay whole."""
    if slot.tokens <= most:
        return
    parts = slot.message.parts
    texts = [(n, part) for n, part in enumerate(parts) if isinstance(part, Text) and not sealed(part)]
    sizes = [task.counter.part(part) for _, part in texts]
    cap = max(SMALLEST, fair_cap(sizes, most - (slot.tokens - sum(sizes))))
    yield from ((n, part, cap) for (n, part), size in zip(texts, sizes, strict=True) if size > cap)


def _shortened(text: str, cap: int, query: dict[str, float], ref: Ref, task: Task) -> str:
    """The text in about so many tokens: what is nearest to the cap from below, or the smallest that was tried."""
    needed = list(_by_need(text, query))
    aim = AIM * cap * len(text) / max(1, task.counter.text(text))
    said = ""
    for _ in range(ATTEMPTS):
        said = _said(text, _kept(text, int(aim), needed), ref, task)
        size = task.counter.text(said)
        if size <= cap:
            break
        aim *= AIM * cap / size
    return said


def _by_need(text: str, query: dict[str, float]) -> Iterator[Span]:
    """Where the pieces of the text stand that have to do with the query, the best first."""
    index = Index()
    index.extend([Message(Role.USER, (Text(text),))])
    spans: dict[int, Span] = {}
    done = 0
    for number, chunk in enumerate(index.chunks):
        start = text.find(chunk.text, done)
        if start >= 0:  # else colours were taken off
            done = start + len(chunk.text)
            spans[number] = (start, done)
    scores = index.rank(query)
    ranking = sorted(spans, key=lambda number: -scores[number])
    yield from (spans[number] for number in ranking if scores[number] > 0)


def _kept(text: str, characters: int, needed: Sequence[Span]) -> list[Span]:
    """What stays, in order: the beginning, the end, and of the rest what is needed most."""
    head, tail = head_end(text, int(characters * HEAD_SHARE)), tail_start(text, int(characters * TAIL_SHARE))
    chosen: list[Span] = []
    room = characters - head - (len(text) - tail)
    for start, stop in needed:
        start, stop = max(start, head), min(stop, tail)
        if 0 < stop - start <= room:
            chosen.append((start, stop))
            room -= stop - start
    return list(_joined([(0, head), *sorted(chosen), (tail, len(text))]))


def _joined(spans: Iterable[Span]) -> Iterator[Span]:
    """The same with neighbours as one."""
    last: Span | None = None
    for span in spans:
        if last is not None and span[0] <= last[1] + 1:
            last = (last[0], max(last[1], span[1]))
            continue
        if last is not None:
            yield last
        last = span
    if last is not None:
        yield last


def _said(text: str, spans: Sequence[Span], ref: Ref, task: Task) -> str:
    """The spans with a line where something is missing; the first of these lines says how much, and the reference."""
    marker = gaps_in_message(sum(stop - start for start, stop in spans), len(text), ref, task)
    first, *rest = (text[start:stop].strip("\n") for start, stop in spans)
    said = [first, marker, *rest[:1]]
    for part in rest[1:]:
        said += [GAP, part]
    return "\n".join(said)
