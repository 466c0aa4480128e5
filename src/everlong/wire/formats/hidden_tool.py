"""What the formats share in hiding a tool from clients: it is offered to the model, called, and answered by a server.

provider ──▶ StreamEditor ──▶ client     our tool alone called: the end is held back, the model gets its result,
provider ──▶ StreamEditor ──▶ client     and the stream of the continuation follows as if it were one answer
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from everlong.core import Json, JsonObject, Message

__all__ = ["Event", "HiddenTool", "Shown", "StreamEditor", "added_usage"]

#: An event that we write: its name ("" for none) and its data.
Event: TypeAlias = tuple[str, Json]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What a client has seen of an answer that continues in another stream.

    `frame` are the fields that all chunks share, its id first; `places` how many blocks, items or thoughts were shown;
    `sequence` the number of the next event of Responses, None if events have none.
    """

    frame: Mapping[str, Json] = field(default_factory=dict)
    places: int = 0
    sequence: int | None = None
    items: tuple[Json, ...] = ()
    usage: Mapping[str, Json] = field(default_factory=dict)


class StreamEditor(ABC):
    """Edits the events of one stream so that the client does not see the tool."""

    #: Bytes without which an event is of no interest while the tool was not called.
    SIGNS: tuple[bytes, ...] = ()

    def __init__(self, tool: str, earlier: Shown | None = None) -> None:
        self.tool = tool
        self.earlier = earlier
        #: Whether our tool was called, and whether one of the client's was.
        self.called = False
        self.others = False
        #: Whether the end of the answer is held back, for another stream to follow.
        self.held = False
        self.usage: JsonObject = {}
        #: The provider's own id of the answer, if a later request may name it.
        self.response = ""

    @property
    def touched(self) -> bool:
        """Whether every event must be looked at from now on."""
        return self.called or self.earlier is not None

    @property
    def alone(self) -> bool:
        """Whether our tool was called and no other."""
        return self.called and not self.others

    @abstractmethod
    def edited(self, event: JsonObject) -> JsonObject | None:
        """Return the event for the client: the same object if nothing changes, None if it is hidden."""

    @abstractmethod
    def shown(self) -> Shown:
        """Return what the client has seen up to now, earlier streams included."""

    @abstractmethod
    def ending(self) -> list[Event]:
        """Return the end that was held back, as of an answer that called nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HiddenTool:
    """How a tool that clients never see is declared, called, streamed and hidden in one format."""

    #: The declaration of a tool: name, description and JSON schema of its parameters.
    declare: Callable[[str, str, Json], JsonObject]
    #: An answer as a later request carries it: one message, or several items.
    resent: Callable[[Message], list[JsonObject]]
    #: Makes the editor of a stream, given the tool's name and what the client saw of the stream before.
    editor: Callable[[str, Shown | None], StreamEditor]
    #: A whole answer without calls of the tool of that name, the same object if there are none; two answers as one.
    hide: Callable[[JsonObject, str], JsonObject]
    join: Callable[[JsonObject, JsonObject], JsonObject]
    #: The parts of an answer that may be calls or sealed thoughts.
    blocks: Callable[[Sequence[Json]], list[Json]]
    #: Puts results into the message after the answer; None if the format sends results as messages of their own.
    with_results: Callable[[Json, list[Json]], list[Json]] | None = None
    #: The ids of calls whose results are here while the calls are in an answer that the provider holds.
    called_elsewhere: Callable[[list[Json]], frozenset[str]] | None = None


def added_usage(first: Json, second: Json) -> JsonObject:
    """Return two usage objects as one; figures add up, all else is the second's.

    Example: {"prompt_tokens": 5}, {"prompt_tokens": 7, "details": {"cached": 2}} -> 12 and cached 2
    """
    one, other = object_in(first), object_in(second)
    total: JsonObject = dict(one)
    for name, value in other.items():
        before = one.get(name)
        if isinstance(value, dict) and isinstance(before, dict):
            total[name] = added_usage(before, value)
        elif _is_figure(value) and _is_figure(before):
            total[name] = before + value  # type: ignore[operator]
        elif value is not None or name not in one:
            total[name] = value
    return total


def _is_figure(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def object_in(value: Json) -> JsonObject:
    """Return the value if it is an object, else an empty object."""
    return value if isinstance(value, dict) else {}


def list_in(value: Json) -> list[Json]:
    """Return the value if it is a list, else an empty list."""
    return value if isinstance(value, list) else []
