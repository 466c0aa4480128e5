"""Turn the messages of records into a conversation that can be sent to a model.

Shared by session formats: results right after their calls, no empty messages, and where the program's own compactions
took effect. Otherwise messages keep their order, and their content is never changed.
"""

from collections.abc import Sequence
from typing import TypeAlias

from everlong.core import History, Message, Reasoning, Role, Text, head_length, pairs_of

__all__ = ["HEADING", "Piece", "headed_summary", "settle", "summary_text", "without_head"]

#: A message, or None where a compaction took effect: the program sends only what follows it.
Piece: TypeAlias = Message | None

HEADING = "## Conversation Summary"


def headed_summary(summary: str) -> Text:
    """Return a summary under a heading, so that it is not mistaken for the user's text."""
    return Text(f"{HEADING}\n\n{summary}")


def summary_text(message: Message) -> str:
    """Return the plain text of a summary that `headed_summary` wrote."""
    return message.text.removeprefix(f"{HEADING}\n\n")


def settle(pieces: Sequence[Piece]) -> tuple[History, tuple[int, ...]]:
    """Return the conversation and its boundaries, without empty messages, and with results right after their calls.

    Example: user, call 1, None, summary, result 1, call 2 -> user, call 1, result 1, summary, call 2 and (3,)
    """
    filled = [piece for piece in pieces if piece is None or _says_something(piece)]
    places = [at for at, piece in enumerate(filled) if piece is not None]
    answers: dict[int, list[Message]] = {}
    moved: set[int] = set()
    for pair in pairs_of([piece for piece in filled if piece is not None]):
        call_at, result_at = places[pair.call[0]], places[pair.result[0]]
        result = filled[result_at]
        if result is not None and result.role is Role.TOOL and result_at not in moved:
            answers.setdefault(call_at, []).append(result)
            moved.add(result_at)
    messages: list[Message] = []
    boundaries: list[int] = []
    for at, piece in enumerate(filled):
        if piece is None:
            boundaries.append(len(messages))
        elif at not in moved:
            messages += [piece, *answers.get(at, ())]
    return tuple(messages), tuple(dict.fromkeys(boundaries))


def _says_something(message: Message) -> bool:
    """Whether a message has anything besides blank text and thinking."""
    return any(
        part.text.strip() if isinstance(part, Text) else not isinstance(part, Reasoning) for part in message.parts
    )


def without_head(messages: Sequence[Message]) -> History:
    """Return the messages for a file without system text: leading system messages are left out."""
    return tuple(messages[head_length(messages) :])
