"""The parts of a conversation: messages, each with a role and a tuple of parts.

All values are frozen and hashable, and equal content means equal values. Ids and order belong to the store. Fields of a
provider that we do not model are kept in `extra`, so an untouched message is rendered as the same JSON.
"""

from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Literal, NewType, TypeAlias

__all__ = [
    "CallId",
    "Ending",
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
    """The author of a message. A tool message contains tool results, and may also hold user text next to them."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


#: Why an answer is incomplete: a person stopped it, the connection broke or the program died, it reached its length
#: limit, or it has no text.
Ending: TypeAlias = Literal["", "stopped", "broken off", "length", "empty"]


@dataclass(frozen=True, slots=True)
class Text:
    """A text part."""

    text: str
    extra: JsonText = ""


@dataclass(frozen=True, slots=True)
class Image:
    """An image part: base64 `data` with its media type, or a `url` (or a provider's file id)."""

    data: str = ""
    media_type: str = ""
    url: str = ""
    detail: str = ""
    extra: JsonText = ""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call by the model. `arguments` is the JSON text as it arrived, valid or not."""

    id: CallId
    name: str
    arguments: JsonText
    extra: JsonText = ""


@dataclass(frozen=True, slots=True)
class Reasoning:
    """A reasoning part. With a `signature` the provider accepts it only whole, so it is sent whole or left out."""

    text: str
    signature: str = ""
    extra: JsonText = ""


@dataclass(frozen=True, slots=True)
class Opaque:
    """Any other part that a provider sends. It is passed through unread; `body` is its JSON."""

    kind: str
    body: JsonText


ResultPart: TypeAlias = Text | Image | Opaque


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of a tool call. `call` is the id of the call; `failed` says whether the tool reported an error."""

    call: CallId
    content: tuple[ResultPart, ...]
    name: str = ""
    failed: bool = False
    extra: JsonText = ""

    @property
    def text(self) -> str:
        """The text of the result, its blocks joined by newlines."""
        return "\n".join(part.text for part in self.content if isinstance(part, Text))


Part: TypeAlias = Text | Image | ToolCall | ToolResult | Reasoning | Opaque


@dataclass(frozen=True, slots=True)
class Message:
    """One message: a role and a tuple of parts. Example: Message(Role.USER, (Text("hello"),))

    `origin` names the wire format that the `extra` fields belong to. `model` and `ending` are for people only: they are
    stored and shown, never sent to a provider, and not compared.
    """

    role: Role
    parts: tuple[Part, ...]
    name: str = ""
    time: datetime | None = None
    origin: str = ""
    extra: JsonText = ""
    #: The model that gave this answer; "" if unknown.
    model: str = field(default="", compare=False)
    #: Why this answer is incomplete; "" if it is complete.
    ending: Ending = field(default="", compare=False)

    def with_parts(self, parts: tuple[Part, ...]) -> "Message":
        """Return the same message with other parts."""
        return replace(self, parts=parts)

    @property
    def text(self) -> str:
        """The text of the message, without calls, results and reasoning."""
        return "\n".join(part.text for part in self.parts if isinstance(part, Text))

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The tool calls in this message."""
        return tuple(part for part in self.parts if isinstance(part, ToolCall))

    @property
    def results(self) -> tuple[ToolResult, ...]:
        """The tool results in this message."""
        return tuple(part for part in self.parts if isinstance(part, ToolResult))


History: TypeAlias = tuple[Message, ...]


def user_text(message: Message) -> str:
    """Return what the user says in a message, including text next to tool results; "" for other roles."""
    return message.text if message.role in (Role.USER, Role.TOOL) else ""
