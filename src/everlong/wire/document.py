"""A conversation as it lay in a file or a request body, with everything around its messages.

A format module that reads whole request bodies has `parse_body` and `render_body`; one that reads
session files, a record a line, has `parse_record` and `render_record`, and says with `conversation`
what its records amount to. Both give a `Document`.
"""

from dataclasses import dataclass
from typing import TypeAlias

from everlong.core import History, JsonText, Message

__all__ = ["Aside", "Document", "Record"]


@dataclass(frozen=True, slots=True)
class Aside:
    """A record that is no message of the conversation: a header, a snapshot, a side chain. `body` is its JSON."""

    body: JsonText


Record: TypeAlias = Message | Aside


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """Messages and what came with them."""

    fmt: str
    #: The conversation, oldest first, system text in front.
    messages: History
    #: Tool schemas as they came, one JSON text each.
    tools: tuple[JsonText, ...] = ()
    model: str = ""
    #: Request bodies: every other field of the body, packed as in `wire.fields`.
    extra: JsonText = ""
    #: Request bodies: the file was the list of messages alone.
    bare: bool = False
    #: Request bodies: that list had one message a line.
    lines: bool = False
    #: Session files: every record in file order, exactly; empty for request bodies.
    records: tuple[Record, ...] = ()
    #: Indexes into `messages` at which the client's own compaction took effect: it sends only what
    #: stands from there on.
    boundaries: tuple[int, ...] = ()
    #: What could not be read, one line each, named by line number.
    warnings: tuple[str, ...] = ()
