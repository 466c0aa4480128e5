"""A caller's list of messages that grows from call to call: only what is new is copied and parsed.

Copies go all the way down: a change inside a message is noticed, and never reaches what is held here.
Only OpenAI chat is followed this way, where an item of the list is one message.
"""

from collections.abc import Iterator, Mapping, Sequence

from everlong.core.messages import Json, Message
from everlong.errors import WireError
from everlong.wire import openai_chat
from everlong.wire.recognition import list_format

__all__ = ["copied", "gained", "parsed"]


def copied(value: Json) -> Json:
    """The same value, sharing nothing that can change."""
    try:
        return _copied(value)
    except RecursionError:
        raise WireError("nested too deeply", fmt=openai_chat.FORMAT) from None


def _copied(value: Json) -> Json:
    if isinstance(value, Mapping):
        return {key: _copied(inner) if isinstance(inner, dict | list) else inner for key, inner in value.items()}
    return [_copied(inner) for inner in value] if isinstance(value, list) else value


def gained(rows: Sequence[Json], known: Sequence[Json]) -> tuple[Json, ...] | None:
    """Copies of what the list has gained since `known` was copied from it.

    None if it is another list, or if what is new may be another format: plain words, with which a list begins,
    are the same in all of them.
    """
    if len(rows) < len(known) or any(row != copy for row, copy in zip(rows, known, strict=False)):
        return None
    new = tuple(map(copied, rows[len(known) :]))
    return new if list_format(new) == openai_chat.FORMAT else None


def parsed(new: Sequence[Json], start: int) -> Iterator[Message]:
    """The messages of a list from item `start` on."""
    return (openai_chat.parse(row, f"messages[{at}]") for at, row in enumerate(new, start))
