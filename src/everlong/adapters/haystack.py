"""Haystack: a chat generator around another one, which keeps every request within the window of its model.

It stands where the other one stood, in an `Agent` or in a pipeline. What the agent holds stays whole: only what is sent
is cut. A request that a provider refuses for its size is sent once more, smaller. Haystack gives a generator no name of
the conversation, so a conversation is known by its messages: the one that was sent before and grew.
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

#: The wire format of a generator, by its class or the nearest one that it is derived from.
FORMATS = {
    "OpenAIChatGenerator": "openai-chat",
    "OpenAIResponsesChatGenerator": "openai-responses",
    "AnthropicChatGenerator": "anthropic",
    "GoogleGenAIChatGenerator": "gemini",
    "OllamaChatGenerator": "ollama",
}
#: The names that generators have for the length of an answer.
LENGTHS = ("max_completion_tokens", "max_output_tokens", "max_tokens")
Kind: TypeAlias = type[BaseException] | None


@component
class EverlongChatGenerator:
    """Keeps conversations within the window: `Agent(chat_generator=EverlongChatGenerator(generator, "chat.db"), …)`.

    `engine` is an Engine or the address of a store; the default keeps everything in memory. `pins` must stay in every
    request. `tools` has the recall tool, for `Agent(tools=[…, *generator.tools])`.
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
        """The tools that belong to it: the one by which a model reads again what left the window."""
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
        """Answer messages, as many of them as fit."""
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
        """Answer messages, as many of them as fit."""
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
        """What is asked beside the messages. What a call leaves open, the generator itself says."""
        own = self.chat_generator
        told = {**(getattr(own, "generation_kwargs", None) or {}), **(generation_kwargs or {})}
        wanted = tools if tools is not None else getattr(own, "tools", None)
        kinds = (kind.__name__ for kind in type(own).__mro__)
        return {
            "model": str(getattr(own, "model", "")),
            "tools": [
                ToolFunction(tool.name, tool.description, json.dumps(tool.parameters))
                for tool in (flatten_tools_or_toolsets(wanted) if wanted else [])
            ],
            "max_tokens": next((told[name] for name in LENGTHS if told.get(name)), None),
            "fmt": next((FORMATS[kind] for kind in kinds if kind in FORMATS), ""),
        }

    def warm_up(self) -> None:
        """Warm up the generator inside."""
        if hasattr(self.chat_generator, "warm_up"):
            self.chat_generator.warm_up()

    def close(self) -> None:
        """Release what the generator inside holds."""
        if hasattr(self.chat_generator, "close"):
            self.chat_generator.close()

    def to_dict(self) -> dict[str, Any]:
        """Write the component down; an engine of your own cannot be written, the address of a store can."""
        if not isinstance(self._given["engine"], str):
            raise TypeError("EverlongChatGenerator cannot be written as a dict: give engine= the address of a store")
        inner = component_to_dict(self.chat_generator, name="chat_generator")
        return default_to_dict(self, chat_generator=inner, **self._given)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "EverlongChatGenerator":
        """Make the component again."""
        deserialize_component_inplace(data["init_parameters"], key="chat_generator")
        return default_from_dict(cls, data)


def _thread(conversations: Conversations, messages: Sequence[ChatMessage]) -> str:
    """The conversation that these messages go on. System text in front may change from call to call."""
    said = dropwhile(lambda message: message.is_from(ChatRole.SYSTEM), messages)
    return conversations.name([message.to_dict()["content"] for message in said])


def _given(
    generation_kwargs: dict[str, Any] | None, tools: ToolsType | None, streaming_callback: StreamingCallbackT | None
) -> dict[str, Any]:
    """What the caller said: a generator need not take more than messages."""
    told = {"generation_kwargs": generation_kwargs, "tools": tools, "streaming_callback": streaming_callback}
    return {name: value for name, value in told.items() if value is not None}


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
