"""pydantic-ai: a capability that keeps every request of an agent within its model's context window.

The agent's messages stay complete. Only what is sent is compacted, directly before it is sent and for the model that
gets it. A pydantic-ai conversation is a thread of the engine. A request that a provider refuses as too long is sent
once more, smaller, and the caller's stream begins with that one.
"""

import json
import operator
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from copy import copy
from itertools import takewhile
from typing import Any, cast

from everlong.adapters.keeper import RECALL, RECALL_DESCRIPTION, RECALL_PARAMETERS, Keeper, missing
from everlong.engine import Engine, Prepared, Settings, ToolFunction
from everlong.wire import Usage

try:
    from pydantic_ai import RunContext, Tool, exceptions
    from pydantic_ai.capabilities import AbstractCapability, WrapRunHandler
    from pydantic_ai.direct import model_request
    from pydantic_ai.exceptions import ModelAPIError
    from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse
    from pydantic_ai.models import Model, ModelRequestContext, ModelRequestParameters
    from pydantic_ai.models.fallback import FallbackModel
    from pydantic_ai.models.wrapper import WrapperModel
    from pydantic_ai.run import AgentRunResult
    from pydantic_ai.settings import ModelSettings
    from pydantic_ai.tools import AgentDepsT
    from pydantic_ai.toolsets import FunctionToolset
except ImportError as error:
    raise missing("pydantic-ai 2 or newer", "pydantic-ai-slim>=2", __name__) from error

__all__ = ["EverlongCapability", "history_processor"]

#: Raised to send a request again. Older versions have neither this exception nor the hook that prepares each attempt.
RETRY: type[Exception] | None = getattr(exceptions, "RetryModelRequest", None)

#: The wire format of a model, by its class or its nearest base class.
FORMATS = {
    "OpenAIChatModel": "openai-chat",
    "OpenAIResponsesModel": "openai-responses",
    "AnthropicModel": "anthropic",
    "GoogleModel": "gemini",
}
REMEMBERED = 256  # conversations of a history processor whose original messages are remembered


class EverlongCapability(AbstractCapability[AgentDepsT]):
    """Keeps requests in the window: `Agent(model, capabilities=[EverlongCapability("chat.db")])`.

    - `engine`: an Engine, or the URL of a store; the default keeps everything in memory.
    - `window`: the context window in tokens, for models that the registry does not know.
    - `pins`: texts that are part of every request.
    - `recall`: whether the model gets a tool to fetch what left the window.
    """

    def __init__(
        self,
        engine: Engine | str = "memory:",
        *,
        settings: Settings | None = None,
        window: int | None = None,
        pins: Sequence[str] = (),
        recall: bool = True,
    ) -> None:
        self.keeper = Keeper(engine, settings=settings, window=window, pins=pins, recall=recall)
        self._conversations = _Conversations(self.keeper, given_back=RETRY is None)
        #: The request in progress, and the smaller one to send instead.
        self._sent: Prepared | None = None
        self._next: Prepared | None = None

    async def for_run(self, ctx: RunContext[AgentDepsT]) -> "EverlongCapability[AgentDepsT]":  # noqa: ARG002 - the hook's
        """Return a capability for one run, because several runs can make requests at the same time."""
        mine = copy(self)
        mine._sent = mine._next = None
        return mine

    def get_toolset(self) -> FunctionToolset[AgentDepsT] | None:
        """Return the recall tool."""
        if not self.keeper.recall:
            return None

        async def recall(ctx: RunContext[AgentDepsT], what: str, start: int = 0) -> str:
            return await self.keeper.arecalled(_thread(ctx), what, start)

        return FunctionToolset(
            [Tool.from_schema(recall, RECALL, RECALL_DESCRIPTION, dict(RECALL_PARAMETERS), takes_ctx=True)]
        )

    async def before_model_request(
        self, ctx: RunContext[AgentDepsT], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Fit the request, in versions of pydantic-ai that do not prepare each attempt."""
        return request_context if RETRY is not None else await self.prepare_model_request(ctx, request_context)

    async def prepare_model_request(
        self, ctx: RunContext[AgentDepsT], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Put the messages that fit into the request, for the model that is about to be called."""
        await self._give_up("another request followed")
        self._sent, self._next = self._next, None
        if self._sent is None:
            self._sent = await self._conversations.prepare(
                _thread(ctx),
                request_context.messages,
                request_context.model,
                request_context.model_settings,
                request_context.model_request_parameters,
            )
        if self._sent is not None:
            request_context.messages = self._conversations.to_send(_thread(ctx), self._sent, request_context.messages)
            request_context.model_settings = _settings(self._sent, request_context.model_settings)
        return request_context

    async def after_model_request(
        self,
        ctx: RunContext[AgentDepsT],  # noqa: ARG002 - the hook is called so
        *,
        request_context: ModelRequestContext,
        response: ModelResponse,
    ) -> ModelResponse:
        """Learn from the reported usage, and ask again if the server silently cut the prompt."""
        if self._sent is None:
            return response
        sent, self._sent = self._sent, None
        again = await self.keeper.aanswered(sent, _usage(response))
        if again is not None and RETRY is not None and not request_context.streaming:
            self._next = again
            raise RETRY
        if again is not None:
            await self.keeper.afailed(again, "the answer was already on its way")
        return response

    async def on_model_request_error(
        self, ctx: RunContext[AgentDepsT], *, request_context: ModelRequestContext, error: Exception
    ) -> ModelResponse:
        """Send less if the request was too long. An error that cannot be recovered is raised again."""
        refused = error
        while self._sent is not None:
            sent, self._sent = self._sent, None
            again = await self.keeper.arefused(sent, refused)
            if again is None:
                break
            if RETRY is not None:
                self._next = again
                raise RETRY
            self._sent = again
            try:
                return await model_request(
                    request_context.model,
                    self._conversations.to_send(_thread(ctx), again, request_context.messages),
                    model_settings=_settings(again, request_context.model_settings),
                    model_request_parameters=request_context.model_request_parameters,
                )
            except ModelAPIError as failure:
                refused = failure
        raise refused

    async def wrap_run(
        self,
        ctx: RunContext[AgentDepsT],  # noqa: ARG002 - the hook is called so
        *,
        handler: WrapRunHandler,
    ) -> AgentRunResult[Any]:
        """Record a request that was never answered, for example because the run was cancelled."""
        try:
            return await handler()
        finally:
            await self._give_up("the run ended before the answer")

    async def _give_up(self, reason: str) -> None:
        if self._sent is not None:
            sent, self._sent = self._sent, None
            await self.keeper.afailed(sent, reason)


def history_processor(
    engine: Engine | str = "memory:",
    *,
    settings: Settings | None = None,
    window: int | None = None,
    pins: Sequence[str] = (),
) -> Callable[[RunContext[Any], list[ModelMessage]], Awaitable[list[ModelMessage]]]:
    """Return a function for `ProcessHistory` that compacts an agent's history, and nothing else.

    It does not recover from refusals and has no recall tool; use the capability for these.
    """
    keeper = Keeper(engine, settings=settings, window=window, pins=pins, recall=False)
    conversations = _Conversations(keeper, given_back=True)

    async def process(ctx: RunContext[Any], messages: list[ModelMessage]) -> list[ModelMessage]:
        thread, model = _thread(ctx), ctx.model
        if not isinstance(model, Model):  # the model of a realtime session, which sends no history
            return messages
        prepared = await conversations.prepare(
            thread, messages, model, cast("ModelSettings | None", ctx.model_settings)
        )
        if prepared is None:
            return messages
        await keeper.aanswered(prepared, None)
        return conversations.to_send(thread, prepared, messages)

    return process


class _Conversations:
    """What is sent of each conversation.

    Some hooks return what was sent last, followed by new messages, instead of the history. Then the history is put
    together again: every request is fitted from the whole history, never from an earlier result.
    """

    def __init__(self, keeper: Keeper, *, given_back: bool) -> None:
        self._keeper = keeper
        self._given_back = given_back
        #: By thread: the whole history, and what was sent of it; the most recently used one is last.
        self._known: OrderedDict[str, tuple[list[ModelMessage], list[ModelMessage]]] = OrderedDict()

    async def prepare(
        self,
        thread: str,
        messages: Sequence[ModelMessage],
        model: Model,
        settings: ModelSettings | None,
        parameters: ModelRequestParameters | None = None,
    ) -> Prepared | None:
        """Return the request to send; None if a provider continues an answer that it began."""
        said = list(messages[: len(messages) - len(_wordless_end(messages))])
        if not said or isinstance(messages[-1], ModelResponse):
            return None
        whole = self._whole(thread, said)
        asked = _asked(model)
        prepared = await self._keeper.aprepare(
            thread,
            [*_head(messages, parameters), *whole],
            model=asked.model_name,
            tools=_tools(parameters),
            max_tokens=(settings or {}).get("max_tokens"),
            fmt=_format(asked),
            provider=asked.system,
            endpoint=asked.base_url or "",
        )
        if self._given_back:
            self._known[thread] = (whole, [])
        return prepared

    def to_send(self, thread: str, prepared: Prepared, messages: Sequence[ModelMessage]) -> list[ModelMessage]:
        """Return the messages that fit, as pydantic-ai sends them: instructions are passed separately."""
        fitting: list[ModelMessage] = prepared.messages
        sent = fitting[1:] if fitting and _is_wordless(fitting[0]) else fitting
        if self._given_back:
            whole, _ = self._known.pop(thread, ([], []))
            self._known[thread] = (whole, sent)
            while len(self._known) > REMEMBERED:
                self._known.popitem(last=False)
        return [*sent, *_wordless_end(messages)]

    def _whole(self, thread: str, messages: list[ModelMessage]) -> list[ModelMessage]:
        whole, sent = self._known.get(thread, ([], []))
        same = 0 < len(sent) <= len(messages) and all(map(operator.is_, sent, messages))
        return [*whole, *messages[len(sent) :]] if same else messages


def _thread(ctx: RunContext[Any]) -> str:
    """Return the id of the conversation, which may span several runs, or else of the run."""
    return ctx.conversation_id or ctx.run_id or ""


def _is_wordless(message: ModelMessage) -> bool:
    return isinstance(message, ModelRequest) and not message.parts


def _wordless_end(messages: Sequence[ModelMessage]) -> list[ModelMessage]:
    """The requests at the end that have only instructions: an agent that continues without a prompt sends one."""
    end = list(takewhile(_is_wordless, reversed(messages)))
    return end[::-1]


def _head(messages: Sequence[ModelMessage], parameters: ModelRequestParameters | None) -> list[ModelMessage]:
    """The instructions as a separate request at the beginning, where system text is expected."""
    parts = parameters.instruction_parts if parameters is not None else None
    if parts:
        instructions = "\n\n".join(part.content for part in parts)
    else:
        requests = (message for message in reversed(messages) if isinstance(message, ModelRequest))
        instructions = next((request.instructions for request in requests if request.instructions), "")
    return [ModelRequest([], instructions=instructions)] if instructions else []


def _asked(model: Model) -> Model:
    """The model behind its wrappers; of fallback models, the first."""
    while True:
        if isinstance(model, WrapperModel):
            model = model.wrapped
        elif isinstance(model, FallbackModel):
            model = model.models[0]
        else:
            return model


def _format(model: Model) -> str:
    return next((FORMATS[kind.__name__] for kind in type(model).__mro__ if kind.__name__ in FORMATS), "")


def _tools(parameters: ModelRequestParameters | None) -> list[ToolFunction]:
    if parameters is None:
        return []
    return [
        ToolFunction(tool.name, tool.description or "", json.dumps(tool.parameters_json_schema))
        for tool in (*parameters.function_tools, *parameters.output_tools)
    ]


def _settings(prepared: Prepared, settings: ModelSettings | None) -> ModelSettings | None:
    """The settings with a shorter answer, if the window leaves less than was asked for."""
    allowed, asked = prepared.request.max_tokens, (settings or {}).get("max_tokens")
    if settings is None or asked is None or allowed is None or asked <= allowed:
        return settings
    return {**settings, "max_tokens": allowed}


def _usage(response: ModelResponse) -> Usage | None:
    usage = response.usage
    if not usage.input_tokens:
        return None
    return Usage(
        prompt=usage.input_tokens,
        cached=usage.cache_read_tokens,
        cache_written=usage.cache_write_tokens,
        output=usage.output_tokens,
    )
