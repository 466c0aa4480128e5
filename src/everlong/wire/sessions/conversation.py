"""From the messages of the records to a conversation that a model could be sent.

Owns what session formats share: results right behind their calls, no empty messages, and where the program's own
compactions took effect. Messages keep their order otherwise, and nothing here changes what a message says.
"""

from collections.abc import Sequence
from typing import TypeAlias

from everlong.core import History, Message, Reasoning, Role, Text, head_length, pairs_of

__all__ = ["HEADING", "Piece", "settle", "summary_text", "tell_summary", "without_head"]

#: A message, or None where a compaction took effect: the program sends only what stands behind it.
Piece: TypeAlias = Message | None

HEADING = "## Conversation Summary"


def tell_summary(summary: str) -> Text:
    """A summary that its program keeps as bare text, under a heading, so that nobody takes it for the user's words."""
    return Text(f"{HEADING}\n\n{summary}")


def summary_text(message: Message) -> str:
    """The bare text of such a summary again."""
    return message.text.removeprefix(f"{HEADING}\n\n")


def settle(pieces: Sequence[Piece]) -> tuple[History, tuple[int, ...]]:
    """The conversation and its boundaries: empty messages left out, results right behind the calls they answer.

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
    """Whether anything is left without blank text and thinking that led to nothing."""
    return any(
        part.text.strip() if isinstance(part, Text) else not isinstance(part, Reasoning) for part in message.parts
    )


def without_head(messages: Sequence[Message]) -> History:
    """The messages for a file that keeps no system text: those in front are left out."""
    return tuple(messages[head_length(messages) :])
