"""Shared code for a hidden tool: a server offers it to the model and answers its calls; clients never see it.

provider ──▶ StreamEditor ──▶ client     only our tool called: the end is held back, the model gets the result,
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

    `frame` has the fields that all chunks share, its id first; `places` is how many blocks, items or thoughts were
    shown; `sequence` is the number of the next event of Responses, None if events have none.
    """

    frame: Mapping[str, Json] = field(default_factory=dict)
    places: int = 0
    sequence: int | None = None
    items: tuple[Json, ...] = ()
    usage: Mapping[str, Json] = field(default_factory=dict)


class StreamEditor(ABC):
    """Edits the events of one stream so that the client does not see the tool."""

    #: As long as the tool was not called, only events with these bytes matter.
    SIGNS: tuple[bytes, ...] = ()

    def __init__(self, tool: str, earlier: Shown | None = None) -> None:
        self.tool = tool
        self.earlier = earlier
        #: Whether our tool was called, and whether one of the client's was.
        self.called = False
        self.others = False
        #: Whether the end of the answer is held back, because another stream follows.
        self.held = False
        self.usage: JsonObject = {}
        #: The provider's own id of the answer, if a later request may name it.
        self.response = ""

    @property
    def touched(self) -> bool:
        """Whether every event must be edited from now on."""
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
        """Return the end that was held back, as for an answer without calls."""


def _declared(tool: Json) -> list[Json]:
    fields = object_in(tool)
    return [object_in(fields.get("function")).get("name") or fields.get("name")]


def _may_offer(fields: Mapping[str, Json]) -> bool:
    """Whether the tool may be offered: not with forbidden calls, several answers, old functions or background runs."""
    choice = fields.get("tool_choice")
    forbidden = (choice.get("type") if isinstance(choice, dict) else choice) == "none"
    several = fields.get("n") not in (None, 1)
    return not (forbidden or several or fields.get("functions") or fields.get("background"))


def _words(message: JsonObject) -> str:
    """Return the text of a message's content, a string or blocks."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    texts = [object_in(block).get("text") for block in list_in(content)]
    return "".join(text for text in texts if isinstance(text, str))


@dataclass(frozen=True, slots=True, kw_only=True)
class HiddenTool:
    """How one format declares, calls, streams and hides a tool that clients never see."""

    #: The declaration of a tool: name, description and JSON schema of its parameters.
    declare: Callable[[str, str, Json], JsonObject]
    #: Return the names that a client's tool declares; add a tool to those of a request.
    declared: Callable[[Json], list[Json]] = _declared
    offer: Callable[[list[Json], JsonObject], list[Json]] = lambda tools, tool: [*tools, tool]
    #: Whether a request may get the tool, given its fields in `looked_at`.
    may_offer: Callable[[Mapping[str, Json]], bool] = _may_offer
    looked_at: tuple[str, ...] = ("tool_choice", "n", "functions", "background")
    #: The role of an answer, and a function that returns its text.
    role: str = "assistant"
    words: Callable[[JsonObject], str] = _words
    #: Writes the results of an answer's calls, given the answer and the results; None if results need no answer.
    answers: Callable[[Message, Message], list[JsonObject]] | None = None
    #: Writes an answer as later requests contain it: one message, or several items.
    resent: Callable[[Message], list[JsonObject]]
    #: Makes the editor of a stream, given the tool's name and what the client saw of the stream before.
    editor: Callable[[str, Shown | None], StreamEditor]
    #: Removes the calls of the named tool from a whole answer (the same object if there are none); joins two answers.
    hide: Callable[[JsonObject, str], JsonObject]
    join: Callable[[JsonObject, JsonObject], JsonObject]
    #: Returns the parts of an answer that may be calls or sealed thoughts.
    blocks: Callable[[Sequence[Json]], list[Json]]
    #: Puts results into the message after the answer; None if the format sends results as separate messages.
    with_results: Callable[[Json, list[Json]], list[Json]] | None = None
    #: Returns the ids of calls that are in an answer stored by the provider, while their results are in the request.
    called_elsewhere: Callable[[list[Json]], frozenset[str]] | None = None


def added_usage(first: Json, second: Json) -> JsonObject:
    """Return two usage objects as one: figures are added, everything else comes from the second.

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
