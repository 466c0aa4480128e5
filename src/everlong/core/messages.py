"""What a conversation is made of: messages, each a role and a tuple of parts.

Values only, frozen and hashable: equal content is an equal value, and nothing here has an
identity (ids and order belong to the store). What a provider sends and we do not model travels
in `extra`, so that rendering an untouched message gives back its JSON.
"""

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import NewType, TypeAlias

__all__ = [
    "CallId",
    "History",
    "Image",
    "Json",
    "JsonObject",
    "JsonText",
    "Message",
    "Opaque",
    "Part",
    "Reasoning",
    "ResultPart",
    "Role",
    "Text",
    "ToolCall",
    "ToolResult",
    "user_text",
]

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
JsonObject: TypeAlias = dict[str, Json]

#: JSON as text: immutable and hashable, where a dict would be neither.
JsonText: TypeAlias = str

CallId = NewType("CallId", str)


class Role(StrEnum):
    """Who speaks. A tool message answers calls; it may also carry what the user said beside them."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


@dataclass(frozen=True, slots=True)
class Text:
    """Words."""

    text: str
    extra: JsonText = ""


@dataclass(frozen=True, slots=True)
class Image:
    """A picture: base64 `data` with its media type, or a `url` (or a provider's file id)."""

    data: str = ""
    media_type: str = ""
    url: str = ""
    detail: str = ""
    extra: JsonText = ""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call the model made. `arguments` is the JSON text as it came, valid or not."""

    id: CallId
    name: str
    arguments: JsonText
    extra: JsonText = ""


@dataclass(frozen=True, slots=True)
class Reasoning:
    """Thinking. With a `signature` the text is bound to what came before: whole or absent, never cut."""

    text: str
    signature: str = ""
    extra: JsonText = ""


@dataclass(frozen=True, slots=True)
class Opaque:
    """Anything else a provider sends: carried along, never looked into. `body` is its JSON."""

    kind: str
    body: JsonText


ResultPart: TypeAlias = Text | Image | Opaque


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool answered."""

    call: CallId
    content: tuple[ResultPart, ...]
    name: str = ""
    failed: bool = False
    extra: JsonText = ""

    @property
    def text(self) -> str:
        """All words of the result, blocks joined by a line end."""
        return "\n".join(part.text for part in self.content if isinstance(part, Text))


Part: TypeAlias = Text | Image | ToolCall | ToolResult | Reasoning | Opaque


@dataclass(frozen=True, slots=True)
class Message:
    """One message. `origin` names the wire format that `extra` (here and in the parts) belongs to."""

    role: Role
    parts: tuple[Part, ...]
    name: str = ""
    time: datetime | None = None
    origin: str = ""
    extra: JsonText = ""

    def with_parts(self, parts: tuple[Part, ...]) -> "Message":
        """The same message saying something else."""
        return replace(self, parts=parts)

    @property
    def text(self) -> str:
        """The words of the message itself: no calls, no results, no reasoning."""
        return "\n".join(part.text for part in self.parts if isinstance(part, Text))

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The calls this message makes."""
        return tuple(part for part in self.parts if isinstance(part, ToolCall))

    @property
    def results(self) -> tuple[ToolResult, ...]:
        """The results this message brings."""
        return tuple(part for part in self.parts if isinstance(part, ToolResult))


History: TypeAlias = tuple[Message, ...]


def user_text(message: Message) -> str:
    """What the user says in it, also where it stands beside tool results; "" for anyone else."""
    return message.text if message.role in (Role.USER, Role.TOOL) else ""
