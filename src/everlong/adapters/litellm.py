"""litellm: its proxy and its async SDK send what fits, whatever the client is.

    litellm_settings:
      callbacks: everlong.adapters.litellm.handler

The handler uses the hook before a deployment is called, so it knows the chosen model, and it runs again for each retry
and each fallback. It learns the window from a refusal; if the router retries, the next attempt fits.
"""

import os
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from everlong.adapters.conversations import Conversations
from everlong.adapters.keeper import Keeper, missing
from everlong.engine import read_variables
from everlong.errors import NotRecovered
from everlong.store import STORE_VARIABLE
from everlong.wire import ANTHROPIC, OPENAI_CHAT, OPENAI_RESPONSES, Usage

try:
    from litellm.integrations.custom_logger import CustomLogger
except ImportError as error:
    raise missing("litellm 1.100 or newer", "litellm>=1.100", __name__) from error

if TYPE_CHECKING:
    from everlong.engine import Engine, Prepared, Settings

__all__ = ["EverlongHandler", "handler"]

T = TypeVar("T")
KEPT = 10_000  # calls that are in progress


@dataclass(frozen=True, slots=True)
class _Shape:
    """Where a kind of call has its messages, its system text and the length of its answer."""

    fmt: str
    messages: str
    system: str = ""
    length: tuple[str, ...] = ("max_tokens",)


#: By litellm's name for the call.
SHAPES: Mapping[str, _Shape] = {
    "acompletion": _Shape(OPENAI_CHAT.name, "messages", length=("max_completion_tokens", "max_tokens")),
    "anthropic_messages": _Shape(ANTHROPIC.name, "messages", "system"),
    "aresponses": _Shape(OPENAI_RESPONSES.name, "input", "instructions", ("max_output_tokens",)),
}


class EverlongHandler(CustomLogger):
    """A litellm callback that fits each request into the context window of the chosen deployment.

    `engine` is an Engine, or the URL of a store; `window` is for models that the registry does not know. A conversation
    is recognised by litellm's session id if the client sends one, otherwise by its messages. Different keys never share
    one.
    """

    def __init__(
        self,
        engine: "Engine | str" = "memory:",
        *,
        settings: "Settings | None" = None,
        window: int | None = None,
        pins: Sequence[str] = (),
    ) -> None:
        super().__init__()
        # The tools are the client's, and nobody here could answer a call of ours.
        self.keeper = Keeper(engine, settings=settings, window=window, pins=pins, recall=False)
        self._conversations = Conversations()
        self._sent: _Newest[Prepared] = _Newest()
        self._next: _Newest[Prepared] = _Newest()

    async def async_pre_call_deployment_hook(self, kwargs: dict[str, Any], call_type: Any) -> dict[str, Any] | None:
        """Return the request with the messages that fit; None for calls without messages."""
        shape = SHAPES.get(getattr(call_type, "value", str(call_type)))
        items = None if shape is None else kwargs.get(shape.messages)
        if shape is None or not isinstance(items, list) or not items:
            return None
        call = str(kwargs.get("litellm_call_id", ""))
        system = kwargs.get(shape.system) if shape.system else None
        head = {"role": "system", "content": system} if system else None
        prepared = self._next.pop(call)
        if prepared is None:
            prepared = await self.keeper.aprepare(
                self._thread(kwargs, items),
                items if head is None else [head, *items],
                model=str(kwargs.get("model", "")),
                tools=kwargs.get("tools") or (),
                max_tokens=next((kwargs[name] for name in shape.length if kwargs.get(name)), None),
                fmt=shape.fmt,
            )
        self._sent.put(call, prepared)
        return {**kwargs, shape.messages: [item for item in prepared.messages if item is not head]}

    async def async_post_call_failure_deployment_hook(
        self, request_data: Mapping[str, Any], exception: Exception, call_type: Any, fallback_depth: int | None = None
    ) -> None:
        """Learn from a refusal. A request that fits is kept for the router's next attempt, if there is one."""
        del call_type, fallback_depth
        call = str(request_data.get("litellm_call_id", ""))
        prepared = self._sent.pop(call)
        if prepared is None:
            return
        try:
            again = await self.keeper.arefused(prepared, exception)
        except NotRecovered:
            return  # the client gets the provider's own error
        if again is not None:
            self._next.put(call, again)

    async def async_log_success_event(self, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any) -> None:
        """Learn from the usage that the provider reports."""
        del start_time, end_time
        prepared = self._sent.pop(str(kwargs.get("litellm_call_id", "")))
        if prepared is not None:
            await self.keeper.aanswered(prepared, _usage_of(getattr(response_obj, "usage", None)))

    def _thread(self, kwargs: Mapping[str, Any], items: Sequence[Any]) -> str:
        """Return the conversation of a request."""
        # If litellm has its own metadata, the other metadata comes from the client, which must not be able to name
        # another's key.
        metadata = {**(kwargs.get("metadata") or {}), **(kwargs.get("litellm_metadata") or {})}
        key = str(metadata.get("user_api_key_hash") or metadata.get("user_api_key") or "")
        session = kwargs.get("litellm_session_id") or metadata.get("session_id")
        return f"{key}/{session}" if session else self._conversations.name(items, scope=key)


#: For a configuration without parameters: store and settings come from Everlong's own variables.
handler: EverlongHandler


class _Newest(Generic[T]):
    """Values by name; if there are too many, the oldest are forgotten."""

    def __init__(self) -> None:
        self._values: OrderedDict[str, T] = OrderedDict()
        self._mine = Lock()

    def put(self, name: str, value: T) -> None:
        with self._mine:
            self._values[name] = value
            while len(self._values) > KEPT:
                self._values.popitem(last=False)

    def pop(self, name: str) -> T | None:
        with self._mine:
            return self._values.pop(name, None)


def _usage_of(usage: Any) -> Usage | None:
    """Return the usage as litellm writes it for all providers: like OpenAI's chat format or its Responses."""
    prompt = getattr(usage, "prompt_tokens", None) or getattr(usage, "input_tokens", None)
    if not prompt:
        return None
    details = getattr(usage, "prompt_tokens_details", None) or getattr(usage, "input_tokens_details", None)
    output = getattr(usage, "completion_tokens", None) or getattr(usage, "output_tokens", None)
    return Usage(prompt=prompt, cached=getattr(details, "cached_tokens", None) or 0, output=output or 0)


def __getattr__(name: str) -> Any:
    """Create `handler` from Everlong's variables when the proxy's configuration names it."""
    if name != "handler":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    settings = read_variables(os.environ)
    made = EverlongHandler(os.environ.get(STORE_VARIABLE) or "memory:", settings=settings)
    globals()["handler"] = made
    return made
