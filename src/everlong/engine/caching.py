"""Choose which prefix of a request the provider should cache. Pure: the format writes the marks."""

from dataclasses import replace

from everlong.core import Role
from everlong.engine.beside import before_tail, with_standing
from everlong.engine.replies import Caching, Request
from everlong.engine.view import View
from everlong.engine.work import Work
from everlong.wire import breakpoints

__all__ = ["beginning", "breakpoints", "caching_of"]


def caching_of(work: Work, view: View) -> Caching | None:
    """What of the request for a view comes again; None where the caller wants no marks."""
    call = work.call
    if not call.breakpoints:
        return None
    lasting = before_tail(with_standing(view.messages, call), call)
    if work.orders:  # made anew for each call: what was sent the last time may come again, the rest is not known
        lasting, stable = min(lasting, _repeated(work.live.view, view) + len(call.standing)), 0
    else:
        stable = _stable(view, len(work.live.front)) + len(call.standing)
    return Caching(stable=min(stable, lasting), lasting=lasting, seconds=work.settings.cache_seconds)


def beginning(request: Request, until: int) -> Request:
    """The first messages of a request, marked where an earlier one ended: they are read from the cache, not written.

    What is sent ends in a question or in results, so there is no end behind an answer.
    """
    messages, caching = request.messages[:until], request.caching
    if caching is None:
        return replace(request, messages=messages)
    lasting = min(until, caching.lasting)
    while until < caching.lasting and lasting and messages[lasting - 1].role is Role.ASSISTANT:
        lasting -= 1
    return replace(request, messages=messages, caching=replace(caching, lasting=lasting))


def _stable(view: View, front: int) -> int:
    """How many messages of a view come from the front of what stands, with what a repair put between them."""
    if not view.places:
        return min(front, len(view.messages))
    return next((at for at, place in enumerate(view.places) if place >= front), len(view.places))


def _repeated(before: View | None, view: View) -> int:
    """How many messages of a view are likely to come again: all, if it only grew since the last one."""
    pairs = zip(before.messages if before is not None else (), view.messages, strict=False)
    return next((at for at, (one, other) in enumerate(pairs) if one != other), len(view.messages))
