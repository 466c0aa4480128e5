"""LangChain and LangGraph: agents whose conversations go past the context window.

    agent = create_agent(model, tools, middleware=[EverlongMiddleware()])

The agent's state keeps every message. Before each model call the middleware replaces only what is sent. A conversation
is recognised by its `thread_id`, or without one by the id of its first message.
"""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from everlong.adapters.calls import asend, send
from everlong.adapters.keeper import RECALL, RECALL_DESCRIPTION, RECALL_PARAMETERS, Keeper, missing
from everlong.engine import Author, Engine, Prepared, Settings
from everlong.wire import ANTHROPIC, GEMINI, OLLAMA, OPENAI_CHAT, OPENAI_RESPONSES, Format, Usage

try:
    from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse
    from langchain.agents.structured_output import AutoStrategy, ProviderStrategy, ToolStrategy
    from langchain.tools import ToolRuntime
    from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, SystemMessage
    from langchain_core.tools import BaseTool, StructuredTool
    from langchain_core.utils.function_calling import convert_to_openai_tool
    from langgraph.runtime import Runtime
except ImportError as error:
    raise missing("LangChain 1.4 or newer", "langchain>=1.4", __name__) from error

__all__ = ["EverlongMiddleware", "pre_model_hook"]

#: The wire format of a package's chat models; derived classes speak the same.
SPOKEN: dict[str, Format] = {
    "langchain_anthropic": ANTHROPIC,
    "langchain_google_genai": GEMINI,
    "langchain_google_vertexai": GEMINI,
    "langchain_ollama": OLLAMA,
    "langchain_openai": OPENAI_CHAT,
}
#: The attributes of chat models for their name, the length of an answer and their address.
MODEL = ("model_name", "model", "model_id", "deployment_name")
LENGTH = ("max_tokens", "max_output_tokens", "num_predict")
ADDRESS = ("openai_api_base", "anthropic_api_url", "base_url", "endpoint_url")


class EverlongMiddleware(AgentMiddleware[AgentState[Any], Any, Any]):
    """Keeps what an agent sends within its model's context window. Put it last, so that it sees what is really sent.

    - `engine`: an Engine, or the URL of a store. With the default, everything is in memory and lost when the program
      ends.
    - `window`: the context window in tokens, for models that the registry does not know.
    - `pins`: texts that are part of every request.
    - `recall`: whether the model gets a tool to fetch what left the window.
    - `authors`: models that write summaries, in agents that run in an event loop.
    """

    def __init__(
        self,
        engine: Engine | str = "memory:",
        *,
        settings: Settings | None = None,
        window: int | None = None,
        pins: Sequence[str] = (),
        recall: bool = True,
        authors: Sequence[Author] = (),
    ) -> None:
        super().__init__()
        self.keeper = Keeper(engine, settings=settings, window=window, pins=pins, recall=recall, authors=authors)
        self.tools: Sequence[BaseTool] = [_recall_tool(self.keeper)] if recall else []

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Call the model with what fits, and again with less if it refuses."""
        asked = _Asked.of(request)
        prepared = self.keeper.prepare(asked.thread, asked.items, **asked.call)
        return send(self.keeper, prepared, lambda now: handler(asked.sent(now)), _usage_of)

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        """Call the model with what fits, and again with less if it refuses, in an event loop."""
        asked = _Asked.of(request)
        prepared = await self.keeper.aprepare(asked.thread, asked.items, **asked.call)
        return await asend(self.keeper, prepared, lambda now: handler(asked.sent(now)), _usage_of)


def pre_model_hook(  # noqa: PLR0913 - the agent's own, and what users of every adapter may set
    model: Any,
    tools: Sequence[Any] = (),
    *,
    prompt: str | SystemMessage | None = None,
    engine: Engine | str = "memory:",
    settings: Settings | None = None,
    window: int | None = None,
    pins: Sequence[str] = (),
) -> Callable[[Any, Runtime[Any]], dict[str, list[AnyMessage]]]:
    """Return a hook for LangGraph's `create_react_agent`: what is sent fits, and the state stays complete.

    The hook does not see the agent's model, tools and prompt, so pass it the same ones. It does not see refusals
    either. `create_agent` with `EverlongMiddleware` does, and also offers the model a recall tool.
    """
    keeper = Keeper(engine, settings=settings, window=window, pins=pins, recall=False)
    system = [SystemMessage(prompt)] if isinstance(prompt, str) else [prompt] if prompt else []
    call = _call_of(model, {}, [*map(_schema, tools)])
    waiting: dict[str, Prepared] = {}

    def fit_messages(state: Any, runtime: Runtime[Any]) -> dict[str, list[AnyMessage]]:
        messages = state["messages"] if isinstance(state, dict) else state.messages
        thread = _thread(runtime, messages)
        before = waiting.pop(thread, None)
        if before is not None:
            keeper.answered(before, _usage(messages))
        prepared = keeper.prepare(thread, [*system, *messages], **call)
        waiting[thread] = prepared
        while len(waiting) > MOST_WAITING:
            del waiting[next(iter(waiting))]
        sent = prepared.messages
        return {"llm_input_messages": sent[1:] if system and sent[:1] == system else sent}

    return fit_messages


#: Conversations of a hook whose last answer has not been seen yet.
MOST_WAITING = 1_000


# --- one call of the model ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Asked:
    """A request of the agent, and how to change it."""

    request: ModelRequest[Any]
    thread: str
    items: list[BaseMessage]
    call: dict[str, Any]

    @classmethod
    def of(cls, request: ModelRequest[Any]) -> "_Asked":
        system = [request.system_message] if request.system_message is not None else []
        schemas = [*map(_schema, request.tools), *_answer_schemas(request.response_format)]
        call = _call_of(request.model, request.model_settings, schemas)
        return cls(request, _thread(request.runtime, request.messages), [*system, *request.messages], call)

    def sent(self, prepared: Prepared) -> ModelRequest[Any]:
        """Return the request with what fits. Leading system text is the agent's own, plus what the engine adds."""
        messages: list[Any] = prepared.messages
        head = 0
        while head < len(messages) and isinstance(messages[head], SystemMessage):
            head += 1
        system = self.request.system_message
        if head and (head > 1 or messages[0] is not system):
            system = messages[0] if head == 1 else SystemMessage([*_blocks(messages[:head])])
        asked, given = self.call["max_tokens"], prepared.request.max_tokens
        settings = self.request.model_settings
        if asked and given and given < asked:
            settings = {**settings, _length_of(self.request.model, settings)[0]: given}
        return self.request.override(system_message=system, messages=messages[head:], model_settings=settings)


def _usage_of(response: ModelResponse[Any]) -> Usage | None:
    return _usage(response.result)


def _blocks(messages: Sequence[SystemMessage]) -> Iterator[str | dict[Any, Any]]:
    for message in messages:
        if isinstance(message.content, str):
            yield {"type": "text", "text": message.content}
        else:
            yield from message.content


def _recall_tool(keeper: Keeper) -> BaseTool:
    def recall(what: str, runtime: ToolRuntime[Any, Any], start: int = 0) -> str:
        return keeper.recalled(_thread(runtime, runtime.state["messages"]), what, start)

    async def arecall(what: str, runtime: ToolRuntime[Any, Any], start: int = 0) -> str:
        return await keeper.arecalled(_thread(runtime, runtime.state["messages"]), what, start)

    return StructuredTool.from_function(
        recall, arecall, name=RECALL, description=RECALL_DESCRIPTION, args_schema=RECALL_PARAMETERS
    )


# --- which conversation, which model ------------------------------------------------------------------------------


def _thread(runtime: "Runtime[Any] | ToolRuntime[Any, Any]", messages: Sequence[BaseMessage]) -> str:
    """Return the name of the conversation.

    An agent inside another one runs under the other's `thread_id`, so its conversation is named after the nodes that
    led to it and its first message. Example: "42", "42/tools/8c1f…"
    """
    info = runtime.execution_info if runtime is not None else None
    thread = info.thread_id if info is not None and info.thread_id is not None else ""
    above = info.checkpoint_ns.split("|")[:-1] if info is not None else []
    first = next((message.id for message in messages if message.id), None) or uuid4().hex
    names = [node.partition(":")[0] for node in above]
    return "/".join([str(thread)] if thread and not names else [str(thread), *names, first]).lstrip("/")


def _call_of(model: Any, settings: dict[str, Any], schemas: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """What the engine needs to know of a chat model: keyword arguments of `Keeper.prepare`."""
    model = getattr(model, "bound", model)
    return {
        "model": _text_of(model, MODEL).removeprefix("models/"),
        "tools": schemas,
        "max_tokens": _length_of(model, settings)[1],
        "fmt": _format_of(model),
        "endpoint": _text_of(model, ADDRESS),
    }


def _format_of(model: Any) -> str:
    for kind in type(model).__mro__:
        spoken = SPOKEN.get(kind.__module__.partition(".")[0])
        if spoken is not None:
            return OPENAI_RESPONSES.name if getattr(model, "use_responses_api", None) is True else spoken.name
    return ""


def _text_of(model: Any, names: Sequence[str]) -> str:
    return next((value for name in names if isinstance(value := getattr(model, name, None), str) and value), "")


def _length_of(model: Any, settings: dict[str, Any]) -> tuple[str, int | None]:
    """The name of the setting for the longest answer, and its value."""
    for name in LENGTH:
        length = settings.get(name, getattr(model, name, None))
        if isinstance(length, int) and length > 0:
            return name, length
    return LENGTH[0], None


def _schema(tool: Any) -> dict[str, Any]:
    """The schema of a tool; a dict is a provider's own schema."""
    return tool if isinstance(tool, dict) else convert_to_openai_tool(tool)


def _answer_schemas(wanted: Any) -> list[dict[str, Any]]:
    """The schemas of a structured answer, which the model reads together with the tools."""
    match wanted:
        case None:
            return []
        case ProviderStrategy():
            return [wanted.schema_spec.json_schema]
        case ToolStrategy():
            return [spec.json_schema for spec in wanted.schema_specs]
        case AutoStrategy():
            return [spec.json_schema for spec in ToolStrategy(wanted.schema).schema_specs]
        case _:
            return [spec.json_schema for spec in ToolStrategy(wanted).schema_specs]


def _usage(messages: Sequence[BaseMessage]) -> Usage | None:
    """What the provider reported for the newest answer."""
    answer = next((message for message in reversed(messages) if isinstance(message, AIMessage)), None)
    used = answer.usage_metadata if answer is not None else None
    if used is None:
        return None
    read, written = used.get("input_token_details", {}), used.get("output_token_details", {})
    return Usage(
        prompt=used["input_tokens"],
        cached=read.get("cache_read", 0),
        cache_written=read.get("cache_creation", 0),
        output=used["output_tokens"],
        reasoning=written.get("reasoning", 0),
    )
