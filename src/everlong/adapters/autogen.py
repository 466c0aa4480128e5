"""AutoGen: a model context that keeps the whole conversation, and a client that sends as much of it as fits.

    context = EverlongChatCompletionContext("chat.db", thread="clerk")
    agent = AssistantAgent("clerk", context.wrap(client), model_context=context, tools=[…, context.recall_tool()])

A context alone does not see system text, tools or refusals. So the messages are fitted in the wrapped client, which
sees all of them. Without a wrapped client the context fits them itself.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any
from uuid import uuid4

from everlong.adapters.calls import asend, astream
from everlong.adapters.keeper import RECALL, RECALL_DESCRIPTION, Keeper, missing
from everlong.engine import Author, Engine, Prepared, Settings
from everlong.wire import Usage

try:
    from autogen_core import Component
    from autogen_core.model_context import ChatCompletionContext
    from autogen_core.models import ChatCompletionClient, CreateResult, LLMMessage
    from autogen_core.tools import FunctionTool
    from pydantic import BaseModel
except ImportError as error:
    raise missing("AutoGen 0.7 or newer", "autogen-agentchat>=0.7", __name__) from error

__all__ = ["EverlongChatCompletionContext", "EverlongConfig"]

#: Clients whose figure for the prompt leaves out cached tokens: nothing is learned from it.
WITHOUT_CACHED_TOKENS = ("AnthropicChatCompletionClient", "AnthropicBedrockChatCompletionClient")


class EverlongConfig(BaseModel):
    """The configuration from which a context is created again."""

    store: str
    thread: str
    model: str = ""
    window: int | None = None
    pins: list[str] = []
    initial_messages: list[LLMMessage] | None = None


class EverlongChatCompletionContext(ChatCompletionContext, Component[EverlongConfig]):
    """A model context of unlimited length. `engine` is an Engine or a store's URL, `thread` the conversation in it.

    `model` is needed only if no client is wrapped. The other arguments are those of `Keeper`.
    """

    component_config_schema = EverlongConfig
    component_provider_override = "everlong.adapters.autogen.EverlongChatCompletionContext"

    def __init__(  # noqa: PLR0913 - the keeper's keywords, and the adapter's own
        self,
        engine: Engine | str = "memory:",
        *,
        thread: str = "",
        model: str = "",
        settings: Settings | None = None,
        window: int | None = None,
        pins: Sequence[str] = (),
        authors: Sequence[Author] = (),
        initial_messages: list[LLMMessage] | None = None,
    ) -> None:
        super().__init__(initial_messages)
        self.keeper = Keeper(engine, settings=settings, window=window, pins=pins, recall=False, authors=authors)
        self.thread = thread or uuid4().hex
        self._wrapped = False
        self._config = EverlongConfig(
            store=engine if isinstance(engine, str) else "memory:",
            thread=self.thread,
            model=model,
            window=window,
            pins=list(pins),
            initial_messages=initial_messages,
        )

    def wrap(self, client: ChatCompletionClient) -> ChatCompletionClient:
        """Return a client that fits its messages with this context. From now on `get_messages` returns all messages."""
        self._wrapped = True
        return _Client(client, self)

    async def get_messages(self) -> list[LLMMessage]:
        """Return the messages for the next call: all of them if a client is wrapped, otherwise those that fit."""
        if self._wrapped or not self._messages:
            return list(self._messages)
        prepared = await self.keeper.aprepare(self.thread, self._messages, model=self._config.model)
        await self.keeper.aanswered(prepared, None)
        return prepared.messages

    def recall_tool(self) -> FunctionTool:
        """Return a tool with which the agent can fetch what left the window."""
        self.keeper.recall = True  # from now on, what is left out names the tool

        async def recall(what: str, start: int = 0) -> str:
            return await self.keeper.arecalled(self.thread, what, start)

        return FunctionTool(recall, name=RECALL, description=RECALL_DESCRIPTION)

    def _to_config(self) -> EverlongConfig:
        return self._config

    @classmethod
    def _from_config(cls, config: EverlongConfig) -> "EverlongChatCompletionContext":
        return cls(
            config.store,
            thread=config.thread,
            model=config.model,
            window=config.window,
            pins=config.pins,
            initial_messages=config.initial_messages,
        )


class _Client(ChatCompletionClient):
    """A client that sends what its context fits. Everything else is the wrapped client's own."""

    component_type = "model"

    def __init__(self, client: ChatCompletionClient, context: EverlongChatCompletionContext) -> None:
        self._client = client
        self._context = context
        described = client.dump_component()
        self._model = str(described.config.get("model", ""))
        self._most = described.config.get("max_tokens") or described.config.get("max_completion_tokens")
        self._usage = _nothing if described.provider.endswith(WITHOUT_CACHED_TOKENS) else _usage

    async def create(self, messages: Sequence[LLMMessage], **options: Any) -> CreateResult:
        """Return the client's answer to as many of the messages as fit."""
        prepared = await self._prepared(messages, options)
        keeper = self._context.keeper
        return await asend(keeper, prepared, lambda now: self._client.create(now.messages, **options), self._usage)

    async def create_stream(
        self, messages: Sequence[LLMMessage], **options: Any
    ) -> AsyncGenerator[str | CreateResult, None]:
        """Yield the pieces of the client's answer, and the whole answer at the end."""
        prepared = await self._prepared(messages, options)

        async def pieces(now: Prepared) -> Any:
            return self._client.create_stream(now.messages, **options)

        async for piece in astream(self._context.keeper, prepared, pieces, self._usage):
            yield piece

    async def _prepared(self, messages: Sequence[LLMMessage], options: Mapping[str, Any]) -> Prepared:
        tools = [_schema(tool) for tool in options.get("tools") or ()]
        context = self._context
        return await context.keeper.aprepare(
            context.thread, list(messages), model=self._model, tools=tools, max_tokens=self._most
        )

    def dump_component(self) -> Any:
        """Return the wrapped client as a component: the wrapper belongs to the context."""
        return self._client.dump_component()

    async def close(self) -> None:
        """Close the client."""
        await self._client.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def actual_usage(self) -> Any:
        """Return the client's own count."""
        return self._client.actual_usage()

    def total_usage(self) -> Any:
        """Return the client's own count."""
        return self._client.total_usage()

    def count_tokens(self, messages: Sequence[LLMMessage], **options: Any) -> int:
        """Return the client's own count."""
        return int(self._client.count_tokens(messages, **options))

    def remaining_tokens(self, messages: Sequence[LLMMessage], **options: Any) -> int:
        """Return the client's own count."""
        return int(self._client.remaining_tokens(messages, **options))

    @property
    def capabilities(self) -> Any:
        """What the client can do."""
        return self._client.capabilities

    @property
    def model_info(self) -> Any:
        """What the client can do."""
        return self._client.model_info


def _schema(tool: Any) -> dict[str, Any]:
    schema = dict(tool if isinstance(tool, Mapping) else tool.schema)
    return {"type": "function", "function": schema}


def _usage(piece: Any) -> Usage | None:
    if not isinstance(piece, CreateResult):
        return None
    return Usage(prompt=piece.usage.prompt_tokens, output=piece.usage.completion_tokens)


def _nothing(_: Any) -> None:
    return None
