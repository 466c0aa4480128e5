"""Find what must be removed together with a message, so that nothing repeats it and requests stay valid.

A call and its results are removed together. A compaction that covers the message is removed too, and so is text that
was recalled after such a compaction: both may contain its words. Text that was recalled for the message goes as well.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

from everlong.core.messages import Message
from everlong.core.observations import FrameKind, frames_in
from everlong.core.points import Entry, Point, Recalled
from everlong.core.rounds import pairs_of

__all__ = ["going_with"]


def going_with(
    log: Sequence[Entry], orders: Iterable[int], covers: Callable[[Point], int] = lambda point: point.boundary
) -> tuple[int, ...]:
    """Return the positions to remove if the messages at `orders` are removed, including `orders`, in order.

    `log` is the visible log, and `covers` returns the position up to which a compaction covers it.
    Example: user, call, result, answer, Point(boundary=3), remove the call -> 1, 2, 4
    """
    going = _with_partners(log, {order for order in orders if isinstance(log[order], Message)})
    if not going:
        return ()
    first = min(going)
    boundary = 0
    for at, entry in enumerate(log):
        match entry:
            case Point():
                boundary = max(boundary, entry.boundary)
                if max(entry.boundary, covers(entry)) > first:
                    going.add(at)
            case Recalled(before=before) if boundary > first or before in going:
                going.add(at)
            case _:
                pass
    return tuple(sorted(going))


def _with_partners(log: Sequence[Entry], going: set[int]) -> set[int]:
    """Return these messages and all that are linked to them, directly or not, by calls and results."""
    places = [at for at, entry in enumerate(log) if isinstance(entry, Message)]
    messages = [entry for entry in log if isinstance(entry, Message)]
    partners: defaultdict[int, set[int]] = defaultdict(set)
    together = [(pair.call[0], pair.result[0]) for pair in pairs_of(messages)]
    frames = frames_in(messages).items()
    together += [(framed.answers, at) for at, framed in frames if framed.kind is FrameKind.RESULT]
    for one, other in together:
        partners[places[one]].add(places[other])
        partners[places[other]].add(places[one])
    waiting = list(going)
    while waiting:
        new = partners[waiting.pop()] - going
        going |= new
        waiting += new
    return going
