"""Shorten a long task in place, once it is no longer the last user message.

It keeps its beginning, its end, and from the middle what the end of the conversation refers to, word for word; the
reference returns the whole. Its role and position stay the same. A task that takes at most a tenth of the movable
tokens stays whole.
"""

from collections.abc import Iterable, Iterator, Sequence

from everlong.compress.draft import Draft, Slot, Task
from everlong.compress.text.boundaries import fair_cap, head_end, tail_start
from everlong.compress.text.changes import Cause, Change, Origins, rewrite, sealed
from everlong.compress.text.markers import GAP, gaps_in_message
from everlong.core import Message, Protection, Ref, Role, Text
from everlong.relevance import Index, query_of

__all__ = ["long_task"]

CAUSE = Cause("long_task", "the task takes more than a tenth of what compaction can remove")

SHARE = 10  # each task may take 1/10 of the movable tokens
SMALLEST = 300  # tokens; a task with no more stays whole, however few tokens are movable
HEAD_SHARE, TAIL_SHARE = 0.4, 0.2  # of what stays; the rest is for the needed parts
ATTEMPTS = 8  # tokens are unevenly distributed over a text; each attempt aims lower
AIM = 0.9

Span = tuple[int, int]


def long_task(draft: Draft, task: Task) -> Draft:
    """Shorten tasks that are larger than a tenth of the tokens that no other message protects.

    Example, limit 20 000, other protected messages 4 000: a first message of 9 000 tokens -> about 1 600
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
    """Yield the texts to shorten, each with its index and the tokens that it may have. Short ones stay whole."""
    if slot.tokens <= most:
        return
    parts = slot.message.parts
    texts = [(n, part) for n, part in enumerate(parts) if isinstance(part, Text) and not sealed(part)]
    sizes = [task.counter.part(part) for _, part in texts]
    cap = max(SMALLEST, fair_cap(sizes, most - (slot.tokens - sum(sizes))))
    yield from ((n, part, cap) for (n, part), size in zip(texts, sizes, strict=True) if size > cap)


def _shortened(text: str, cap: int, query: dict[str, float], ref: Ref, task: Task) -> str:
    """Return the text shortened to at most `cap` tokens, or the last attempt if none was small enough."""
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
    """Yield the spans of the text that match the query, best first."""
    index = Index()
    index.extend([Message(Role.USER, (Text(text),))])
    spans: dict[int, Span] = {}
    done = 0
    for number, chunk in enumerate(index.chunks):
        start = text.find(chunk.text, done)
        if start >= 0:  # not found if colour codes were removed from the chunk
            done = start + len(chunk.text)
            spans[number] = (start, done)
    scores = index.rank(query)
    ranking = sorted(spans, key=lambda number: -scores[number])
    yield from (spans[number] for number in ranking if scores[number] > 0)


def _kept(text: str, characters: int, needed: Sequence[Span]) -> list[Span]:
    """Return the spans that stay, in order: the beginning, the most needed pieces, the end."""
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
    """Yield the spans with neighbours joined."""
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
    """Return the spans with a line at each gap. The first such line has the missing size and the reference."""
    marker = gaps_in_message(sum(stop - start for start, stop in spans), len(text), ref, task)
    first, *rest = (text[start:stop].strip("\n") for start, stop in spans)
    said = [first, marker, *rest[:1]]
    for part in rest[1:]:
        said += [GAP, part]
    return "\n".join(said)
