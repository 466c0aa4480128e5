"""Where a summary stands in the requests of presets that make each one anew: where their documents put it.

static-buffer: at the end of the system text, always, before what is in the buffer. nanobot: there too, once something
has to go. chatbox: in front of what came after the newest point, and nothing older is sent. All of it is framed as
background.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from everlong.compress import Preset, newest
from everlong.core import Message, Role, Text, head_length
from everlong.engine.accounts import account_in, account_message, summary_limit
from everlong.engine.buffering import buffer_start
from everlong.engine.cutting import Held
from everlong.engine.past import LEFT_BEFORE
from everlong.engine.work import Work
from everlong.summarize import Summary, as_system_section, written

__all__ = ["with_account"]

BUFFER = "static-buffer"
IN_SYSTEM = frozenset({BUFFER, "nanobot", "nanobot-v3"})
WHEN_NEEDED = frozenset({"nanobot", "nanobot-v3"})
FROM_THE_POINT = frozenset({"chatbox"})
#: Styles whose length their documents bound: what code copied stays in the store, the model's words are sent.
WORDS_ALONE = frozenset({"free", "buffer"})


def with_account(work: Work, held: Held) -> tuple[Held, Preset]:
    """What is held of a thread with its summary in its place, if there is one; the preset, with what goes before it."""
    preset = work.sizes.preset
    account = account_in(work.live.opened.point)
    start = _start(preset, held, account)
    if preset.name in WHEN_NEEDED and work.sizes.counter.messages(held.history) <= work.sizes.cut_limit:
        account = None
    if account is not None:
        held = _with(held, _message(work, account, in_system=preset.name in IN_SYSTEM))
        start += 1
    return held, _from(preset, held, start)


def _start(preset: Preset, held: Held, account: Summary | None) -> int:
    """The first message that is sent as it is; those before it go, whatever room there is."""
    if preset.name == BUFFER:
        return buffer_start(held.history)
    if preset.name in FROM_THE_POINT and account is not None:
        return next((at for at, order in enumerate(held.orders) if order >= account.covers), 0)
    return 0


def _from(preset: Preset, held: Held, start: int) -> Preset:
    """The preset whose newest messages are those from `start` on, beside the pinned ones."""
    head = head_length(held.history)
    if start <= head:
        return preset
    many = len(held.history) - start + sum(head <= pin < start for pin in held.pins)
    step = partial(newest, most_messages=many, least_messages=many)
    return replace(preset, cut=tuple(step if _is_newest(other) else other for other in preset.cut))


def _is_newest(step: Callable[..., object]) -> bool:
    return step is newest or (isinstance(step, partial) and step.func is newest)


def _message(work: Work, account: Summary, *, in_system: bool) -> Message:
    counter, limit = work.sizes.counter, summary_limit(work.sizes.cut_limit)
    if not in_system:
        return account_message(account, counter, limit)
    text = written(account, counter=counter, limit=limit, facts=account.style not in WORDS_ALONE)
    return Message(Role.SYSTEM, (Text(as_system_section(text, account.language)),))


def _with(held: Held, message: Message) -> Held:
    """With the message right behind the system text; what is not system text must not be left out."""
    head = head_length(held.history)
    pins = {pin + 1 if pin >= head else pin for pin in held.pins}
    if message.role is not Role.SYSTEM:
        pins.add(head)
    return Held(
        (*held.history[:head], message, *held.history[head:]),
        (*held.orders[:head], LEFT_BEFORE, *held.orders[head:]),
        frozenset(pins),
    )
