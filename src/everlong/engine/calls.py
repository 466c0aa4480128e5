"""A call before it is made: what the caller asks for, and what is to be sent for it."""

from dataclasses import dataclass

from everlong.core import Budget, Edit, History, JsonText
from everlong.engine.replies import Request
from everlong.windows import Window

__all__ = ["Call", "Prepared"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """What a caller wants of which model; the messages come from the thread.

    `endpoint` names the server for what is learned of it, `provider` is its name in the registry, `served` the window
    that the server itself tells. `parent` is the event this call belongs to, such as an agent's turn.

    `standing` and `tail` are sent and counted but never kept: they come anew with each call, no cut and no summary
    touches them. `standing` is system text and follows the thread's own; it changes seldom, for a change costs the
    cached prefix. `tail` may change with every call: it stands before the last user message, in a tool loop at the end.
    """

    model: str
    fmt: str = "openai-chat"
    endpoint: str = ""
    provider: str = ""
    served: int | None = None
    tools: tuple[JsonText, ...] = ()
    max_tokens: int | None = None
    temperature: float | None = None
    extra: JsonText = ""
    parent: str = ""
    #: The tool by which the model can ask for what left, for marks to name it; "" where it has none.
    recall_tool: str = ""
    standing: History = ()
    tail: History = ()
    #: Whether a provider that must be told so is told what to keep in its cache.
    breakpoints: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A request that fits, and all that is known about it.

    `tokens` is what the messages and tools are reckoned to take, `counted` what the counter says of the messages.
    `edits` are those of this preparation, `turn` the id of its first event, `attempt` counts recoveries.
    """

    thread: str
    call: Call
    request: Request
    window: Window
    budget: Budget
    tokens: int
    counted: int
    edits: tuple[Edit, ...] = ()
    turn: str = ""
    attempt: int = 0
    #: The event of the overflow that this request is to recover from, and what was tried for other refusals.
    overflow: str = ""
    remedies: frozenset[str] = frozenset()
    #: Rows of the thread that the view was made of.
    length: int = 0
    #: How many times what was sent before was replaced: requests of the same number extend each other.
    cuts: int = 0
