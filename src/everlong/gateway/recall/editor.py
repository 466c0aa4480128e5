"""What a client has seen of an answer that goes on in another stream, and the shape of what edits the streams."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from everlong.core import Json, JsonObject

__all__ = ["Event", "Shown", "StreamEditor"]

#: An event that we write: its name ("" for none) and its data.
Event: TypeAlias = tuple[str, Json]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """The client's view so far. What follows goes on from here.

    `frame` are the fields that all chunks share, its id first; `places` how many blocks, items or thoughts were shown;
    `sequence` the number of the next event of Responses, None where events have none.
    """

    frame: Mapping[str, Json] = field(default_factory=dict)
    places: int = 0
    sequence: int | None = None
    items: tuple[Json, ...] = ()
    usage: Mapping[str, Json] = field(default_factory=dict)


class StreamEditor(ABC):
    """The events of one upstream stream, on their way to the client."""

    #: Bytes without which an event is of no interest while our tool was not called.
    SIGNS: tuple[bytes, ...] = ()

    def __init__(self, earlier: Shown | None) -> None:
        self.earlier = earlier
        #: Whether our tool was called, and whether one of the client's was.
        self.called = False
        self.others = False
        #: Whether the end of the answer is held back, for another stream to follow.
        self.held = False
        self.usage: JsonObject = {}
        #: The upstream's own id of the answer, where a later request may name it.
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
        """The event for the client: the same object if nothing changes, None if it is hidden."""

    @abstractmethod
    def shown(self) -> Shown:
        """What the client has seen up to now, earlier streams included."""

    @abstractmethod
    def ending(self) -> list[Event]:
        """The end that was held back, as of an answer that called nothing."""
