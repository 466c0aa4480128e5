"""haystack's `CompactionHook` with its compactors, run before each call of the model as an `Agent` runs it.

It compacts at the whole budget, to 99 % of it, with an exact counter: its defaults, 70 and 40 %, would waste space.
There are two hooks in a row, as its documentation allows. A summary, if needed, is an extract.
"""

import json
from collections.abc import Callable
from typing import Any

from haystack.components.agents.state.state import State
from haystack.dataclasses import ChatMessage, TextContent, ToolCall, ToolCallResult
from haystack.dataclasses.chat_message import ChatRole, ReasoningContent
from haystack.hooks.compaction import (
    CompactionHook,
    SlidingWindowCompactor,
    SummarizationCompactor,
    ToolResultPruningCompactor,
)
from haystack.hooks.compaction.types import Compactor

from everlong.lab.peers.extract import extract, room_for_summary
from everlong.lab.peers.rules import text_tokens, total
from everlong.lab.peers.shapes import Fitting, Message, without_empty_calls

COMPACT_TO = 0.99
SCHEMA = {"messages": {"type": list[ChatMessage]}, "context_tokens": {"type": int}}


class _Exact:
    """The counter that a careful user would pass."""

    def count(self, messages: list[ChatMessage], tools: object = None) -> int:  # noqa: ARG002 - it has no tools
        return total(_write(messages, []))

    def to_dict(self) -> dict[str, Any]:
        return {}


class _Summarizer:
    """A chat generator that quotes from the text to summarise."""

    def __init__(self, room: int) -> None:
        self._room = room

    def run(self, messages: list[ChatMessage], **_: object) -> dict[str, list[ChatMessage]]:
        text = "\n".join(message.text or "" for message in messages if message.role is ChatRole.USER)
        return {"replies": [ChatMessage.from_assistant(extract(text, self._room, text_tokens))]}


def _way(compactors: Callable[[int], list[Compactor]]) -> Fitting:
    def fit(messages: list[ChatMessage], budget: int) -> list[ChatMessage]:
        state = State(schema=SCHEMA, data={"messages": messages})
        for compactor in compactors(budget):
            hook = CompactionHook(
                compactor, context_window=budget, compact_at=1.0, compact_to=COMPACT_TO, token_counter=_Exact()
            )
            hook.run(state)
        return state.data["messages"]

    return Fitting(read=_read, fit=fit, write=_write)


def _read(messages: list[Message]) -> list[ChatMessage]:
    read: list[ChatMessage] = []
    calls: dict[str, ToolCall] = {}
    for message in messages:
        match message["role"]:
            case "system":
                read.append(ChatMessage.from_system(message["content"]))
            case "user":
                read.append(ChatMessage.from_user(message["content"], name=message.get("name")))
            case "tool":
                origin = calls.get(message["tool_call_id"]) or ToolCall("tool", {}, id=message["tool_call_id"])
                read.append(ChatMessage.from_tool(message["content"], origin=origin))
            case _:
                made = [_call(call) for call in message.get("tool_calls") or ()]
                calls |= {call.id: call for call in made if call.id}
                read.append(
                    ChatMessage.from_assistant(
                        message.get("content") or None,
                        name=message.get("name"),
                        tool_calls=made or None,
                        reasoning=message.get("reasoning_content") or None,
                    )
                )
    return read


def _call(call: Message) -> ToolCall:
    function = call["function"]
    return ToolCall(function["name"], json.loads(function["arguments"]), id=call["id"])


def _write(messages: list[ChatMessage], _: list[Message]) -> list[Message]:
    return without_empty_calls([_written(message) for message in messages])


def _written(message: ChatMessage) -> Message:
    result = message.tool_call_result
    if isinstance(result, ToolCallResult):
        return {"role": "tool", "tool_call_id": result.origin.id, "content": _words(result.result)}
    written: Message = {"role": message.role.value, "content": message.text or None}
    if message.name:
        written["name"] = message.name
    if message.role is not ChatRole.ASSISTANT:
        written["content"] = message.text or ""
        return written
    thought = message.reasoning
    if isinstance(thought, ReasoningContent):
        written["reasoning_content"] = thought.reasoning_text
    written["tool_calls"] = [
        {
            "id": call.id,
            "type": "function",
            "function": {"name": call.tool_name, "arguments": json.dumps(call.arguments, ensure_ascii=False)},
        }
        for call in message.tool_calls
    ]
    return written


def _words(result: object) -> str:
    if isinstance(result, str):
        return result
    return "\n".join(part.text for part in result if isinstance(part, TextContent)) if isinstance(result, list) else ""


def _sliding(_: int) -> list[Compactor]:
    return [SlidingWindowCompactor()]


def _pruned(_: int) -> list[Compactor]:
    return [ToolResultPruningCompactor(), SlidingWindowCompactor()]


def _summarized(budget: int) -> list[Compactor]:
    room = room_for_summary(budget)
    writer = SummarizationCompactor(_Summarizer(room), approximate_summary_tokens=room)
    return [writer, SlidingWindowCompactor()]


STRATEGIES = {
    "sliding": _way(_sliding),
    "prune": _way(_pruned),
    "summarize": _way(_summarized),
}
