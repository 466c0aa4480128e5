"""A caller's list of messages that grows from call to call: only what is new is copied and parsed.

Copies go all the way down: a change inside a message is noticed, and never reaches what is held here.
Only OpenAI chat is followed this way, where an item of the list is one message.
"""

from collections.abc import Iterator, Mapping, Sequence

from everlong.core import Json, Message
from everlong.errors import WireError
from everlong.wire import list_format, openai_chat

__all__ = ["copied", "gained", "parsed", "shared"]

NESTED = (dict, list)  # what can change inside a message


def copied(value: Json) -> Json:
    """The same value, sharing nothing that can change."""
    try:
        return _copied(value)
    except RecursionError:
        raise WireError("nested too deeply", fmt=openai_chat.FORMAT) from None


def _copied(value: Json) -> Json:
    if isinstance(value, list):
        return [_copied(inner) for inner in value]
    # A dict is a Mapping, but asking for that first costs more than the copy.
    if not isinstance(value, dict) and not isinstance(value, Mapping):
        return value
    copy = dict(value)
    for key, inner in copy.items():
        if isinstance(inner, NESTED):
            copy[key] = _copied(inner)
    return copy


def shared(rows: Sequence[Json], known: Sequence[Json]) -> int:
    """How many items at the front are still what was copied."""
    for at, (row, copy) in enumerate(zip(rows, known, strict=False)):
        if row != copy:
            return at
    return min(len(rows), len(known))


def gained(rows: Sequence[Json], start: int) -> tuple[Json, ...] | None:
    """Copies of what stands in the list from `start` on.

    None if that may be another format: plain words, with which a list begins, are the same in all of them.
    """
    new = tuple(map(copied, rows[start:]))
    return new if list_format(new) == openai_chat.FORMAT else None


def parsed(new: Sequence[Json], start: int) -> Iterator[Message]:
    """The messages of a list from item `start` on."""
    return (openai_chat.parse(row, f"messages[{at}]") for at, row in enumerate(new, start))
