"""Haystack: a chat generator that wraps another one and keeps every request within the model's context window.

Use it in place of the other generator, in an `Agent` or a pipeline. The agent's messages stay complete; only what is
sent is compacted. A request that a provider refuses as too long is sent once more, smaller. Haystack does not tell a
generator which conversation it serves, so a conversation is recognised by its messages.
"""

import asyncio
import json
from collections.abc import Sequence
from itertools import dropwhile
from typing import Any, TypeAlias

from everlong.adapters.calls import asend, send
from everlong.adapters.conversations import Conversations
from everlong.adapters.keeper import RECALL, RECALL_DESCRIPTION, RECALL_PARAMETERS, Keeper, missing
from everlong.engine import Engine, Settings, ToolFunction
from everlong.wire import Usage

try:
    from haystack import component, default_from_dict, default_to_dict
    from haystack.core.serialization import component_to_dict
    from haystack.dataclasses import ChatMessage, ChatRole, StreamingCallbackT
    from haystack.tools import Tool, ToolsType, flatten_tools_or_toolsets
    from haystack.utils.deserialization import deserialize_component_inplace
except ImportError as error:
    raise missing("Haystack 3 or newer", "haystack-ai>=3", __name__) from error

__all__ = ["EverlongChatGenerator"]

#: The wire format of a generator, by its class or its nearest base class.
FORMATS = {
    "OpenAIChatGenerator": "openai-chat",
    "OpenAIResponsesChatGenerator": "openai-responses",
    "AnthropicChatGenerator": "anthropic",
    "GoogleGenAIChatGenerator": "gemini",
    "OllamaChatGenerator": "ollama",
}
#: Names of generators' settings for the length of an answer.
LENGTHS = ("max_completion_tokens", "max_output_tokens", "max_tokens")
Kind: TypeAlias = type[BaseException] | None


@component
class EverlongChatGenerator:
    """Keeps requests in the window: `Agent(chat_generator=EverlongChatGenerator(generator, "chat.db"), …)`.

    - `engine`: an Engine, or the URL of a store; the default keeps everything in memory.
    - `pins`: texts that are part of every request.
    - `tools`: the recall tool, for `Agent(tools=[…, *generator.tools])`.
    """

    def __init__(
        self,
        chat_generator: Any,
        engine: Engine | str = "memory:",
        *,
        settings: Settings | None = None,
        window: int | None = None,
        pins: Sequence[str] = (),
        recall: bool = True,
    ) -> None:
        self.chat_generator = chat_generator
        self.keeper = Keeper(engine, settings=settings, window=window, pins=pins, recall=recall)
        self._given = {"engine": engine, "window": window, "pins": list(pins), "recall": recall}
        self._conversations = Conversations()
        self._recalls = recall

    @property
    def tools(self) -> list[Tool]:
        """The recall tool, with which a model can fetch what left the window."""
        if not self._recalls:
            return []

        def recall(messages: list[ChatMessage], what: str, start: int = 0) -> str:
            return self.keeper.recalled(_thread(self._conversations, messages), what, start)

        return [
            Tool(
                name=RECALL,
                description=RECALL_DESCRIPTION,
                parameters=dict(RECALL_PARAMETERS),
                function=recall,
                inputs_from_state={"messages": "messages"},
            )
        ]

    @component.output_types(replies=list[ChatMessage])
    def run(
        self,
        messages: list[ChatMessage] | str,
        generation_kwargs: dict[str, Any] | None = None,
        tools: ToolsType | None = None,
        streaming_callback: StreamingCallbackT | None = None,
    ) -> dict[str, Any]:
        """Answer as many of the messages as fit."""
        said = [ChatMessage.from_user(messages)] if isinstance(messages, str) else messages
        given = _given(generation_kwargs, tools, streaming_callback)
        prepared = self.keeper.prepare(*self._asked(said), **self._call(generation_kwargs, tools))
        return send(self.keeper, prepared, lambda now: self.chat_generator.run(messages=now.messages, **given), _usage)

    @component.output_types(replies=list[ChatMessage])
    async def run_async(
        self,
        messages: list[ChatMessage] | str,
        generation_kwargs: dict[str, Any] | None = None,
        tools: ToolsType | None = None,
        streaming_callback: StreamingCallbackT | None = None,
    ) -> dict[str, Any]:
        """Answer as many of the messages as fit, in an event loop."""
        said = [ChatMessage.from_user(messages)] if isinstance(messages, str) else messages
        given = _given(generation_kwargs, tools, streaming_callback)
        prepared = await self.keeper.aprepare(*self._asked(said), **self._call(generation_kwargs, tools))
        return await asend(self.keeper, prepared, lambda now: self._ask(messages=now.messages, **given), _usage)

    async def _ask(self, **given: Any) -> dict[str, Any]:
        if hasattr(self.chat_generator, "run_async"):
            result: dict[str, Any] = await self.chat_generator.run_async(**given)
            return result
        return await asyncio.to_thread(self.chat_generator.run, **given)

    def _asked(self, messages: list[ChatMessage]) -> tuple[str, list[ChatMessage]]:
        return _thread(self._conversations, messages), messages

    def _call(self, generation_kwargs: dict[str, Any] | None, tools: ToolsType | None) -> dict[str, Any]:
        """The parameters of a call besides the messages; those that it does not set come from the generator."""
        own = self.chat_generator
        options = {**(getattr(own, "generation_kwargs", None) or {}), **(generation_kwargs or {})}
        wanted = tools if tools is not None else getattr(own, "tools", None)
        kinds = (kind.__name__ for kind in type(own).__mro__)
        return {
            "model": str(getattr(own, "model", "")),
            "tools": [
                ToolFunction(tool.name, tool.description, json.dumps(tool.parameters))
                for tool in (flatten_tools_or_toolsets(wanted) if wanted else [])
            ],
            "max_tokens": next((options[name] for name in LENGTHS if options.get(name)), None),
            "fmt": next((FORMATS[kind] for kind in kinds if kind in FORMATS), ""),
        }

    def warm_up(self) -> None:
        """Warm up the wrapped generator."""
        if hasattr(self.chat_generator, "warm_up"):
            self.chat_generator.warm_up()

    def close(self) -> None:
        """Release the resources of the wrapped generator."""
        if hasattr(self.chat_generator, "close"):
            self.chat_generator.close()

    def to_dict(self) -> dict[str, Any]:
        """Serialise the component. This needs the URL of a store; an Engine object cannot be serialised."""
        if not isinstance(self._given["engine"], str):
            raise TypeError("EverlongChatGenerator cannot be serialised: pass the URL of a store as engine=")
        inner = component_to_dict(self.chat_generator, name="chat_generator")
        return default_to_dict(self, chat_generator=inner, **self._given)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "EverlongChatGenerator":
        """Create the component from its serialised form."""
        deserialize_component_inplace(data["init_parameters"], key="chat_generator")
        return default_from_dict(cls, data)


def _thread(conversations: Conversations, messages: Sequence[ChatMessage]) -> str:
    """Return the conversation that these messages continue. Leading system text may change between calls."""
    said = dropwhile(lambda message: message.is_from(ChatRole.SYSTEM), messages)
    return conversations.name([message.to_dict()["content"] for message in said])


def _given(
    generation_kwargs: dict[str, Any] | None, tools: ToolsType | None, streaming_callback: StreamingCallbackT | None
) -> dict[str, Any]:
    """Return only the arguments that the caller gave: a generator need not accept more than messages."""
    arguments = {"generation_kwargs": generation_kwargs, "tools": tools, "streaming_callback": streaming_callback}
    return {name: value for name, value in arguments.items() if value is not None}


def _usage(result: dict[str, Any]) -> Usage | None:
    replies: list[ChatMessage] = result.get("replies", [])
    usage = replies[0].meta.get("usage") if replies else None
    if not isinstance(usage, dict):
        return None
    prompt = usage.get("prompt_tokens") or usage.get("input_tokens") or 0
    output = usage.get("completion_tokens") or usage.get("output_tokens") or 0
    details = usage.get("prompt_tokens_details") or usage.get("input_tokens_details") or {}
    cached = details.get("cached_tokens") if isinstance(details, dict) else 0
    return Usage(prompt=prompt, output=output, cached=cached or 0) if prompt else None
