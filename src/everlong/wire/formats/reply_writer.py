"""Replies to write in a format: as the events of a stream, or as one body."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from everlong.core import Json, JsonObject, JsonText
from everlong.wire.usage import Usage

__all__ = ["CREATED", "NamedEvent", "ReplyWriter", "WrittenReply", "text_pieces"]

WORDS_A_PIECE = 4
CREATED = 1_700_000_000  # a fixed time, so that equal replies give equal bytes

#: One event of a stream: its name ("" for none) and its data; text is sent as it is.
NamedEvent: TypeAlias = tuple[str, Json]


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenReply:
    """The text, reasoning and calls of the reply to request `number`. A `usage` of None reports nothing."""

    number: int
    model: str
    text: str = ""
    thinking: str = ""
    calls: tuple[tuple[str, JsonText], ...] = ()
    stop: str = ""
    usage: Usage | None = None

    def call_id(self, at: int) -> str:
        """Return the id of the call at this position."""
        return f"call_{self.number}_{at}"

    def stop_word(self, usual: str, calls: str) -> str:
        """Return the stop reason: the reply's own, or one of these two."""
        return self.stop or (calls if self.calls else usual)


@dataclass(frozen=True, slots=True)
class ReplyWriter:
    """How one format writes a reply: as events, and as a whole."""

    events: Callable[[WrittenReply], Iterator[NamedEvent]]
    whole: Callable[[WrittenReply], JsonObject]


def text_pieces(text: str) -> list[str]:
    """Return the text in pieces of a few words. Joined, they equal the text."""
    words = text.split(" ")
    pieces = [" ".join(words[at : at + WORDS_A_PIECE]) for at in range(0, len(words), WORDS_A_PIECE)]
    return [piece + (" " if at + 1 < len(pieces) else "") for at, piece in enumerate(pieces) if text]
