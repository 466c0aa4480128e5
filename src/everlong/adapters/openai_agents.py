"""OpenAI Agents SDK: sessions in our store, and the input of a run fitted into the context window before each call.

    session = EverlongSession("user-42", "chat.db")
    agent = Agent(name="clerk", tools=[read_file, recall_tool])
    result = await Runner.run(agent, "…", session=session, run_config=session.run_config())

The session keeps every item; what is sent is a view of it. `run_config` sets the SDK's input filter and wraps the model
provider, in order to recover from refusals and learn from the reported usage. Wrap your own `Model` object with
`EverlongModel`. Runs without a session use `EverlongFilter` as their input filter.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, cast

from everlong.adapters.conversations import Conversations
from everlong.adapters.keeper import RECALL, RECALL_DESCRIPTION, RECALL_PARAMETERS, Keeper, missing
from everlong.core import Message, Opaque, Role
from everlong.errors import NoThread, ThreadChanged, ThreadExists
from everlong.wire import OPENAI_CHAT, OPENAI_RESPONSES, Usage, as_error, classify

try:
    from agents import (
        AgentsException,
        FunctionTool,
        Handoff,
        Model,
        ModelProvider,
        ModelResponse,
        OpenAIResponsesModel,
        RunConfig,
        RunContextWrapper,
        SessionSettings,
        Tool,
    )
    from agents.models.default_models import get_default_model
    from agents.models.fake_id import FAKE_RESPONSES_ID
    from agents.run_config import CallModelData, CallModelInputFilter, ModelInputData
    from openai import OpenAIError
except ImportError as error:
    raise missing("OpenAI Agents SDK 0.24 or newer", "openai-agents>=0.24", __name__) from error

if TYPE_CHECKING:
    from agents import AgentOutputSchemaBase, ModelSettings, ModelTracing, TResponseInputItem
    from agents.items import TResponseStreamEvent
    from agents.retry import ModelRetryAdvice, ModelRetryAdviceRequest
    from agents.tool_context import ToolContext

    from everlong.engine import Engine, Prepared, Settings

__all__ = ["EverlongFilter", "EverlongModel", "EverlongSession", "recall_tool"]

#: Exceptions of a model call that may be a refusal.
REFUSALS = (OpenAIError, AgentsException)
#: Events of a stream before any text: a failure after them can still be recovered.
OPENINGS = frozenset({"response.created", "response.in_progress"})
FAILURES = frozenset({"response.failed", "error"})
#: The rows of a session's thread: an item, or that the last one was removed.
ITEM, TAKEN = "item", "taken"
ATTEMPTS = 8  # another process may write to the session meanwhile

#: The conversation of the run in progress, for the recall tool.
_running: ContextVar["tuple[Keeper, str] | None"] = ContextVar("everlong_running", default=None)


class EverlongSession:
    """A session of the SDK in our store, and the run configuration that keeps it within the context window.

    - `session_id`: the name of the session.
    - `engine`: an Engine, which many sessions can share, or the URL of a store such as `chat.db` or `postgresql://…`.
    - `window`: the context window in tokens, for models that the registry does not know.
    - `pins`: texts that are part of every request.
    - `recall`: whether markers mention the recall tool.
    """

    session_id: str
    session_settings: SessionSettings | None

    def __init__(  # noqa: PLR0913 - what every adapter takes, by name
        self,
        session_id: str,
        engine: "Engine | str" = "memory:",
        *,
        settings: "Settings | None" = None,
        window: int | None = None,
        pins: Sequence[str] = (),
        recall: bool = True,
        session_settings: SessionSettings | None = None,
    ) -> None:
        self.session_id = session_id
        self.session_settings = session_settings or SessionSettings()
        self.filter = EverlongFilter(
            engine, settings=settings, window=window, pins=pins, recall=recall, thread=session_id
        )
        self.keeper = self.filter.keeper
        self._items = _StoredItems(self.keeper, f"{session_id}#items")

    def run_config(self, config: RunConfig | None = None) -> RunConfig:
        """Return a run configuration under which the session fits. Other settings of yours are kept.

        Your own filter runs first. Models given by name are wrapped, and so is a model object in the configuration.
        Wrap an agent's own model object with `EverlongModel`.
        """
        given = config or RunConfig()
        wrapped = EverlongModel(given.model, self.filter) if isinstance(given.model, Model) else given.model
        return replace(
            given,
            model=wrapped,
            model_provider=_Provider(given.model_provider, self.filter),
            call_model_input_filter=_Chained(given.call_model_input_filter, self.filter, names=given.model is not None),
        )

    async def get_items(self, limit: int | None = None) -> "list[TResponseInputItem]":
        """Return the items of the session, oldest first; with `limit`, only the newest."""
        most = limit if limit is not None or self.session_settings is None else self.session_settings.limit
        return await asyncio.to_thread(self._items.read, most)

    async def add_items(self, items: "list[TResponseInputItem]") -> None:
        """Add items, all or none."""
        await asyncio.to_thread(self._items.add, items)

    async def pop_item(self) -> "TResponseInputItem | None":
        """Remove and return the newest item; None if there is none."""
        return await asyncio.to_thread(self._items.take)

    async def clear_session(self) -> None:
        """Remove everything that is stored of the session."""
        await asyncio.to_thread(self._clear)

    def _clear(self) -> None:
        threads = self.keeper.engine.threads
        for thread in threads.threads(archived=None):
            if thread.id in (self.session_id, self._items.thread) or thread.id.startswith(f"{self.session_id}~"):
                with suppress(NoThread):
                    threads.remove(thread.id)


class EverlongFilter:
    """A `call_model_input_filter` for runs without a session: fits the input before each model call.

    A conversation is recognised by its items. Only `EverlongModel`, which accepts this filter too, recovers from
    refusals.
    """

    def __init__(
        self,
        engine: "Engine | str" = "memory:",
        *,
        settings: "Settings | None" = None,
        window: int | None = None,
        pins: Sequence[str] = (),
        recall: bool = True,
        thread: str = "",
    ) -> None:
        self.keeper = Keeper(engine, settings=settings, window=window, pins=pins, recall=recall)
        self._toolless = Keeper(self.keeper.engine, pins=pins, recall=False)
        self._thread = thread
        self._conversations = Conversations()

    async def __call__(self, data: CallModelData[Any]) -> ModelInputData:
        """Return the input that the model gets."""
        self.enter(data.model_data.input)
        model = data.agent.model
        if isinstance(model, EverlongModel):
            return data.model_data  # this model fits its input itself, and knows more
        tools = await data.agent.get_all_tools(RunContextWrapper(data.context))
        request = _Request(self, data.model_data.instructions, model, tools, data.agent.model_settings.max_tokens)
        prepared = await request.prepare(data.model_data.input)
        return ModelInputData(input=request.items(prepared), instructions=data.model_data.instructions)

    def enter(self, items: "Sequence[TResponseInputItem]") -> str:
        """Remember the conversation for the tools of this run, and return the name of its thread."""
        thread = self._thread or self._conversations.name(items)
        _running.set((self.keeper, thread))
        return thread

    def keeper_for(self, tools: Sequence[dict[str, Any]]) -> Keeper:
        """Return the keeper for a call. Markers mention the recall tool only if the run offers it."""
        return self.keeper if any(tool["name"] == RECALL for tool in tools) else self._toolless


@dataclass(slots=True)
class _Request:
    """A model call without its input."""

    filter: EverlongFilter
    instructions: str | None
    model: Model | str | None
    tools: "Sequence[Tool]" = ()
    max_tokens: int | None = None
    handoffs: Sequence[Handoff[Any, Any]] = ()
    keeper: Keeper = field(init=False)
    _head: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        self.keeper = self.filter.keeper_for(self.schemas)

    @property
    def schemas(self) -> list[dict[str, Any]]:
        """The tools as the model reads them; tools that run at the provider are counted there."""
        own = [
            {
                "type": "function",
                "name": each.name,
                "description": each.description,
                "parameters": each.params_json_schema,
            }
            for each in self.tools
            if isinstance(each, FunctionTool)
        ]
        return own + [
            {
                "type": "function",
                "name": each.tool_name,
                "description": each.tool_description,
                "parameters": each.input_json_schema,
            }
            for each in self.handoffs
        ]

    async def prepare(self, items: "Sequence[TResponseInputItem]") -> "Prepared":
        """Return what to send for these items."""
        history: list[Any] = list(items)
        if self.instructions:
            # Typed parts show that the list consists of Responses items, whatever format the model speaks.
            parts = [{"type": "input_text", "text": self.instructions}]
            self._head = {"type": "message", "role": "system", "content": parts}
            history.insert(0, self._head)
        return await self.keeper.aprepare(
            self.filter.enter(items),
            history,
            model=_name_of(self.model),
            tools=self.schemas,
            max_tokens=self.max_tokens,
            fmt=_format_of(self.model, items),
        )

    def items(self, prepared: "Prepared") -> "list[TResponseInputItem]":
        """Return the items to send, without the instructions, which are passed separately."""
        return [item for item in prepared.messages if item is not self._head]


@dataclass(frozen=True, slots=True)
class _Chained:
    """The filter of a run configuration: the user's own filter, then ours, unless the model fits its input itself."""

    own: CallModelInputFilter | None
    ours: EverlongFilter
    #: Whether the run configuration names the model, so that it is always wrapped.
    names: bool

    async def __call__(self, data: CallModelData[Any]) -> ModelInputData:
        if self.own is not None:
            given = self.own(data)
            data = replace(data, model_data=await given if isawaitable(given) else given)
        if self.names or not isinstance(data.agent.model, Model):
            self.ours.enter(data.model_data.input)
            return data.model_data
        return await self.ours(data)


# --- models ----------------------------------------------------------------------------------------------------------


class EverlongModel(Model):
    """A wrapper for your model: it gets what fits, learns from the usage, and is asked again after an overflow."""

    def __init__(self, model: Model, keeps: EverlongFilter | EverlongSession) -> None:
        self.inner = model
        self._filter = keeps.filter if isinstance(keeps, EverlongSession) else keeps

    async def get_response(  # noqa: PLR0913 - as the SDK has it
        self,
        system_instructions: str | None,
        input: "str | list[TResponseInputItem]",  # noqa: A002 - its name there
        model_settings: "ModelSettings",
        tools: "list[Tool]",
        output_schema: "AgentOutputSchemaBase | None",
        handoffs: "list[Handoff[Any, Any]]",
        tracing: "ModelTracing",
        **more: Any,
    ) -> ModelResponse:
        """Return the model's response."""
        request = self._request(system_instructions, model_settings, tools, handoffs)
        prepared = await request.prepare(_items_of(input))
        while True:
            settings = _shorter(model_settings, prepared)
            sent = request.items(prepared)
            try:
                response = await self.inner.get_response(
                    system_instructions, sent, settings, tools, output_schema, handoffs, tracing, **more
                )
            except REFUSALS as error:
                prepared = await self._again(request, prepared, error)
                continue
            again = await request.keeper.aanswered(prepared, _usage_of(response.usage))
            if again is None:
                return response
            prepared = again

    async def stream_response(  # noqa: PLR0913 - as the SDK has it
        self,
        system_instructions: str | None,
        input: "str | list[TResponseInputItem]",  # noqa: A002 - its name there
        model_settings: "ModelSettings",
        tools: "list[Tool]",
        output_schema: "AgentOutputSchemaBase | None",
        handoffs: "list[Handoff[Any, Any]]",
        tracing: "ModelTracing",
        **more: Any,
    ) -> "AsyncIterator[TResponseStreamEvent]":
        """Yield the events of the model's response. It can be asked again only before the first text."""
        request = self._request(system_instructions, model_settings, tools, handoffs)
        prepared: Prepared | None = await request.prepare(_items_of(input))
        while prepared is not None:
            settings = _shorter(model_settings, prepared)
            stream = self.inner.stream_response(
                system_instructions,
                request.items(prepared),
                settings,
                tools,
                output_schema,
                handoffs,
                tracing,
                **more,
            )
            attempt = _Attempt(self, request, prepared)
            async with aclosing(attempt.events(stream)) as events:
                async for event in events:
                    yield event
            prepared = attempt.next

    def __getattr__(self, name: str) -> Any:
        """Return any other attribute of the model, such as whether it accepts a key for the prompt cache."""
        if name == "inner":  # not set yet while it is being copied
            raise AttributeError(name)
        return getattr(self.inner, name)

    async def _cleanup_on_run_end(self, owner: object) -> None:
        await self.inner._cleanup_on_run_end(owner)

    def get_retry_advice(self, request: "ModelRetryAdviceRequest") -> "ModelRetryAdvice | None":
        """Return the model's own advice about a failure."""
        return self.inner.get_retry_advice(request)

    async def close(self) -> None:
        """Close the model."""
        await self.inner.close()

    def _request(
        self,
        instructions: str | None,
        settings: "ModelSettings",
        tools: "list[Tool]",
        handoffs: "list[Handoff[Any, Any]]",
    ) -> _Request:
        return _Request(self._filter, instructions, self.inner, tools, settings.max_tokens, handoffs)

    async def _again(self, request: _Request, prepared: "Prepared", error: Exception) -> "Prepared":
        """Return what to send after a refusal. Raises the model's error if nothing can be sent."""
        again = await request.keeper.arefused(prepared, error)
        if again is None:
            raise error
        return again


@dataclass(slots=True)
class _Attempt:
    """One stream of a model. `next` is what to send after it; None if it was the last one."""

    model: EverlongModel
    request: _Request
    prepared: "Prepared"
    next: "Prepared | None" = None

    async def events(
        self, stream: "AsyncIterator[TResponseStreamEvent]"
    ) -> "AsyncGenerator[TResponseStreamEvent, None]":
        """Yield the events; those before the first text are held back until it comes."""
        held: list[TResponseStreamEvent] = []
        begun = over = False
        try:
            async for event in stream:
                if not begun and event.type in OPENINGS:
                    held.append(event)
                    continue
                if not begun and event.type in FAILURES:
                    over = True
                    self.next = await self.request.keeper.arefused(self.prepared, _failure(event))
                    if self.next is not None:
                        return
                begun = True
                for each in (*held, event):
                    yield each
                held = []
                over = over or await self._completes(event)
        except REFUSALS as error:
            if begun:
                raise
            over = True
            self.next = await self.model._again(self.request, self.prepared, error)
            return
        finally:
            if not over:
                self.request.keeper.failed(self.prepared)
        for each in held:
            yield each

    async def _completes(self, event: "TResponseStreamEvent") -> bool:
        """Record the usage of an answer that this event completes; return whether it does."""
        response = getattr(event, "response", None)
        if event.type != "response.completed" or response is None:
            return False
        await self.request.keeper.aanswered(self.prepared, _usage_of(response.usage))
        return True


class _Provider(ModelProvider):
    """A provider whose models are wrapped."""

    def __init__(self, inner: ModelProvider, keeps: EverlongFilter) -> None:
        self._inner = inner
        self._filter = keeps

    def get_model(self, model_name: str | None) -> Model:
        return EverlongModel(self._inner.get_model(model_name), self._filter)

    async def aclose(self) -> None:
        await self._inner.aclose()


def _name_of(model: Model | str | None) -> str:
    """Return the name of a model; the SDK's own models have it in their field `model`."""
    name = model if isinstance(model, str) else getattr(model, "model", None)
    return name if isinstance(name, str) and name else get_default_model()


def _format_of(model: Model | str | None, items: "Sequence[TResponseInputItem]") -> str:
    """Return the wire format in which the SDK calls a model: it rewrites the items for all formats but Responses.

    For a model that is only a name this is unknown, but answers of chat models have a special id in the SDK.
    """
    written = isinstance(model, Model) and not isinstance(model, OpenAIResponsesModel)
    if written or any(isinstance(item, dict) and item.get("id") == FAKE_RESPONSES_ID for item in items):
        return OPENAI_CHAT.name
    return OPENAI_RESPONSES.name


def _items_of(given: "str | list[TResponseInputItem]") -> "list[TResponseInputItem]":
    return [{"role": "user", "content": given}] if isinstance(given, str) else given


def _shorter(settings: "ModelSettings", prepared: "Prepared") -> "ModelSettings":
    """Return the settings with a length of the answer that fits, if a length is set."""
    room = prepared.request.max_tokens
    asked = settings.max_tokens
    return settings if asked is None or room is None or room >= asked else replace(settings, max_tokens=room)


def _usage_of(usage: Any) -> Usage | None:
    """Return the usage from the SDK's own usage or from a response; None if nothing was reported."""
    if usage is None or not usage.input_tokens:
        return None
    return Usage(
        prompt=usage.input_tokens,
        cached=getattr(usage.input_tokens_details, "cached_tokens", None) or 0,
        output=usage.output_tokens,
        reasoning=getattr(usage.output_tokens_details, "reasoning_tokens", None) or 0,
    )


def _failure(event: Any) -> Exception:
    """Return the refusal in an event of a stream."""
    response = getattr(event, "response", None)
    error = event if response is None else response.error
    return as_error(classify("" if error is None else error.model_dump_json()))


# --- items -----------------------------------------------------------------------------------------------------------


class _StoredItems:
    """The items of a session in a separate thread, unchanged. Known items are not read again."""

    def __init__(self, keeper: Keeper, thread: str) -> None:
        self.thread = thread
        self._threads = keeper.engine.threads
        self._known: list[str] = []
        self._length = 0

    def read(self, most: int | None) -> "list[TResponseInputItem]":
        """Return the newest items, all if `most` is None."""
        known = self._refreshed()
        chosen = known if most is None else known[max(0, len(known) - most) :]
        return [json.loads(text) for text in chosen]

    def add(self, items: "Sequence[TResponseInputItem]") -> None:
        """Add items."""
        if items:
            rows = [_row(ITEM, json.dumps(item, ensure_ascii=False, default=_plain)) for item in items]
            self._created()
            self._threads.append(self.thread, rows)

    def take(self) -> "TResponseInputItem | None":
        """Remove and return the newest item."""
        for _ in range(ATTEMPTS):
            known = self._refreshed()
            if not known:
                return None
            last = known[-1]
            with suppress(ThreadChanged):
                self._threads.append(self.thread, [_row(TAKEN, "{}")], expected=self._length)
                return cast("TResponseInputItem", json.loads(last))
        raise ThreadChanged(f"session {self.thread!r} keeps changing: no item could be removed")

    def _created(self) -> None:
        with suppress(ThreadExists):
            self._threads.create(self.thread)
            self._threads.change(self.thread, archived=True)  # people should look at the thread of requests instead

    def _refreshed(self) -> list[str]:
        """Return the current items; only new rows are read."""
        try:
            length = self._threads.thread(self.thread).length
        except NoThread:
            self._known, self._length = [], 0
            return []
        known, start = ([], 0) if length < self._length else (list(self._known), self._length)
        for row in self._threads.read(self.thread, start):
            start = row.order + 1
            part = row.entry.parts[0] if isinstance(row.entry, Message) else None
            if isinstance(part, Opaque) and part.kind == ITEM:
                known.append(part.body)
            elif isinstance(part, Opaque) and known:
                known.pop()
        self._known, self._length = known, start
        return known


def _row(kind: str, body: str) -> Message:
    return Message(Role.USER, (Opaque(kind, body),))


def _plain(value: Any) -> Any:
    """Return an object of the SDK as plain JSON values."""
    return value.model_dump(mode="json", exclude_unset=True)


# --- the recall tool -------------------------------------------------------------------------------------------------


async def _recall(_: "ToolContext[Any]", arguments: str) -> str:
    """Return what the model asks for from the conversation of its run."""
    running = _running.get()
    if running is None:
        return "nothing was left out: this run has no everlong session and no everlong filter"
    keeper, thread = running
    asked = json.loads(arguments or "{}")
    return await keeper.arecalled(thread, str(asked.get("what", "")), int(asked.get("start") or 0))


#: The tool with which a model fetches what left its window; for agents of any session.
recall_tool = FunctionTool(
    name=RECALL,
    description=RECALL_DESCRIPTION,
    params_json_schema=RECALL_PARAMETERS,
    on_invoke_tool=_recall,
    strict_json_schema=False,
)
