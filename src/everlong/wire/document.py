"""A conversation from a file or a request body, with everything around its messages.

Wire formats read it from a request body, session formats from the records of a file.
"""

from dataclasses import dataclass
from typing import TypeAlias

from everlong.core import History, JsonText, Message

__all__ = ["Aside", "Document", "Record"]


@dataclass(frozen=True, slots=True)
class Aside:
    """A record that is not a message of the conversation: a header, a snapshot, a side chain. `body` is its JSON."""

    body: JsonText


Record: TypeAlias = Message | Aside


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """The messages of a conversation and what came with them."""

    fmt: str
    #: The conversation, oldest first, with system text at the front.
    messages: History
    #: The tool schemas, unchanged, one JSON text each.
    tools: tuple[JsonText, ...] = ()
    model: str = ""
    #: Request bodies: every other field of the body, packed as in `wire.fields`.
    extra: JsonText = ""
    #: Request bodies: whether the file was only the list of messages.
    bare: bool = False
    #: Request bodies: whether that list had one message per line.
    lines: bool = False
    #: Session files: every record in file order, unchanged; empty for request bodies.
    records: tuple[Record, ...] = ()
    #: The indexes in `messages` where the client's own compactions took effect: it sends only the messages from there
    #: on.
    boundaries: tuple[int, ...] = ()
    #: What could not be read, one line each, with its line number.
    warnings: tuple[str, ...] = ()
