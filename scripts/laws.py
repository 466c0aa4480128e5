"""The laws of DESIGN as checks of a view: one line per broken law. Used on real data and in the property tests.

Checks only what a caller sees: the given history and the resulting view. Law 3 uses the providers' validators; nothing
here knows how a step works.
"""

import json
from collections import Counter as Tally
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from everlong.core import (
    Action,
    Edit,
    History,
    JsonText,
    Message,
    Opaque,
    Part,
    Protection,
    Role,
    Text,
    ToolResult,
    head_length,
    message_ref,
    pairs_of,
    part_content,
    protected,
    ref_of,
    safe_cuts,
)
from everlong.engine import View, ViewOptions
from everlong.wire import FORMATS, problems, repair_history

__all__ = ["Broken", "broken_laws", "differs", "moved_prefix", "payload_items", "requests"]


@dataclass(frozen=True, slots=True)
class Broken:
    """A law that a view breaks."""

    law: int
    said: str


def broken_laws(view: View, wish: ViewOptions) -> list[Broken]:
    """Return the broken ones of laws 2, 3, 4, 5 and 9, which concern a single view."""
    checks = ((2, _too_large), (3, _refused), (4, _touched), (5, _lost), (9, _unexplained))
    return [Broken(law, said) for law, check in checks for said in check(view, wish)]


def requests(history: Sequence[Message]) -> list[int]:
    """Return the lengths at which a client asks the model: all calls are answered, and the assistant speaks next."""
    answers = {pair.result[0] for pair in pairs_of(history)}
    return [cut for cut in safe_cuts(history) if cut and (history[cut - 1].role is Role.USER or cut - 1 in answers)]


def moved_prefix(before: View, after: View, fmt: str, *, in_bytes: bool = True) -> Iterator[Broken]:
    """Check law 6: without a cut, the later request starts with the bytes of the earlier one.

    Without `in_bytes`, messages are compared instead of their bytes, which is faster.
    """
    if after.compactions > before.compactions:
        return
    if after.messages[: len(before.messages)] != before.messages:
        yield Broken(6, f"message {_first_difference(before.messages, after.messages)} is another one, without a cut")
        return
    if not in_bytes:
        return
    old, new = payload_items(before.messages, fmt), payload_items(after.messages, fmt)
    at = _first_difference(old, new)
    # The last item may grow: some providers want neighbouring messages of one role in one item.
    if at < len(old) and not (at == len(old) - 1 and at < len(new) and new[at].startswith(old[at].rstrip("]}"))):
        yield Broken(6, f"item {at} has other bytes, without a cut")


def differs(one: View, other: View) -> Iterator[Broken]:
    """Check law 8: the same history and options give the same view."""
    if one.messages != other.messages:
        yield Broken(8, f"message {_first_difference(one.messages, other.messages)} differs the second time")
    elif (one.edits, one.tokens) != (other.edits, other.tokens):
        yield Broken(8, "the same messages with other edits or tokens the second time")


def payload_items(messages: History, fmt: str) -> list[JsonText]:
    """Return a request as the bytes that a provider's cache compares: what precedes the messages, then each item.

    Cache marks are not compared: they move to the end with each request, and providers ignore them.
    """
    marks, payload = FORMATS[fmt].marks, FORMATS[fmt].write_history(messages)
    payload = dict(payload if marks is None else marks.remove(payload))
    items = payload.pop(FORMATS[fmt].api.messages)
    assert isinstance(items, list)
    return [json.dumps(payload), *(json.dumps(item) for item in items)]


def _first_difference(one: Sequence[object], other: Sequence[object]) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))


# --- 2 and 3 -------------------------------------------------------------------------------------


def _too_large(view: View, wish: ViewOptions) -> Iterator[str]:
    tokens = wish.counter.messages(view.messages)
    if tokens > wish.limit:
        yield f"{tokens:,} tokens, the limit is {wish.limit:,}"


def _refused(view: View, wish: ViewOptions) -> Iterator[str]:
    if not view.history:
        return  # no history: nothing to send, and nothing may be invented
    for problem in problems(wish.fmt, FORMATS[wish.fmt].write_history(view.messages))[:3]:
        yield f"{wish.fmt}: {problem}"


# --- 4 -------------------------------------------------------------------------------------------


#: Protected messages that keep their place, but may be shortened if they are too large.
MAY_BE_CUT = (Protection.UNREAD, Protection.TASK, Protection.CONTEXT)


def _touched(view: View, wish: ViewOptions) -> Iterator[str]:
    """Check law 4: protected messages stay, except for repairs of what the provider would refuse."""
    refused = {edit.at for edit in repair_history(view.history, wish.fmt).edits}
    edited = {edit.at: edit for edit in view.edits if edit.action is not Action.INSERT}
    sent = set(view.messages)
    head = head_length(view.history)
    front = [_payload(message, wish.fmt) for message in view.messages[:head]]
    given = [_payload(message, wish.fmt) for message in view.history[:head]]
    hopeless = any(_refused_alone(message, wish.fmt) for message in view.history[:head])
    if front != given and not hopeless and not refused & set(range(head)):
        yield "something stands before the system text, or in it"
    for at, why in protected(view.history, wish.pins, keeps_task=wish.preset.keeps_task).items():
        message, edit = view.history[at], edited.get(at)
        if message in sent or at in refused:
            continue
        if edit is None:
            yield f"message {at} ({why}) is not as it was, and no edit says so"
        elif edit.action is Action.REPAIR:
            if not _refused_alone(message, wish.fmt) and not _stands_in_other_words(message, view.messages, wish.fmt):
                yield f"message {at} ({why}) was changed: {edit.reason}"
        elif why not in MAY_BE_CUT or edit.action is Action.DROP or not _answered(message, view.messages):
            yield f"message {at} ({why}) was changed by {edit.step}: {edit.reason}"


def _payload(message: Message, fmt: str) -> JsonText:
    """Return the message as bytes of a request."""
    return json.dumps(FORMATS[fmt].write_history((message,)))


def _refused_alone(message: Message, fmt: str) -> bool:
    """Return whether the provider would refuse the message in any context, or its format cannot express any of it."""
    company = (message, Message(Role.USER, (Text("hello"),)))
    return message not in repair_history(company, fmt).messages or FORMATS[fmt].write_history((message,)) == FORMATS[
        fmt
    ].write_history(())


def _stands_in_other_words(message: Message, sent: History, fmt: str) -> bool:
    """Return whether a sent message has the same bytes, or contains all parts of this one next to each other."""
    payload = _payload(message, fmt)
    parts, size = [_bare(part) for part in message.parts], len(message.parts)
    for other in sent:
        found = [_bare(part) for part in other.parts]
        joined = any(found[start : start + size] == parts for start in range(len(found) - size + 1))
        if joined or _payload(other, fmt) == payload:
            return True
    return False


def _answered(message: Message, sent: History) -> bool:
    """Return whether every call that its results answer is still answered."""
    answered = {result.call for other in sent for result in other.results}
    return all(result.call in answered for result in message.results)


def _bare(part: Part) -> Part:
    return part if isinstance(part, Opaque) else replace(part, extra="")


# --- 5 -------------------------------------------------------------------------------------------


def _lost(view: View, _wish: ViewOptions) -> Iterator[str]:
    """Check law 5: each message is sent unchanged, or an edit's reference is the hash of its original bytes."""
    edits: dict[int, list[Edit]] = {}
    for edit in view.edits:
        if edit.action is not Action.INSERT:
            edits.setdefault(edit.at, []).append(edit)
    yield from _out_of_order(view, set(edits))
    for at, changes in edits.items():
        if not 0 <= at < len(view.history):
            yield f"an edit of message {at}, which is not in the history"
            continue
        message = view.history[at]
        whole = message_ref(message)
        if any(change.ref == whole for change in changes):
            continue
        yield from _lost_parts(at, message, changes, view.messages)


def _lost_parts(at: int, message: Message, changes: list[Edit], sent: History) -> Iterator[str]:
    covered: set[int] = set()
    for change in changes:
        if change.part is None or not 0 <= change.part < len(message.parts):
            yield f"message {at}: {change.step} has the reference {change.ref}, which is not its original"
        elif change.ref != ref_of(part_content(message.parts[change.part])) and not _of_inner(change, message):
            yield f"message {at} part {change.part}: {change.step}'s reference {change.ref} is not its original"
        else:
            covered.add(change.part)
    left = [part for index, part in enumerate(message.parts) if index not in covered]
    if left and not any(_in_order(left, other.parts) for other in sent):
        yield f"message {at}: parts that no edit names are gone"


def _of_inner(change: Edit, message: Message) -> bool:
    """Return whether the edit is of content inside a result, such as a picture, which has its own reference."""
    part = message.parts[change.part or 0]
    return isinstance(part, ToolResult) and any(change.ref == ref_of(part_content(inner)) for inner in part.content)


def _out_of_order(view: View, edited: set[int]) -> Iterator[str]:
    """Check that all unedited messages are sent, in order."""
    sent = iter(view.messages)
    for at, message in enumerate(view.history):
        if at not in edited and not any(other is message or other == message for other in sent):
            yield f"message {at} is not sent in its place, and no edit names it"
            return


def _in_order(parts: Sequence[Part], others: Sequence[Part]) -> bool:
    found = iter(others)
    return all(any(other == part for other in found) for part in parts)


# --- 9 -------------------------------------------------------------------------------------------


def _unexplained(view: View, wish: ViewOptions) -> Iterator[str]:
    counter = wish.counter
    tokens = counter.messages(view.messages)
    if view.tokens != tokens:
        yield f"the view says {view.tokens:,} tokens and has {tokens:,}"
    given, saved = counter.messages(view.history), sum(edit.saved for edit in view.edits)
    if given - saved != tokens:
        yield f"{given:,} tokens came, the edits save {saved:,}, and {tokens:,} are sent"
    for edit in view.edits:
        yield from _odd(edit)
    yield from _unannounced(view)


def _odd(edit: Edit) -> Iterator[str]:
    named = f"edit of message {edit.at} by {edit.step or 'nobody'}"
    if not edit.step or not edit.reason:
        yield f"{named}: it does not say who or why"
    if min(edit.before, edit.after) < 0:
        yield f"{named}: negative tokens"
    if edit.action is Action.INSERT and edit.before:
        yield f"{named}: an insertion that replaces something"
    if edit.action is Action.DROP and edit.after:
        yield f"{named}: a drop that leaves {edit.after} tokens"
    if edit.action is not Action.INSERT and edit.ref is None:
        yield f"{named}: no reference"


def _unannounced(view: View) -> Iterator[str]:
    """Check that each sent message that is not in the history has an edit that explains it."""
    changed = {edit.at for edit in view.edits if edit.action in (Action.SHORTEN, Action.DROP)}
    if any(edit.action is Action.REPAIR for edit in view.edits):
        return  # a repair may split and join messages
    inserted = sum(edit.action is Action.INSERT for edit in view.edits)
    new = Tally(view.messages) - Tally(view.history)
    if new.total() > len(changed) + inserted:
        yield f"{new.total()} messages are new, {len(changed)} were changed and {inserted} inserted"
